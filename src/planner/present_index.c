/*
 * present_index.c
 *	  Which conditions the planner matches with an lsm index.
 *
 * The planner matches operators of an operator family with any index, but some
 * conditions with btree only, by the method's OID or by that of a family: row
 * comparisons; LIKE, regular expressions and ^@ with pattern classes; inet <<;
 * on 15 boolean columns.  All that they need is what an lsm index has: an order,
 * and the operators of that btree family.  So when the planner has read the
 * catalogs, and asks extensions for what they know better, we present an lsm
 * index as a btree with the btree families of the same operators.  Core then
 * does the whole of the matching: paths of all kinds, joins, OR, partitions.
 *
 * This changes the planner's own description of the index, which lives for one
 * query (see get_relation_info_hook).  The executor goes by the catalogs, so a
 * family is only presented if it has exactly the operators of ours.
 *
 * On 15 to 17 the planner also looks up the least and the greatest value of a
 * column in a btree when it estimates how many rows a range has, and now here
 * too.  18 does so with all ordered indexes.
 *
 * Before 18 the executor refuses row comparisons as conditions of other indexes
 * than btrees.  There they become a condition on their first column and a filter
 * when the costs are known; row_compare.c has the rest.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/restrictinfo.h"
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
		Oid			family;		/* of ours */
		Oid			type;		/* of the column */
	}			key;
	Oid			btree_family;	/* that is like it, or invalid */
} Counterpart;

static HTAB *counterparts;		/* of this backend, or NULL */
static bool counterparts_stale; /* operator families have changed */

static bool
has_member(Oid family, Form_pg_amop member)
{
	return get_opfamily_member(family, member->amoplefttype, member->amoprighttype,
							   member->amopstrategy) == member->amopopr;
}

/* Do two families have the same operators, with the same strategies? */
static bool
have_same_operators(Oid family, Oid btree_family)
{
	CatCList   *ours = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));
	CatCList   *theirs = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(btree_family));
	bool		same = ours->n_members == theirs->n_members;

	for (int i = 0; i < theirs->n_members && same; i++)
		same = has_member(family, (Form_pg_amop) GETSTRUCT(&theirs->members[i]->tuple));
	ReleaseCatCacheList(ours);
	ReleaseCatCacheList(theirs);
	return same;
}

/* Does ours have a comparison of all types that the other one compares? */
static bool
compares_same_types(Oid family, Oid btree_family)
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

/* The btree family that has the same operators as ours.  Its < leads to it. */
static Oid
find_counterpart(Oid family, Oid type)
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
			compares_same_types(family, use->amopfamily))
			result = use->amopfamily;
	}
	ReleaseCatCacheList(uses);
	return result;
}

static void
note_change(Datum arg, int cache, uint32 hash)
{
	counterparts_stale = true;
}

/* find_counterpart, remembered until an operator family changes. */
static Oid
counterpart(Oid family, Oid type)
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
		wanted.btree_family = find_counterpart(family, type);
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
		families[i] = counterpart(index->opfamily[i], index->opcintype[i]);
		if (!OidIsValid(families[i]))
			return;
	}
	memcpy(index->opfamily, families, index->nkeycolumns * sizeof(Oid));
	index->relam = BTREE_AM_OID;
}

/* The planner has read what the catalogs say of a table's indexes. */
void
lsm_present_indexes(RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);

		/* Core could not map its order to a btree's, or it is a partitioned index. */
		if (index->sortopfamily == NULL)
			continue;
		if (index->amcostestimate == lsm_am_cost_estimate)
			present_as_btree(index);
	}
}

#ifndef LSM_EXECUTOR_TAKES_ROWS
/*
 * The condition on the first column that a row comparison implies: (a, b) >
 * (1, 2) implies a >= 1.  The planner has put the columns on the left.
 */
static Expr *
first_column_condition(IndexOptInfo *index, IndexClause *clause, RowCompareExpr *row)
{
	Oid			family = index->opfamily[clause->indexcol];
	int			strategy;
	Oid			left;
	Oid			right;
	Oid			operator;

	get_op_opfamily_properties(linitial_oid(row->opnos), family, false, &strategy, &left, &right);
	if (strategy == BTLessStrategyNumber)
		strategy = BTLessEqualStrategyNumber;
	else if (strategy == BTGreaterStrategyNumber)
		strategy = BTGreaterEqualStrategyNumber;
	operator = get_opfamily_member(family, left, right, strategy);
	if (!OidIsValid(operator))
		elog(ERROR, "missing operator %d(%u,%u) in operator family %u",
			 strategy, left, right, family);
	return make_opclause(operator, BOOLOID, false,
						 copyObject(linitial(row->largs)), copyObject(linitial(row->rargs)),
						 InvalidOid, linitial_oid(row->inputcollids));
}

/*
 * Put conditions on their first columns in the place of a path's row
 * comparisons, which stay filters.  Called for every path over an lsm index,
 * with its costs, so that none can reach the executor as it was.
 */
void
lsm_present_shorten_rows(PlannerInfo *root, IndexPath *path)
{
	List	   *clauses = NIL;
	ListCell   *cell;

	foreach(cell, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);
		RestrictInfo *condition = linitial_node(RestrictInfo, clause->indexquals);

		if (IsA(condition->clause, RowCompareExpr))
		{
			IndexClause *shortened = makeNode(IndexClause);
			Expr	   *expr = first_column_condition(path->indexinfo, clause,
													  (RowCompareExpr *) condition->clause);

			shortened->rinfo = clause->rinfo;
			shortened->indexquals = list_make1(make_simple_restrictinfo(root, expr));
			shortened->lossy = true;
			shortened->indexcol = clause->indexcol;
			clause = shortened;
		}
		clauses = lappend(clauses, clause);
	}
	path->indexclauses = clauses;
}
#endif

/* When the library is loaded. */
void
lsm_present_init(void)
{
	CacheRegisterSyscacheCallback(AMOPOPID, note_change, (Datum) 0);
	CacheRegisterSyscacheCallback(AMPROCNUM, note_change, (Datum) 0);
}
