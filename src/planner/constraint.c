/*
 * constraint.c
 *	  PRIMARY KEY and UNIQUE ... WITH (lsm): constraints with an lsm index.
 *
 * The grammar has no place for a constraint's access method, but the parsed
 * constraint has one, and core goes by it.  So when a command brings a definition
 * whose storage parameters have "lsm", we set the method before core looks at it.
 * The parameter stays with the index: pg_dump prints it, and restores the same
 * constraint.  So nobody may take it away.  Where this library is not loaded core
 * builds a btree, which does not know the parameter: an error.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "planner/planner.h"
#include "tcop/utility.h"
#include "utils/syscache.h"

/* The parameter that makes a constraint's index an lsm index, or NULL. */
static DefElem *
find_parameter(List *options)
{
	ListCell   *cell;

	foreach(cell, options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (option->defnamespace == NULL && strcmp(option->defname, "lsm") == 0)
			return option;
	}
	return NULL;
}

/* Does this constraint ask for an lsm index, and has none yet? */
static bool
wants_lsm(Constraint *constraint)
{
	DefElem    *option;

	if ((constraint->contype != CONSTR_PRIMARY && constraint->contype != CONSTR_UNIQUE) ||
		constraint->access_method != NULL)
		return false;
	option = find_parameter(constraint->options);
	return option != NULL && defGetBoolean(option);
}

/*
 * Look at the constraints of a table's or column's definition, or of a list of
 * them.  Returns whether any wants an lsm index; with `set` they get it.
 */
static bool
find_constraints(Node *node, bool set)
{
	bool		found = false;
	ListCell   *cell;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
			foreach(cell, (List *) node)
				found |= find_constraints(lfirst(cell), set);
			return found;
		case T_CreateStmt:
			return find_constraints((Node *) ((CreateStmt *) node)->tableElts, set);
		case T_AlterTableStmt:
			return find_constraints((Node *) ((AlterTableStmt *) node)->cmds, set);
		case T_AlterTableCmd:
			return find_constraints(((AlterTableCmd *) node)->def, set);
		case T_ColumnDef:
			return find_constraints((Node *) ((ColumnDef *) node)->constraints, set);
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

/* Is this the lsm index of a primary key or unique constraint? */
static bool
is_of_constraint(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	bool		found;

	if (!HeapTupleIsValid(tuple))
		return false;
	found = ((Form_pg_class) GETSTRUCT(tuple))->relkind == RELKIND_INDEX &&
		((Form_pg_class) GETSTRUCT(tuple))->relam == get_index_am_oid("lsm", true);
	ReleaseSysCache(tuple);
	if (!found)
		return false;
	/* Exclusion constraints name their method themselves. */
	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(get_index_constraint(index)));
	if (!HeapTupleIsValid(tuple))
		return false;
	found = ((Form_pg_constraint) GETSTRUCT(tuple))->contype != CONSTRAINT_EXCLUSION;
	ReleaseSysCache(tuple);
	return found;
}

/*
 * Without the parameter a dump would have a plain PRIMARY KEY, and restore a btree:
 * refuse to set it to false, or to its default.
 */
static void
refuse_to_forget(AlterTableStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		DefElem    *option = NULL;

		if (command->subtype == AT_SetRelOptions || command->subtype == AT_ResetRelOptions)
			option = find_parameter((List *) command->def);
		if (option == NULL || (command->subtype == AT_SetRelOptions && defGetBoolean(option)))
			continue;
		if (is_of_constraint(RangeVarGetRelid(statement->relation, NoLock, true)))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot take the storage parameter \"lsm\" from the index \"%s\" of a constraint",
							statement->relation->relname),
					 errdetail("pg_dump would write a constraint with a B-tree."),
					 errhint("For a B-tree drop the constraint, and add it again without the parameter.")));
	}
}

/*
 * Set the method of constraints WITH (lsm) in a command, before core looks at it.  Returns
 * the command, or a copy of it.
 */
PlannedStmt *
lsm_constraint_prepare(PlannedStmt *statement, bool *read_only_tree)
{
	if (find_constraints(statement->utilityStmt, false))
	{
		/* It may be in a cache, to be used again. */
		if (*read_only_tree)
			statement = copyObject(statement);
		*read_only_tree = false;
		find_constraints(statement->utilityStmt, true);
	}
	if (IsA(statement->utilityStmt, AlterTableStmt))
		refuse_to_forget((AlterTableStmt *) statement->utilityStmt);
	return statement;
}

/* May core refuse the storage parameter in this command, so that a hint is due? */
bool
lsm_constraint_may_fail(PlannedStmt *statement)
{
	return changes_type(statement->utilityStmt);
}

/* An error context callback for such a command. */
void
lsm_constraint_give_hint(void *arg)
{
	if (geterrcode() == ERRCODE_INVALID_PARAMETER_VALUE)
		errhint("If the column belongs to a constraint WITH (lsm), drop the constraint before, and add it again after this command.");
}
