/*
 * look_ahead.c
 *	  INSERT ... ON CONFLICT of many rows: takes rows ahead, and prefetches the pages that
 *	  the executor will read for them.
 *
 * The executor inserts the rows one by one.  For each row, it searches the index for the key.  If
 * the key exists, the executor reads the table row with this key.  Otherwise it inserts the new
 * row, and aminsert searches for the key again.  Each search reads all runs.  If the index is
 * larger than memory, a key that exists costs a read of a leaf and a read of a table page.  The
 * executor waits for both reads.
 *
 * So we put a function between the ModifyTable node and the plan below it.  The function takes many
 * rows at once, searches for their keys together (look_ahead_keys.c), prefetches the table's pages,
 * and hands the rows on one by one.  The executor still searches for each key that exists, but now
 * finds the pages in memory.  For a missing key, only aminsert searches, and only in new runs.
 *
 * With DO NOTHING, keep_back.c keeps some rows back.  look_ahead_plan.c decides which plans may run
 * ahead.
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
 * If most keys exist, looking ahead pays only if at least one page had to be read for each
 * ROWS_PER_READ rows.
 */
#define ROWS_PER_READ	16

/* When looking ahead has not paid, this many rows pass without it. */
#define ROWS_TO_PASS	2048

static LsmLookAhead *current;

/* Will the executor read a block of the table for this row? */
static inline bool
needs_block(const LsmLookAhead *a, int row)
{
	return BlockNumberIsValid(a->blocks[row]) && !a->conflicts[row];
}

/*
 * Called when all taken rows have been handed on.  If most keys existed and their rows were in
 * memory, looking ahead did not pay, and the next ROWS_TO_PASS rows pass without it.
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

	/*
	 * Use a copy of the descriptor.  Otherwise each slot would take a reference to the relation's
	 * descriptor.
	 */
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

/* Prefetch table pages for the rows that come next. */
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
 * Called when the executor is about to get a row.  Let the executor check for a conflict, unless
 * the key is absent.  If another session inserts the key in the meantime, aminsert finds the
 * conflict (am/insert.c), and the executor tries again with the check.
 */
static inline void
let_check(LsmLookAhead *a, bool is_absent)
{
	if (a->skips_checks)
		a->info->ii_Unique = !is_absent;
}

/* Returns the next row for the executor, or NULL if all taken rows are done. */
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

/* The function that replaces the source's own function. */
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

/* Called when the executor has initialized a plan.  Prepares to look ahead if the plan allows. */
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
	/* ExecProcNode calls our function even for the first row, and EXPLAIN's timing includes it. */
	a->source->ExecProcNodeReal = get_row_ahead;
}

/*
 * Forget what a failed statement knew about keys.  The statement's memory may outlive the
 * (sub)transaction, and the table may be truncated after that.
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
