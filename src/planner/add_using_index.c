/*
 * add_using_index.c
 *	  ALTER TABLE ... ADD CONSTRAINT ... USING INDEX with an lsm index.  Core accepts only B-trees.
 *
 * Core checks the method when it turns the subcommand into the one that it executes.  So we check
 * the index and turn the subcommand ourselves.  alter_table.c calls us before core sees the command.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "base/compat.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "commands/tablecmds.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* Run subcommands of ALTER TABLE, or of ALTER INDEX, that event triggers do not hear of. */
void
lsm_alter_hidden(Oid relation, List *commands)
{
	EventTriggerInhibitCommandCollection();
	PG_TRY();
	{
		AlterTableInternal(relation, commands, false);
	}
	PG_FINALLY();
	{
		EventTriggerUndoInhibitCommandCollection();
	}
	PG_END_TRY();
	CommandCounterIncrement();
}

/*
 * If a subcommand adds a constraint that uses an existing lsm index of the table, returns the index,
 * else InvalidOid.  Locks nothing.
 */
Oid
lsm_index_of_constraint(const AlterTableCmd *command, Oid table)
{
	Constraint *constraint = (Constraint *) command->def;
	Oid			index;

	if (command->subtype != AT_AddConstraint || !IsA(constraint, Constraint) ||
		constraint->indexname == NULL ||
		(constraint->contype != CONSTR_PRIMARY && constraint->contype != CONSTR_UNIQUE))
		return InvalidOid;
	index = get_relname_relid(constraint->indexname, get_rel_namespace(table));
	return lsm_index_is_lsm(index) && IndexGetRelation(index, true) == table ? index : InvalidOid;
}

static void
refuse_index(Relation index, const char *reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("index \"%s\" %s", RelationGetRelationName(index), reason),
			 errdetail("Cannot create a primary key or unique constraint using such an index.")));
}

/* Would the constraint's definition create the same index? */
static bool
has_default_sorting(Relation heap, Relation index)
{
	oidvector  *classes;
	bool		isnull;

	classes = (oidvector *) DatumGetPointer(
		SysCacheGetAttr(INDEXRELID, index->rd_indextuple, Anum_pg_index_indclass, &isnull));
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att =
			TupleDescAttr(RelationGetDescr(heap), index->rd_index->indkey.values[i] - 1);

		if (index->rd_indoption[i] != 0 || index->rd_indcollation[i] != att->attcollation ||
			classes->values[i] != GetDefaultOpClass(att->atttypid, index->rd_rel->relam))
			return false;
	}
	return true;
}

/* Does Citus distribute the table?  Citus gives such tables a trigger. */
static bool
is_distributed(Relation heap)
{
	for (int i = 0; heap->trigdesc != NULL && i < heap->trigdesc->numtriggers; i++)
	{
		char	   *function = get_func_name(heap->trigdesc->triggers[i].tgfoid);

		if (function != NULL && strcmp(function, "citus_truncate_trigger") == 0)
			return true;
	}
	return false;
}

/* Raise an error if the constraint cannot use the index. */
static void
refuse_unusable_index(Relation heap, Relation index, const Constraint *constraint)
{
	if (OidIsValid(get_index_constraint(RelationGetRelid(index))))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is already associated with a constraint",
						RelationGetRelationName(index))));
	if (!index->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
				 errhint("Use REINDEX INDEX CONCURRENTLY, or drop the index and create it again.")));
	if (!index->rd_index->indisunique)
		refuse_index(index, "is not unique");
	if (RelationGetIndexExpressions(index) != NIL)
		refuse_index(index, "contains expressions");
	if (RelationGetIndexPredicate(index) != NIL)
		refuse_index(index, "is partial");
	if (!index->rd_index->indimmediate && !constraint->deferrable)
		refuse_index(index, "is deferrable, and the constraint is not");
#ifdef LSM_HAS_NOT_NULL_CONSTRAINTS
	if (constraint->contype == CONSTR_PRIMARY && index->rd_index->indnullsnotdistinct)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TABLE_DEFINITION),
				 errmsg("primary keys cannot use NULLS NOT DISTINCT indexes")));
#endif
	if (!has_default_sorting(heap, index))
		refuse_index(index, "does not have default sorting behavior");
	if (is_distributed(heap))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot add a constraint that uses lsm index \"%s\"",
						RelationGetRelationName(index)),
				 errdetail("Citus distributes the table, and the constraint would not reach the shards."),
				 errhint("Add the constraint WITH (lsm = true) and without USING INDEX.")));
}

/* Returns the subcommands with which core makes the columns of a primary key NOT NULL. */
static List *
not_null_commands(Relation heap, Relation index)
{
	List	   *commands = NIL;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att =
			TupleDescAttr(RelationGetDescr(heap), index->rd_index->indkey.values[i] - 1);
		AlterTableCmd *command = makeNode(AlterTableCmd);

#ifdef LSM_HAS_NOT_NULL_CONSTRAINTS
		command->subtype = AT_AddConstraint;
		command->def = (Node *) makeNotNullConstraint(makeString(pstrdup(NameStr(att->attname))));
#else
		command->subtype = AT_SetNotNull;
		command->name = pstrdup(NameStr(att->attname));
#endif
		commands = lappend(commands, command);
	}
	return commands;
}

/* Returns the constraint as core describes it when it has found the index. */
static IndexStmt *
describe_constraint(const Constraint *constraint, Oid index)
{
	IndexStmt  *statement = makeNode(IndexStmt);

	statement->idxname = constraint->conname;
	statement->accessMethod = pstrdup("lsm");
	statement->indexOid = index;
	statement->unique = true;
	statement->primary = constraint->contype == CONSTR_PRIMARY;
	statement->isconstraint = true;
	statement->deferrable = constraint->deferrable;
	statement->initdeferred = constraint->initdeferred;
	return statement;
}

/*
 * Change a subcommand that adds a constraint with an lsm index into the one that core executes.
 * Returns subcommands that must run in the same command.  Sets the index's parameter that dumps
 * need (constraint.c).  Raises an error if the constraint cannot use the index.
 *
 * REQUIRES: AccessExclusiveLock on the table.
 */
List *
lsm_constraint_use_index(AlterTableCmd *command, Oid table, Oid index_oid)
{
	const Constraint *constraint = castNode(Constraint, command->def);
	Relation	heap = table_open(table, NoLock);
	Relation	index = index_open(index_oid, AccessExclusiveLock);
	List	   *commands = NIL;
	AlterTableCmd *option;

	refuse_unusable_index(heap, index, constraint);
	if (constraint->contype == CONSTR_PRIMARY)
		commands = not_null_commands(heap, index);
	index_close(index, NoLock);
	table_close(heap, NoLock);
	command->subtype = AT_AddIndexConstraint;
	command->def = (Node *) describe_constraint(constraint, index_oid);
	option = makeNode(AlterTableCmd);
	option->subtype = AT_SetRelOptions;
	option->def = (Node *) lsm_constraint_add_parameter(NIL, true);
	lsm_alter_hidden(index_oid, list_make1(option));
	return commands;
}
