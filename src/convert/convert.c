/*
 * convert.c
 *	  CALL lsm_convert: moves an index to another method while the table is in use.
 *
 * The SQL function lsm_convert_plan returns the statements.  This file runs them one by one, each
 * as if the client had sent it.  CREATE INDEX CONCURRENTLY and DROP INDEX CONCURRENTLY commit
 * several times while they run, so they refuse to run in a function, a SQL or PL/pgSQL procedure,
 * or a transaction block.  But a procedure that CALL runs at top level may end its transaction, as
 * long as nothing outside the procedure keeps state in the transaction.  The procedure must be
 * written in C, because an SPI connection is such state.  We commit before each statement, so the
 * statement runs as if at top level, in a new transaction with one snapshot.
 *
 * If a statement fails or the server crashes, the next call makes a new plan.  Plans depend only on
 * the catalogs and default_tablespace.
 *
 * Locks: we hold a session-level ShareUpdateExclusiveLock on the table, from before we make the
 * plan until the end.  So neither other DDL on the table nor another lsm_convert of it runs between
 * two statements.  But partitions may be detached or dropped.  Aborting a transaction releases the
 * lock.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "base/compat.h"
#include "base/preload.h"
#include "base/stop_point.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "convert/swap.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "parser/parser.h"
#include "storage/lmgr.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(lsm_convert);

/* lsm_convert_steps names the copy of an index by this and the index's OID. */
#define COPY_PREFIX "lsm_convert_"

/* A row of lsm_convert_plan. */
typedef struct ConvertStep
{
	char	   *action;
	char	   *statement;
} ConvertStep;

/* --- transactions ------------------------------------------------------------- */

/* Commit, and begin a transaction without a snapshot. */
static void
next_transaction(MemoryContext context)
{
	ForgetPortalSnapshots();
	CommitTransactionCommand();
	StartTransactionCommand();
	MemoryContextSwitchTo(context);
}

/* Raise an error unless CALL runs us at top level. */
static void
require_top_level(FunctionCallInfo fcinfo)
{
	CallContext *context = (CallContext *) fcinfo->context;

	if (context == NULL || !IsA(context, CallContext))
		elog(ERROR, "lsm_convert was not called by CALL");
	PreventInTransactionBlock(true, "CALL lsm_convert");
	if (context->atomic || SPI_inside_nonatomic_context())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("CALL lsm_convert cannot be executed from a function or procedure")));
}

/* --- the plan ----------------------------------------------------------------- */

/* Returns the steps, in the given memory context.  `schema` is the schema of pg_lsm. */
static List *
make_plan(Oid index, const char *method, const char *schema, MemoryContext context)
{
	Oid			types[2] = {REGCLASSOID, NAMEOID};
	Datum		values[2] = {ObjectIdGetDatum(index), DirectFunctionCall1(namein, CStringGetDatum(method))};
	List	   *steps = NIL;

	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	if (SPI_execute_with_args(psprintf("SELECT action, statement FROM %s.lsm_convert_plan($1, $2)",
									   quote_identifier(schema)),
							  2, types, values, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "cannot execute lsm_convert_plan");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext outer = MemoryContextSwitchTo(context);
		ConvertStep *step = palloc(sizeof(ConvertStep));
		HeapTuple	row = SPI_tuptable->vals[i];

		step->action = pstrdup(SPI_getvalue(row, SPI_tuptable->tupdesc, 1));
		step->statement = pstrdup(SPI_getvalue(row, SPI_tuptable->tupdesc, 2));
		steps = lappend(steps, step);
		MemoryContextSwitchTo(outer);
	}
	SPI_finish();
	PopActiveSnapshot();
	MemoryContextSwitchTo(context);
	return steps;
}

static void
show_plan(List *steps)
{
	ListCell   *cell;

	foreach(cell, steps)
		ereport(NOTICE, (errmsg_internal("%s", ((ConvertStep *) lfirst(cell))->statement)));
}

/* --- running the plan ----------------------------------------------------------- */

static void
describe_step(void *arg)
{
	ConvertStep *step = *(ConvertStep **) arg;

	if (step != NULL)
		errcontext("lsm_convert, step \"%s\": %s", step->action, step->statement);
}

/* Returns an expression of pg_index, or NULL. */
static Node *
stored_expression(Relation index, AttrNumber number)
{
	bool		isnull;
	Datum		tree = SysCacheGetAttr(INDEXRELID, index->rd_indextuple, number, &isnull);

	return isnull ? NULL : stringToNode(TextDatumGetCString(tree));
}

/*
 * Give CREATE INDEX the expressions and the condition of the index that it copies, and mark it as
 * analyzed.  Core would analyze them as the caller, and turning a literal into a value may run a
 * function, such as the check of a domain.
 */
