/*
 * target.c
 *	  Opens an index for merging: takes the locks, checks that the index can be merged, and switches
 *	  to the table's owner, in a security-restricted operation.
 *
 * The locks are those of an inserter: RowExclusiveLock on the table, then on the index.  So
 * commands that conflict with inserts also conflict with merges: TRUNCATE, REINDEX, DROP, and the
 * corresponding phases of their CONCURRENTLY variants.
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
 * Returns true for a partitioned lsm index, false for an lsm index that has pages.  Raises an error
 * for any other relation.  Takes no lock.
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
lock_relation_oid(Oid oid, bool wait)
{
	if (!wait)
		return ConditionalLockRelationOid(oid, RowExclusiveLock);
	LockRelationOid(oid, RowExclusiveLock);
	return true;
}

/*
 * Lock and open both relations.  Until they are locked, either may be dropped, and another table's
 * index may get the OID.
 */
static LsmOpenResult
open_target_relations(LsmTarget *target, Oid index_oid, bool wait)
{
	Oid			heap_oid = IndexGetRelation(index_oid, true);

	if (!OidIsValid(heap_oid))
		return LSM_OPEN_GONE;
	if (!lock_relation_oid(heap_oid, wait))
		return LSM_OPEN_LOCKED;
	if (!lock_relation_oid(index_oid, wait))
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

/* Is this an lsm index that accepts inserts and that this session can read? */
static bool
is_mergeable(Relation index)
{
	return index->rd_rel->relkind == RELKIND_INDEX &&
		index->rd_rel->relam == get_index_am_oid("lsm", true) &&
		index->rd_index->indislive && index->rd_index->indisready &&
		!RELATION_IS_OTHER_TEMP(index) &&
		RelationGetNumberOfBlocks(index) > 0;
}

/*
 * Open an index for merging and switch to its table's owner.  Waits for locks only if `wait` is
 * set.  After an error, the abort of the transaction restores everything.
 */
LsmOpenResult
lsm_target_open(LsmTarget *target, Oid index_oid, bool wait)
{
	LsmOpenResult result;

	memset(target, 0, sizeof(LsmTarget));
	result = open_target_relations(target, index_oid, wait);
	if (result != LSM_OPENED)
		return result;
	if (!is_mergeable(target->rel))
	{
		relation_close(target->rel, RowExclusiveLock);
		relation_close(target->heap, RowExclusiveLock);
		return LSM_OPEN_GONE;
	}

	lsm_owner_become(target->heap, &target->owner);
	target->index = lsm_index_open(target->rel);
	if (!target->index->ks->encoded && !ActiveSnapshotSet())
	{
		/* Comparison functions may be in a language that needs a snapshot. */
		PushActiveSnapshot(GetTransactionSnapshot());
		target->has_snapshot = true;
	}
	return LSM_OPENED;
}

/* Close and unlock the index and its table, and switch back to the former user. */
void
lsm_target_close(LsmTarget *target)
{
	if (target->has_snapshot)
		PopActiveSnapshot();
	lsm_owner_leave(&target->owner);
	relation_close(target->rel, RowExclusiveLock);
	relation_close(target->heap, RowExclusiveLock);
}
