/*
 * alter_table.c
 *	  Does the parts of ALTER TABLE that core cannot do with the lsm index of a key.
 *
 * ADD CONSTRAINT ... USING INDEX: core accepts only B-trees, so we add the constraint after the
 * other subcommands.
 *
 * ALTER COLUMN ... TYPE or SET EXPRESSION: core recreates constraints from their definitions,
 * without a command that our hook would see, and the definition alone asks for a B-tree.  So before
 * the command, we drop the lsm keys that use a changed column.  After the command, we add the keys
 * again, with their comments.  We do the same with foreign keys that reference these keys.  ALTER
 * TYPE changes the columns of typed tables, so it works like ALTER TABLE.
 *
 * Subcommands that may need or name one of these constraints run last, as in core.  An error
 * anywhere aborts the transaction, so nothing is left half done.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/compat.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_opclass.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "parser/parser.h"
#include "planner/planner.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

/* A constraint that is dropped before the command and added again after it. */
typedef struct SavedConstraint
{
	char	   *table;			/* qualified and quoted */
	char	   *name;			/* quoted */
	Oid			table_oid;
	char	   *plain_name;
	char	   *definition;		/* the command that adds the constraint */
	char	   *comment;		/* of the constraint, or NULL */
	char	   *index_comment;	/* or NULL */
	bool		is_key;			/* not a foreign key */
	bool		is_dropped;		/* a foreign key that the command drops */
	bool		is_clustered;
	bool		is_replica_identity;
} SavedConstraint;

struct LsmAlterTable
{
	Oid			table;
	List	   *indexes;		/* Constraints that use an existing index */
	List	   *saved;			/* SavedConstraints: foreign keys first */
	List	   *later;			/* subcommands to run after the constraints are added again */
};

/* Run commands that return no result. */
static void
run_commands(const char *text)
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

static char *
quoted_relation_name(Oid relation)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)),
									  get_rel_name(relation));
}

/* --- ADD CONSTRAINT ... USING INDEX ------------------------------------------- */

/*
 * If a subcommand adds a constraint that uses an existing lsm index in the table's schema, returns
 * the constraint, else NULL.  check_index checks that the index belongs to the table.
 */
static Constraint *
constraint_of_index(const AlterTableCmd *command, Oid table)
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

/* Returns the commands that set the columns of a primary key to NOT NULL. */
static List *
not_null_commands(Relation heap, Relation index)
{
	List	   *commands = NIL;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att =
			TupleDescAttr(RelationGetDescr(heap), index->rd_index->indkey.values[i] - 1);

		if (!att->attnotnull)
			commands = lappend(commands,
							   psprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL",
										quoted_relation_name(RelationGetRelid(heap)),
										quote_identifier(NameStr(att->attname))));
	}
	return commands;
}

/*
 * Check an index, and prepare it for its constraint: set columns to NOT NULL, rename the index, and
 * set the parameter that dumps need (constraint.c).  Returns the index's OID.
 */
static Oid
prepare_index(Oid table, const Constraint *constraint, const char *name)
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
		commands = not_null_commands(heap, index);
	index_close(index, NoLock);
	table_close(heap, NoLock);

	foreach(cell, commands)
		run_commands(lfirst(cell));
	if (strcmp(name, constraint->indexname) != 0)
	{
		ereport(NOTICE,
				(errmsg("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"%s\" to \"%s\"",
						constraint->indexname, name)));
		RenameRelationInternal(index_oid, name, false, true);
		CommandCounterIncrement();
	}
	run_commands(psprintf("ALTER INDEX %s SET (lsm = true)", quoted_relation_name(index_oid)));
	return index_oid;
}

/* Add a constraint that uses an existing index.  The caller has locked the table. */
static void
add_constraint(Oid table, const Constraint *constraint)
{
	const char *name = constraint->conname ? constraint->conname : constraint->indexname;
	bool		is_primary = constraint->contype == CONSTR_PRIMARY;
	Oid			index_oid = prepare_index(table, constraint, name);
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

/* Take the constraints that we will add ourselves out of the command, and put them into `alter`. */
static void
take_constraints(LsmAlterTable *alter, AlterTableStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		Constraint *constraint = constraint_of_index(lfirst_node(AlterTableCmd, cell), alter->table);

		if (constraint == NULL)
			continue;
		alter->indexes = lappend(alter->indexes, constraint);
		statement->cmds = foreach_delete_current(statement->cmds, cell);
	}
}

