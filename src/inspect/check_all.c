/*
 * check_all.c
 *	  lsm_check_all: verifies all indexes of a schema or of the database, and returns the faults as
 *	  rows.
 *
 * Each index is verified in a subtransaction of its own, so that the fault of one index does not
 * keep the next one from being verified.  In recovery there is no subtransaction, and the first
 * fault ends the statement.  lsm_check stops at the first fault of an index, so the result has at
 * most one row for an index.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "base/compat.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "funcapi.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(lsm_check_all);

/* Is this an lsm index that has pages, and can this session read them? */
static bool
is_readable_index(Form_pg_class class, Oid method)
{
	return class->relkind == RELKIND_INDEX && class->relam == method &&
		!isOtherTempNamespace(class->relnamespace) &&
		!(class->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress());
}

/* List the indexes that the user may verify.  A schema of InvalidOid stands for all schemas. */
static List *
list_indexes(Oid schema)
{
	Relation	classes = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(classes, InvalidOid, false, NULL, 0, NULL);
	Oid			method = get_index_am_oid("lsm", false);
	List	   *indexes = NIL;
	HeapTuple	tuple;

	while ((tuple = systable_getnext(scan)) != NULL)
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(tuple);

		if (!is_readable_index(class, method) ||
			(OidIsValid(schema) && class->relnamespace != schema) ||
			!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(class->oid)))
			continue;
		if (lsm_owns_relation(class->oid, GetUserId()))
			indexes = lappend_oid(indexes, class->oid);
		else
			ereport(WARNING,
					(errmsg("permission denied to check index \"%s\", skipping it",
							NameStr(class->relname))));
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
	return indexes;
}

/*
 * Does this index still exist, and is it valid?  A failed CREATE INDEX CONCURRENTLY leaves an
 * invalid index.
 */
static bool
is_valid_index(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	bool		valid;

	if (!HeapTupleIsValid(tuple))
		return false;
	valid = ((Form_pg_index) GETSTRUCT(tuple))->indisvalid;
	ReleaseSysCache(tuple);
	return valid;
}

/*
 * Describe a fault as the server log would.  An error other than corruption does not mean that the
 * index is damaged, since a function of the table's owner may have raised it.
 */
static char *
describe_fault(const ErrorData *error)
{
	const char *prefix = error->sqlerrcode == ERRCODE_INDEX_CORRUPTED ||
		error->sqlerrcode == ERRCODE_DATA_CORRUPTED ? "" : "could not be verified: ";

	return error->detail == NULL ? psprintf("%s%s", prefix, error->message) :
		psprintf("%s%s: %s", prefix, error->message, error->detail);
}

/* Must this error end the statement? */
static bool
is_of_statement(int sqlerrcode)
{
	return ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_TRANSACTION_ROLLBACK ||
		ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION;
}

/*
 * Lock and verify an index.  Raises an error at its first fault.  An index that is invalid, or was
 * dropped meanwhile, counts as sound.
 */
static void
verify_locked(Oid index, bool heapallindexed)
{
	Oid			table = IndexGetRelation(index, true);

	if (!OidIsValid(table))
		return;
	LockRelationOid(table, AccessShareLock);
	LockRelationOid(index, AccessShareLock);
	if (is_valid_index(index))
		DirectFunctionCall2(lsm_check, ObjectIdGetDatum(index), BoolGetDatum(heapallindexed));
	UnlockRelationOid(index, AccessShareLock);
	UnlockRelationOid(table, AccessShareLock);
}

/*
 * Verify an index in this memory context.  Returns NULL if the index is sound, else the error that
 * lsm_check raised.
 */
static ErrorData *
verify_in_subtransaction(Oid index, bool heapallindexed, MemoryContext context)
{
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		verify_locked(index, heapallindexed);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error != NULL && is_of_statement(error->sqlerrcode))
		ReThrowError(error);
	return error;
}

/*
 * Verify an index.  Returns NULL if the index is sound, else a description of its first fault.  In
 * recovery, uses no subtransaction, and raises the fault as an error.  If replay conflicted with a
 * subtransaction, the server would end the session, not just the statement.
 */
static char *
find_fault(Oid index, bool heapallindexed)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(caller, "pg_lsm check of an index",
												  ALLOCSET_DEFAULT_SIZES);
	ErrorData  *error = NULL;
	char	   *fault = NULL;

	MemoryContextSwitchTo(context);
	if (RecoveryInProgress())
		verify_locked(index, heapallindexed);
	else
		error = verify_in_subtransaction(index, heapallindexed, context);
	MemoryContextSwitchTo(caller);
	if (error != NULL)
		fault = describe_fault(error);
	MemoryContextDelete(context);
	return fault;
}

/*
 * lsm_check_all(schema regnamespace, heapallindexed boolean).  Returns a row for each index that
 * is damaged or could not be verified: the index, and the error that lsm_check raises.
 */
Datum
lsm_check_all(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			schema = PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
	bool		heapallindexed = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);
	List	   *indexes;
	ListCell   *cell;

	lsm_init_set(fcinfo, 2);
	indexes = list_indexes(schema);
	foreach(cell, indexes)
	{
		Oid			index = lfirst_oid(cell);
		char	   *fault = find_fault(index, heapallindexed);

		if (fault != NULL)
		{
			Datum		values[] = {ObjectIdGetDatum(index), CStringGetTextDatum(fault)};
			bool		nulls[] = {false, false};

			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		}
		CHECK_FOR_INTERRUPTS();
	}
	return (Datum) 0;
}
