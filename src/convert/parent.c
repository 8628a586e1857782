/*
 * parent.c
 *	  lsm_convert_parent: gives a partitioned index the method of the indexes attached to it.
 *
 * A partitioned index has no file, only rows in the catalogs.  lsm_convert converts the attached
 * indexes one by one, and calls this function last.  Until then, the methods differ.  PostgreSQL
 * compares the methods only when an index is attached.  So a dump made in the meantime could not be
 * restored, since a restore attaches the indexes.
 *
 * Backends that have the partitioned index open at that moment keep its old operator families in
 * their caches.  The planner uses the families only to prove that rows are unique, and the proof
 * holds with the old families as well as with the new ones.
 *
 * Locks: ShareUpdateExclusiveLock on the table, on its partitions that are partitioned tables, and
 * on all indexes of the tree, until the transaction ends.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "base/compat.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/pg_am.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "convert/swap.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "planner/planner.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(lsm_convert_parent);

/* Returns the method's operator class with the same name, schema and type as this class. */
static Oid
find_opclass_of_method(Oid opclass, Oid method)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;
	HeapTuple	found;
	Oid			result = InvalidOid;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	found = SearchSysCache3(CLAAMNAMENSP, ObjectIdGetDatum(method), NameGetDatum(&form->opcname),
							ObjectIdGetDatum(form->opcnamespace));
	if (HeapTupleIsValid(found))
	{
		if (((Form_pg_opclass) GETSTRUCT(found))->opcintype == form->opcintype)
			result = ((Form_pg_opclass) GETSTRUCT(found))->oid;
		ReleaseSysCache(found);
	}
	if (!OidIsValid(result))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("access method \"%s\" has no operator class \"%s\"",
						get_am_name(method), NameStr(form->opcname)),
				 errhint("A superuser can create it with lsm_create_opclass.")));
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Returns the parameters that both methods have.  Adds the parameter "lsm" if a constraint owns the
 * index and the index becomes an lsm index.
 */
static Datum
convert_options(Datum options, bool is_lsm_key)
{
	List	   *kept = NIL;
	ListCell   *cell;

	foreach(cell, untransformRelOptions(options))
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, "fillfactor") == 0 ||
			strcmp(option->defname, "deduplicate_items") == 0)
			kept = lappend(kept, option);
	}
	if (is_lsm_key)
		kept = lappend(kept, makeDefElem("lsm", (Node *) makeString("true"), -1));
	return transformRelOptions((Datum) 0, kept, NULL, NULL, false, false);
}

/* Set the method and the parameters of an index in pg_class. */
static void
update_class(Oid index, Oid method, bool is_lsm_key)
{
	Relation	catalog = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	old = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(index));
	HeapTuple	new;
	Datum		values[Natts_pg_class] = {0};
	bool		isnull[Natts_pg_class] = {0};
	bool		replace[Natts_pg_class] = {0};
	Datum		options;
	bool		no_options;

	if (!HeapTupleIsValid(old))
		elog(ERROR, "cache lookup failed for relation %u", index);
	options = SysCacheGetAttr(RELOID, old, Anum_pg_class_reloptions, &no_options);
	options = convert_options(no_options ? (Datum) 0 : options, is_lsm_key);
	replace[Anum_pg_class_relam - 1] = true;
	values[Anum_pg_class_relam - 1] = ObjectIdGetDatum(method);
	replace[Anum_pg_class_reloptions - 1] = true;
	values[Anum_pg_class_reloptions - 1] = options;
	isnull[Anum_pg_class_reloptions - 1] = options == (Datum) 0;
	new = heap_modify_tuple(old, RelationGetDescr(catalog), values, isnull, replace);
	CatalogTupleUpdate(catalog, &new->t_self, new);
	table_close(catalog, RowExclusiveLock);
}

