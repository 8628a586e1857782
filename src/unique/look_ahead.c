/*
 * look_ahead.c
 *	  INSERT ... ON CONFLICT of many rows: takes rows ahead, and prefetches what they will read.
 *
 * The executor inserts one row after the other.  It looks for the row's key and, if the key is
 * there, for the row that has it.  Then it inserts the new row, whose entry looks for the key
 * again.  Each search asks all runs.  In an index larger than memory, a key that is there
 * costs a read of a leaf and a read of a page of the table, and the executor waits for both.
 *
 * So we put a function between the ModifyTable node and the plan below it.  It takes many rows
 * at once, looks for their keys together (look_ahead_keys.c), prefetches the table's pages,
 * and hands the rows on one by one.  The executor still looks for each key that is there, but it
 * finds the pages in memory.  A missing key is looked for by its insert only, in what is new.
 *
 * With DO NOTHING we keep some rows back altogether: keep_back.c.  look_ahead_plan.c says
 * which plans may run ahead.
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/cannot_fail.h"
#include "base/limits.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "unique/look_ahead_state.h"
#include "unique/on_conflict.h"
#include "utils/memutils.h"

/*
 * If most keys are there, looking ahead pays only if at least one page in so many rows had to
 * be read.
 */
#define ROWS_PER_READ	16

/* Rows that pass without looking ahead after it did not pay. */
#define ROWS_TO_PASS	2048

static LsmLookAhead *current;

/* Will the executor read a block of the table for this row? */
static inline bool
needs_block(const LsmLookAhead *a, int row)
{
	return BlockNumberIsValid(a->blocks[row]) && !a->conflicts[row];
}

/*
 * All taken rows are handed on.  If most keys were there, and their rows in memory, looking
 * ahead did not pay, and some rows pass.
 */
static void
judge_look_ahead(LsmLookAhead *a, LsmIndex *index)
{
	int			found = 0;

	for (int i = 0; i < a->count; i++)
		found += needs_block(a, i);
	if (found * 2 > a->count && a->missing * ROWS_PER_READ < a->count)
		index->rows_to_pass = ROWS_TO_PASS;
}

/* Does the next row pass without looking ahead? */
static bool
lets_row_pass(LsmIndex *index)
{
	if (index->rows_to_pass == 0 || lsm_debug_prefetch_scan)
		return false;
	index->rows_to_pass--;
	return true;
}

static bool
is_row_memory_full(const LsmLookAhead *a)
{
	return MemoryContextMemAllocated(a->row_context, false) >= (Size) work_mem * 1024;
}

static void
keep_copy(LsmLookAhead *a, TupleTableSlot *row)
{
	MemoryContext old = MemoryContextSwitchTo(a->row_context);

	/* A copy of the descriptor: each slot would take a reference to a relation's own. */
	if (a->descriptor == NULL)
		a->descriptor = CreateTupleDescCopyConstr(row->tts_tupleDescriptor);
	if (a->rows[a->count] == NULL)
		a->rows[a->count] = MakeSingleTupleTableSlot(a->descriptor, row->tts_ops);
	ExecCopySlot(a->rows[a->count], row);
	/* Keep no pin. */
	ExecMaterializeSlot(a->rows[a->count]);
	MemoryContextSwitchTo(old);
	a->count++;
}

/* Take rows from the plan below. */
static void
take_rows(LsmLookAhead *a)
{
	lsm_look_ahead_forget_keys(a);
	a->count = a->next = a->asked = a->missing = 0;
	if (is_row_memory_full(a))
	{
		MemoryContextReset(a->row_context);
		memset(a->rows, 0, sizeof(a->rows));
		a->descriptor = NULL;
	}
	do
	{
		TupleTableSlot *row = a->source_method(a->source);

		if (TupIsNull(row))
		{
			a->ended = true;
			break;
		}
		keep_copy(a, row);
	} while (a->count < LSM_ROWS_AHEAD && !is_row_memory_full(a));
}

/* Prefetch pages of the table for the rows from the next one on. */
static void
prefetch_blocks(LsmLookAhead *a)
{
	for (; a->ahead > 0 && a->asked < a->count; a->asked++)
	{
		if (!needs_block(a, a->asked))
			continue;
		a->missing += lsm_buffer_ask(a->target->ri_RelationDesc, a->blocks[a->asked]);
		a->ahead--;
	}
	if (a->next < a->asked && needs_block(a, a->next))
		a->ahead++;
}

