/*
 * prefetch_path.c
 *	  Plans the prefetching scan.
 *
 * When core has found the paths of a table, each of its index scans gets a rival
 * that prefetches: in index order, where the order is of use, and by page, where
 * a bitmap scan would otherwise be taken.  The rival has the index path below it,
 * with its conditions, parameters and order, so core plans that as ever.
 *
 * Costs: a page of the table that is read at random costs what core says as long
 * as it is read alone.  Prefetched, what it costs beyond a page that is read in
 * sequence is divided by the square root of the depth: SSDs get about so much
 * faster (four times with 8 requests at once, nine times with 128).  The first
 * pages are not prefetched, so the costs before the first row are higher by what
 * that takes, and a plan that wants a few rows takes core's scan.
 */
#include "postgres.h"

#include <math.h>

#include "access/amapi.h"
#include "access/table.h"
#include "base/compat.h"
#include "base/limits.h"
#include "catalog/pg_am.h"
#include "exec/prefetch.h"
#include "exec/tid_queue.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/spccache.h"

/* The depth where effective_io_concurrency has its default of old. */
#define DEFAULT_DEPTH 64

/* So many pages are read before reading ahead pays. */
#define RAMP_PAGES 16

/* A table of so many pages is worth asking core for index paths a second time. */
#define RECONSIDERED_PAGES 1024

/* In index order, of what a page costs that is read in sequence: for each row. */
#define COPY_SHARE 0.6
/* But at most so much of what prefetching saves. */
#define COPY_BOUND 0.55

/* Growth of rounds: where all rows are wanted, and where perhaps not. */
#define FAST_GROWTH 1000000
#define SLOW_GROWTH 4

/* What the costs of an index scan are made of. */
typedef struct ScanShape
{
	double		tuples;			/* fetched */
	double		pages;			/* read at random, were there no correlation */
	double		rounds;			/* by page */
	double		pages_by_round; /* as `pages`, of all rounds together */
	double		neighbours;		/* read, were it perfect */
	double		scattered;		/* 1: no correlation; 0: perfect */
	double		random_cost;	/* of a page */
	double		sequential_cost;
	double		reading_cost;	/* of all pages, as core has it */
} ScanShape;

static set_rel_pathlist_hook_type previous_hook;

List *
lsm_prefetch_write_plan(const LsmPrefetchPlan *plan)
{
	return list_make4_int(plan->by_page, plan->depth, plan->growth, plan->forced);
}

void
lsm_prefetch_read_plan(List *list, LsmPrefetchPlan *plan)
{
	plan->by_page = linitial_int(list) != 0;
	plan->depth = lsecond_int(list);
	plan->growth = lthird_int(list);
	plan->forced = lfourth_int(list) != 0;
}

/* Does the query want so few rows that nothing would be read ahead for them? */
static bool
wants_few_rows(PlannerInfo *root, RelOptInfo *rel, double fetched_per_row)
{
	return root->limit_tuples > 0 && root->limit_tuples * fetched_per_row <= RAMP_PAGES &&
		bms_equal(root->all_baserels, rel->relids);
}

/*
 * Core forgets an index path as soon as another path is better.  Where a scan of
 * a whole table is, of the kind that costs many times what planning does, ask
 * for the index paths again.
 */
static List *
paths_to_rival(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *paths = rel->pathlist;
	List	   *partial_paths = rel->partial_pathlist;
	List	   *result = paths;
	ListCell   *cell;

	if (rel->pages < RECONSIDERED_PAGES || rel->baserestrictinfo == NIL ||
		wants_few_rows(root, rel, 1))
		return result;
	foreach(cell, paths)
	{
		Path	   *path = lfirst(cell);

		if (path->pathtype != T_SeqScan)
			continue;
		rel->pathlist = rel->partial_pathlist = NIL;
		create_index_paths(root, rel);
		result = list_concat_copy(rel->pathlist, paths);
		rel->pathlist = paths;
		rel->partial_pathlist = partial_paths;
		break;
	}
	return result;
}

