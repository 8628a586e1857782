/*
 * add_using_index.c
 *	  ALTER TABLE ... ADD CONSTRAINT ... USING INDEX with an lsm index.  Core accepts only B-trees.
 *
 * alter_table.c takes such a constraint out of the command, and adds it after the other
 * subcommands.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "base/compat.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "parser/parser.h"
#include "planner/planner.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* Run commands that return no result. */
void
lsm_run_commands(const char *text)
{
	ListCell   *cell;

	foreach(cell, raw_parser(text, RAW_PARSE_DEFAULT))
	{
		PlannedStmt *command = makeNode(PlannedStmt);

		command->commandType = CMD_UTILITY;
		command->utilityStmt = lfirst_node(RawStmt, cell)->stmt;
		ProcessUtility(command, text, false, PROCESS_UTILITY_SUBCOMMAND, NULL, NULL,
					   None_Receiver, NULL);
		CommandCounterIncrement();
	}
}

char *
lsm_quoted_relation_name(Oid relation)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)),
									  get_rel_name(relation));
}

/*
 * If a subcommand adds a constraint that uses an existing lsm index in the table's schema, returns
 * the constraint, else NULL.  check_index checks that the index belongs to the table.
 */
Constraint *
lsm_constraint_of_index(const AlterTableCmd *command, Oid table)
{
	Constraint *constraint = (Constraint *) command->def;

	if (command->subtype != AT_AddConstraint || !IsA(constraint, Constraint) ||
		constraint->indexname == NULL ||
		(constraint->contype != CONSTR_PRIMARY && constraint->contype != CONSTR_UNIQUE) ||
		!lsm_index_is_lsm(get_relname_relid(constraint->indexname, get_rel_namespace(table))))
		return NULL;
	return constraint;
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
check_index(Relation heap, Relation index, const Constraint *constraint)
{
	if (index->rd_index->indrelid != RelationGetRelid(heap))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" does not belong to table \"%s\"",
						RelationGetRelationName(index), RelationGetRelationName(heap))));
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

/*
 * Returns the commands that set the columns of a primary key to NOT NULL.  From 18 on, attnotnull
 * is also true for constraints that are NOT VALID; the commands validate them.
 */
static List *
not_null_commands(Relation heap, Relation index, bool only)
{
	List	   *commands = NIL;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att =
			TupleDescAttr(RelationGetDescr(heap), index->rd_index->indkey.values[i] - 1);

		commands = lappend(commands,
						   psprintf("ALTER TABLE %s%s ALTER COLUMN %s SET NOT NULL",
									only ? "ONLY " : "",
									lsm_quoted_relation_name(RelationGetRelid(heap)),
									quote_identifier(NameStr(att->attname))));
	}
	return commands;
}

/*
 * Check an index, and prepare it for its constraint: set columns to NOT NULL, rename the index, and
 * set the parameter that dumps need (constraint.c).  Returns the index's OID.
 */
static Oid
prepare_index(Oid table, const Constraint *constraint, const char *name, bool only)
{
	Relation	heap = table_open(table, NoLock);
	Oid			index_oid = get_relname_relid(constraint->indexname, RelationGetNamespace(heap));
	Relation	index;
	List	   *commands = NIL;
	ListCell   *cell;

	if (!OidIsValid(index_oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index \"%s\" does not exist", constraint->indexname)));
	index = index_open(index_oid, AccessExclusiveLock);
	check_index(heap, index, constraint);
	if (constraint->contype == CONSTR_PRIMARY)
		commands = not_null_commands(heap, index, only);
	index_close(index, NoLock);
	table_close(heap, NoLock);

	foreach(cell, commands)
		lsm_run_commands(lfirst(cell));
	if (strcmp(name, constraint->indexname) != 0)
	{
		ereport(NOTICE,
				(errmsg("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"%s\" to \"%s\"",
						constraint->indexname, name)));
		RenameRelationInternal(index_oid, name, false, true);
		CommandCounterIncrement();
	}
	lsm_run_commands(psprintf("ALTER INDEX %s SET (lsm = true)", lsm_quoted_relation_name(index_oid)));
	return index_oid;
}

/*
 * Add a constraint that uses an existing index.  `only`: leave child tables alone.  Raises an error
 * if the constraint cannot use the index.
 *
 * REQUIRES: AccessExclusiveLock on the table.
 */
void
lsm_add_constraint_using_index(Oid table, const Constraint *constraint, bool only)
{
	const char *name = constraint->conname ? constraint->conname : constraint->indexname;
	bool		is_primary = constraint->contype == CONSTR_PRIMARY;
	Oid			index_oid = prepare_index(table, constraint, name, only);
	Relation	heap = table_open(table, NoLock);
	Relation	index = index_open(index_oid, NoLock);
	IndexInfo  *info = BuildIndexInfo(index);
	uint16		flags = INDEX_CONSTR_CREATE_UPDATE_INDEX | INDEX_CONSTR_CREATE_REMOVE_OLD_DEPS;

	if (is_primary)
	{
		index_check_primary_key(heap, info, true, NULL);
		flags |= INDEX_CONSTR_CREATE_MARK_AS_PRIMARY;
	}
	if (constraint->deferrable)
		flags |= INDEX_CONSTR_CREATE_DEFERRABLE;
	if (constraint->initdeferred)
		flags |= INDEX_CONSTR_CREATE_INIT_DEFERRED;
	index_constraint_create(heap, index_oid, InvalidOid, info, name,
							is_primary ? CONSTRAINT_PRIMARY : CONSTRAINT_UNIQUE, flags,
							allowSystemTableMods, false);
	index_close(index, NoLock);
	table_close(heap, NoLock);
	CommandCounterIncrement();
}
