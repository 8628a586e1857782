/*
 * alter_table.c
 *	  Helps ALTER TABLE with what core does only for B-trees.
 *
 * ADD CONSTRAINT ... USING INDEX: see add_using_index.c.
 *
 * ALTER COLUMN ... TYPE or SET EXPRESSION: core recreates the indexes that contain the column.  The
 * definition of an index names its access method, but the definition of a key does not, so core
 * would make a B-tree.  Therefore:
 *
 * 1. Before the command, we detach each such key from its lsm index: we delete the constraint, but
 *	  not the index.
 * 2. Core recreates the index.  As soon as the new index is in the catalogs, and before it is
 *	  built, object_access_hook calls us, and we attach the key again.  So all that core does later
 *	  in the command finds the key: foreign keys that reference it, other subcommands, and event
 *	  triggers.
 * 3. After the command, we attach the keys whose index core has left alone.
 *
 * ALTER TYPE changes the columns of typed tables, so it works like ALTER TABLE.  An error anywhere
 * aborts the transaction, so nothing is left half done.
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
#include "catalog/pg_depend.h"
#include "catalog/pg_inherits.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "planner/planner.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* A key without its constraint.  The keys of partitions follow those of their parents. */
typedef struct DetachedKey
{
	Oid			table;
	Oid			index;			/* the old index */
	Oid			new_index;		/* or InvalidOid */
	Oid			parent;			/* the old index of the parent's key, or InvalidOid */
	char	   *name;			/* of the constraint and its index */
	char		type;			/* CONSTRAINT_PRIMARY or CONSTRAINT_UNIQUE */
	bool		is_deferrable;
	bool		is_deferred;
	char	   *comment;		/* or NULL */
	/* Marks of a partition's index.  Core restores those of other indexes. */
	bool		is_clustered;
	bool		is_replica_identity;
} DetachedKey;

struct LsmAlterTable
{
	Oid			table;
	bool		only;			/* the command leaves child tables alone */
	List	   *keys;			/* DetachedKeys */
	List	   *later;			/* subcommands that use an index which core recreates */
	LsmAlterTable *outer;		/* the command that runs this one, or NULL */
};

/* The innermost command that runs. */
static LsmAlterTable *current = NULL;

/* --- detach --------------------------------------------------------------------- */

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

/* Does the command change the type or the expression of one of the index's columns? */
static bool
changes_index(const AlterTableStmt *statement, Oid index_oid)
{
	Relation	index = index_open(index_oid, AccessExclusiveLock);
	bool		changes = false;

	for (int i = 0; i < IndexRelationGetNumberOfAttributes(index); i++)
	{
		AttrNumber	number = index->rd_index->indkey.values[i];
		const char *name;

		if (number <= 0)
			continue;
		name = get_attname(index->rd_index->indrelid, number, false);
		changes |= has_command(statement, AT_AlterColumnType, name) ||
			has_command(statement, LSM_AT_SET_EXPRESSION, name);
	}
	index_close(index, NoLock);
	return changes;
}

/*
 * Does a view, or another object that core does not recreate, depend on the constraint?  Core
 * refuses to change the column then, and its error explains why.
 */