/* How many pages may be in flight; 0: none. */
static int
depth_for(RelOptInfo *rel)
{
	int			concurrency;

	if (lsm_prefetch_depth > 0)
		return lsm_prefetch_depth;
	concurrency = get_tablespace_io_concurrency(rel->reltablespace);
	return concurrency == 1 ? DEFAULT_DEPTH : concurrency;
}

/* How often will the scan run?  As core guesses: once for each outer row. */
static double
loop_count(PlannerInfo *root, IndexPath *path)
{
	Relids		outer = PATH_REQ_OUTER((Path *) path);
	double		result = 0;
	int			relid = -1;

	while ((relid = bms_next_member(outer, relid)) >= 0)
	{
		RelOptInfo *rel = relid < root->simple_rel_array_size ? root->simple_rel_array[relid] : NULL;

		if (rel == NULL || IS_DUMMY_REL(rel))
			continue;
		if (result == 0 || rel->rows < result)
			result = rel->rows;
	}
	return Max(result, 1);
}

/* The pages of so many rows at random places, as core has it for bitmap scans. */
static double
distinct_pages(RelOptInfo *rel, double tuples)
{
	double		pages = Max(rel->pages, 1);

	return Min(2 * pages * tuples / (2 * pages + tuples), pages);
}

/* What cost_index has reckoned with, and did not keep. */
static void
read_shape(PlannerInfo *root, IndexPath *path, ScanShape *shape)
{
	IndexOptInfo *index = path->indexinfo;
	RelOptInfo *rel = index->rel;
	amcostestimate_function estimate = (amcostestimate_function) index->amcostestimate;
	double		loops = loop_count(root, path);
	Cost		startup;
	Cost		total;
	Selectivity selectivity;
	double		correlation;
	double		index_pages;
	double		best;

	estimate(root, path, loops, &startup, &total, &selectivity, &correlation, &index_pages);
	get_tablespace_page_costs(rel->reltablespace, &shape->random_cost, &shape->sequential_cost);
	shape->tuples = clamp_row_est(selectivity * rel->tuples);
	shape->pages = index_pages_fetched(shape->tuples * loops, rel->pages, index->pages, root) / loops;
	shape->rounds = Max(ceil(shape->tuples / lsm_queue_round_limit(rel->pages)), 1);
	shape->pages_by_round = shape->rounds * distinct_pages(rel, shape->tuples / shape->rounds);
	shape->neighbours = ceil(selectivity * rel->pages);
	best = shape->random_cost + (shape->neighbours - 1) * shape->sequential_cost;
	if (loops > 1)
	{
		shape->neighbours = index_pages_fetched(shape->neighbours * loops, rel->pages,
												index->pages, root) / loops;
		best = shape->neighbours * shape->random_cost;
	}
	shape->scattered = 1 - correlation * correlation;
	shape->reading_cost = shape->scattered * shape->pages * shape->random_cost +
		(1 - shape->scattered) * best;
}

/* Of a page that costs so much when read alone. */
static double
prefetched_cost(const ScanShape *shape, double page_cost, int depth)
{
	if (page_cost <= shape->sequential_cost)
		return page_cost;
	return shape->sequential_cost + (page_cost - shape->sequential_cost) / sqrt(depth);
}

/*
 * Set the costs of a path in index order.  A row at a random place costs finding
 * its page, and mostly copying it from the kernel's cache.  Core's scan has that
 * cost too, and does not count it, since it is nothing beside waiting; here it is
 * what is left, and what sorting afterwards has to be compared with.
 */
static void
cost_in_order(CustomPath *path, const ScanShape *shape, int depth)
{
	double		saved = shape->random_cost - prefetched_cost(shape, shape->random_cost, depth);
	double		pages = shape->scattered * shape->pages;
	double		copying = COPY_SHARE * shape->sequential_cost * shape->scattered * shape->tuples;

	/* It leaves enough of what is saved for a LIMIT of a few hundred rows. */
	copying = Min(copying, saved * pages * COPY_BOUND);
	path->path.startup_cost += saved * RAMP_PAGES;
	path->path.total_cost += saved * RAMP_PAGES - saved * pages + copying + cpu_operator_cost * pages;
}

