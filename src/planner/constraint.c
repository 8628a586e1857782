/*
 * constraint.c
 *	  PRIMARY KEY and UNIQUE ... WITH (lsm): constraints with an lsm index.
 *
 * The grammar has no syntax for a constraint's access method, but the parsed constraint has a field
 * for it, which core uses.  So if a definition has the storage parameter "lsm", we set the field
 * before core sees the command.  The parameter stays with the index.  So pg_dump prints it, and a
 * restore creates the same constraint.  Therefore nobody may reset the parameter.  If this library
 * is not loaded, core tries to build a btree, which does not know the parameter and raises an
 * error.
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

/* Returns the storage parameter "lsm", or NULL. */
static DefElem *
find_lsm_parameter(List *options)
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

/* Does this constraint ask for an lsm index, and have no method yet? */
static bool
wants_lsm(Constraint *constraint)
{
	DefElem    *option;

	if ((constraint->contype != CONSTR_PRIMARY && constraint->contype != CONSTR_UNIQUE) ||
		constraint->access_method != NULL)
		return false;
	option = find_lsm_parameter(constraint->options);
	return option != NULL && defGetBoolean(option);
}

/*
 * Does any constraint in a command, in the definition of a table or column, or in a list of these
 * want an lsm index?  If `set` is true, sets the access method of these constraints.
 */
static bool
find_lsm_constraints(Node *node, bool set)
{
	bool		found = false;
	ListCell   *cell;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
			foreach(cell, (List *) node)
				found |= find_lsm_constraints(lfirst(cell), set);
			return found;
		case T_CreateStmt:
			return find_lsm_constraints((Node *) ((CreateStmt *) node)->tableElts, set);
		case T_AlterTableStmt:
			return find_lsm_constraints((Node *) ((AlterTableStmt *) node)->cmds, set);
		case T_AlterTableCmd:
			return find_lsm_constraints(((AlterTableCmd *) node)->def, set);
		case T_ColumnDef:
			return find_lsm_constraints((Node *) ((ColumnDef *) node)->constraints, set);
		case T_Constraint:
			found = wants_lsm((Constraint *) node);
			if (found && set)
				((Constraint *) node)->access_method = pstrdup("lsm");
			return found;
		default:
			return false;
	}
}

/* Is this the lsm index of a primary key or unique constraint? */
static bool
is_lsm_constraint_index(Oid index)
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
	/* The definition of an exclusion constraint names its access method. */
	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(get_index_constraint(index)));
	if (!HeapTupleIsValid(tuple))
		return false;
	found = ((Form_pg_constraint) GETSTRUCT(tuple))->contype != CONSTRAINT_EXCLUSION;
	ReleaseSysCache(tuple);
	return found;
}

/*
 * Refuse to reset the parameter or to set it to false.  Otherwise a dump would contain a plain
 * PRIMARY KEY, and its restore would create a btree.
 */
static void
refuse_to_reset_parameter(AlterTableStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		DefElem    *option = NULL;

		if (command->subtype == AT_SetRelOptions || command->subtype == AT_ResetRelOptions)
			option = find_lsm_parameter((List *) command->def);
		if (option == NULL || (command->subtype == AT_SetRelOptions && defGetBoolean(option)))
			continue;
		if (is_lsm_constraint_index(RangeVarGetRelid(statement->relation, NoLock, true)))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot take the storage parameter \"lsm\" from the index \"%s\" of a constraint",
							statement->relation->relname),
					 errdetail("pg_dump would write a constraint with a B-tree."),
					 errhint("For a B-tree drop the constraint, and add it again without the parameter.")));
	}
}

/*
 * Set the method of constraints WITH (lsm) in a command, before core sees the command.
 * Returns the command, or a copy of it.
 */
PlannedStmt *
lsm_constraint_prepare(PlannedStmt *statement, bool *read_only_tree)
{
	if (find_lsm_constraints(statement->utilityStmt, false))
	{
		/* The command may be in a plan cache. */
		if (*read_only_tree)
			statement = copyObject(statement);
		*read_only_tree = false;
		find_lsm_constraints(statement->utilityStmt, true);
	}
	if (IsA(statement->utilityStmt, AlterTableStmt))
		refuse_to_reset_parameter((AlterTableStmt *) statement->utilityStmt);
	return statement;
}