/* --- ALTER COLUMN ... TYPE ----------------------------------------------------- */

/* Does the command have a subcommand of this kind with this name? */
static bool
has_command(const AlterTableStmt *statement, AlterTableType subtype, const char *name)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (command->subtype == subtype && command->name != NULL &&
			strcmp(command->name, name) == 0)
			return true;
	}
	return false;
}

/*
 * Does the command change the type or the expression of one of the index's columns, and drop none
 * of them?
 */
static bool
changes_index(const AlterTableStmt *statement, Relation heap, Relation index)
{
	bool		changes = false;

	for (int i = 0; i < IndexRelationGetNumberOfAttributes(index); i++)
	{
		AttrNumber	number = index->rd_index->indkey.values[i];
		const char *name;

		if (number <= 0)
			continue;
		name = NameStr(TupleDescAttr(RelationGetDescr(heap), number - 1)->attname);
		if (has_command(statement, AT_DropColumn, name))
			return false;
		changes |= has_command(statement, AT_AlterColumnType, name) ||
			has_command(statement, LSM_AT_SET_EXPRESSION, name);
	}
	return changes;
}

static SavedConstraint *
save_constraint(Form_pg_constraint form)
{
	SavedConstraint *saved = palloc0(sizeof(SavedConstraint));

	saved->table = quoted_relation_name(form->conrelid);
	saved->table_oid = form->conrelid;
	saved->plain_name = pstrdup(NameStr(form->conname));
	saved->name = pstrdup(quote_identifier(NameStr(form->conname)));
	saved->definition = pg_get_constraintdef_command(form->oid);
	saved->comment = GetComment(form->oid, ConstraintRelationId, 0);
	return saved;
}

/* Does the command drop a foreign key, or one of its columns? */
static bool
drops_foreign_key(const LsmAlterTable *alter, const AlterTableStmt *statement, HeapTuple tuple)
{
	Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);
	AttrNumber	columns[INDEX_MAX_KEYS];
	AttrNumber	referenced[INDEX_MAX_KEYS];
	int			count;

	if (form->conrelid != alter->table)
		return false;
	if (has_command(statement, AT_DropConstraint, NameStr(form->conname)))
		return true;
	DeconstructFkConstraintRow(tuple, &count, columns, referenced, NULL, NULL, NULL, NULL, NULL);
	for (int i = 0; i < count; i++)
	{
		if (has_command(statement, AT_DropColumn,
						get_attname(alter->table, columns[i], false)))
			return true;
	}
	return false;
}

/* Save the foreign keys that reference the key of an index. */
static void
save_foreign_keys(LsmAlterTable *alter, const AlterTableStmt *statement, Oid table, Oid index)
{
	Relation	constraints = table_open(ConstraintRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_constraint_confrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(table));
	scan = systable_beginscan(constraints, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);

		if (form->contype == CONSTRAINT_FOREIGN && form->conindid == index &&
			!OidIsValid(form->conparentid))
		{
			SavedConstraint *saved = save_constraint(form);

			saved->is_dropped = drops_foreign_key(alter, statement, tuple);
			alter->saved = lcons(saved, alter->saved);
		}
	}
	systable_endscan(scan);
	table_close(constraints, AccessShareLock);
}

/*
 * If the command changes a column of an index, save the index's constraint and the foreign keys
 * that reference the constraint.
 */
static void
save_key(LsmAlterTable *alter, const AlterTableStmt *statement, Relation heap, Oid index_oid)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID,
										ObjectIdGetDatum(get_index_constraint(index_oid)));
	Form_pg_constraint form;
	Relation	index;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_constraint) GETSTRUCT(tuple);
	index = index_open(index_oid, AccessExclusiveLock);
	if ((form->contype == CONSTRAINT_PRIMARY || form->contype == CONSTRAINT_UNIQUE) &&
		!OidIsValid(form->conparentid) && changes_index(statement, heap, index) &&
		!has_command(statement, AT_DropConstraint, NameStr(form->conname)))
	{
		SavedConstraint *saved = save_constraint(form);

		saved->is_key = true;
		saved->index_comment = GetComment(index_oid, RelationRelationId, 0);
		saved->is_clustered = index->rd_index->indisclustered;
		saved->is_replica_identity = index->rd_index->indisreplident;
		alter->saved = lappend(alter->saved, saved);
		save_foreign_keys(alter, statement, RelationGetRelid(heap), index_oid);
	}
	index_close(index, NoLock);
	ReleaseSysCache(tuple);
}

