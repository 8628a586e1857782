/*
 * access.c
 *	  Opening an index for inspection: what it is, who may look, as whom.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xlog.h"
#include "base/compat.h"
#include "catalog/index.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "compact/batch.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#define LSM_AM_NAME "lsm"

static void
check_kind(Oid oid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(oid));
	Form_pg_class form;
	char	   *am_name = NULL;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", oid)));
	form = (Form_pg_class) GETSTRUCT(tuple);
	if (form->relkind == RELKIND_INDEX || form->relkind == RELKIND_PARTITIONED_INDEX)
		am_name = get_am_name(form->relam);
	if (am_name == NULL || strcmp(am_name, LSM_AM_NAME) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an lsm index", NameStr(form->relname))));
	if (form->relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", NameStr(form->relname)),
				 errdetail("Only the indexes of its partitions have pages.")));
	ReleaseSysCache(tuple);
}

static void
check_right(Oid oid, LsmInspectRight right)
{
	if (lsm_owns_relation(oid, GetUserId()))
		return;
	/* Members of pg_monitor have this role's privileges too. */
	if (right == LSM_INSPECT_MONITOR &&
		has_privs_of_role(GetUserId(), ROLE_PG_STAT_SCAN_TABLES))
		return;
	aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(oid));
}

/* Are there pages that this session can read? */
static void
check_readable(Relation index)
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
 * Open an index and its table, which is locked first, as everywhere.  Rights
 * are checked before that: who may not look does not get to wait, or to make
 * others wait, either.
 */
void
lsm_inspect_open(LsmInspected *in, Oid index_oid, LsmInspectRight right)
{
	Oid			heap_oid;

	check_kind(index_oid);
	check_right(index_oid, right);

	in->as_owner = false;
	in->heap = NULL;
	heap_oid = IndexGetRelation(index_oid, true);
	if (OidIsValid(heap_oid))
		in->heap = table_open(heap_oid, AccessShareLock);
	in->index = index_open(index_oid, AccessShareLock);

	/* The index may have been dropped before its table was locked. */
	if (in->heap == NULL || heap_oid != IndexGetRelation(index_oid, false))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open parent table of index \"%s\"",
						RelationGetRelationName(in->index))));
	check_readable(in->index);
	/* We are called by a statement that may have inserted already. */
	lsm_batch_flush_index(in->index);
}

/*
 * From now on code of operator classes and index expressions runs with the
 * rights of the table's owner, who chose it, and no others.  On error the
 * transaction's abort restores everything.
 */
void
lsm_inspect_become_owner(LsmInspected *in)
{
	GetUserIdAndSecContext(&in->user, &in->sec_context);
	SetUserIdAndSecContext(in->heap->rd_rel->relowner,
						   in->sec_context | SECURITY_RESTRICTED_OPERATION);
	in->guc_level = NewGUCNestLevel();
	lsm_restrict_search_path();
	in->as_owner = true;
}

/* Nothing was changed, so the locks need not be kept. */
void
lsm_inspect_close(LsmInspected *in)
{
	if (in->as_owner)
	{
		AtEOXact_GUC(false, in->guc_level);
		SetUserIdAndSecContext(in->user, in->sec_context);
	}
	index_close(in->index, AccessShareLock);
	table_close(in->heap, AccessShareLock);
}
