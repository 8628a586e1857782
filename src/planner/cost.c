/*
 * plan.c
 *	  What the planner asks: costs, height; and storage parameters.
 */
#include "postgres.h"

#include <math.h>

#include "access/nbtree.h"
#include "manifest/manifest.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "planner/planner.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

/* Does a clause fix its column to one value (or to a list of them)? */
static bool
is_equality(Expr *clause, Oid opfamily)
{
	if (IsA(clause, NullTest))
		return ((NullTest *) clause)->nulltesttype == IS_NULL;
	if (IsA(clause, OpExpr))
		return get_op_opfamily_strategy(((OpExpr *) clause)->opno, opfamily) ==
			BTEqualStrategyNumber;
	if (IsA(clause, ScalarArrayOpExpr))
		return get_op_opfamily_strategy(((ScalarArrayOpExpr *) clause)->opno, opfamily) ==
			BTEqualStrategyNumber;
	return false;
}

static double
array_length(PlannerInfo *root, ScalarArrayOpExpr *clause)
{
	return Max(lsm_array_length(root, lsecond(clause->args)), 1);
}

/* What a scan seeks, as far as the planner can tell. */
typedef struct Searches
{
	List	   *clauses;		/* that bound what it reads */
	double		count;			/* of descents, in each run */
	bool		skips;			/* over values of columns without an equality */
	List	   *before_arrays;	/* for each array behind another condition, the Searches without it */
} Searches;

/*
 * How many values of a column does a scan have to look at that skips it?  0: it is
 * not known, or so few of them are within the column's own clauses that these bound
 * the scan well enough.  The same rules as those of btrees from 18 on.
 */
static double
skipped_values(PlannerInfo *root, IndexOptInfo *index, int column, List *clauses)
{
	TargetEntry *target = list_nth_node(TargetEntry, index->indextlist, column);
	VariableStatData vardata;
	double		count;
	bool		is_default;
	Selectivity fraction;

	examine_variable(root, (Node *) target->expr, 0, &vardata);
	count = get_variable_numdistinct(&vardata, &is_default);
	ReleaseVariableStats(vardata);
	if (is_default)
		return 0;
	if (clauses == NIL)
		return count + 1;
	fraction = clauselist_selectivity(root, add_predicate_to_index_quals(index, clauses),
									  index->rel->relid, JOIN_INNER, NULL);
	if (fraction < DEFAULT_RANGE_INEQ_SEL)
		return 0;
	return Max(rint(count * fraction), 1);
}

/* Go over the columns up to the one that has further clauses.  False: they are of no use. */
static bool
skip_columns(PlannerInfo *root, IndexOptInfo *index, int from, int to, List *clauses,
			 Searches *searches)
{
	double		count = searches->count;

	for (int column = from; column < to; column++)
	{
		double		values = skipped_values(root, index, column, clauses);

		count *= values;
		if (values == 0 || count > index->pages)
			return false;
		clauses = NIL;
	}
	searches->skips |= to > from;
	searches->count = count;
	return true;
}

/*
 * An array is about to multiply the searches.  But where its elements are close together
 * the scan reads on from one to the next, and never more than without the array.
 */
static void
note_before_array(Searches *searches)
{
	Searches   *before;

	if (searches->clauses == NIL)
		return;
	before = palloc0(sizeof(Searches));
	before->clauses = list_copy(searches->clauses);
	before->count = searches->count;
	searches->before_arrays = lappend(searches->before_arrays, before);
}

/* It does not descend to what it is at already.  For that we take what btcostestimate does. */
static double
limit_searches(const IndexOptInfo *index, double count)
{
	return Max(Min(count, ceil(index->pages / 3.0)), 1);
}

/*
 * The clauses that bound what a scan reads, and how often it descends: once for each
 * combination of array elements and skipped values, within the limit.
 */
static void
plan_searches(PlannerInfo *root, IndexPath *path, Searches *searches)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *here = NIL;
	int			column = 0;
	bool		equal = false;
	ListCell   *lc;

	memset(searches, 0, sizeof(Searches));
	searches->count = 1;
	foreach(lc, path->indexclauses)
	{
		IndexClause *iclause = lfirst_node(IndexClause, lc);
		ListCell   *lc2;

		if (iclause->indexcol != column)
		{
			if (!skip_columns(root, index, equal ? column + 1 : column, iclause->indexcol,
							  equal ? NIL : here, searches))
				break;
			column = iclause->indexcol;
			equal = false;
			here = NIL;
		}
		foreach(lc2, iclause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);

			if (is_equality(rinfo->clause, index->opfamily[column]))
			{
				if (!equal && IsA(rinfo->clause, ScalarArrayOpExpr))
				{
					note_before_array(searches);
					searches->count *= array_length(root, (ScalarArrayOpExpr *) rinfo->clause);
				}
				equal = true;
			}
			searches->clauses = lappend(searches->clauses, rinfo);
			here = lappend(here, rinfo);
		}
	}
	searches->count = limit_searches(index, searches->count);
}