/*
 * Set the costs of a path by page.  Core's bitmap scan takes it that the more of
 * the pages are wanted, the more they are read in sequence.
 */
static void
cost_by_page(CustomPath *path, const ScanShape *shape, int depth)
{
	double		pages = shape->scattered * shape->pages_by_round +
		(1 - shape->scattered) * shape->neighbours;
	double		share = Min(pages / shape->rounds / Max(path->path.parent->pages, 1), 1);
	double		page_cost = shape->random_cost -
		(shape->random_cost - shape->sequential_cost) * sqrt(share);
	double		saved = page_cost - prefetched_cost(shape, page_cost, depth);
	Cost		sorting = cpu_operator_cost * shape->tuples * 0.2;

	path->path.startup_cost += saved * RAMP_PAGES;
	path->path.total_cost += saved * RAMP_PAGES - shape->reading_cost +
		pages * (page_cost - saved + cpu_operator_cost) + sorting;
}

static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
		  List *children)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *child = linitial(children);

	/* Conditions that no column takes part in are checked above us, too. */
	if (IsA(child, Result))
		child = outerPlan(child);
	/* The rows are the child's. */
	child = (Plan *) castNode(IndexScan, child);
	child->targetlist = copyObject(tlist);
	child->startup_cost = path->path.startup_cost;
	child->total_cost = path->path.total_cost;

	scan->scan.plan.targetlist = tlist;
	scan->scan.scanrelid = rel->relid;
	scan->flags = path->flags;
	scan->custom_plans = list_make1(child);
	scan->custom_private = path->custom_private;
	scan->methods = &lsm_prefetch_scan_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = LSM_PREFETCH_NAME,
	.PlanCustomPath = plan_path,
};

/* A path that does what this one does, with its costs so far. */
static CustomPath *
make_path(PlannerInfo *root, IndexPath *index_path, bool by_page, int depth)
{
	CustomPath *path = makeNode(CustomPath);
	LsmPrefetchPlan plan;

	plan.by_page = by_page;
	plan.depth = depth;
	/* A semijoin may stop at the first row of each of its inner scans. */
	plan.growth = root->tuple_fraction > 0 || index_path->path.param_info != NULL ?
		SLOW_GROWTH : FAST_GROWTH;
	plan.forced = lsm_debug_prefetch_scan;

	path->path.pathtype = T_CustomScan;
	path->path.parent = index_path->path.parent;
	path->path.pathtarget = index_path->path.pathtarget;
	path->path.param_info = index_path->path.param_info;
	path->path.parallel_safe = index_path->path.parallel_safe;
	path->path.rows = index_path->path.rows;
	path->path.startup_cost = index_path->path.startup_cost;
	path->path.total_cost = index_path->path.total_cost;
	path->path.pathkeys = by_page ? NIL : index_path->path.pathkeys;
	lsm_copy_disabled(&path->path, &index_path->path);
	path->custom_paths = list_make1(index_path);
	path->custom_private = lsm_prefetch_write_plan(&plan);
	path->methods = &path_methods;
	return path;
}

/* Does the method know arrays, or do the conditions have none? */
static bool
knows_arrays(IndexPath *path)
{
	ListCell   *cell;

	if (path->indexinfo->amsearcharray)
		return true;
	foreach(cell, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);
		ListCell   *qual;

		foreach(qual, clause->indexquals)
		{
			if (IsA(lfirst_node(RestrictInfo, qual)->clause, ScalarArrayOpExpr))
				return false;
		}
	}
	return true;
}

static bool
can_prefetch(IndexPath *path)
{
	IndexOptInfo *index = path->indexinfo;

	return path->path.pathtype == T_IndexScan && !path->path.parallel_aware &&
		index->amhasgettuple && path->indexorderbys == NIL && !index->hypothetical &&
		(index->indpred == NIL || index->predOK) && knows_arrays(path);
}

/*
 * The index scan that a path is, or that a bitmap scan has as its only input; as
 * a scan of the table, which that input need not be.  NULL: there is none, or it
 * cannot prefetch.
 */