/* Set the operator classes of an index in pg_index, and the index's dependencies on them. */
static void
update_classes(Oid index, Oid method)
{
	Relation	catalog = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	old = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(index));
	int			columns;
	oidvector  *before;
	oidvector  *after;
	HeapTuple	new;
	bool		no_classes;
	Datum		values[Natts_pg_index] = {0};
	bool		isnull[Natts_pg_index] = {0};
	bool		replace[Natts_pg_index] = {0};

	if (!HeapTupleIsValid(old))
		elog(ERROR, "cache lookup failed for index %u", index);
	columns = ((Form_pg_index) GETSTRUCT(old))->indnkeyatts;
	before = (oidvector *) DatumGetPointer(
		SysCacheGetAttr(INDEXRELID, old, Anum_pg_index_indclass, &no_classes));
	after = buildoidvector(before->values, before->dim1);
	for (int i = 0; i < columns; i++)
		after->values[i] = find_opclass_of_method(before->values[i], method);
	replace[Anum_pg_index_indclass - 1] = true;
	values[Anum_pg_index_indclass - 1] = PointerGetDatum(after);
	new = heap_modify_tuple(old, RelationGetDescr(catalog), values, isnull, replace);
	CatalogTupleUpdate(catalog, &new->t_self, new);
	table_close(catalog, RowExclusiveLock);
	lsm_replace_classes(index, before, after, columns);
}

#ifndef LSM_UNIQUE_TAKES_ALL
static bool
is_unique(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", index);
	result = ((Form_pg_index) GETSTRUCT(tuple))->indisunique;
	ReleaseSysCache(tuple);
	return result;
}
#endif

static void
refuse_parent(Oid index, const char *reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot change the method of index \"%s\"", get_rel_name(index)),
			 errdetail("%s", reason)));
}

/* Raise an error unless all indexes of the tree that have a file use the method. */
static void
check_tree(Oid root, List *tree, Oid method)
{
	ListCell   *cell;

	foreach(cell, tree)
	{
		Oid			index = lfirst_oid(cell);

		if (get_rel_relkind(index) == RELKIND_INDEX && lsm_index_method(index) != method)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot change the method of index \"%s\"", get_rel_name(root)),
					 errdetail("The attached index \"%s\" uses another method.", get_rel_name(index)),
					 errhint("Call lsm_convert again.")));
	}
}

/*
 * Lock the partitioned tables of a tree, so that no partition is added.  The caller has locked the
 * topmost table.
 */
static void
lock_tables(Oid table)
{
	List	   *children = find_inheritance_children(table, NoLock);
	ListCell   *cell;

	check_stack_depth();
	foreach(cell, children)
	{
		Oid			child = lfirst_oid(cell);

		if (get_rel_relkind(child) != RELKIND_PARTITIONED_TABLE)
			continue;
		LockRelationOid(child, ShareUpdateExclusiveLock);
		lock_tables(child);
	}
}

/*
 * lsm_convert_parent(index regclass, method name)
 */
Datum
lsm_convert_parent(PG_FUNCTION_ARGS)
{
	Oid			root = PG_GETARG_OID(0);
	Oid			method = get_index_am_oid(NameStr(*PG_GETARG_NAME(1)), false);
	Oid			table = lsm_owned_table(root);
	bool		becomes_lsm = method == get_index_am_oid("lsm", true);
	Relation	heap;
	List	   *tree;
	ListCell   *cell;

	heap = table_open(table, ShareUpdateExclusiveLock);
	if (get_rel_relkind(root) != RELKIND_PARTITIONED_INDEX || get_rel_relispartition(root))
		refuse_parent(root, "It is not the topmost index of a partitioned table.");
	if (!becomes_lsm && method != BTREE_AM_OID)
		refuse_parent(root, "The method must be lsm or btree.");
#ifndef LSM_UNIQUE_TAKES_ALL
	if (becomes_lsm && is_unique(root))
		refuse_parent(root, "Unique indexes of partitioned tables must be B-trees before PostgreSQL 18.");
#endif
	lock_tables(table);
	LockRelationOid(root, ShareUpdateExclusiveLock);	/* the next line locks the indexes below */
	tree = find_all_inheritors(root, ShareUpdateExclusiveLock, NULL);
	check_tree(root, tree, method);
	foreach(cell, tree)
	{
		Oid			index = lfirst_oid(cell);

		if (get_rel_relkind(index) != RELKIND_PARTITIONED_INDEX || lsm_index_method(index) == method)
			continue;
		update_class(index, method, becomes_lsm && OidIsValid(get_index_constraint(index)));
		update_classes(index, method);
		CacheInvalidateRelcacheByRelid(IndexGetRelation(index, false));
	}
	CommandCounterIncrement();
	table_close(heap, NoLock);
	PG_RETURN_VOID();
}