/*
 * A btree's costs are those of one tree.  A search of ours descends all runs,
 * so each run but the largest costs what btcostestimate takes for a descent: 50
 * times cpu_operator_cost for each page.  It also reads a leaf there.  Runs that
 * are small are young, and so in memory; we charge the leaves with the share of
 * the index that their runs have, together less than one page for each search,
 * and count pages that are read again and again as genericcostestimate does.
 */
static void
charge_further_runs(PlannerInfo *root, IndexPath *path, const LsmShape *shape,
					double searches, double loop_count, Cost *startup_cost, Cost *total_cost)
{
	IndexOptInfo *index = path->indexinfo;
	Cost		descent = shape->further_pages * 50.0 * cpu_operator_cost;
	double		leaves = shape->further_share * searches * loop_count;
	double		page_cost;

	get_tablespace_page_costs(index->reltablespace, &page_cost, NULL);
	if (leaves > 1)
		leaves = index_pages_fetched(leaves, index->pages, index->pages, root);
	*startup_cost += descent;
	*total_cost += searches * descent + leaves * page_cost / loop_count;
}

#ifndef LSM_BTREE_COSTS_SKIP_SCANS
/* What btcostestimate of 18 takes for these searches. */
static Cost
cost_of_searches(PlannerInfo *root, IndexPath *path, const Searches *searches, double loop_count)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *quals = add_predicate_to_index_quals(index, searches->clauses);
	Selectivity fraction = clauselist_selectivity(root, quals, index->rel->relid, JOIN_INNER, NULL);
	double		tuples = rint(fraction * index->rel->tuples / searches->count);
	double		pages;
	double		page_cost;
	Cost		descent;

	tuples = Max(Min(tuples, index->tuples), 1);
	pages = index->tuples > 1 ? ceil(tuples * index->pages / index->tuples) : 1;
	pages *= searches->count * loop_count;
	if (pages > 1)
		pages = index_pages_fetched(pages, index->pages, index->pages, root);
	get_tablespace_page_costs(index->reltablespace, &page_cost, NULL);
	descent = ceil(log(Max(index->tuples, 2)) / log(2.0)) * cpu_operator_cost +
		(index->tree_height + 1) * 50.0 * cpu_operator_cost;
	return searches->count * descent + pages * page_cost / loop_count +
		searches->count * tuples *
		(cpu_index_tuple_cost + list_length(path->indexclauses) * cpu_operator_cost);
}

/*
 * Before 18 a btree does not skip: a condition on a later column only does not keep it
 * from reading the whole index, and each combination of array elements, which may be
 * millions, costs a descent.  We take what btcostestimate of 18 would, if that is less.
 * And before 17 the planner may leave arrays on later columns to the executor, which
 * compares each row with all the elements: that must not seem to be cheaper.
 */
static void
credit_skipping(PlannerInfo *root, IndexPath *path, Searches *searches,
				double loop_count, Cost startup_cost, Cost *total_cost)
{
	Cost		cost = cost_of_searches(root, path, searches, loop_count);
	double		count = searches->count;
	ListCell   *lc;

	foreach(lc, searches->before_arrays)
	{
		Searches   *before = lfirst(lc);
		Cost		without;

		before->count = limit_searches(path->indexinfo, before->count);
		without = cost_of_searches(root, path, before, loop_count);
		if (without < cost)
		{
			cost = without;
			count = before->count;
		}
	}
	if (startup_cost + cost >= *total_cost)
		return;
	searches->count = count;
	*total_cost = startup_cost + cost;
}
#endif

/*
 * Costs are a btree's: the shape of a run, a sorted sequence of leaves, is the
 * same to the planner, and so the same query gets the same plan.  Only searches
 * cost more, the more runs there are.
 */
void
lsm_am_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count,
					 Cost *startup_cost, Cost *total_cost,
					 Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *info = path->indexinfo;
	LsmShape	shape = {0};
	Searches	searches;

	if (!info->hypothetical)
	{
		Relation	index = index_open(info->indexoid, NoLock);

		lsm_manifest_shape(lsm_index_open(index), &shape);
		index_close(index, NoLock);
	}

	/* Before 18 the planner knows a height of btrees only, and so takes descents for nothing. */
	if (info->tree_height < 0)
		info->tree_height = shape.height;
	btcostestimate(root, path, loop_count, startup_cost, total_cost,
				   selectivity, correlation, pages);
	plan_searches(root, path, &searches);
#ifndef LSM_BTREE_COSTS_SKIP_SCANS
	if (searches.skips || searches.count > 1)
		credit_skipping(root, path, &searches, loop_count, *startup_cost, total_cost);
#endif
	charge_further_runs(root, path, &shape, searches.count, loop_count, startup_cost, total_cost);
#ifndef LSM_EXECUTOR_TAKES_ROWS
	lsm_present_shorten_rows(root, path);
#endif
}

/* Pages above a leaf, in the highest run.  18 and later ask themselves. */
int
lsm_am_tree_height(Relation rel)
{
	LsmShape	shape;

	lsm_manifest_shape(lsm_index_open(rel), &shape);
	return shape.height;
}
