/*
 * utility_hook.c
 *	  ProcessUtility.
 *
 * 1. The command becomes the running statement, which writes the batches that wait.
 * 2. Constraints WITH (lsm) get their method.
 * 3. Core, or whoever took the hook before, runs the command.
 */
#include "postgres.h"

#include "base/preload.h"
#include "hooks/hooks.h"
#include "ingest/statement.h"
#include "planner/planner.h"
#include "tcop/utility.h"

static ProcessUtility_hook_type previous_utility;

/* The arguments of the hook. */
typedef struct UtilityCall
{
	PlannedStmt *statement;
	const char *text;
	bool		read_only_tree;
	ProcessUtilityContext context;
	ParamListInfo params;
	QueryEnvironment *environment;
	DestReceiver *dest;
	QueryCompletion *completion;
} UtilityCall;

static void
run_command(UtilityCall *call)
{
	ErrorContextCallback hint = {error_context_stack, lsm_constraint_give_hint, NULL};
	ProcessUtility_hook_type next = previous_utility ? previous_utility : standard_ProcessUtility;

	call->statement = lsm_constraint_prepare(call->statement, &call->read_only_tree);
	if (lsm_constraint_may_fail(call->statement))
		error_context_stack = &hint;
	next(call->statement, call->text, call->read_only_tree, call->context, call->params,
		 call->environment, call->dest, call->completion);
	error_context_stack = hint.previous;
}

static void
process_utility(PlannedStmt *statement, const char *text, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	UtilityCall call = {statement, text, read_only_tree, context, params, environment, dest,
	completion};
	LsmStatement outer;

	if (!lsm_preloaded)
	{
		run_command(&call);
		return;
	}
	outer = lsm_statement_begin_utility(statement);
	PG_TRY();
	{
		run_command(&call);
		lsm_statement_flush();
	}
	PG_FINALLY();
	{
		lsm_statement_leave(&outer);
	}
	PG_END_TRY();
	lsm_statement_end();
}

void
lsm_utility_hook_install(void)
{
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
