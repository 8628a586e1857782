/*
 * statement.c
 *	  Decides which statements may batch, and when their batches are written.
 *
 * The hooks call these functions at the beginning and the end of statements and utility commands,
 * and keep the outer statements on the C stack.  Entries may wait only in a statement whose end we
 * see: COPY FROM, INSERT, UPDATE, MERGE.  All other inserts, such as those of logical replication,
 * go into the write buffer row by row.
 *
 * Batches are written when the outermost statement ends, so even a function that inserts single
 * rows in a loop fills batches.  Batches of unique indexes are written when their own statement
 * ends.  docs/design/batches.md lists the cases in which a batch is written earlier.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/cannot_fail.h"
#include "base/compat.h"
#include "base/limits.h"
#include "catalog/partition.h"
#include "catalog/pg_trigger.h"
#include "executor/executor.h"
#include "ingest/batch.h"
#include "ingest/statement.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

/*
 * An outermost statement inserts its first rows one by one, since most statements have no more.
 * Into a unique index, every statement does so, except COPY.
 */
#define SINGLE_ROWS 4

/* The innermost running statement. */
static LsmStatement current;

/*
 * May an entry of this index wait?  `rows` is the number of rows that the statement has inserted
 * one by one.  Snapshots with a command id below *seen_from do not see the row.
 *
 * An entry cannot wait if somebody must find it at once.  Exclusion constraints search for
 * conflicts right after the insert, and serializable transactions check for readers.  Nor can an
 * entry wait in a security-restricted operation, which may end before the statement does.
 *
 * `may_fail`: comparing the entry may raise an error.  If a block in a function handles errors, its
 * statements must raise them, and no statement of another block.
 */
bool
lsm_statement_batches(IndexInfo *info, bool may_fail, int rows, CommandId *seen_from)
{
	*seen_from = current.seen_from;
	if (may_fail && GetCurrentTransactionNestLevel() > current.level)
		return false;
	if (current.depth == 1 && !current.many_rows && rows < SINGLE_ROWS)
		return false;
	return current.batches && lsm_batch_inserts && info->ii_ExclusionOps == NULL &&
		!info->ii_Concurrent && !IsolationIsSerializable() && !IsParallelWorker() &&
		!InSecurityRestrictedOperation();
}

/*
 * May an entry of this unique index wait?  Only in a statement that does nothing but insert.  In an
 * UPDATE, the time of the flush would decide whether a row's old key still counts.  Sets *statement
 * to the statement's serial number.
 */
bool
lsm_statement_batches_unique(IndexInfo *info, int rows, CommandId *seen_from,
							 uint64 *statement)
{
	*statement = current.serial;
	return current.only_inserts && (current.many_rows || rows >= SINGLE_ROWS) &&
		lsm_statement_batches(info, false, rows, seen_from);
}

/* Does the table, or a partitioned table above it, have an AFTER INSERT trigger? */
static bool
has_after_trigger(Oid table)
{
	Relation	triggers = table_open(TriggerRelationId, AccessShareLock);
	bool		found = false;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(table));
	scan = systable_beginscan(triggers, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);

		found = !form->tgisinternal && TRIGGER_FOR_AFTER(form->tgtype) &&
			TRIGGER_FOR_INSERT(form->tgtype);
	}
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);
	return found;
}

/*
 * May triggers see the rows of the running command before lsm_statement_flush?  COPY runs AFTER
 * triggers itself.  They must not see duplicates, so entries of unique indexes cannot wait.
 */
bool
lsm_statement_shows_rows(Relation heap)
{
	List	   *parents;
	ListCell   *cell;

	if (!current.many_rows)
		return false;
	if (has_after_trigger(RelationGetRelid(heap)))
		return true;
	if (!heap->rd_rel->relispartition)
		return false;
	parents = get_partition_ancestors(RelationGetRelid(heap));
	foreach(cell, parents)
	{
		if (has_after_trigger(lfirst_oid(cell)))
			return true;
	}
	list_free(parents);
	return false;
}

/* Does a custom scan of another extension run a ModifyTable of its own? */
static bool
hides_changes(const CustomScan *node)
{
	ListCell   *cell;

	foreach(cell, node->custom_plans)
	{
		if (IsA(lfirst(cell), ModifyTable))
			return true;
	}
	return false;
}

/*
 * May this node batch?  A ModifyTable may, unless it inserts speculatively.  If a speculative
 * insertion fails, its tuple is dead at once.  VACUUM could free the line pointer while the entry
 * still waits, and would not find the entry.
 */
static bool
node_may_batch(Plan *plan, bool *modifies, bool *only_inserts)
{
	ModifyTable *node;

	if (plan == NULL)
		return true;
	if (IsA(plan, CustomScan))
		return !hides_changes((CustomScan *) plan);
	if (!IsA(plan, ModifyTable))
		return true;
	node = (ModifyTable *) plan;
	if (node->onConflictAction != ONCONFLICT_NONE)
		return false;
	*modifies |= node->operation != CMD_DELETE;
	*only_inserts &= node->operation == CMD_INSERT;
	return true;
}

