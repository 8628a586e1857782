/*
 * constraint.c
 *	  PRIMARY KEY and UNIQUE ... WITH (lsm): constraints with an lsm index.
 *
 * The grammar has no place for a constraint's access method, but the parsed
 * constraint has one, and core goes by it.  So when a command brings a definition
 * whose storage parameters have "lsm", we set the method before core looks at it.
 * The parameter stays with the index: pg_dump prints it, and restores the same
 * constraint.  Where this library is not loaded core builds a btree, which does not
 * know the parameter: an error.
 */
#include "postgres.h"

#include "am/am.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"

static ProcessUtility_hook_type previous_utility;

/* Does this constraint ask for an lsm index, and has none yet? */
static bool
wants_lsm(Constraint *constraint)
{
	ListCell   *cell;

	if ((constraint->contype != CONSTR_PRIMARY && constraint->contype != CONSTR_UNIQUE) ||
		constraint->access_method != NULL)
		return false;
	foreach(cell, constraint->options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (option->defnamespace == NULL && strcmp(option->defname, "lsm") == 0)
			return defGetBoolean(option);
	}
	return false;
}

/*
 * Look at the constraints of a table's or column's definition, or of a list of
 * them.  Returns whether any wants an lsm index; with `set` they get it.
 */
static bool
walk(Node *node, bool set)
{
	bool		found = false;
	ListCell   *cell;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
			foreach(cell, (List *) node)
				found |= walk(lfirst(cell), set);
			return found;
		case T_CreateStmt:
			return walk((Node *) ((CreateStmt *) node)->tableElts, set);
		case T_AlterTableStmt:
			return walk((Node *) ((AlterTableStmt *) node)->cmds, set);
		case T_AlterTableCmd:
			return walk(((AlterTableCmd *) node)->def, set);
		case T_ColumnDef:
			return walk((Node *) ((ColumnDef *) node)->constraints, set);
		case T_Constraint:
			found = wants_lsm((Constraint *) node);
			if (found && set)
				((Constraint *) node)->access_method = pstrdup("lsm");
			return found;
		default:
			return false;
	}
}

/*
 * ALTER COLUMN ... TYPE makes constraints anew from their definitions, without a
 * command that we could see.
 */
static bool
changes_type(Node *node)
{
	ListCell   *cell;

	if (!IsA(node, AlterTableStmt))
		return false;
	foreach(cell, ((AlterTableStmt *) node)->cmds)
	{
		if (lfirst_node(AlterTableCmd, cell)->subtype == AT_AlterColumnType)
			return true;
	}
	return false;
}

static void
give_hint(void *arg)
{
	if (geterrcode() == ERRCODE_INVALID_PARAMETER_VALUE)
		errhint("If the column belongs to a constraint WITH (lsm), drop the constraint before, and add it again after this command.");
}

static void
utility(PlannedStmt *statement, const char *text, bool read_only_tree,
		ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *environment,
		DestReceiver *dest, QueryCompletion *completion)
{
	ErrorContextCallback hint = {error_context_stack, give_hint, NULL};

	if (walk(statement->utilityStmt, false))
	{
		/* It may be in a cache, to be used again. */
		if (read_only_tree)
			statement = copyObject(statement);
		read_only_tree = false;
		walk(statement->utilityStmt, true);
	}
	if (changes_type(statement->utilityStmt))
		error_context_stack = &hint;
	if (previous_utility)
		previous_utility(statement, text, read_only_tree, context, params, environment,
						 dest, completion);
	else
		standard_ProcessUtility(statement, text, read_only_tree, context, params, environment,
								dest, completion);
	error_context_stack = hint.previous;
}

/* Install the hook.  When the library is loaded. */
void
lsm_constraint_init(void)
{
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
}
