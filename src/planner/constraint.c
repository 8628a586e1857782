/*
 * constraint.c
 *	  PRIMARY KEY and UNIQUE ... WITH (lsm = true): constraints with an lsm index.
 *
 * The grammar has no syntax for a constraint's access method, but the parsed constraint has a field
 * for the method, which core uses.  So if a definition has the storage parameter "lsm", we set the
 * field before core sees the command.  The index keeps the parameter, so pg_dump prints the
 * parameter, and a restore creates the same constraint.  Therefore nobody may reset the parameter.
 * If this library is not loaded, core tries to build a btree.  Since btree does not know the
 * parameter, the command fails.
 *
 * WITH (lsm = false) asks for a B-tree, regardless of pg_lsm.default_method.  We remove the
 * parameter, because a B-tree does not know it.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "planner/planner.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Returns the storage parameter "lsm" in a list of parameters, or NULL. */
DefElem *
lsm_constraint_parameter(List *options)
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

/* Returns the list of parameters with "lsm" added. */
List *
lsm_constraint_add_parameter(List *options, bool value)
{
	return lappend(options, makeDefElem("lsm", (Node *) makeString(value ? "true" : "false"), -1));
}

/* Is this a PRIMARY KEY or UNIQUE constraint that will create its index? */
bool
lsm_constraint_is_key(const Constraint *constraint)
{
	return (constraint->contype == CONSTR_PRIMARY || constraint->contype == CONSTR_UNIQUE) &&
		constraint->indexname == NULL;
}

static void
visit_node(Node *node, const RangeVar *table, ColumnDef *column, LsmConstraintVisitor visitor,
		   void *arg)
{
	ListCell   *cell;

	if (node == NULL)
		return;
	switch (nodeTag(node))
	{
		case T_List:
			foreach(cell, (List *) node)
				visit_node(lfirst(cell), table, column, visitor, arg);
			break;
		case T_CreateSchemaStmt:
			visit_node((Node *) ((CreateSchemaStmt *) node)->schemaElts, NULL, NULL, visitor, arg);
			break;
		case T_CreateStmt:
			visit_node((Node *) ((CreateStmt *) node)->tableElts, ((CreateStmt *) node)->relation,
					   NULL, visitor, arg);
			break;
		case T_AlterTableStmt:
			visit_node((Node *) ((AlterTableStmt *) node)->cmds,
					   ((AlterTableStmt *) node)->relation, NULL, visitor, arg);
			break;
		case T_AlterTableCmd:
			visit_node(((AlterTableCmd *) node)->def, table, NULL, visitor, arg);
			break;
		case T_ColumnDef:
			visit_node((Node *) ((ColumnDef *) node)->constraints, table, (ColumnDef *) node,
					   visitor, arg);
			break;
		case T_Constraint:
			visitor((Constraint *) node, table, column, arg);
			break;
		default:
			break;
	}
}

/* Call a function for each constraint that a command defines. */
void
lsm_constraint_visit(Node *command, LsmConstraintVisitor visitor, void *arg)
{
	visit_node(command, NULL, NULL, visitor, arg);
}

/* What a key's definition says about lsm. */
typedef enum Wish
{
	WISH_NONE,
	WISH_LSM,
	WISH_BTREE
} Wish;

static Wish
wish_of(List *options, const char *method)
{
	DefElem    *option = lsm_constraint_parameter(options);

	if (option == NULL || (method != NULL && strcmp(method, DEFAULT_INDEX_TYPE) != 0))
		return WISH_NONE;
	return defGetBoolean(option) ? WISH_LSM : WISH_BTREE;
}

/* Set *arg to true if the constraint's parameter asks for a method that is not set yet. */
static void
find_wish(Constraint *constraint, const RangeVar *table, ColumnDef *column, void *arg)
{
	if (lsm_constraint_is_key(constraint) &&
		wish_of(constraint->options, constraint->access_method) != WISH_NONE)
		*(bool *) arg = true;
}

/*
 * Set the method of a constraint WITH (lsm = true).  ALTER TABLE (*arg is true) creates the index
 * from the constraint, so remove the parameter lsm = false.  CREATE TABLE makes a command for the
 * index, and make_btree removes the parameter from that command.
 */
