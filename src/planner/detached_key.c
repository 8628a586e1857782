/*
 * detached_key.c
 *	  Separates keys from their lsm indexes while ALTER TABLE recreates the indexes.
 *
 * alter_table.c says why.  object_access_hook calls us before an index is dropped, and when a new one
 * is in the catalogs.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/compat.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_inherits.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "planner/detached_key.h"
#include "planner/planner.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

typedef enum KeyState
{
	KEY_DETACHED,				/* its index still exists */
	KEY_AWAITED,				/* core has dropped the index, and will create it again */
	KEY_GONE,					/* the index has been dropped for good */
	KEY_ATTACHED
} KeyState;

/* A key without its constraint.  The keys of partitions follow those of their parents. */
typedef struct DetachedKey
{
	KeyState	state;
	Oid			table;
	Oid			index;			/* the one that it has, or had last */
	struct DetachedKey *parent; /* the key of the parent table, or NULL */
	char	   *name;			/* of the constraint */
	char	   *index_name;		/* of the index that core creates */
	char		type;			/* CONSTRAINT_PRIMARY or CONSTRAINT_UNIQUE */
	bool		is_new;			/* from ADD CONSTRAINT ... USING INDEX */
	bool		is_deferrable;
	bool		is_deferred;
	char	   *comment;		/* or NULL */
	/* Marks of a partition's index.  Core restores those of other indexes. */
	bool		is_clustered;
	bool		is_replica_identity;
} DetachedKey;

/* The innermost command that runs, or NULL. */
static LsmAlterTable *current = NULL;

/*
 * Let the views and functions that depend on a constraint depend on its index.  They must not keep
 * us from deleting the constraint.  Unless the command drops them, core refuses to change the
 * column.
 */
static void
move_dependents(Oid constraint, Oid index)
{
	Relation	depends = table_open(DependRelationId, RowExclusiveLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(ConstraintRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(constraint));
	scan = systable_beginscan(depends, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		HeapTuple	copy;

		if (((Form_pg_depend) GETSTRUCT(tuple))->deptype != DEPENDENCY_NORMAL)
			continue;
		copy = heap_copytuple(tuple);
		((Form_pg_depend) GETSTRUCT(copy))->refclassid = RelationRelationId;
		((Form_pg_depend) GETSTRUCT(copy))->refobjid = index;
		CatalogTupleUpdate(depends, &copy->t_self, copy);
	}
	systable_endscan(scan);
	table_close(depends, RowExclusiveLock);
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

/*
 * Let an index refuse duplicates at once.  The trigger that checks a deferrable key goes with the
 * constraint, and a trigger on ddl_command_start may insert rows.
 */
static void
make_immediate(Oid index)
{
	Relation	catalog = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(index));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", index);
	((Form_pg_index) GETSTRUCT(tuple))->indimmediate = true;
	CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(catalog, RowExclusiveLock);
}

/* Returns the key of an index, or NULL. */
static DetachedKey *
key_of(const LsmAlterTable *alter, Oid index)
{
	ListCell   *cell;

	foreach(cell, alter->keys)
	{
		DetachedKey *key = lfirst(cell);

		if (key->index == index)
			return key;
	}
	return NULL;
}

/* Save the constraint of an index, and separate the index from it. */
static DetachedKey *
detach_index(const LsmAlterTable *alter, Oid index_oid)
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
	key->index_name = key->name;
	key->type = form->contype;
	key->is_deferrable = form->condeferrable;
	key->is_deferred = form->condeferred;
	key->comment = GetComment(constraint, ConstraintRelationId, 0);
	if (index->rd_rel->relispartition)
	{
		key->parent = key_of(alter, get_partition_parent(index_oid, false));
		key->is_clustered = index->rd_index->indisclustered;
		key->is_replica_identity = index->rd_index->indisreplident;
	}
	make_independent(index);
	move_dependents(constraint, index_oid);
	if (key->is_deferrable)
		make_immediate(index_oid);
	index_close(index, NoLock);
	ReleaseSysCache(tuple);
	return key;
}

/* Detach a key, and the keys of partitions that belong to it. */
void
lsm_key_detach(LsmAlterTable *alter, Oid index_oid)
{
	List	   *indexes = find_all_inheritors(index_oid, AccessExclusiveLock, NULL);
	ObjectAddress constraint;
	ListCell   *cell;

	ObjectAddressSet(constraint, ConstraintRelationId, get_index_constraint(index_oid));
	foreach(cell, indexes)
		alter->keys = lappend(alter->keys, detach_index(alter, lfirst_oid(cell)));
	CommandCounterIncrement();
	/* As when core recreates the key, sql_drop triggers do not hear of this. */
	performDeletion(&constraint, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
	CommandCounterIncrement();
}

/* Does the table have a primary key?  Unlike rd_pkindex, this finds deferrable ones. */
static bool
has_primary_key(Relation heap)
{
	ListCell   *cell;
	bool		found = false;

	foreach(cell, RelationGetIndexList(heap))
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));

		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for index %u", lfirst_oid(cell));
		found |= ((Form_pg_index) GETSTRUCT(tuple))->indisprimary;
		ReleaseSysCache(tuple);
	}
	return found;
}

