/*
 * alter_table.c
 *	  Does the parts of ALTER TABLE that core cannot do with the lsm index of a key.
 *
 * ADD CONSTRAINT ... USING INDEX: see add_using_index.c.
 *
 * ALTER COLUMN ... TYPE or SET EXPRESSION: core recreates constraints from their definitions,
 * without a command that our hook would see, and the definition alone asks for a B-tree.  So before
 * the command, we drop the lsm keys that use a changed column.  After the command, we add the keys
 * again, with their comments.  We do the same with foreign keys that reference these keys.  ALTER
 * TYPE changes the columns of typed tables, so it works like ALTER TABLE.
 *
 * Core drops objects and changes types (and since 17 adds columns) before it recreates constraints,
 * and runs all other subcommands afterwards.  So do we; see runs_first.  An error anywhere aborts
 * the transaction, so nothing is left half done.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/compat.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "index/index.h"
#include "miscadmin.h"
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
	int			column_count;	/* of a foreign key */
	AttrNumber	columns[INDEX_MAX_KEYS];	/* of a foreign key, in its own table */
} SavedConstraint;

/* Marks on the index of a key.  The index of a partition is rebuilt with the topmost key. */
typedef struct SavedMarks
{
	Oid			table;			/* the table of the index */
	Oid			key_table;		/* the topmost table of the key */
	char	   *key_name;
	bool		is_clustered;
	bool		is_replica_identity;
} SavedMarks;

struct LsmAlterTable
{
	Oid			table;
	bool		only;			/* the command leaves child tables alone */
	List	   *indexes;		/* Constraints that use an existing index */
	List	   *saved;			/* SavedConstraints: foreign keys first */
	List	   *marks;			/* SavedMarks */
	List	   *later;			/* subcommands to run after the constraints are added again */
};

/* The next command is the rest of one that was prepared as a whole. */
static bool is_prepared = false;

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
 * of them?  If a parent drops a column, a child table keeps the column if the column is also the
 * child's own, or also comes from another parent.
 */
static bool
changes_index(const LsmAlterTable *alter, const AlterTableStmt *statement, Relation heap,
			  Relation index)
{
	bool		changes = false;

	for (int i = 0; i < IndexRelationGetNumberOfAttributes(index); i++)
	{
		AttrNumber	number = index->rd_index->indkey.values[i];
		Form_pg_attribute att;
		const char *name;

		if (number <= 0)
			continue;
		att = TupleDescAttr(RelationGetDescr(heap), number - 1);
		name = NameStr(att->attname);
		if (has_command(statement, AT_DropColumn, name) &&
			(RelationGetRelid(heap) == alter->table || OidIsValid(heap->rd_rel->reloftype) ||
			 (!att->attislocal && att->attinhcount <= 1)))
			return false;
		changes |= has_command(statement, AT_AlterColumnType, name) ||
			has_command(statement, LSM_AT_SET_EXPRESSION, name);
	}
	return changes;
}

/* Returns the command that adds a constraint, with qualified names. */
static char *
qualified_definition(Oid constraint)
{
	int			level = NewGUCNestLevel();
	char	   *definition;

	lsm_restrict_search_path();
	definition = pg_get_constraintdef_command(constraint);
	AtEOXact_GUC(false, level);
	return definition;
}

static SavedConstraint *
save_constraint(Form_pg_constraint form)
{
	SavedConstraint *saved = palloc0(sizeof(SavedConstraint));

	saved->table = lsm_quoted_relation_name(form->conrelid);
	saved->table_oid = form->conrelid;
	saved->plain_name = pstrdup(NameStr(form->conname));
	saved->name = pstrdup(quote_identifier(NameStr(form->conname)));
	saved->definition = qualified_definition(form->oid);
	saved->comment = GetComment(form->oid, ConstraintRelationId, 0);
	return saved;
}

/* Does the command drop this constraint?  A child's constraint may have the same name. */
static bool
drops_constraint(const LsmAlterTable *alter, const AlterTableStmt *statement,
				 Form_pg_constraint form)
{
	return form->conrelid == alter->table &&
		has_command(statement, AT_DropConstraint, NameStr(form->conname));
}

/* Save the foreign keys that reference the key of an index. */
static void
save_foreign_keys(LsmAlterTable *alter, const AlterTableStmt *statement, Oid table, Oid index)
{
	Relation	constraints = table_open(ConstraintRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	AttrNumber	referenced[INDEX_MAX_KEYS];

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

			saved->is_dropped = drops_constraint(alter, statement, form);
			DeconstructFkConstraintRow(tuple, &saved->column_count, saved->columns, referenced, NULL, NULL,
									   NULL, NULL, NULL);
			alter->saved = lcons(saved, alter->saved);
		}
	}
	systable_endscan(scan);
	table_close(constraints, AccessShareLock);
}

/*
 * Returns the command that adds a key, with ONLY.  Child tables do not inherit keys, but without
 * ONLY a primary key would set their columns to NOT NULL.
 */
