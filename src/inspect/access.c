/*
 * access.c
 *	  Opens an index for inspection: checks its kind and the caller's rights, and locks it.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xlog.h"
#include "base/compat.h"
#include "catalog/index.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "ingest/batch.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "schedule/schedule.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

static void
access_check_kind(Oid oid)
{
	if (lsm_index_is_partitioned(oid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", get_rel_name(oid)),
				 errdetail("Only the indexes of its partitions have pages.")));
}

static void
access_check_right(Oid oid, LsmInspectRight right)
{
	if (lsm_owns_relation(oid, GetUserId()))
		return;
	/* Members of pg_monitor also have the privileges of pg_stat_scan_tables. */
	if (right == LSM_INSPECT_MONITOR &&
		has_privs_of_role(GetUserId(), ROLE_PG_STAT_SCAN_TABLES))
		return;
	aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(oid));
}

/*
 * Raise an error, as core does, if this session is rebuilding the index, and a function of the
 * index calls us.  Until the new index is complete, the old one does not fit a rewritten table.
 */
void
lsm_inspect_refuse_reindexed(Oid oid)
{
	if (ReindexIsProcessingIndex(oid))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access index \"%s\" while it is being reindexed", get_rel_name(oid))));
}

/* Raise an error if this session cannot read the index's pages. */
static void
access_check_readable(Relation index)
{
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	if (index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot access unlogged index \"%s\" during recovery",
						RelationGetRelationName(index))));
}

/*
 * Open an index and its table, with AccessShareLock on both.  Locks the table first, in the usual
 * order.  Checks the caller's rights before that, so that an unprivileged caller can neither
 * queue for a lock nor make others wait.  Raises an error if the index cannot be inspected.
 */
void
lsm_inspect_open(LsmInspected *in, Oid index_oid, LsmInspectRight right)
{
	Oid			heap_oid;

	access_check_kind(index_oid);
	access_check_right(index_oid, right);
	lsm_inspect_refuse_reindexed(index_oid);

	memset(in, 0, sizeof(LsmInspected));
	heap_oid = IndexGetRelation(index_oid, true);
	if (OidIsValid(heap_oid))
		in->heap = table_open(heap_oid, AccessShareLock);
	in->index = index_open(index_oid, AccessShareLock);

	/* The index may have been dropped, and its OID reused, before its table was locked. */
	if (in->heap == NULL || heap_oid != IndexGetRelation(index_oid, false))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open parent table of index \"%s\"",
						RelationGetRelationName(in->index))));
	access_check_readable(in->index);
	/* The calling statement may have inserted entries already. */
	lsm_batch_flush_index(in->index);
}

/* Close both relations.  Nothing was changed, so the locks are released at once. */
void
lsm_inspect_close(LsmInspected *in)
{
	lsm_owner_leave(&in->owner);
	index_close(in->index, AccessShareLock);
	table_close(in->heap, AccessShareLock);
}