static void
take_expressions(IndexStmt *statement)
{
	Oid			original = strtoul(statement->idxname + strlen(COPY_PREFIX), NULL, 10);
	Relation	index = index_open(original, AccessShareLock);
	List	   *expressions = (List *) stored_expression(index, Anum_pg_index_indexprs);
	int			next = 0;
	ListCell   *cell;

	foreach(cell, statement->indexParams)
	{
		IndexElem  *element = lfirst_node(IndexElem, cell);

		if (element->expr == NULL)
			continue;
		element->expr = list_nth(expressions, next++);
		element->indexcolname = pstrdup(NameStr(TupleDescAttr(RelationGetDescr(index),
															  foreach_current_index(cell))->attname));
	}
	statement->whereClause = stored_expression(index, Anum_pg_index_indpred);
	statement->transformed = true;
	index_close(index, NoLock);
}

/* Run a command as if the client had sent it. */
static void
run_utility(RawStmt *raw, const char *text)
{
	PlannedStmt *command = makeNode(PlannedStmt);

	if (IsA(raw->stmt, IndexStmt))
		take_expressions(castNode(IndexStmt, raw->stmt));
	command->commandType = CMD_UTILITY;
	command->utilityStmt = raw->stmt;
	ProcessUtility(command, text, false, PROCESS_UTILITY_TOPLEVEL, NULL, NULL, None_Receiver, NULL);
}

static void
run_query(const char *text)
{
	int			result;

	SPI_connect();
	result = SPI_execute(text, false, 0);
	if (result < 0)
		elog(ERROR, "cannot execute a query: %s", SPI_result_code_string(result));
	SPI_finish();
}

/*
 * Run a statement in a transaction of its own.  Names in the statement are qualified, except those
 * of pg_catalog, so no other schema may come first.  The setting ends with the first transaction.
 * By then, CREATE INDEX CONCURRENTLY has looked up all names.
 */
static void
run_step(ConvertStep *step, MemoryContext context)
{
	RawStmt    *raw = linitial_node(RawStmt, raw_parser(step->statement, RAW_PARSE_DEFAULT));

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
	PushActiveSnapshot(GetTransactionSnapshot());
	if (IsA(raw->stmt, SelectStmt))
		run_query(step->statement);
	else
		run_utility(raw, step->statement);
	/* A command that commits leaves no snapshot, but an event trigger may leave the portal's. */
	if (ActiveSnapshotSet() && ActivePortal->portalSnapshot == NULL)
		PopActiveSnapshot();
	next_transaction(context);
}

/* At these points, the process holds the session-level lock. */
static void
reach_step_stop_point(const ConvertStep *step)
{
	if (strcmp(step->action, "build") == 0)
		LSM_STOP_POINT("convert-build");
	else if (strcmp(step->action, "swap") == 0)
		LSM_STOP_POINT("convert-swap");
	else if (strcmp(step->action, "drop") == 0)
		LSM_STOP_POINT("convert-drop");
}

static void
run_steps(List *steps, MemoryContext context)
{
	ConvertStep *current = NULL;
	ErrorContextCallback callback = {error_context_stack, describe_step, &current};
	ListCell   *cell;

	error_context_stack = &callback;
	next_transaction(context);
	foreach(cell, steps)
	{
		current = lfirst(cell);
		reach_step_stop_point(current);
		run_step(current, context);
	}
	error_context_stack = callback.previous;
}

/* --- the procedure ------------------------------------------------------------ */

/* Returns the id by which locks identify the table of an index. */
static LockRelId
table_of(Oid index)
{
	Relation	heap = table_open(lsm_owned_table(index), AccessShareLock);
	LockRelId	id = heap->rd_lockInfo.lockRelId;

	table_close(heap, AccessShareLock);
	return id;
}

/*
 * lsm_convert(index regclass, method name, dry_run boolean)
 */
Datum
lsm_convert(PG_FUNCTION_ARGS)
{
	MemoryContext context = CurrentMemoryContext;
	char	   *schema = get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid));
	Oid			index;
	char	   *method;
	LockRelId	table;
	List	   *steps;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("no argument of lsm_convert may be null")));
	index = PG_GETARG_OID(0);
	method = pstrdup(NameStr(*PG_GETARG_NAME(1)));
	if (PG_GETARG_BOOL(2))
	{
		show_plan(make_plan(index, method, schema, context));
		PG_RETURN_VOID();
	}
	PreventCommandDuringRecovery("lsm_convert()");
	PreventCommandIfReadOnly("lsm_convert()");
	require_top_level(fcinfo);
	if (strcmp(method, "lsm") == 0)
		lsm_require_preload("");
	table = table_of(index);

	/*
	 * Give up our snapshot.  Otherwise we could wait for a lock whose holder waits for old
	 * snapshots to end.
	 */
	next_transaction(context);
	LockRelationIdForSession(&table, ShareUpdateExclusiveLock);
	steps = make_plan(index, method, schema, context);
	if (steps == NIL)
		ereport(NOTICE,
				(errmsg("index \"%s\" already uses method \"%s\"", get_rel_name(index), method)));
	run_steps(steps, context);
	UnlockRelationIdForSession(&table, ShareUpdateExclusiveLock);
	PG_RETURN_VOID();
}