static char *
without_children(const char *definition)
{
	const char *start = "ALTER TABLE ";

	Assert(strncmp(definition, start, strlen(start)) == 0);
	return psprintf("%sONLY %s", start, definition + strlen(start));
}

/* Save the marks on an index. */
static void
save_marks(LsmAlterTable *alter, Relation index)
{
	List	   *ancestors = get_partition_ancestors(RelationGetRelid(index));
	Oid			topmost = ancestors != NIL ? llast_oid(ancestors) : RelationGetRelid(index);
	SavedMarks *marks;

	if (!index->rd_index->indisclustered && !index->rd_index->indisreplident)
		return;
	marks = palloc0(sizeof(SavedMarks));
	marks->table = index->rd_index->indrelid;
	marks->key_table = IndexGetRelation(topmost, false);
	marks->key_name = get_constraint_name(get_index_constraint(topmost));
	marks->is_clustered = index->rd_index->indisclustered;
	marks->is_replica_identity = index->rd_index->indisreplident;
	alter->marks = lappend(alter->marks, marks);
}

/* Save the constraint of an index, and the foreign keys that reference the constraint. */
static void
save_key(LsmAlterTable *alter, const AlterTableStmt *statement, Relation heap, Relation index,
		 Form_pg_constraint form)
{
	SavedConstraint *saved = save_constraint(form);

	saved->is_key = true;
	if (heap->rd_rel->relkind == RELKIND_RELATION)
		saved->definition = without_children(saved->definition);
	saved->index_comment = GetComment(RelationGetRelid(index), RelationRelationId, 0);
	alter->saved = lappend(alter->saved, saved);
	save_foreign_keys(alter, statement, RelationGetRelid(heap), RelationGetRelid(index));
}

/* If the command changes a column of an index, save what is lost if the index is rebuilt. */
static void
save_index(LsmAlterTable *alter, const AlterTableStmt *statement, Relation heap, Oid index_oid)
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
		changes_index(alter, statement, heap, index))
	{
		save_marks(alter, index);
		if (!OidIsValid(form->conparentid) && !drops_constraint(alter, statement, form))
			save_key(alter, statement, heap, index, form);
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
			save_index(alter, statement, heap, lfirst_oid(cell));
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

/* Does the subcommand add a column with a key or a foreign key? */
static bool
adds_key(const AlterTableCmd *command)
{
	ListCell   *cell;

	foreach(cell, castNode(ColumnDef, command->def)->constraints)
	{
		const Constraint *constraint = lfirst_node(Constraint, cell);

		if (constraint->contype == CONSTR_FOREIGN || lsm_constraint_is_key(constraint))
			return true;
	}
	return false;
}

/*
 * Does the subcommand run before constraints are recreated?  As in core since 17, new columns come
 * before new expressions, which may use them.  Unlike in core, DROP NOT NULL comes later, when
 * primary keys are back.
 */
static bool
runs_first(const AlterTableCmd *command)
{
	switch (command->subtype)
	{
		case AT_DropColumn:
		case AT_DropConstraint:
		case AT_DropExpression:
		case AT_DropIdentity:
		case AT_AlterColumnType:
			return true;
		case AT_ColumnDefault:
			return command->def == NULL;
		case AT_AddColumn:
			return !adds_key(command);
		default:
			return command->subtype == LSM_AT_SET_EXPRESSION;
	}
}

/*
 * Could the subcommand need or name a constraint that the same command adds, or choose a name that
 * the constraint has?
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
			return false;
	}
}

/*
 * Take out the subcommands that run later, and DROP CONSTRAINT of a saved foreign key, which
 * drop_saved does.  New columns keep their order, so all columns after one that waits wait too.
 */
static void
take_later(LsmAlterTable *alter, AlterTableStmt *statement)
{
	ListCell   *cell;
	bool		column_waits = false;

	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		bool		waits = alter->saved == NIL ? needs_constraints(command) :
			!runs_first(command) || (command->subtype == AT_AddColumn && column_waits);

		column_waits |= waits && command->subtype == AT_AddColumn;
		if (waits)
			alter->later = lappend(alter->later, command);
		else if (command->subtype != AT_DropConstraint || !is_dropped(alter, command->name))
			continue;
		statement->cmds = foreach_delete_current(statement->cmds, cell);
	}
}

/*
 * Run a command on a saved constraint's table.  Like core, do not ask who owns a table that
 * references a key.
 */
static void
run_on_saved(const SavedConstraint *saved, const char *command)
{
	Relation	table = table_open(saved->table_oid, AccessExclusiveLock);
	LsmOwnerContext context;
	bool		is_ours = lsm_owns_relation(saved->table_oid, GetUserId());

	if (!is_ours)
		lsm_owner_become(table, &context);
	table_close(table, NoLock);
	lsm_run_commands(command);
	if (!is_ours)
		lsm_owner_leave(&context);
}