static void
fulfill_wish(Constraint *constraint, const RangeVar *table, ColumnDef *column, void *arg)
{
	Wish		wish = WISH_NONE;

	if (lsm_constraint_is_key(constraint))
		wish = wish_of(constraint->options, constraint->access_method);
	if (wish == WISH_LSM)
		constraint->access_method = pstrdup("lsm");
	else if (wish == WISH_BTREE && *(bool *) arg)
		constraint->options = list_delete_ptr(constraint->options,
											  lsm_constraint_parameter(constraint->options));
}

/* Remove the parameter lsm = false from the command for the index of a key. */
static void
make_btree(IndexStmt *index)
{
	if (wish_of(index->options, index->accessMethod) == WISH_BTREE)
		index->options = list_delete_ptr(index->options, lsm_constraint_parameter(index->options));
}

static bool
has_wish(Node *command)
{
	bool		found = false;

	if (IsA(command, IndexStmt))
		return wish_of(((IndexStmt *) command)->options,
					   ((IndexStmt *) command)->accessMethod) == WISH_BTREE;
	lsm_constraint_visit(command, find_wish, &found);
	return found;
}

/* Returns the access method of an index, or InvalidOid if there is no such index. */
Oid
lsm_index_method(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	Oid			method = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		method = ((Form_pg_class) GETSTRUCT(tuple))->relam;
		ReleaseSysCache(tuple);
	}
	return method;
}

/* Is this an lsm index, partitioned or not?  Relations that are not indexes have other methods. */
bool
lsm_index_is_lsm(Oid index)
{
	Oid			lsm = get_index_am_oid("lsm", true);

	return OidIsValid(lsm) && lsm_index_method(index) == lsm;
}

/* Is this the lsm index of a primary key or unique constraint? */
static bool
is_lsm_constraint_index(Oid index)
{
	HeapTuple	tuple;
	bool		found;

	if (get_rel_relkind(index) != RELKIND_INDEX || !lsm_index_is_lsm(index))
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
			option = lsm_constraint_parameter((List *) command->def);
		if (option == NULL || (command->subtype == AT_SetRelOptions && defGetBoolean(option)))
			continue;
		if (is_lsm_constraint_index(RangeVarGetRelid(statement->relation, NoLock, true)))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot remove storage parameter \"lsm\" from index \"%s\" of a constraint",
							statement->relation->relname),
					 errdetail("pg_dump would write a constraint with a B-tree."),
					 errhint("For a B-tree, drop the constraint, and add it again WITH (lsm = false).")));
	}
}

/*
 * Set the method of constraints WITH (lsm = true or false) in a command, before core sees the
 * command.  Returns the command, or a copy of it.
 */
PlannedStmt *
lsm_constraint_prepare(PlannedStmt *statement, bool *read_only_tree)
{
	if (has_wish(statement->utilityStmt))
	{
		Node	   *command;
		bool		is_alter;

		/* The command may be in a plan cache. */
		if (*read_only_tree)
			statement = copyObject(statement);
		*read_only_tree = false;
		command = statement->utilityStmt;
		is_alter = IsA(command, AlterTableStmt);
		if (IsA(command, IndexStmt))
			make_btree((IndexStmt *) command);
		else
			lsm_constraint_visit(command, fulfill_wish, &is_alter);
	}
	if (IsA(statement->utilityStmt, AlterTableStmt))
		refuse_to_reset_parameter((AlterTableStmt *) statement->utilityStmt);
	return statement;
}

#ifndef LSM_UNIQUE_TAKES_ALL
/*
 * If core refuses a foreign key because the referenced key is not a B-tree, say what to do.
 *
 * REQUIRES: called in PG_CATCH, in the memory context from before PG_TRY.
 */
void
lsm_constraint_explain_error(void)
{
	ErrorData  *error = CopyErrorData();

	if (strcmp(error->message, "only b-tree indexes are supported for foreign keys") != 0 ||
		error->hint != NULL)
		return;
	FlushErrorState();
	error->sqlerrcode = ERRCODE_FEATURE_NOT_SUPPORTED;
	error->detail = pstrdup("The key that the foreign key refers to has an index of another method. "
							"PostgreSQL 18 and later accept lsm indexes here.");
	error->hint = pstrdup("Drop the key, and add it again WITH (lsm = false), which makes a B-tree "
						  "regardless of pg_lsm.default_method.");
	ReThrowError(error);
}
#endif
