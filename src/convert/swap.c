/*
 * swap.c
 *	  lsm_convert_swap: puts an index in the place of another one that differs only in its method.
 *
 * REINDEX CONCURRENTLY has the same step, and core's function for that step does the work.
 * Core's function moves the name, the constraint, the foreign keys that refer to the constraint,
 * the comment, the statistics, and the marks for CLUSTER and REPLICA IDENTITY.  It also renames
 * the old index, and marks it invalid.  Writers still maintain the old index until DROP INDEX
 * CONCURRENTLY has waited for them.
 *
 * Core's function also exchanges all dependencies of the two indexes.  This is right for REINDEX,
 * where both indexes have the same operator classes.  Our two indexes have different classes, so we
 * correct their dependencies on operator classes.  Without these dependencies, DROP EXTENSION
 * pg_lsm would not find the lsm index.
 *
 * Locks: ShareUpdateExclusiveLock on the table and both indexes, until the transaction ends.  This
 * lock blocks other DDL and VACUUM, but no query and no writer.
 */
#include "postgres.h"

#include "access/attmap.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/compat.h"
#include "base/options.h"
#include "base/stop_point.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_opclass.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "convert/swap.h"
#include "fmgr.h"
#include "index/index.h"
#include "miscadmin.h"
#include "planner/planner.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(lsm_convert_swap);

/* Returns the operator classes of an index. */
static oidvector *
index_classes(Relation index)
{
	bool		isnull;

	return (oidvector *) DatumGetPointer(
		SysCacheGetAttr(INDEXRELID, index->rd_indextuple, Anum_pg_index_indclass, &isnull));
}

/* Do two operator classes have the same name, schema and type? */
static bool
classes_match(Oid one, Oid other)
{
	HeapTuple	a = SearchSysCache1(CLAOID, ObjectIdGetDatum(one));
	HeapTuple	b = SearchSysCache1(CLAOID, ObjectIdGetDatum(other));
	bool		match = false;

	if (HeapTupleIsValid(a) && HeapTupleIsValid(b))
	{
		Form_pg_opclass x = (Form_pg_opclass) GETSTRUCT(a);
		Form_pg_opclass y = (Form_pg_opclass) GETSTRUCT(b);

		match = strcmp(NameStr(x->opcname), NameStr(y->opcname)) == 0 &&
			x->opcnamespace == y->opcnamespace && x->opcintype == y->opcintype;
	}
	if (HeapTupleIsValid(a))
		ReleaseSysCache(a);
	if (HeapTupleIsValid(b))
		ReleaseSysCache(b);
	return match;
}

/* Do the indexes have the same columns, conditions, collations, orders, and operator classes? */
static bool
indexes_match(Relation heap, Relation new_index, Relation old_index)
{
	IndexInfo  *new_info = BuildIndexInfo(new_index);
	IndexInfo  *old_info = BuildIndexInfo(old_index);
	AttrMap    *same = make_attrmap(RelationGetNumberOfAttributes(heap));
	bool		match;

	for (int i = 0; i < same->maplen; i++)
		same->attnums[i] = i + 1;
	/* Core also compares methods and operator families.  Ours differ, so pass the old ones twice. */
	new_info->ii_Am = old_info->ii_Am;
	match = CompareIndexInfo(new_info, old_info, new_index->rd_indcollation,
							 old_index->rd_indcollation, old_index->rd_opfamily,
							 old_index->rd_opfamily, same);
	for (int i = 0; match && i < IndexRelationGetNumberOfKeyAttributes(old_index); i++)
		match = new_index->rd_indoption[i] == old_index->rd_indoption[i] &&
			classes_match(index_classes(new_index)->values[i],
						  index_classes(old_index)->values[i]);
	free_attrmap(same);
	return match;
}

/* If this were an lsm index, would a restore fail to create the foreign keys that refer to it? */
static bool
needs_btree(Relation index)
{
#ifdef LSM_UNIQUE_TAKES_ALL
	return false;
#else
	return get_index_ref_constraints(RelationGetRelid(index)) != NIL;
#endif
}

static void
refuse_swap(Relation new_index, Relation old_index, const char *reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" cannot take the place of index \"%s\"",
					RelationGetRelationName(new_index), RelationGetRelationName(old_index)),
			 errdetail("%s", reason)));
}

/* Does no constraint, partitioned index or command use the new index? */
static bool
is_unused(Relation index)
{
	return !OidIsValid(get_index_constraint(RelationGetRelid(index))) &&
		get_index_ref_constraints(RelationGetRelid(index)) == NIL &&
		!index->rd_rel->relispartition && !index->rd_index->indisclustered &&
		!index->rd_index->indisreplident;
}

static bool
is_lsm_or_btree(Relation index)
{
	return index->rd_rel->relam == BTREE_AM_OID || lsm_index_is_lsm(RelationGetRelid(index));
}