/* Save the constraints of a table that use an lsm index with a column that changes. */
static void
save_keys(LsmAlterTable *alter, const AlterTableStmt *statement, Oid table)
{
	Relation	heap = table_open(table, NoLock);
	List	   *indexes = RelationGetIndexList(heap);
	ListCell   *cell;

	foreach(cell, indexes)
	{
		if (lsm_index_is_lsm(lfirst_oid(cell)))
			save_key(alter, statement, heap, lfirst_oid(cell));
	}
	table_close(heap, NoLock);
}

/* Is this one of the foreign keys that we drop for good? */
static bool
is_dropped(const LsmAlterTable *alter, const char *name)
{
	ListCell   *cell;

	foreach(cell, alter->saved)
	{
		const SavedConstraint *saved = lfirst(cell);

		if (saved->is_dropped && strcmp(saved->plain_name, name) == 0)
			return true;
	}
	return false;
}

/* Does the subcommand add a column that references a key? */
static bool
adds_reference(const AlterTableCmd *command)
{
	ListCell   *cell;

	if (command->subtype != AT_AddColumn)
		return false;
	foreach(cell, castNode(ColumnDef, command->def)->constraints)
	{
		if (lfirst_node(Constraint, cell)->contype == CONSTR_FOREIGN)
			return true;
	}
	return false;
}

/*
 * Must the subcommand run after all constraints are there?  It may need or name one of them, or
 * choose a name that none of them has.  ADD GENERATED may need a new primary key.
 */
static bool
needs_constraints(const AlterTableCmd *command)
{
	switch (command->subtype)
	{
		case AT_AddConstraint:
			return castNode(Constraint, command->def)->contype != CONSTR_CHECK;
		case AT_AddIdentity:
		case AT_ValidateConstraint:
		case AT_AlterConstraint:
		case AT_ClusterOn:
		case AT_DropCluster:
		case AT_ReplicaIdentity:
			return true;
		default:
			return adds_reference(command);
	}
}

/*
 * Take the subcommands that need the constraints.  Core runs them after all others, and so do we.
 * DROP CONSTRAINT of a saved foreign key is done.
 */
static void
take_later(LsmAlterTable *alter, AlterTableStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (needs_constraints(command))
			alter->later = lappend(alter->later, command);
		else if (command->subtype != AT_DropConstraint || !is_dropped(alter, command->name))
			continue;
		statement->cmds = foreach_delete_current(statement->cmds, cell);
	}
}

static void
drop_saved(const SavedConstraint *saved)
{
	run_commands(psprintf("ALTER TABLE %s DROP CONSTRAINT %s", saved->table, saved->name));
}

static void
restore_saved(const SavedConstraint *saved)
{
	Oid			constraint;

	run_commands(saved->definition);
	constraint = get_relation_constraint_oid(saved->table_oid, saved->plain_name, false);
	if (saved->comment)
		CreateComments(constraint, ConstraintRelationId, 0, saved->comment);
	if (saved->index_comment)
		CreateComments(get_constraint_index(constraint), RelationRelationId, 0,
					   saved->index_comment);
	if (saved->is_clustered)
		run_commands(psprintf("ALTER TABLE %s CLUSTER ON %s", saved->table, saved->name));
	if (saved->is_replica_identity)
		run_commands(psprintf("ALTER TABLE %s REPLICA IDENTITY USING INDEX %s", saved->table,
							  saved->name));
}

/* --- the command --------------------------------------------------------------- */

/* Could a command need our help?  Looks only at the command itself. */
static bool
may_need_help(const AlterTableStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (command->subtype == AT_AlterColumnType ||
			command->subtype == LSM_AT_SET_EXPRESSION ||
			(command->subtype == AT_AddConstraint && IsA(command->def, Constraint) &&
			 ((Constraint *) command->def)->indexname != NULL))
			return true;
	}
	return false;
}