static bool
query_may_batch(QueryDesc *query, bool *only_inserts)
{
	bool		modifies = false;
	ListCell   *cell;

	*only_inserts = true;

	if (query->plannedstmt == NULL || query->estate == NULL ||
		!node_may_batch(query->plannedstmt->planTree, &modifies, only_inserts))
		return false;
	foreach(cell, query->plannedstmt->subplans)
	{
		if (!node_may_batch(lfirst(cell), &modifies, only_inserts))
			return false;
	}
	return modifies;
}

/* Begin a statement.  Returns the outer statement, for lsm_statement_leave. */
static LsmStatement
begin_statement(bool batches, CommandId seen_from)
{
	static uint64 last_serial = 0;
	LsmStatement outer = current;

	if (current.depth++ == 0)
		current.level = GetCurrentTransactionNestLevel();
	current.serial = ++last_serial;
	current.only_inserts = false;
	current.many_rows = false;
	current.batches = batches;
	current.seen_from = seen_from;
	return outer;
}

static LsmStatement
begin_query(QueryDesc *query)
{
	bool		only_inserts;
	bool		batches = query_may_batch(query, &only_inserts);
	LsmStatement outer = begin_statement(batches, batches ? query->estate->es_output_cid + 1 :
										FirstCommandId);

	current.only_inserts = only_inserts;
	return outer;
}

/* Called when ExecutorRun begins.  Returns the outer statement, for lsm_statement_leave. */
LsmStatement
lsm_statement_begin_run(QueryDesc *query)
{
	/* Parallel workers do not see our batches. */
	if (query->plannedstmt != NULL && query->plannedstmt->parallelModeNeeded)
		lsm_batch_flush_all();
	return begin_query(query);
}

/*
 * Called when ExecutorFinish begins.  ExecutorFinish runs AFTER triggers and completes
 * data-modifying CTEs.
 */
LsmStatement
lsm_statement_begin_finish(QueryDesc *query)
{
	LsmStatement outer = begin_query(query);

	/* Triggers see the rows before the batch is written. */
	current.only_inserts = false;
	return outer;
}

/*
 * Does this command only run statements, and rebuild or drop no index itself?  In all other
 * commands (TRUNCATE, ALTER TABLE, DROP), triggers, event triggers and expressions may insert into
 * an index that the command then rebuilds or drops.  So each statement in such a command counts as
 * an outermost one.
 */
static bool
only_runs_statements(Node *node)
{
	switch (nodeTag(node))
	{
		case T_CopyStmt:
		case T_DoStmt:
		case T_CallStmt:
		case T_ExecuteStmt:
		case T_ExplainStmt:
		case T_FetchStmt:
			return true;
		default:
			return false;
	}
}

/*
 * Returns the lowest command id of a snapshot that sees COPY's rows.  All snapshots see frozen
 * rows.
 */
static CommandId
copy_is_seen_from(const CopyStmt *copy)
{
	ListCell   *cell;

	foreach(cell, copy->options)
	{
		if (strcmp(((DefElem *) lfirst(cell))->defname, "freeze") == 0)
			return FirstCommandId;
	}
	return GetCurrentCommandId(false) + 1;
}

/* Called when a utility command begins. */
LsmStatement
lsm_statement_begin_utility(PlannedStmt *statement)
{
	Node	   *node = statement->utilityStmt;
	bool		batches = IsA(node, CopyStmt) && ((CopyStmt *) node)->is_from;
	LsmStatement outer;

	/* Commands may read indexes without a scan. */
	lsm_batch_flush_all();
	outer = begin_statement(batches, batches ? copy_is_seen_from((CopyStmt *) node) :
							FirstCommandId);
	current.many_rows = batches;
	current.only_inserts = batches;
	if (!only_runs_statements(node))
		current.depth = 0;
	return outer;
}

/*
 * Called when ExecutorRun or a command has succeeded.  Writes the batches of unique indexes, so
 * that the statement itself raises unique violations and its caller can catch them.
 */
void
lsm_statement_flush(void)
{
	lsm_batch_flush_statement(current.serial);
}

/* Return to the outer statement, even after an error. */
void
lsm_statement_leave(const LsmStatement *outer)
{
	current = *outer;
}

/* Called when a statement has succeeded, after lsm_statement_leave. */
void
lsm_statement_end(void)
{
	if (current.depth == 0)
		lsm_batch_flush_all();
}

/*
 * At commit, write what still waits.  Entries wait at this point only if a procedure or a DO block
 * commits.
 */
static void
end_batches_of_transaction(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			lsm_batch_flush_all();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			LSM_CANNOT_FAIL_BEGIN();
			lsm_batch_forget_all();
			LSM_CANNOT_FAIL_END();
			break;
		default:
			break;
	}
}

static void
end_batches_of_subtransaction(SubXactEvent event, SubTransactionId mine, SubTransactionId parent,
							  void *arg)
{
	if (event == SUBXACT_EVENT_COMMIT_SUB || event == SUBXACT_EVENT_ABORT_SUB)
		lsm_batch_end_subtransaction(GetCurrentTransactionNestLevel(),
									 event == SUBXACT_EVENT_COMMIT_SUB);
}

/* Called at server start. */
void
lsm_statement_init(void)
{
	RegisterXactCallback(end_batches_of_transaction, NULL);
	RegisterSubXactCallback(end_batches_of_subtransaction, NULL);
}
