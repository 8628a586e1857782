/*
 * executor_hooks.c
 *	  Handles the hooks ExecutorStart, ExecutorRun and ExecutorFinish.
 *
 * ExecutorStart first lets the executor initialize the plan.  Then:
 * 1. Index-only scans get our step function.  This comes first, because it must see only the
 *    executor's own functions.
 * 2. ON CONFLICT learns which operators of a unique lsm index mean "equal" (before 18).
 * 3. The plan below ON CONFLICT gets a node function that looks ahead.
 * 4. Scans get keys for row comparisons (before 18).
 *
 * ExecutorRun and ExecutorFinish begin and end the statement for batches (ingest/statement.c).
 * Only a preloaded library can batch.
 */
#include "postgres.h"

#include "base/compat.h"
#include "base/preload.h"
#include "executor/executor.h"
#include "hooks/hooks.h"
#include "ingest/statement.h"
#include "planner/planner.h"
#include "scan/scan.h"
#include "unique/on_conflict.h"

static ExecutorStart_hook_type previous_start;
static ExecutorRun_hook_type previous_run;
static ExecutorFinish_hook_type previous_finish;

static void
start_executor(QueryDesc *query, int flags)
{
	MemoryContext old;

	if (previous_start)
		previous_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
	if (query->planstate == NULL || (flags & EXEC_FLAG_EXPLAIN_ONLY))
		return;
	old = MemoryContextSwitchTo(query->estate->es_query_cxt);
	lsm_index_only_start(query->planstate);
#ifndef LSM_UNIQUE_TAKES_ALL
	lsm_on_conflict_start(query);
#endif
	lsm_look_ahead_start(query);
#ifndef LSM_EXECUTOR_TAKES_ROWS
	lsm_row_compare_start(query->planstate);
#endif
	MemoryContextSwitchTo(old);
}

/* Run the plan.  If core may refuse ON CONFLICT on a partition, add a hint to core's error. */
static void
run_query_plan(LSM_EXECUTOR_RUN_ARGS)
{
#ifndef LSM_UNIQUE_TAKES_ALL
	ErrorContextCallback hint = {error_context_stack, lsm_on_conflict_give_hint, NULL};

	if (lsm_on_conflict_may_route(query))
		error_context_stack = &hint;
#endif
	if (previous_run)
		previous_run(LSM_EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(LSM_EXECUTOR_RUN_PASS);
#ifndef LSM_UNIQUE_TAKES_ALL
	error_context_stack = hint.previous;
#endif
}

static void
run_executor(LSM_EXECUTOR_RUN_ARGS)
{
	LsmStatement outer;

	if (!lsm_preloaded)
	{
		run_query_plan(LSM_EXECUTOR_RUN_PASS);
		return;
	}
	outer = lsm_statement_begin_run(query);
	PG_TRY();
	{
		run_query_plan(LSM_EXECUTOR_RUN_PASS);
		lsm_statement_flush();
	}
	PG_FINALLY();
	{
		lsm_statement_leave(&outer);
	}
	PG_END_TRY();
	lsm_statement_end();
}

static void
finish_plan(QueryDesc *query)
{
	if (previous_finish)
		previous_finish(query);
	else
		standard_ExecutorFinish(query);
}

static void
finish_executor(QueryDesc *query)
{
	LsmStatement outer;

	if (!lsm_preloaded)
	{
		finish_plan(query);
		return;
	}
	outer = lsm_statement_begin_finish(query);
	PG_TRY();
	{
		finish_plan(query);
	}
	PG_FINALLY();
	{
		lsm_statement_leave(&outer);
	}
	PG_END_TRY();
	lsm_statement_end();
}

void
lsm_executor_hooks_install(void)
{
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = start_executor;
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = run_executor;
	previous_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = finish_executor;
}