static bool
has_dependents(Oid constraint)
{
	Relation	depends = table_open(DependRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(ConstraintRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(constraint));
	scan = systable_beginscan(depends, DependReferenceIndexId, true, NULL, 2, keys);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
		found = ((Form_pg_depend) GETSTRUCT(tuple))->deptype == DEPENDENCY_NORMAL;
	systable_endscan(scan);
	table_close(depends, AccessShareLock);
	return found;
}

/* Let an index depend on its columns, as without a constraint.  index_create does the same. */
static void
make_independent(Relation index)
{
	ObjectAddress myself;

	deleteDependencyRecordsForClass(RelationRelationId, RelationGetRelid(index),
									ConstraintRelationId, DEPENDENCY_INTERNAL);
	ObjectAddressSet(myself, RelationRelationId, RelationGetRelid(index));
	for (int i = 0; i < IndexRelationGetNumberOfAttributes(index); i++)
	{
		ObjectAddress column;

		ObjectAddressSubSet(column, RelationRelationId, index->rd_index->indrelid,
							index->rd_index->indkey.values[i]);
		recordDependencyOn(&myself, &column, DEPENDENCY_AUTO);
	}
}

/* Save the constraint of an index, and separate the index from it. */
static DetachedKey *
detach_index(Oid index_oid)
{
	Oid			constraint = get_index_constraint(index_oid);
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	Relation	index = index_open(index_oid, AccessExclusiveLock);
	DetachedKey *key = palloc0(sizeof(DetachedKey));
	Form_pg_constraint form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for constraint %u", constraint);
	form = (Form_pg_constraint) GETSTRUCT(tuple);
	key->table = form->conrelid;
	key->index = index_oid;
	key->name = pstrdup(NameStr(form->conname));
	key->type = form->contype;
	key->is_deferrable = form->condeferrable;
	key->is_deferred = form->condeferred;
	key->comment = GetComment(constraint, ConstraintRelationId, 0);
	if (index->rd_rel->relispartition)
	{
		key->parent = get_partition_parent(index_oid, false);
		key->is_clustered = index->rd_index->indisclustered;
		key->is_replica_identity = index->rd_index->indisreplident;
	}
	make_independent(index);
	index_close(index, NoLock);
	ReleaseSysCache(tuple);
	return key;
}

/* Detach a key, and the keys of partitions that belong to it. */
static void
detach_key(LsmAlterTable *alter, Oid index_oid)
{
	List	   *indexes = find_all_inheritors(index_oid, AccessExclusiveLock, NULL);
	ObjectAddress constraint;
	ListCell   *cell;

	foreach(cell, indexes)
	{
		if (has_dependents(get_index_constraint(lfirst_oid(cell))))
			return;
	}
	ObjectAddressSet(constraint, ConstraintRelationId, get_index_constraint(index_oid));
	foreach(cell, indexes)
		alter->keys = lappend(alter->keys, detach_index(lfirst_oid(cell)));
	CommandCounterIncrement();
	/* As when core recreates the key, sql_drop triggers do not hear of this. */
	performDeletion(&constraint, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
	CommandCounterIncrement();
}

/* Does the command recreate this index, and is it the lsm index of a topmost key? */
static bool
needs_detaching(const LsmAlterTable *alter, const AlterTableStmt *statement, Oid index)
{
	HeapTuple	tuple;
	Form_pg_constraint form;
	bool		answer;

	if (!lsm_index_is_lsm(index))
		return false;
	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(get_index_constraint(index)));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_constraint) GETSTRUCT(tuple);
	/* A key that the command drops stays.  A child's key may have the same name. */
	answer = (form->contype == CONSTRAINT_PRIMARY || form->contype == CONSTRAINT_UNIQUE) &&
		!OidIsValid(form->conparentid) &&
		!(form->conrelid == alter->table &&
		  has_command(statement, AT_DropConstraint, NameStr(form->conname))) &&
		changes_index(statement, index);
	ReleaseSysCache(tuple);
	return answer;
}

/* Detach the keys of a table that core would recreate. */
static void
detach_keys(LsmAlterTable *alter, const AlterTableStmt *statement, Oid table)
{
	Relation	heap = table_open(table, NoLock);
	List	   *indexes = RelationGetIndexList(heap);
	ListCell   *cell;

	table_close(heap, NoLock);
	foreach(cell, indexes)
	{
		if (needs_detaching(alter, statement, lfirst_oid(cell)))
			detach_key(alter, lfirst_oid(cell));
	}
}

/* --- attach --------------------------------------------------------------------- */