/*
 * The executor is about to get a row.  Before it inserts the row it checks whether there is a
 * conflict, unless the key is absent.  If another session has inserted the key since, the
 * insert itself finds that out (am/insert.c), and the executor starts again, with a check.
 */
static inline void
let_check(LsmLookAhead *a, bool is_absent)
{
	if (a->skips_checks)
		a->info->ii_Unique = !is_absent;
}

/* The next row for the executor, or NULL if all taken rows are done. */
static TupleTableSlot *
hand_on_row(LsmLookAhead *a)
{
	while (a->next < a->count)
	{
		int			row;

		prefetch_blocks(a);
		row = a->next++;
		if (!a->conflicts[row] || !lsm_keep_back_row(a, row))
		{
			let_check(a, a->absent[row]);
			return a->rows[row];
		}
		CHECK_FOR_INTERRUPTS();
	}
	return NULL;
}

static void
clear_rows(LsmLookAhead *a)
{
	for (int i = 0; i < a->count; i++)
		ExecClearTuple(a->rows[i]);
	a->count = a->next = 0;
}

/* The function that replaces the source's own. */
static TupleTableSlot *
get_row_ahead(PlanState *source)
{
	LsmLookAhead *a = current;
	TupleTableSlot *row;
	LsmIndex   *index;

	while (a->source != source)
		a = a->outer;
	while ((row = hand_on_row(a)) == NULL)
	{
		if (!a->is_decided)
			lsm_look_ahead_choose_index(a);
		if (a->index == NULL)
			return a->source_method(source);
		let_check(a, false);
		index = lsm_index_open(a->index);
		if (a->count > 0)
			judge_look_ahead(a, index);
		clear_rows(a);
		if (a->ended)
			return NULL;
		if (lets_row_pass(index))
			return a->source_method(source);
		take_rows(a);
		if (a->count > 0)
			lsm_look_ahead_find_keys(a);
	}
	return row;
}

/* --- statements -------------------------------------------------------------- */

/* A callback for the reset of the executor's memory. */
static void
forget_statement(void *arg)
{
	LsmLookAhead **link = &current;

	while (*link != arg)
		link = &(*link)->outer;
	*link = (*link)->outer;
	lsm_looked_for_release(&((LsmLookAhead *) arg)->keys);
}

/* The executor has initialised a plan: take rows ahead if the plan allows it. */
void
lsm_look_ahead_start(QueryDesc *query)
{
	ModifyTableState *state = (ModifyTableState *) query->planstate;
	LsmLookAhead *a;

	if (!lsm_may_look_ahead(query))
		return;
	a = palloc0(sizeof(LsmLookAhead));
	a->state = state;
	a->target = state->resultRelInfo;
	a->source = outerPlanState(state);
	a->source_method = a->source->ExecProcNodeReal;
	a->statement_context = CurrentMemoryContext;
	a->row_context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm rows",
										   ALLOCSET_DEFAULT_SIZES);
	a->key_context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm keys",
										   ALLOCSET_DEFAULT_SIZES);
	a->on_reset.func = forget_statement;
	a->on_reset.arg = a;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &a->on_reset);
	a->outer = current;
	current = a;
	/* ExecProcNode calls it from the first row on, within what EXPLAIN measures. */
	a->source->ExecProcNodeReal = get_row_ahead;
}

/*
 * A statement's memory may outlive its failure, and its table may be truncated then.  What the
 * statement has found must not outlive it.
 */
static void
forget_at_transaction_end(XactEvent event, void *unused)
{
	LSM_CANNOT_FAIL_BEGIN();
	lsm_looked_for_forget();
	LSM_CANNOT_FAIL_END();
}

static void
forget_at_subtransaction_abort(SubXactEvent event, SubTransactionId id, SubTransactionId parent,
							   void *unused)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		lsm_looked_for_forget();
}

/* Called when the library is loaded. */
void
lsm_look_ahead_init(void)
{
	RegisterXactCallback(forget_at_transaction_end, NULL);
	RegisterSubXactCallback(forget_at_subtransaction_abort, NULL);
}