/* Create the constraint of a key, and return it.  `parent`: the constraint above it, or InvalidOid. */
static Oid
create_constraint(const DetachedKey *key, Oid parent)
{
	Relation	heap = table_open(key->table, NoLock);
	Relation	index = index_open(key->index, NoLock);
	uint16		flags = INDEX_CONSTR_CREATE_UPDATE_INDEX | INDEX_CONSTR_CREATE_REMOVE_OLD_DEPS;
	ObjectAddress constraint;

	if (key->type == CONSTRAINT_PRIMARY)
	{
		flags |= INDEX_CONSTR_CREATE_MARK_AS_PRIMARY;
		if (!index->rd_index->indisprimary && has_primary_key(heap))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TABLE_DEFINITION),
					 errmsg("multiple primary keys for table \"%s\" are not allowed",
							RelationGetRelationName(heap))));
	}
	if (key->is_deferrable)
		flags |= INDEX_CONSTR_CREATE_DEFERRABLE;
	if (key->is_deferred)
		flags |= INDEX_CONSTR_CREATE_INIT_DEFERRED;
	constraint = index_constraint_create(heap, key->index, parent, BuildIndexInfo(index),
										 get_rel_name(key->index), key->type, flags,
										 allowSystemTableMods, true);
	index_close(index, NoLock);
	table_close(heap, NoLock);
	return constraint.objectId;
}

/*
 * Make a constraint of a partition a child of the parent table's, unless it is one.  Core copies new
 * indexes of partitions from their parents.  If the parent's key is back by then, the copy has a
 * constraint.  Only below the topmost table does core know that it belongs to the parent's.
 */
static void
adopt_constraint(Oid constraint, Oid parent, Oid table)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	bool		has_parent;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for constraint %u", constraint);
	has_parent = OidIsValid(((Form_pg_constraint) GETSTRUCT(tuple))->conparentid);
	ReleaseSysCache(tuple);
	if (!has_parent && OidIsValid(parent))
		ConstraintSetParentConstraint(constraint, parent, table);
}

/*
 * Give the index of a key the key's name.  Core chooses new names for the indexes of partitions, and
 * may have given the old name to another one.  The name of a new key may become free only during the
 * command.
 */
static void
rename_index(const DetachedKey *key)
{
	const char *name = get_rel_name(key->index);

	if (strcmp(name, key->name) == 0 ||
		(!(key->is_new && key->state == KEY_ATTACHED) &&
		 OidIsValid(get_relname_relid(key->name, get_rel_namespace(key->table)))))
		return;
	if (key->is_new)
		ereport(NOTICE,
				(errmsg("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"%s\" to \"%s\"",
						name, key->name)));
	RenameRelationInternal(key->index, key->name, true, true);
	CommandCounterIncrement();
}

/* Let an index have a key when core has recreated the index. */
void
lsm_key_expect(LsmAlterTable *alter, const IndexStmt *definition)
{
	DetachedKey *key = palloc0(sizeof(DetachedKey));

	key->table = alter->table;
	key->index = definition->indexOid;
	key->name = definition->idxname ? definition->idxname : get_rel_name(key->index);
	key->type = definition->primary ? CONSTRAINT_PRIMARY : CONSTRAINT_UNIQUE;
	key->is_new = true;
	key->is_deferrable = definition->deferrable;
	key->is_deferred = definition->initdeferred;
	/* Now, because core marks the new index by the name that the old one has. */
	rename_index(key);
	key->index_name = get_rel_name(key->index);
	alter->keys = lappend(alter->keys, key);
}

/* Make an index the index of a key. */
static void
attach_key(DetachedKey *key, Oid index)
{
	Oid			constraint = get_index_constraint(index);
	Oid			parent = key->parent ? get_index_constraint(key->parent->index) : InvalidOid;

	key->state = KEY_ATTACHED;
	key->index = index;
	rename_index(key);
	if (OidIsValid(constraint))
		adopt_constraint(constraint, parent, key->table);
	else
		constraint = create_constraint(key, parent);
	if (key->comment)
		CreateComments(constraint, ConstraintRelationId, 0, key->comment);
	CommandCounterIncrement();
}

