/*
 * plan.c
 *	  What the planner asks: costs, height; and storage parameters.
 */
#include "postgres.h"

#include "am/am.h"
#include "access/nbtree.h"
#include "manifest/manifest.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
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

/*
 * The clauses that bound what a scan reads: equalities of the leading columns
 * and the clauses of the first column without one.  *searches is how often it
 * has to descend: once for each combination of array elements.
 */
static List *
bounding_clauses(PlannerInfo *root, IndexPath *path, double *searches)
{
	List	   *result = NIL;
	int			column = 0;
	bool		equal = false;
	ListCell   *lc;

	*searches = 1;
	foreach(lc, path->indexclauses)
	{
		IndexClause *iclause = lfirst_node(IndexClause, lc);
		ListCell   *lc2;

		if (iclause->indexcol != column)
		{
			if (!equal || iclause->indexcol != column + 1)
				break;
			column++;
			equal = false;
		}
		foreach(lc2, iclause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);

			if (is_equality(rinfo->clause, path->indexinfo->opfamily[column]))
			{
				if (!equal && IsA(rinfo->clause, ScalarArrayOpExpr))
					*searches *= array_length(root, (ScalarArrayOpExpr *) rinfo->clause);
				equal = true;
			}
			result = lappend(result, rinfo);
		}
	}
	return result;
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
					double loop_count, Cost *startup_cost, Cost *total_cost)
{
	IndexOptInfo *index = path->indexinfo;
	Cost		descent = shape->further_pages * 50.0 * cpu_operator_cost;
	double		searches;
	double		leaves;
	double		page_cost;

	(void) bounding_clauses(root, path, &searches);
	leaves = shape->further_share * searches * loop_count;
	get_tablespace_page_costs(index->reltablespace, &page_cost, NULL);
	if (leaves > 1)
		leaves = index_pages_fetched(leaves, index->pages, index->pages, root);
	*startup_cost += descent;
	*total_cost += searches * descent + leaves * page_cost / loop_count;
}

#ifdef LSM_BTREE_COSTS_SKIP_SCANS
/*
 * A btree of 18 can skip over values of a leading column that has no
 * condition, and is costed so.  We read all that lies within the bounds: that
 * is the least that a scan costs.
 */
static void
charge_whole_range(PlannerInfo *root, IndexPath *path, Cost *total_cost)
{
	IndexOptInfo *index = path->indexinfo;
	double		searches;
	List	   *quals = add_predicate_to_index_quals(index, bounding_clauses(root, path, &searches));
	Selectivity fraction = clauselist_selectivity(root, quals, index->rel->relid, JOIN_INNER, NULL);
	double		tuples = clamp_row_est(fraction * index->rel->tuples);
	double		share = index->tuples > 0 ? Min(tuples / index->tuples, 1) : 0;
	Cost		least = tuples * cpu_index_tuple_cost + share * index->pages * seq_page_cost;

	*total_cost = Max(*total_cost, least);
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

	if (!info->hypothetical)
	{
		Relation	index = index_open(info->indexoid, NoLock);

		lsm_manifest_shape(lsm_index_open(index), &shape);
		index_close(index, NoLock);
	}

	/*
	 * Before 18 the planner knows a height of btrees only, and so takes descents
	 * for nothing: two arrays of a thousand elements would both become conditions.
	 */
	if (info->tree_height < 0)
		info->tree_height = shape.height;
	btcostestimate(root, path, loop_count, startup_cost, total_cost,
				   selectivity, correlation, pages);
#ifdef LSM_BTREE_COSTS_SKIP_SCANS
	charge_whole_range(root, path, total_cost);
#endif
	charge_further_runs(root, path, &shape, loop_count, startup_cost, total_cost);
#ifndef LSM_EXECUTOR_TAKES_ROWS
	lsm_matching_shorten_rows(root, path);
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
