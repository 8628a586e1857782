/*
 * statement.c
 *	  Which statements may batch, and when their batches are written.
 *
 * Hooks around the executor and utility commands keep a stack of what is
 * running, on the C stack.  Inserts may wait only in a statement that was
 * recognised as one whose end we see: COPY FROM, INSERT, UPDATE, MERGE.  All
 * others, and what inserts without the executor (logical replication), go into
 * the write buffer row by row.
 *
 * Batches are written when the outermost statement ends, so a function that
 * inserts single rows in a loop fills batches too.  What must be written
 * earlier is listed in docs/design/batches.md.  Those of unique indexes are
 * written when their own statement ends.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "base/compat.h"
#include "base/limits.h"
#include "executor/executor.h"
#include "ingest/batch.h"
#include "ingest/statement.h"
#include "miscadmin.h"
#include "tcop/utility.h"

static LsmStatement current;

/* Rows of an outermost statement that do not wait: there may be no more. */
#define SINGLE_ROWS 4

/*
 * May an insert into this index wait?  The statement has inserted so many rows
 * singly.  Snapshots with a command id below *seen_from do not see its row.
 *
 * Not where somebody must find the entry at once: exclusion constraints look
 * for conflicts after the insert, serializable transactions for readers.  Not
 * in security-restricted operations, which may end before their statement does.
 */
bool
lsm_statement_batches(IndexInfo *info, int rows, CommandId *seen_from)
{
	*seen_from = current.seen_from;
	if (current.depth == 1 && !current.many_rows && rows < SINGLE_ROWS)
		return false;
	return current.batches && lsm_batch_inserts && info->ii_ExclusionOps == NULL &&
		!info->ii_Concurrent && !IsolationIsSerializable() && !IsParallelWorker() &&
		!InSecurityRestrictedOperation();
}

/*
 * May an insert into this unique index wait?  Only in statements that change no
 * rows: those would see others' old keys as gone, or not, as a batch happens to be
 * written.  *statement tells which one it is.
 */
bool
lsm_statement_batches_unique(IndexInfo *info, int rows, CommandId *seen_from,
							 uint64 *statement)
{
	*statement = current.serial;
	return current.only_inserts && (current.many_rows || rows >= SINGLE_ROWS) &&
		lsm_statement_batches(info, rows, seen_from);
}

/* Another extension's node that runs a ModifyTable, of whose rows it alone knows. */
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
 * A ModifyTable node may batch unless it inserts speculatively: a tuple whose
 * insertion failed is killed, and its line pointer is free at once.
 */
static bool
node_batches(Plan *plan, bool *modifies, bool *only_inserts)
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
query_batches(QueryDesc *query, bool *only_inserts)
{
	bool		modifies = false;
	ListCell   *cell;

	*only_inserts = true;

	if (query->plannedstmt == NULL || query->estate == NULL ||
		!node_batches(query->plannedstmt->planTree, &modifies, only_inserts))
		return false;
	foreach(cell, query->plannedstmt->subplans)
	{
		if (!node_batches(lfirst(cell), &modifies, only_inserts))
			return false;
	}
	return modifies;
}

/* Begin a statement; returns what was running, to be put back at its end. */
static LsmStatement
begin_statement(bool batches, CommandId seen_from)
{
	static uint64 last_serial = 0;
	LsmStatement outer = current;

	current.depth++;
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
	bool		batches = query_batches(query, &only_inserts);
	LsmStatement outer = begin_statement(batches, batches ? query->estate->es_output_cid + 1 :
										FirstCommandId);

	current.only_inserts = only_inserts;
	return outer;
}

/* ExecutorRun begins.  Returns what was running, for lsm_statement_leave. */
LsmStatement
lsm_statement_begin_run(QueryDesc *query)
{
	/* Parallel workers scan by themselves and see none of our memory. */
	if (query->plannedstmt != NULL && query->plannedstmt->parallelModeNeeded)
		lsm_batch_flush_all();
	return begin_query(query);
}

/* ExecutorFinish begins.  Triggers run here, and the rest of data-modifying CTEs. */
LsmStatement
lsm_statement_begin_finish(QueryDesc *query)
{
	LsmStatement outer = begin_query(query);

	/* Triggers come before we do. */
	current.only_inserts = false;
	return outer;
}

/*
 * Does this command nothing itself to tables and indexes that exist, but run
 * statements?  Within all others (TRUNCATE, ALTER TABLE, DROP) triggers, event
 * triggers and expressions may insert into what the command then rebuilds or
 * drops: there each statement is an outermost one.
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
 * The first command id with which a snapshot may see what COPY inserts.  Rows that it
 * freezes are seen by every snapshot.
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

/* A utility command begins. */
LsmStatement
lsm_statement_begin_utility(PlannedStmt *statement)
{
	Node	   *node = statement->utilityStmt;
	bool		batches = IsA(node, CopyStmt) && ((CopyStmt *) node)->is_from;
	LsmStatement outer;

	/* Commands may look at indexes by other ways than scans. */
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
 * ExecutorRun or a command has ended well.  Unique indexes are checked now: whoever runs
 * the statement may catch the error.
 */
void
lsm_statement_flush(void)
{
	lsm_batch_flush_statement(current.serial);
}

/* What was running before is put back, also after an error. */
void
lsm_statement_leave(const LsmStatement *outer)
{
	current = *outer;
}

/* A statement has ended well, and what was running before is put back. */
void
lsm_statement_end(void)
{
	if (current.depth == 0)
		lsm_batch_flush_all();
}

/*
 * The last net.  Nothing waits at the end of a transaction, but in a procedure
 * that commits.
 */
static void
at_transaction_end(XactEvent event, void *arg)
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
			lsm_batch_forget_all();
			break;
		default:
			break;
	}
}

static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent,
					  void *arg)
{
	if (event == SUBXACT_EVENT_COMMIT_SUB || event == SUBXACT_EVENT_ABORT_SUB)
		lsm_batch_end_subtransaction(GetCurrentTransactionNestLevel(),
									 event == SUBXACT_EVENT_COMMIT_SUB);
}

/* At server start. */
void
lsm_statement_init(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
}
