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

#ifdef LSM_BTREE_COSTS_SKIP_SCANS
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

/*
 * The clauses that bound what a scan reads: equalities of the leading columns
 * and the clauses of the first column without one.
 */
static List *
bounding_clauses(IndexPath *path)
{
	List	   *result = NIL;
	int			column = 0;
	bool		equal = false;
	ListCell   *lc;

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

			equal |= is_equality(rinfo->clause, path->indexinfo->opfamily[column]);
			result = lappend(result, rinfo);
		}
	}
	return result;
}

/*
 * A btree of 18 can skip over values of a leading column that has no
 * condition, and is costed so.  We read all that lies within the bounds: that
 * is the least that a scan costs.
 */
static void
charge_whole_range(PlannerInfo *root, IndexPath *path, Cost *total_cost)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *quals = add_predicate_to_index_quals(index, bounding_clauses(path));
	Selectivity fraction = clauselist_selectivity(root, quals, index->rel->relid, JOIN_INNER, NULL);
	double		tuples = clamp_row_est(fraction * index->rel->tuples);
	double		share = index->tuples > 0 ? Min(tuples / index->tuples, 1) : 0;
	Cost		least = tuples * cpu_index_tuple_cost + share * index->pages * seq_page_cost;

	*total_cost = Max(*total_cost, least);
}
#endif

#ifndef LSM_HAS_COMPARE_TYPE
/*
 * Before 18 the planner knows a height of btrees only, and so takes descents for
 * nothing: two arrays of a thousand elements would both become conditions.
 */
static void
set_tree_height(IndexOptInfo *info)
{
	Relation	index;

	if (info->tree_height >= 0 || info->hypothetical)
		return;
	index = index_open(info->indexoid, NoLock);
	info->tree_height = lsm_am_tree_height(index);
	index_close(index, NoLock);
}
#endif

/*
 * Costs are a btree's: the shape of the index, a sorted sequence of leaves, is
 * the same to the planner, and so the same query gets the same plan.
 */
void
lsm_am_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count,
					 Cost *startup_cost, Cost *total_cost,
					 Selectivity *selectivity, double *correlation, double *pages)
{
#ifndef LSM_HAS_COMPARE_TYPE
	set_tree_height(path->indexinfo);
#endif
	btcostestimate(root, path, loop_count, startup_cost, total_cost,
				   selectivity, correlation, pages);
#ifdef LSM_BTREE_COSTS_SKIP_SCANS
	charge_whole_range(root, path, total_cost);
#endif
}

/* Pages above a leaf, in the highest run.  18 and later ask themselves. */
int
lsm_am_tree_height(Relation rel)
{
	LsmVersion *version = lsm_version_read(lsm_index_open(rel));
	int			height = 0;

	for (uint32 i = 0; i < version->run_count; i++)
	{
		const LsmRunRecord *run = &version->runs[i];

		/* Of a run with a directory: its pages, and those of a segment, about. */
		height = Max(height, lsm_run_is_single(run) ? run->height : run->dir_height + 1);
	}
	pfree(version);
	return height;
}
