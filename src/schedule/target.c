/*
 * target.c
 *	  Opening an index for merging on nobody's behalf: the locks, whether it
 *	  may be touched, and as whom (the table's owner, restricted).
 *
 * The locks are those of an inserter, RowExclusiveLock on the table and on the
 * index, in this order.  So whatever may not go on beside inserts does not go
 * on beside merges: TRUNCATE, REINDEX, DROP, the phases of their CONCURRENTLY
 * variants.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/compat.h"
#include "catalog/index.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "schedule/schedule.h"
#include "storage/lmgr.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/*
 * Is it a partitioned lsm index, or one that has pages?  Anything else is an
 * error.  Nothing is locked.
 */
bool
lsm_index_is_partitioned(Oid oid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(oid));
	Form_pg_class form;
	bool		is_partitioned;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", oid)));
	form = (Form_pg_class) GETSTRUCT(tuple);
	if ((form->relkind != RELKIND_INDEX && form->relkind != RELKIND_PARTITIONED_INDEX) ||
		form->relam != get_index_am_oid("lsm", true))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an lsm index", NameStr(form->relname))));
	is_partitioned = form->relkind == RELKIND_PARTITIONED_INDEX;
	ReleaseSysCache(tuple);
	return is_partitioned;
}

static bool
lock(Oid oid, bool wait)
{
	if (!wait)
		return ConditionalLockRelationOid(oid, RowExclusiveLock);
	LockRelationOid(oid, RowExclusiveLock);
	return true;
}

/*
 * Lock and open both relations.  Each may vanish until it is locked, and the
 * index may come to be another's.
 */
static LsmOpenResult
open_relations(LsmTarget *target, Oid index_oid, bool wait)
{
	Oid			heap_oid = IndexGetRelation(index_oid, true);

	if (!OidIsValid(heap_oid))
		return LSM_OPEN_GONE;
	if (!lock(heap_oid, wait))
		return LSM_OPEN_LOCKED;
	if (!lock(index_oid, wait))
	{
		UnlockRelationOid(heap_oid, RowExclusiveLock);
		return LSM_OPEN_LOCKED;
	}
	if (heap_oid == IndexGetRelation(index_oid, true))
		target->heap = try_relation_open(heap_oid, NoLock);
	if (target->heap != NULL)
		target->rel = try_relation_open(index_oid, NoLock);
	if (target->rel != NULL)
		return LSM_OPENED;
	if (target->heap != NULL)
		relation_close(target->heap, NoLock);
	UnlockRelationOid(index_oid, RowExclusiveLock);
	UnlockRelationOid(heap_oid, RowExclusiveLock);
	return LSM_OPEN_GONE;
}

/* Does it have runs that others write to, too? */
static bool
is_ready(Relation index)
{
	return index->rd_rel->relkind == RELKIND_INDEX &&
		index->rd_rel->relam == get_index_am_oid("lsm", true) &&
		index->rd_index->indislive && index->rd_index->indisready &&
		!RELATION_IS_OTHER_TEMP(index) &&
		RelationGetNumberOfBlocks(index) > 0;
}

/*
 * Open an index for merging and become its table's owner.  Without `wait`
 * nothing is waited for.  On error the transaction's abort restores everything.
 */
LsmOpenResult
lsm_target_open(LsmTarget *target, Oid index_oid, bool wait)
{
	LsmOpenResult result;

	memset(target, 0, sizeof(LsmTarget));
	result = open_relations(target, index_oid, wait);
	if (result != LSM_OPENED)
		return result;
	if (!is_ready(target->rel))
	{
		relation_close(target->rel, RowExclusiveLock);
		relation_close(target->heap, RowExclusiveLock);
		return LSM_OPEN_GONE;
	}

	lsm_owner_become(target->heap, &target->owner);
	target->index = lsm_index_open(target->rel);
	if (!target->index->ks->encoded && !ActiveSnapshotSet())
	{
		/* Comparison functions may be in any language, which may need one. */
		PushActiveSnapshot(GetTransactionSnapshot());
		target->snapshot = true;
	}
	return LSM_OPENED;
}

/* Close it, unlock it, and be oneself again. */
void
lsm_target_close(LsmTarget *target)
{
	if (target->snapshot)
		PopActiveSnapshot();
	lsm_owner_leave(&target->owner);
	relation_close(target->rel, RowExclusiveLock);
	relation_close(target->heap, RowExclusiveLock);
}