/* Returns the key that awaits an index, or NULL.  `parent`: the key above it, or NULL. */
static DetachedKey *
awaiting_key(const LsmAlterTable *alter, Relation index, const DetachedKey *parent)
{
	ListCell   *cell;

	foreach(cell, alter->keys)
	{
		DetachedKey *key = lfirst(cell);

		if (key->state == KEY_AWAITED && key->parent == parent &&
			key->table == index->rd_index->indrelid &&
			(parent || strcmp(key->index_name, RelationGetRelationName(index)) == 0))
			return key;
	}
	return NULL;
}

/*
 * Attach the key of a new index, if it belongs to one of the command's keys.  The command counter
 * has been incremented.
 */
static void
attach_index(const LsmAlterTable *alter, Relation index)
{
	Oid			index_oid = RelationGetRelid(index);
	DetachedKey *parent = NULL;
	DetachedKey *key;

	if (index->rd_rel->relispartition)
	{
		parent = key_of(alter, get_partition_parent(index_oid, false));
		if (parent == NULL)
			return;
	}
	key = awaiting_key(alter, index, parent);
	if (key != NULL && alter != current)
	{
		/* A trigger on ddl_command_start changes the column, too.  The outer command has yet to begin. */
		key->index = index_oid;
		key->state = KEY_DETACHED;
	}
	else if (key != NULL)
		attach_key(key, index_oid);
	else if (parent != NULL && OidIsValid(get_index_constraint(index_oid)))
		adopt_constraint(get_index_constraint(index_oid), get_index_constraint(parent->index),
						 index->rd_index->indrelid);
}

/*
 * Attach the key of an index that core is creating.  The index is in the catalogs, and is not built
 * yet.  Does nothing for other relations.
 */
void
lsm_alter_table_created(Oid relation_oid)
{
	Relation	relation;

	if (current == NULL)
		return;
	/* Core holds the lock, and only the relation cache knows the relation yet. */
	relation = RelationIdGetRelation(relation_oid);
	if (!RelationIsValid(relation))
		return;
	if (relation->rd_rel->relam == get_index_am_oid("lsm", false))
	{
		CommandCounterIncrement();
		for (const LsmAlterTable *alter = current; alter != NULL; alter = alter->outer)
			attach_index(alter, relation);
	}
	RelationClose(relation);
}

/* Note that a relation is about to be dropped.  `flags`: those of performDeletion. */
void
lsm_alter_table_dropping(Oid relation, int flags)
{
	for (const LsmAlterTable *alter = current; alter != NULL; alter = alter->outer)
	{
		DetachedKey *key = key_of(alter, relation);

		if (key == NULL || key->state != KEY_DETACHED)
			continue;
		/* ALTER TABLE drops what it will recreate in this way. */
		key->state = (flags & PERFORM_DELETION_INTERNAL) != 0 ? KEY_AWAITED : KEY_GONE;
		/* A trigger on ddl_command_start may have changed the name. */
		key->index_name = MemoryContextStrdup(GetMemoryChunkContext(key), get_rel_name(relation));
	}
}

/* After the command: attach a key whose index core has left alone. */
static void
finish_key(DetachedKey *key)
{
	if (key->state == KEY_DETACHED && get_rel_relkind(key->index) != '\0')
		attach_key(key, key->index);
	else if (key->is_new && key->state == KEY_GONE)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index \"%s\" does not exist", key->index_name)));
	else if (key->state == KEY_DETACHED || key->state == KEY_AWAITED)
		elog(ERROR, "ALTER TABLE has not recreated the index of key \"%s\"", key->name);
}

/* Mark the index of a partition. */
static void
restore_marks(const DetachedKey *key)
{
	List	   *commands = NIL;

	if (key->state != KEY_ATTACHED || get_rel_relkind(key->index) == '\0')
		return;
	if (key->is_clustered)
	{
		AlterTableCmd *command = makeNode(AlterTableCmd);

		command->subtype = AT_ClusterOn;
		command->name = get_rel_name(key->index);
		commands = lappend(commands, command);
	}
	if (key->is_replica_identity)
	{
		AlterTableCmd *command = makeNode(AlterTableCmd);
		ReplicaIdentityStmt *definition = makeNode(ReplicaIdentityStmt);

		definition->identity_type = REPLICA_IDENTITY_INDEX;
		definition->name = get_rel_name(key->index);
		command->subtype = AT_ReplicaIdentity;
		command->def = (Node *) definition;
		commands = lappend(commands, command);
	}
	if (commands != NIL)
		lsm_alter_hidden(key->table, commands);
}

/* Let the hooks know the keys of a command, until lsm_alter_table_leave. */
void
lsm_keys_enter(LsmAlterTable *alter)
{
	alter->outer = current;
	current = alter;
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
		finish_key(lfirst(cell));
	foreach(cell, alter->keys)
		restore_marks(lfirst(cell));
}
