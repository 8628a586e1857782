/*
 * cost.c
 *	  The callbacks amcostestimate and amgettreeheight.
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

/*
 * An index with fewer pages than this is largely in memory, like the inner pages of a B-tree, for
 * which btcostestimate charges no reads either.
 */
#define CACHED_PAGES 1024.0

/* Does a clause restrict its column to one value, or to a list of values? */
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

/* The searches that the planner expects a scan to make. */
typedef struct Searches
{
	List	   *clauses;		/* the clauses that bound what the scan reads */
	double		count;			/* number of descents in each run */
	bool		skips;			/* skips values of columns without an equality */
	List	   *before_arrays;	/* for each array after another condition: Searches before it */
} Searches;

/*
 * Returns the number of values to which a scan descends if it skips this column.  Returns 0 if the
 * number is unknown, or if the column's own clauses are selective enough to bound the scan.
 * These are the rules of btcostestimate in 18 and later.
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

/*
 * Skip the columns before the column that has the next clauses.  Returns false if skipping does not
 * pay; in that case the next clauses do not bound the scan.
 */
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
 * Remember the searches before an array multiplies them.  If the array's elements are close
 * together, the scan reads on from one element to the next.  The scan then reads at most what it
 * would read without the array.
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

/*
 * Limit the number of descents, since a scan does not descend to a page that it is already on.
 * Since 17, btcostestimate has the same limit.
 */
static double
limit_searches(const IndexOptInfo *index, double count)
{
	return Max(Min(count, ceil(index->pages / 3.0)), 1);
}

/*
 * Find the clauses that bound what a scan reads, and the number of its descents: one for each
 * combination of array elements and skipped values, up to the limit of limit_searches.
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
 * btcostestimate charges for one tree, but a search descends in every run.  For each run except the
 * largest, we add a leaf and the part of btcostestimate's descent that depends on the height: 50
 * times cpu_operator_cost for each page.  We do not charge for comparisons.  Small runs are new and
 * therefore in memory, so we weight these leaves by their runs' share of the index.  Together they
 * add less than one page for each search.  In a small index, leaves and descents count less.
 * Otherwise a table that grows from nothing would get sequential scans, and sessions would keep
 * these plans.  Pages that are read repeatedly count as in genericcostestimate.
 */
static void
charge_further_runs(PlannerInfo *root, IndexPath *path, const LsmShape *shape,
					double searches, double loop_count, Cost *startup_cost, Cost *total_cost)
{
	IndexOptInfo *index = path->indexinfo;
	double		weight = Min(index->pages / CACHED_PAGES, 1.0);
	Cost		descent = shape->further_pages * 50.0 * cpu_operator_cost * weight;
	double		leaves = shape->further_share * searches * loop_count * weight;
	double		page_cost;

	get_tablespace_page_costs(index->reltablespace, &page_cost, NULL);
	if (leaves > 1)
		leaves = index_pages_fetched(leaves, index->pages, index->pages, root);
	*startup_cost += descent;
	*total_cost += searches * descent + leaves * page_cost / loop_count;
}

#ifndef LSM_BTREE_COSTS_SKIP_SCANS
/*
 * Returns the cost of these searches, by the formulas of btcostestimate in 18.  *index_pages is the
 * number of pages that one scan reads.
 */
static Cost
cost_of_searches(PlannerInfo *root, IndexPath *path, const Searches *searches, double loop_count,
				 double *index_pages)
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
	pages *= searches->count;
	*index_pages = Min(pages, index->pages);
	pages *= loop_count;
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
 * Before 18, a B-tree scan does not skip.  If only a later column has a condition, the scan reads
 * the whole index.  Before 17, the scan descends once for each combination of array elements, and
 * there may be millions of combinations.  We take the costs of 18 if they are lower.  Before 17,
 * the planner may also leave arrays on later columns to the executor, which tests each row.  With
 * the lower costs, that plan does not seem cheaper.
 */
static void
credit_skipping(PlannerInfo *root, IndexPath *path, Searches *searches,
				double loop_count, Cost startup_cost, Cost *total_cost, double *pages)
{
	double		read;
	Cost		cost = cost_of_searches(root, path, searches, loop_count, &read);
	double		count = searches->count;
	ListCell   *lc;

	foreach(lc, searches->before_arrays)
	{
		Searches   *before = lfirst(lc);
		double		read_without;
		Cost		without;

		before->count = limit_searches(path->indexinfo, before->count);
		without = cost_of_searches(root, path, before, loop_count, &read_without);
		if (without < cost)
		{
			cost = without;
			read = read_without;
			count = before->count;
		}
	}
	if (startup_cost + cost >= *total_cost)
		return;
	searches->count = count;
	*total_cost = startup_cost + cost;
	*pages = read;
}
#endif

/*
 * The amcostestimate callback.  Charges what btcostestimate charges, so that a query usually gets the
 * same plan as with a B-tree.  Adds the cost of searching further runs.  Before 18, may charge less
 * for a scan that skips or has arrays (credit_skipping).
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
		/* The planner counts all pages of the file, including fixed and free pages. */
		info->pages = Max(Min(info->pages, shape.pages), 1);
	}

	/* Before 18, the planner knows only B-trees' heights, and would not charge for our descents. */
	if (info->tree_height < 0)
		info->tree_height = shape.height;
	btcostestimate(root, path, loop_count, startup_cost, total_cost,
				   selectivity, correlation, pages);
	plan_searches(root, path, &searches);
#ifndef LSM_BTREE_COSTS_SKIP_SCANS
	if (searches.skips || searches.count > 1)
		credit_skipping(root, path, &searches, loop_count, *startup_cost, total_cost, pages);
#endif
	charge_further_runs(root, path, &shape, searches.count, loop_count, startup_cost, total_cost);
#ifndef LSM_EXECUTOR_TAKES_ROWS
	lsm_row_compare_shorten(root, path);
#endif
}

/*
 * The amgettreeheight callback, for 18 and later.  Returns the number of levels above the leaves in
 * the tallest run.
 */
int
lsm_am_tree_height(Relation rel)
{
	LsmShape	shape;

	lsm_manifest_shape(lsm_index_open(rel), &shape);
	return shape.height;
}