/* Raise an error unless the new index can take the place of the old one. */
static void
check_swap(Relation heap, Relation new_index, Relation old_index)
{
	bool		becomes_lsm = lsm_index_is_lsm(RelationGetRelid(new_index));
	LsmOwnerContext caller;
	bool		match;

	if (RELATION_IS_OTHER_TEMP(heap))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));
	if (new_index->rd_index->indrelid != RelationGetRelid(heap) || new_index == old_index)
		refuse_swap(new_index, old_index, "They must be two different indexes on the same table.");
	if (new_index->rd_rel->relkind != RELKIND_INDEX || old_index->rd_rel->relkind != RELKIND_INDEX)
		refuse_swap(new_index, old_index, "Partitioned indexes cannot be swapped.");
	if (!is_lsm_or_btree(new_index) || !is_lsm_or_btree(old_index))
		refuse_swap(new_index, old_index, "The methods must be lsm and btree.");
#ifndef LSM_UNIQUE_TAKES_ALL
	if (becomes_lsm && old_index->rd_rel->relispartition && old_index->rd_index->indisunique)
		refuse_swap(new_index, old_index,
					"Unique indexes of partitioned tables must be B-trees before PostgreSQL 18.");
#endif
	if (!new_index->rd_index->indisvalid || !old_index->rd_index->indisvalid)
		refuse_swap(new_index, old_index, "Both indexes must be valid.");
	if (!is_unused(new_index))
		refuse_swap(new_index, old_index, "The new index is in use as a key, or by a command.");
	if (old_index->rd_index->indisexclusion || !old_index->rd_index->indimmediate)
		refuse_swap(new_index, old_index,
					"Exclusion constraints and deferrable constraints are not supported.");
	if (becomes_lsm && needs_btree(old_index))
		refuse_swap(new_index, old_index, "Before PostgreSQL 18, foreign keys that refer to the old index need a B-tree.");
	if (becomes_lsm && OidIsValid(get_index_constraint(RelationGetRelid(old_index))) &&
		!lsm_has_key_parameter(new_index))
		refuse_swap(new_index, old_index, "The index of a key needs the storage parameter \"lsm\".");
	/* Core evaluates constant parts of the expressions, so run as the table's owner. */
	lsm_owner_become(heap, &caller);
	match = indexes_match(heap, new_index, old_index);
	lsm_owner_leave(&caller);
	if (!match)
		refuse_swap(new_index, old_index, "The indexes differ in more than their methods.");
}

/* Does an earlier column of the index have the same operator class as this one? */
static bool
is_repeated(const oidvector *classes, int column)
{
	for (int i = 0; i < column; i++)
	{
		if (classes->values[i] == classes->values[column])
			return true;
	}
	return false;
}

/* Replace an index's dependencies on the operator classes of its key columns. */
void
lsm_replace_classes(Oid index, const oidvector *before, const oidvector *after, int columns)
{
	ObjectAddress depender = {RelationRelationId, index, 0};

	for (int i = 0; i < columns; i++)
	{
		if (!is_repeated(before, i))
			deleteDependencyRecordsForSpecific(RelationRelationId, index, DEPENDENCY_NORMAL,
											   OperatorClassRelationId, before->values[i]);
	}
	CommandCounterIncrement();
	for (int i = 0; i < columns; i++)
	{
		ObjectAddress referenced = {OperatorClassRelationId, after->values[i], 0};

		if (!is_repeated(after, i))
			recordDependencyOn(&depender, &referenced, DEPENDENCY_NORMAL);
	}
}

/* Returns the table of an index.  Raises an error unless it is an index that the user owns. */
Oid
lsm_owned_table(Oid index)
{
	char	   *name = get_rel_name(index);
	Oid			table = IndexGetRelation(index, true);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", index)));
	if (!OidIsValid(table))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index", name)));
	if (!lsm_owns_relation(index, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, name);
	return table;
}

/*
 * lsm_convert_swap(new_index regclass, old_index regclass)
 */
Datum
lsm_convert_swap(PG_FUNCTION_ARGS)
{
	Oid			new_oid = PG_GETARG_OID(0);
	Oid			old_oid = PG_GETARG_OID(1);
	Relation	heap;
	Relation	new_index;
	Relation	old_index;
	int			columns;

	(void) lsm_owned_table(new_oid);
	heap = table_open(lsm_owned_table(old_oid), ShareUpdateExclusiveLock);
	old_index = index_open(old_oid, ShareUpdateExclusiveLock);
	new_index = index_open(new_oid, ShareUpdateExclusiveLock);
	check_swap(heap, new_index, old_index);

	/* Core's function moves the old index's statistics and comment.  First remove the new one's. */
	RemoveStatistics(new_oid, 0);
	DeleteComments(new_oid, RelationRelationId, 0);
	CommandCounterIncrement();
	index_concurrently_swap(new_oid, old_oid, psprintf("lsm_convert_%u_old", old_oid));
	/* Invalidate cached plans that use the old index. */
	CacheInvalidateRelcache(heap);
	CommandCounterIncrement();
	columns = IndexRelationGetNumberOfKeyAttributes(old_index);
	lsm_replace_classes(new_oid, index_classes(old_index), index_classes(new_index), columns);
	lsm_replace_classes(old_oid, index_classes(new_index), index_classes(old_index), columns);
	CommandCounterIncrement();

	/* Holds ShareUpdateExclusiveLock on the table and both indexes. */
	LSM_STOP_POINT("convert-swapped");
	index_close(new_index, NoLock);
	index_close(old_index, NoLock);
	table_close(heap, NoLock);
	PG_RETURN_VOID();
}
