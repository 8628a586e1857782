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
 *	  not the index (detached_key.c).
 * 2. Core recreates the index: it drops the index, and creates it again.  object_access_hook calls us
 *	  for both.  As soon as the new index is in the catalogs, and before it is built, we attach the
 *	  key again.  So all that core does later in the command finds the key: foreign keys that
 *	  reference it, other subcommands, and event triggers.
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
#include "access/xlog.h"
#include "base/compat.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "planner/detached_key.h"
#include "planner/planner.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

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

/* Does the command have a subcommand of this kind for one of the index's columns? */
static bool
has_column_command(const AlterTableStmt *statement, AlterTableType subtype, Oid index_oid)
{
	Relation	index = index_open(index_oid, AccessExclusiveLock);
	bool		found = false;

	for (int i = 0; i < IndexRelationGetNumberOfAttributes(index); i++)
	{
		AttrNumber	number = index->rd_index->indkey.values[i];

		if (number > 0)
			found |= has_command(statement, subtype,
								 get_attname(index->rd_index->indrelid, number, false));
	}
	index_close(index, NoLock);
	return found;
}

/* Does the command change the type or the expression of one of the index's columns? */
static bool
changes_index(const AlterTableStmt *statement, Oid index)
{
	return has_column_command(statement, AT_AlterColumnType, index) ||
		has_column_command(statement, LSM_AT_SET_EXPRESSION, index);
}

/*
 * Does the command recreate this index, and is it the lsm index of a topmost key?  As with a B-tree,
 * core refuses to recreate a key whose index is attached to an index that is not a key's.
 */
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
	/*
	 * A key that the command drops stays, so that triggers on sql_drop hear of it.  A child's key
	 * may have the same name, and a child may keep the column.
	 */
	answer = (form->contype == CONSTRAINT_PRIMARY || form->contype == CONSTRAINT_UNIQUE) &&
		!OidIsValid(form->conparentid) && !get_rel_relispartition(index) &&
		!(form->conrelid == alter->table &&
		  (has_command(statement, AT_DropConstraint, NameStr(form->conname)) ||
		   has_column_command(statement, AT_DropColumn, index))) &&
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
			lsm_key_detach(alter, lfirst_oid(cell));
	}
}

/* --- ADD CONSTRAINT ... USING INDEX --------------------------------------------- */

/*
 * Prepare subcommands that turn an lsm index into a key.  Core could not find an index that the
 * same command recreates, so we attach such a key ourselves.
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

		/* If the command drops the index, core says that there is none. */
		if (!OidIsValid(index) || has_column_command(statement, AT_DropColumn, index))
			continue;
		added = list_concat(added, lsm_constraint_use_index(command, alter->table, index));
		if (changes_index(statement, index))
		{
			lsm_key_expect(alter, castNode(IndexStmt, command->def));
			statement->cmds = foreach_delete_current(statement->cmds, cell);
		}
	}
	statement->cmds = list_concat(statement->cmds, added);
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
	/* Core refuses the command. */
	if (XactReadOnly || RecoveryInProgress())
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
	/* This comes first: a key whose index is to become another key must not be detached. */
	if (kind == RELKIND_RELATION)
		prepare_constraints(alter, command);
	foreach(cell, kind == RELKIND_COMPOSITE_TYPE ?
			typed_tables(get_rel_type_id(alter->table), mode) :
			!command->relation->inh ? list_make1_oid(alter->table) :
			find_all_inheritors(alter->table, mode, NULL))
		detach_keys(alter, command, lfirst_oid(cell));
	lsm_keys_enter(alter);
	return alter;
}
