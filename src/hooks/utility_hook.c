/*
 * utility_hook.c
 *	  Handles the hook ProcessUtility.
 *
 * 1. Waiting batches are written.  The command becomes the running statement.
 * 2. Indexes and constraints get their access method.  alter_table.c prepares ALTER TABLE.
 * 3. The previous hook, or core, runs the command.  Then alter_table.c finishes ALTER TABLE.
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
call_next(UtilityCall *call)
{
	ProcessUtility_hook_type next = previous_utility ? previous_utility : standard_ProcessUtility;

	next(call->statement, call->text, call->read_only_tree, call->context, call->params,
		 call->environment, call->dest, call->completion);
}

/*
 * Like call_next, for ALTER TABLE.  Adds a hint to core's error about a foreign key.  CREATE TABLE
 * creates its foreign keys with ALTER TABLE, too.
 */
static void
call_next_explained(UtilityCall *call)
{
#ifndef LSM_UNIQUE_TAKES_ALL
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		call_next(call);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		lsm_constraint_explain_error();
		PG_RE_THROW();
	}
	PG_END_TRY();
#else
	call_next(call);
#endif
}

/* Run a command that alter_table.c has prepared. */
static void
run_alter_table(UtilityCall *call, LsmAlterTable *alter)
{
	PG_TRY();
	{
		call_next_explained(call);
	}
	PG_FINALLY();
	{
		lsm_alter_table_leave(alter);
	}
	PG_END_TRY();
	lsm_alter_table_finish(alter);
}

static void
run_command(UtilityCall *call)
{
	LsmAlterTable *alter;

	call->statement = lsm_default_method_prepare(call->statement, call->text,
												 &call->read_only_tree);
	call->statement = lsm_constraint_prepare(call->statement, &call->read_only_tree);
	alter = lsm_alter_table_begin(&call->statement, &call->read_only_tree);
	if (alter != NULL)
		run_alter_table(call, alter);
	else if (IsA(call->statement->utilityStmt, AlterTableStmt))
		call_next_explained(call);
	else
		call_next(call);
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