/* Create the constraint of a key again, and return it.  See attach_key. */
static Oid
create_constraint(const DetachedKey *key, Oid parent)
{
	Relation	heap = table_open(key->table, NoLock);
	Relation	index = index_open(key->new_index, NoLock);
	uint16		flags = INDEX_CONSTR_CREATE_UPDATE_INDEX | INDEX_CONSTR_CREATE_REMOVE_OLD_DEPS;
	ObjectAddress constraint;

	if (key->type == CONSTRAINT_PRIMARY)
		flags |= INDEX_CONSTR_CREATE_MARK_AS_PRIMARY;
	if (key->is_deferrable)
		flags |= INDEX_CONSTR_CREATE_DEFERRABLE;
	if (key->is_deferred)
		flags |= INDEX_CONSTR_CREATE_INIT_DEFERRED;
	constraint = index_constraint_create(heap, key->new_index, parent, BuildIndexInfo(index),
										 key->name, key->type, flags, allowSystemTableMods, true);
	index_close(index, NoLock);
	table_close(heap, NoLock);
	return constraint.objectId;
}

/* Returns the constraint of the parent table's key that a constraint belongs to, or InvalidOid. */
static Oid
parent_of(Oid constraint)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	Oid			parent;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for constraint %u", constraint);
	parent = ((Form_pg_constraint) GETSTRUCT(tuple))->conparentid;
	ReleaseSysCache(tuple);
	return parent;
}

/*
 * Make an index the index of a key again.  `parent`: the constraint of the parent table's key, or
 * InvalidOid.  Core copies new indexes of partitions from their parents.  If the parent's key is
 * back by then, the copy has a constraint.  Only below the topmost table does core know that the
 * constraint belongs to the parent's.
 */
static void
attach_key(DetachedKey *key, Oid index, Oid parent)
{
	Oid			constraint = get_index_constraint(index);

	key->new_index = index;
	/* Core chooses new names for the indexes of partitions. */
	if (strcmp(get_rel_name(index), key->name) != 0)
	{
		RenameRelationInternal(index, key->name, true, true);
		CommandCounterIncrement();
	}
	if (!OidIsValid(constraint))
		constraint = create_constraint(key, parent);
	else if (!OidIsValid(parent_of(constraint)))
		ConstraintSetParentConstraint(constraint, parent, key->table);
	if (key->comment)
		CreateComments(constraint, ConstraintRelationId, 0, key->comment);
	CommandCounterIncrement();
}

/* Returns the key that a recreated index belongs to, or NULL.  `parent`: the index's parent. */
static DetachedKey *
key_of_index(Relation index, Oid parent)
{
	ListCell   *cell;
	Oid			old_parent = InvalidOid;

	/* The key of a partition follows its parent's. */
	foreach(cell, current->keys)
	{
		DetachedKey *key = lfirst(cell);

		if (OidIsValid(key->new_index))
		{
			if (key->new_index == parent)
				old_parent = key->index;
		}
		else if (key->table == index->rd_index->indrelid &&
				 (OidIsValid(parent) ? OidIsValid(key->parent) && key->parent == old_parent :
				  !OidIsValid(key->parent) &&
				  strcmp(key->name, RelationGetRelationName(index)) == 0))
			return key;
	}
	return NULL;
}

/*
 * Attach the key of an index that core is creating.  The index is in the catalogs, and is not built
 * yet.  Does nothing for other relations.
 */
void
lsm_alter_table_created(Oid relation_oid)
{
	Relation	relation;
	Oid			parent = InvalidOid;
	DetachedKey *key;

	if (current == NULL || current->keys == NIL)
		return;
	/* Core holds the lock, and only the relation cache knows the relation yet. */
	relation = RelationIdGetRelation(relation_oid);
	if (RelationIsValid(relation) && relation->rd_rel->relam == get_index_am_oid("lsm", false))
	{
		CommandCounterIncrement();
		if (relation->rd_rel->relispartition)
			parent = get_partition_parent(relation_oid, false);
		key = key_of_index(relation, parent);
		if (key != NULL)
			attach_key(key, relation_oid,
					   OidIsValid(parent) ? get_index_constraint(parent) : InvalidOid);
	}
	if (RelationIsValid(relation))
		RelationClose(relation);
}

