/*
 * present_as_btree.c
 *	  Presents lsm indexes to the planner as btrees, so that the planner matches all conditions.
 *
 * The planner matches the operators of an operator family with any index.  But it matches some
 * conditions only with btrees, recognized by the OID of the method or of a family: row comparisons;
 * LIKE, regular expressions and ^@ with pattern classes; inet <<; and on 15, boolean columns.  Such
 * conditions need only an order and the operators of the btree family.  An lsm index has both.  So
 * when the planner has read the catalogs, we present an lsm index as a btree with the btree
 * families that have the same operators.  Then core does all the matching: paths of all kinds,
 * joins, OR, partitions.
 *
 * We change only the planner's description of the index, which lives for one query (see
 * get_relation_info_hook; build_simple_rel_hook from 19 on).  The executor uses the catalogs, so we
 * present a btree family only if it has exactly the operators of our family.
 *
 * To estimate how many rows a range has, the planner of 15 to 17 looks up the least and the
 * greatest value of a column in a btree.  Because we present lsm indexes as btrees, the planner
 * does the same in an lsm index.  18 does so in all ordered indexes.
 *
 * Before 18, the executor refuses the row comparisons that the planner matches as a result.
 * row_compare.c handles such row comparisons.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "optimizer/plancat.h"
#include "planner/planner.h"
#include "utils/catcache.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

typedef struct Counterpart
{
	struct
	{
		Oid			family;		/* our family */
		Oid			type;		/* type of the column */
	}			key;
	Oid			btree_family;	/* family with the same operators, or invalid */
} Counterpart;

static HTAB *counterparts;		/* of this backend, or NULL */
static bool counterparts_stale; /* operator families have changed */

static bool
has_btree_operator(Oid family, Form_pg_amop member)
{
	return get_opfamily_member(family, member->amoplefttype, member->amoprighttype,
							   member->amopstrategy) == member->amopopr;
}

/* Do two families have the same operators with the same strategies? */
static bool
have_same_operators(Oid family, Oid btree_family)
{
	CatCList   *ours = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
	CatCList   *theirs = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(btree_family));
	bool		same = ours->n_members == theirs->n_members;

	for (int i = 0; i < theirs->n_members && same; i++)
		same = has_btree_operator(family, (Form_pg_amop) GETSTRUCT(&theirs->members[i]->tuple));
	ReleaseCatCacheList(ours);
	ReleaseCatCacheList(theirs);
	return same;
}

/* Does our family have all comparison functions of the btree family? */
static bool
have_same_comparisons(Oid family, Oid btree_family)
{
	CatCList   *theirs = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(btree_family));
	bool		same = true;

	for (int i = 0; i < theirs->n_members && same; i++)
	{
		Form_pg_amproc proc = (Form_pg_amproc) GETSTRUCT(&theirs->members[i]->tuple);

		if (proc->amprocnum == BTORDER_PROC)
			same = get_opfamily_proc(family, proc->amproclefttype, proc->amprocrighttype,
									 BTORDER_PROC) == proc->amproc;
	}
	ReleaseCatCacheList(theirs);
	return same;
}

/*
 * Returns the btree family that has the same operators as our family.  Considers the btree families
 * that contain our family's < operator.
 */
static Oid
find_btree_family(Oid family, Oid type)
{
	Oid			less = get_opfamily_member(family, type, type, BTLessStrategyNumber);
	Oid			result = InvalidOid;
	CatCList   *uses;

	if (!OidIsValid(less))
		return InvalidOid;
	uses = SearchSysCacheList1(AMOPOPID, ObjectIdGetDatum(less));
	for (int i = 0; i < uses->n_members && !OidIsValid(result); i++)
	{
		Form_pg_amop use = (Form_pg_amop) GETSTRUCT(&uses->members[i]->tuple);

		if (use->amopmethod == BTREE_AM_OID && use->amopstrategy == BTLessStrategyNumber &&
			have_same_operators(family, use->amopfamily) &&
			have_same_comparisons(family, use->amopfamily))
			result = use->amopfamily;
	}
	ReleaseCatCacheList(uses);
	return result;
}

static void
mark_counterparts_stale(Datum arg, int cache, uint32 hash)
{
	counterparts_stale = true;
}

/* Like find_btree_family, but caches the result until an operator family changes. */
static Oid
find_btree_family_cached(Oid family, Oid type)
{
	Counterpart wanted;
	Counterpart *entry;

	if (counterparts_stale && counterparts != NULL)
	{
		hash_destroy(counterparts);
		counterparts = NULL;
	}
	if (counterparts == NULL)
	{
		HASHCTL		control;

		control.keysize = sizeof(wanted.key);
		control.entrysize = sizeof(Counterpart);
		control.hcxt = TopMemoryContext;
		counterparts = hash_create("pg_lsm operator families", 64, &control,
								   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		counterparts_stale = false;
	}
	wanted.key.family = family;
	wanted.key.type = type;
	entry = hash_search(counterparts, &wanted.key, HASH_FIND, NULL);
	if (entry == NULL)
	{
		wanted.btree_family = find_btree_family(family, type);
		entry = hash_search(counterparts, &wanted.key, HASH_ENTER, NULL);
		entry->btree_family = wanted.btree_family;
	}
	return entry->btree_family;
}

static void
present_as_btree(IndexOptInfo *index)
{
	Oid			families[INDEX_MAX_KEYS];

	for (int i = 0; i < index->nkeycolumns; i++)
	{
		families[i] = find_btree_family_cached(index->opfamily[i], index->opcintype[i]);
		if (!OidIsValid(families[i]))
			return;
	}
	memcpy(index->opfamily, families, index->nkeycolumns * sizeof(Oid));
	index->relam = BTREE_AM_OID;
}

/* Called when the planner has read the catalogs' descriptions of a table's indexes. */
void
lsm_present_indexes(RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);

		/* Skip the index if core could not map its order to a btree's, or if it is partitioned. */
		if (index->sortopfamily == NULL)
			continue;
		if (index->amcostestimate == lsm_am_cost_estimate)
			present_as_btree(index);
	}
}

/* Called when the library is loaded. */
void
lsm_present_init(void)
{
	CacheRegisterSyscacheCallback(AMOPOPID, mark_counterparts_stale, (Datum) 0);
	CacheRegisterSyscacheCallback(AMPROCNUM, mark_counterparts_stale, (Datum) 0);
}