static void
drop_saved(const SavedConstraint *saved)
{
	run_on_saved(saved, psprintf("ALTER TABLE %s DROP CONSTRAINT %s", saved->table, saved->name));
}

/* Mark the index that the table has now, unless the command drops the key. */
static void
restore_marks(const SavedMarks *marks)
{
	Oid			key = get_relation_constraint_oid(marks->key_table, marks->key_name, true);
	const char *table = lsm_quoted_relation_name(marks->table);
	ListCell   *cell;

	if (!OidIsValid(key))
		return;
	foreach(cell, find_all_inheritors(get_constraint_index(key), NoLock, NULL))
	{
		const char *index = quote_identifier(get_rel_name(lfirst_oid(cell)));

		if (IndexGetRelation(lfirst_oid(cell), false) != marks->table)
			continue;
		if (marks->is_clustered)
			lsm_run_commands(psprintf("ALTER TABLE %s CLUSTER ON %s", table, index));
		if (marks->is_replica_identity)
			lsm_run_commands(psprintf("ALTER TABLE %s REPLICA IDENTITY USING INDEX %s", table, index));
	}
}

static void
restore_saved(const SavedConstraint *saved)
{
	Oid			constraint;

	run_on_saved(saved, saved->definition);
	constraint = get_relation_constraint_oid(saved->table_oid, saved->plain_name, false);
	if (saved->comment)
		CreateComments(constraint, ConstraintRelationId, 0, saved->comment);
	if (saved->index_comment)
		CreateComments(get_constraint_index(constraint), RelationRelationId, 0,
					   saved->index_comment);
}

/* Does the table of a foreign key still have the columns?  If not, core has dropped the key. */
static bool
has_its_columns(const SavedConstraint *saved)
{
	for (int i = 0; i < saved->column_count; i++)
	{
		HeapTuple	tuple = SearchSysCacheAttNum(saved->table_oid, saved->columns[i]);

		if (!HeapTupleIsValid(tuple))
			return false;
		ReleaseSysCache(tuple);
	}
	return true;
}

/* Take the constraints that we will add ourselves out of the command, and put them into `alter`. */
static void
take_constraints(LsmAlterTable *alter, AlterTableStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		Constraint *constraint = lsm_constraint_of_index(lfirst_node(AlterTableCmd, cell),
														 alter->table);

		if (constraint == NULL)
			continue;
		alter->indexes = lappend(alter->indexes, constraint);
		statement->cmds = foreach_delete_current(statement->cmds, cell);
	}
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
		(command->objtype != OBJECT_TABLE && command->objtype != OBJECT_FOREIGN_TABLE &&
		 command->objtype != OBJECT_TYPE) ||
		!may_need_help(command) || !OidIsValid(get_index_am_oid("lsm", true)))
		return NULL;
	/* AlterTableLookupRelation checks that the user owns the table. */
	mode = AlterTableGetLockLevel(command->cmds);
	alter = palloc0(sizeof(LsmAlterTable));
	alter->table = AlterTableLookupRelation(command, mode);
	kind = OidIsValid(alter->table) ? get_rel_relkind(alter->table) : '\0';
	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
		kind != RELKIND_FOREIGN_TABLE && kind != RELKIND_COMPOSITE_TYPE)
		return NULL;

	/* The command may be in a plan cache. */
	if (*read_only_tree)
		*statement = copyObject(*statement);
	*read_only_tree = false;
	command = (AlterTableStmt *) (*statement)->utilityStmt;
	alter->only = !command->relation->inh;
	if (kind == RELKIND_RELATION)
		take_constraints(alter, command);
	foreach(cell, kind == RELKIND_COMPOSITE_TYPE ?
			typed_tables(get_rel_type_id(alter->table), mode) :
			alter->only ? list_make1_oid(alter->table) :
			find_all_inheritors(alter->table, mode, NULL))
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

		if (!saved->is_key && !saved->is_dropped && has_its_columns(saved))
			restore_saved(saved);
	}
	foreach(cell, alter->marks)
		restore_marks(lfirst(cell));
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
		lsm_add_constraint_using_index(alter->table, lfirst(cell), alter->only);
	if (alter->later != NIL)
	{
		PlannedStmt *later = copyObject(statement);

		((AlterTableStmt *) later->utilityStmt)->cmds = alter->later;
		is_prepared = true;
		PG_TRY();
		{
			ProcessUtility(later, text, false, PROCESS_UTILITY_SUBCOMMAND, NULL, NULL,
						   None_Receiver, NULL);
		}
		PG_FINALLY();
		{
			is_prepared = false;
		}
		PG_END_TRY();
		CommandCounterIncrement();
	}
}

/*
 * Returns whether the command that begins now has been prepared for lsm already, and forgets the
 * answer.
 */
bool
lsm_alter_table_take_prepared(void)
{
	bool		answer = is_prepared;

	is_prepared = false;
	return answer;
}