/* Attach a key whose index core has left alone.  Does nothing if core has dropped the index. */
static void
attach_untouched(DetachedKey *key)
{
	if (OidIsValid(key->new_index) || get_rel_relkind(key->index) == '\0')
		return;
	attach_key(key, key->index,
			   OidIsValid(key->parent) ? get_index_constraint(key->parent) : InvalidOid);
}

/* Mark the index of a partition. */
static void
restore_marks(const DetachedKey *key)
{
	const char *table;
	const char *index;

	if (!OidIsValid(key->new_index) || get_rel_relkind(key->new_index) == '\0')
		return;
	table = lsm_quoted_relation_name(key->table);
	index = quote_identifier(get_rel_name(key->new_index));
	if (key->is_clustered)
		lsm_run_hidden(psprintf("ALTER TABLE %s CLUSTER ON %s", table, index));
	if (key->is_replica_identity)
		lsm_run_hidden(psprintf("ALTER TABLE %s REPLICA IDENTITY USING INDEX %s", table, index));
}

/* --- ADD CONSTRAINT ... USING INDEX --------------------------------------------- */

/*
 * Prepare subcommands that turn an lsm index into a key.  Core could not find an index that the
 * same command recreates, so such a subcommand runs after the others.
 */
static void
prepare_constraints(LsmAlterTable *alter, AlterTableStmt *statement)
{
	List	   *added = NIL;
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		Oid			index = lsm_index_of_constraint(command, alter->table);

		if (!OidIsValid(index))
			continue;
		if (changes_index(statement, index))
		{
			alter->later = lappend(alter->later, command);
			statement->cmds = foreach_delete_current(statement->cmds, cell);
		}
		else
			added = list_concat(added, lsm_constraint_use_index(command, alter->table, index));
	}
	statement->cmds = list_concat(statement->cmds, added);
}

static void
run_later(const LsmAlterTable *alter, AlterTableCmd *command)
{
	AlterTableStmt *statement = makeNode(AlterTableStmt);

	statement->relation = makeRangeVar(get_namespace_name(get_rel_namespace(alter->table)),
									   get_rel_name(alter->table), -1);
	statement->relation->inh = !alter->only;
	statement->cmds = list_make1(command);
	statement->objtype = OBJECT_TABLE;
	lsm_run_command((Node *) statement, "");
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
 * Prepare ALTER TABLE or ALTER TYPE before core sees it: detach keys, and change the subcommands
 * that core would refuse.  Returns NULL if core can do everything.  Otherwise the caller must call
 * lsm_alter_table_leave, and if core succeeds, then lsm_alter_table_finish.
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
	foreach(cell, kind == RELKIND_COMPOSITE_TYPE ?
			typed_tables(get_rel_type_id(alter->table), mode) :
			alter->only ? list_make1_oid(alter->table) :
			find_all_inheritors(alter->table, mode, NULL))
		detach_keys(alter, command, lfirst_oid(cell));
	if (kind == RELKIND_RELATION)
		prepare_constraints(alter, command);
	alter->outer = current;
	current = alter;
	return alter;
}

/* End what lsm_alter_table_begin has begun, also after an error. */
void
lsm_alter_table_leave(LsmAlterTable *alter)
{
	current = alter->outer;
}

/* Do what is left to do when core has done its part of ALTER TABLE. */
void
lsm_alter_table_finish(const LsmAlterTable *alter)
{
	ListCell   *cell;

	CommandCounterIncrement();
	foreach(cell, alter->keys)
		attach_untouched(lfirst(cell));
	foreach(cell, alter->keys)
		restore_marks(lfirst(cell));
	foreach(cell, alter->later)
		run_later(alter, lfirst(cell));
}