/* Returns the tables of a composite type and their partitions, and locks them. */
static List *
typed_tables(Oid type, LOCKMODE mode)
{
	Relation	classes = table_open(RelationRelationId, AccessShareLock);
	List	   *tables = NIL;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_class_reloftype, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(type));
	scan = systable_beginscan(classes, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			table = ((Form_pg_class) GETSTRUCT(tuple))->oid;

		LockRelationOid(table, mode);
		tables = list_concat(tables, find_all_inheritors(table, mode, NULL));
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
	return tables;
}

/*
 * Prepare ALTER TABLE or ALTER TYPE before core sees it.  Removes from *statement the subcommands
 * that lsm_alter_table_finish will do, and drops constraints.  Returns NULL if core can do
 * everything.
 */
LsmAlterTable *
lsm_alter_table_begin(PlannedStmt **statement, bool *read_only_tree)
{
	AlterTableStmt *command = (AlterTableStmt *) (*statement)->utilityStmt;
	LOCKMODE	mode;
	LsmAlterTable *alter;
	char		kind;
	ListCell   *cell;

	if (!IsA(command, AlterTableStmt) ||
		(command->objtype != OBJECT_TABLE && command->objtype != OBJECT_TYPE) ||
		!may_need_help(command) || !OidIsValid(get_index_am_oid("lsm", true)))
		return NULL;
	/* AlterTableLookupRelation checks that the user owns the table. */
	mode = AlterTableGetLockLevel(command->cmds);
	alter = palloc0(sizeof(LsmAlterTable));
	alter->table = AlterTableLookupRelation(command, mode);
	kind = OidIsValid(alter->table) ? get_rel_relkind(alter->table) : '\0';
	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
		kind != RELKIND_COMPOSITE_TYPE)
		return NULL;

	/* The command may be in a plan cache. */
	if (*read_only_tree)
		*statement = copyObject(*statement);
	*read_only_tree = false;
	command = (AlterTableStmt *) (*statement)->utilityStmt;
	if (kind == RELKIND_RELATION)
		take_constraints(alter, command);
	foreach(cell, kind == RELKIND_COMPOSITE_TYPE ?
			typed_tables(get_rel_type_id(alter->table), mode) :
			command->relation->inh ? find_all_inheritors(alter->table, mode, NULL) :
			list_make1_oid(alter->table))
		save_keys(alter, command, lfirst_oid(cell));
	if (alter->saved != NIL || alter->indexes != NIL)
		take_later(alter, command);
	foreach(cell, alter->saved)
		drop_saved(lfirst(cell));
	return alter;
}

/*
 * Add the saved constraints again.  Their definitions name the tablespace unless it is the
 * database's, and default_tablespace must not change that.
 */
static void
restore_all(const LsmAlterTable *alter)
{
	int			level = NewGUCNestLevel();
	ListCell   *cell;

	(void) set_config_option("default_tablespace", "", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	/* Restore keys before the foreign keys that reference them. */
	foreach(cell, alter->saved)
	{
		if (((SavedConstraint *) lfirst(cell))->is_key)
			restore_saved(lfirst(cell));
	}
	foreach(cell, alter->saved)
	{
		const SavedConstraint *saved = lfirst(cell);

		if (!saved->is_key && !saved->is_dropped)
			restore_saved(saved);
	}
	AtEOXact_GUC(true, level);
}

/* Do our part of ALTER TABLE, after core has done its part.  `alter` may be NULL. */
void
lsm_alter_table_finish(LsmAlterTable *alter, PlannedStmt *statement, const char *text)
{
	ListCell   *cell;

	if (alter == NULL)
		return;
	CommandCounterIncrement();
	restore_all(alter);
	foreach(cell, alter->indexes)
		add_constraint(alter->table, lfirst(cell));
	if (alter->later != NIL)
	{
		PlannedStmt *later = copyObject(statement);

		((AlterTableStmt *) later->utilityStmt)->cmds = alter->later;
		ProcessUtility(later, text, false, PROCESS_UTILITY_SUBCOMMAND, NULL, NULL, None_Receiver,
					   NULL);
		CommandCounterIncrement();
	}
}