static IndexPath *
index_scan_of(PlannerInfo *root, Path *path)
{
	IndexPath  *result = (IndexPath *) path;

	if (IsA(path, BitmapHeapPath))
		result = (IndexPath *) ((BitmapHeapPath *) path)->bitmapqual;
	if (!IsA(result, IndexPath))
		return NULL;
	if (&result->path != path && result->path.pathtype == T_IndexOnlyScan)
	{
		IndexPath  *only = result;

		result = makeNode(IndexPath);
		*result = *only;
		result->path.pathtype = T_IndexScan;
		cost_index(result, root, loop_count(root, result), false);
	}
	return can_prefetch(result) ? result : NULL;
}

/* For tests: put our paths in the place of core's, with the same costs. */
static void
replace_paths(PlannerInfo *root, RelOptInfo *rel, int depth)
{
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		Path	   *path = lfirst(cell);
		IndexPath  *index_path = index_scan_of(root, path);
		CustomPath *ours;

		if (index_path == NULL)
			continue;
		ours = make_path(root, index_path, path->pathkeys == NIL, depth);
		ours->path.param_info = path->param_info;
		ours->path.startup_cost = path->startup_cost;
		ours->path.total_cost = path->total_cost;
		lfirst(cell) = ours;
	}
}

static void
add_rivals(PlannerInfo *root, RelOptInfo *rel, IndexPath *index_path, int depth)
{
	double		tuples = index_path->indexselectivity * rel->tuples;
	ScanShape	shape;
	CustomPath *path;

	/* What is never taken need not be reckoned. */
	if (tuples <= RAMP_PAGES ||
		(pathkeys_contained_in(root->query_pathkeys, index_path->path.pathkeys) &&
		 wants_few_rows(root, rel, tuples / Max(index_path->path.rows, 1))))
		return;
	read_shape(root, index_path, &shape);
	if (shape.pages <= RAMP_PAGES)
		return;
	if (index_path->path.pathkeys != NIL)
	{
		path = make_path(root, index_path, false, depth);
		cost_in_order(path, &shape, depth);
		add_path(rel, &path->path);
	}
	path = make_path(root, index_path, true, depth);
	cost_by_page(path, &shape, depth);
	add_path(rel, &path->path);
}

/* Is it a table of the kind whose TIDs name pages of its file? */
static bool
is_heap(Oid relation)
{
	Relation	table = table_open(relation, NoLock);
	bool		result = table->rd_rel->relam == HEAP_TABLE_AM_OID;

	table_close(table, NoLock);
	return result;
}

static void
add_paths(PlannerInfo *root, RelOptInfo *rel, Index relid, RangeTblEntry *entry)
{
	List	   *index_paths = NIL;
	int			depth;
	ListCell   *cell;

	if (previous_hook)
		previous_hook(root, rel, relid, entry);
	if ((!lsm_enable_prefetch_scan && !lsm_debug_prefetch_scan) ||
		entry->rtekind != RTE_RELATION || entry->inh || entry->tablesample != NULL ||
		rel->indexlist == NIL || IS_DUMMY_REL(rel))
		return;
	depth = depth_for(rel);
	if (depth == 0 || (!lsm_debug_prefetch_scan && rel->pages <= RAMP_PAGES) ||
		!is_heap(entry->relid))
		return;
	if (lsm_debug_prefetch_scan)
	{
		replace_paths(root, rel, depth);
		return;
	}
	/* add_path changes the list. */
	foreach(cell, paths_to_rival(root, rel))
	{
		IndexPath  *path = index_scan_of(root, lfirst(cell));

		if (path != NULL)
			index_paths = list_append_unique_ptr(index_paths, path);
	}
	foreach(cell, index_paths)
		add_rivals(root, rel, lfirst(cell), depth);
}

/* Install the hook.  When the library is loaded. */
void
lsm_prefetch_init(void)
{
	RegisterCustomScanMethods(&lsm_prefetch_scan_methods);
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_paths;
}
