/*
 * prefetch_cost.c
 *	  Computes the costs of prefetching scans.
 *
 * We start from core's costs and make prefetched pages cheaper. For scans by page, we also make
 * index pages cheaper if the kernel reads them ahead. docs/design/prefetch-cost.md has the formulas
 * and the measurements behind them. prefetch_path.c decides which paths to cost.
 */
#include "postgres.h"

#include <math.h>

#include "access/amapi.h"
#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "exec/prefetch_cost.h"
#include "exec/tid_queue.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"

/*
 * In index order, finding and copying the page of a row at a random place costs this share of a
 * sequential page.
 */
#define COPY_SHARE 0.6
/* In total, this costs at most this share of what prefetching saves. */
#define COPY_BOUND 0.55

/*
 * By page: the share of index pages that follow the previous page, if the file stores leaves in key
 * order.
 */
#define INDEX_FOLLOWING 0.75

/*
 * How full a B-tree's leaves are after a build, and after growth by random keys, where a split
 * leaves two half-full pages. (The average fill is then ln 2: Yao, On random 2-3 trees, Acta
 * Informatica 9, 1978.)
 */
#define FULL_BUILT 0.9
#define FULL_GROWN 0.7

/*
 * Returns how many times the scan will run: once per row of the smallest outer relation. Core also
 * reduces the number of rows if that relation is the inner side of a semijoin.
 */
double
lsm_prefetch_loop_count(PlannerInfo *root, IndexPath *path)
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

/* Returns the share of rows, and of table pages, that the scan reads from the table. */
double
lsm_prefetch_read_share(IndexPath *path)
{
	return path->path.pathtype == T_IndexOnlyScan ? 1 - path->path.parent->allvisfrac : 1;
}

/*
 * Returns how many pages contain `tuples` rows at random places, computed as core does for bitmap
 * scans.
 */
static double
distinct_pages(double table_pages, double tuples)
{
	double		pages = Max(table_pages, 1);

	return Min(2 * pages * tuples / (2 * pages + tuples), pages);
}

/* Divide the rows among `processes` processes, each with its own rounds. */
void
lsm_prefetch_divide(LsmScanShape *shape, RelOptInfo *rel, double processes)
{
	shape->processes = processes;
	shape->rounds = Max(ceil(shape->tuples / lsm_queue_round_limit(rel->pages)), processes);
	shape->pages_by_round = shape->rounds * distinct_pages(shape->table_pages,
																shape->tuples / shape->rounds);
}

/* Returns the average size in bytes of a B-tree leaf entry, line pointer included. */
static double
entry_bytes(PlannerInfo *root, IndexOptInfo *index)
{
	Oid			table = planner_rt_fetch(index->rel->relid, root)->relid;
	Size		data = 0;
	ListCell   *cell;

	foreach(cell, index->indextlist)
	{
		Node	   *column = (Node *) lfirst_node(TargetEntry, cell)->expr;
		int32		width = 0;

		if (IsA(column, Var))
			width = get_attavgwidth(table, ((Var *) column)->varattno);
		data += width > 0 ? width : get_typavgwidth(exprType(column), exprTypmod(column));
	}
	return sizeof(IndexTupleData) + MAXALIGN(data) + sizeof(ItemIdData);
}

/*
 * Is this index a B-tree?  `relam` does not tell, since most lsm indexes are presented to the
 * planner as B-trees (planner/present_as_btree.c).  The cost function does.
 */
bool
lsm_prefetch_is_btree(const IndexOptInfo *index)
{
	return (amcostestimate_function) index->amcostestimate == btcostestimate;
}

/* Is this an lsm index? */
bool
lsm_prefetch_is_lsm(const IndexOptInfo *index)
{
	return !lsm_prefetch_is_btree(index) &&
		(index->relam == BTREE_AM_OID || index->relam == get_index_am_oid("lsm", true));
}

/*
 * Returns the share of index pages that follow the previous page. A B-tree that deduplicates stores
 * equal keys once, so with many equal keys its leaves seem more than full.
 */
static double
following_share(PlannerInfo *root, IndexOptInfo *index)
{
	double		room = BLCKSZ - SizeOfPageHeaderData - sizeof(BTPageOpaqueData);
	double		full;
	double		order;

	if (!lsm_prefetch_is_btree(index))
		return INDEX_FOLLOWING;
	full = index->tuples / Max(index->pages, 1) * entry_bytes(root, index) / room;
	order = (full - FULL_GROWN) / (FULL_BUILT - FULL_GROWN);
	return INDEX_FOLLOWING * Min(Max(order, 0), 1);
}

/* Returns by how much core's charge for index pages exceeds their cost in a scan by page. */
static double
index_saving(PlannerInfo *root, IndexOptInfo *index, double pages)
{
	double		random_cost;
	double		sequential_cost;

	get_tablespace_page_costs(index->reltablespace, &random_cost, &sequential_cost);
	if (pages <= 1 || random_cost <= sequential_cost)
		return 0;
	return (pages - 1) * following_share(root, index) * (random_cost - sequential_cost);
}

/* Recompute the values that cost_index computed but did not keep. */
void
lsm_prefetch_read_shape(PlannerInfo *root, IndexPath *path, LsmScanShape *shape)
{
	IndexOptInfo *index = path->indexinfo;
	RelOptInfo *rel = index->rel;
	amcostestimate_function estimate = (amcostestimate_function) index->amcostestimate;
	double		loops = lsm_prefetch_loop_count(root, path);
	Cost		startup;
	Cost		total;
	Selectivity selectivity;
	double		correlation;
	double		index_pages;
	double		best;
	double		share = lsm_prefetch_read_share(path);

	estimate(root, path, loops, &startup, &total, &selectivity, &correlation, &index_pages);
	get_tablespace_page_costs(rel->reltablespace, &shape->random_cost, &shape->sequential_cost);
	/*
	 * Core assumes that the pages of an inner side are in memory after some time. So core already
	 * charges less for its own scan, and reading by page saves nothing more on index pages.
	 */
	shape->index_saved = loops > 1 ? 0 : share * index_saving(root, index, index_pages);
	shape->tuples = clamp_row_est(selectivity * rel->tuples);
	shape->pages = index_pages_fetched(shape->tuples * loops, rel->pages, index->pages, root) / loops;
	shape->neighbors = ceil(selectivity * rel->pages);
	best = shape->random_cost + (shape->neighbors - 1) * shape->sequential_cost;
	if (loops > 1)
	{
		shape->neighbors = index_pages_fetched(shape->neighbors * loops, rel->pages,
												index->pages, root) / loops;
		best = shape->neighbors * shape->random_cost;
	}
	shape->scattered = 1 - correlation * correlation;
	shape->reading_cost = share * (shape->scattered * shape->pages * shape->random_cost +
								   (1 - shape->scattered) * best);
	/* Rows on all-visible pages cost an index-only scan no read. */
	shape->table_pages = share * rel->pages;
	shape->tuples *= share;
	shape->pages *= share;
	shape->neighbors *= share;
	lsm_prefetch_divide(shape, rel, 1);
}

/* Returns the cost of a prefetched page that costs this much when read alone. */
static double
prefetched_cost(const LsmScanShape *shape, double page_cost, int depth)
{
	if (page_cost <= shape->sequential_cost)
		return page_cost;
	return shape->sequential_cost + (page_cost - shape->sequential_cost) / sqrt(depth);
}

/*
 * Set the costs of a path in index order. For a row at a random place, the scan must find its page,
 * and usually copy the page from the kernel's cache. Core does not charge for this work, because
 * waiting for the page takes much longer. Prefetching removes the wait but not the work, which then
 * decides whether another scan and a sort are cheaper.
 */
void
lsm_prefetch_cost_in_order(CustomPath *path, const LsmScanShape *shape, int depth)
{
	double		saved = shape->random_cost - prefetched_cost(shape, shape->random_cost, depth);
	double		pages = shape->scattered * shape->pages;
	double		copying = COPY_SHARE * shape->sequential_cost * shape->scattered * shape->tuples;

	/* This leaves enough of the gain for a LIMIT of a few hundred rows. */
	copying = Min(copying, saved * pages * COPY_BOUND);
	path->path.startup_cost += saved * LSM_RAMP_PAGES;
	path->path.total_cost += saved * LSM_RAMP_PAGES - saved * pages +
		(copying + cpu_operator_cost * pages) / shape->processes;
}

/*
 * Set the costs of a path by page. As core does for bitmap scans, we assume that reads become more
 * sequential as the scan reads a larger share of the table's pages.
 */
void
lsm_prefetch_cost_by_page(CustomPath *path, const LsmScanShape *shape, int depth)
{
	double		pages = shape->scattered * shape->pages_by_round +
		(1 - shape->scattered) * shape->neighbors;
	double		share = Min(pages / shape->rounds / Max(path->path.parent->pages, 1), 1);
	double		page_cost = shape->random_cost -
		(shape->random_cost - shape->sequential_cost) * sqrt(share);
	double		saved = page_cost - prefetched_cost(shape, page_cost, depth);
	Cost		sorting = cpu_operator_cost * shape->tuples * 0.2;

	path->path.startup_cost += saved * LSM_RAMP_PAGES;
	path->path.total_cost += saved * LSM_RAMP_PAGES - shape->reading_cost - shape->index_saved +
		pages * (page_cost - saved) + (pages * cpu_operator_cost + sorting) / shape->processes;
	path->path.total_cost = Max(path->path.total_cost, path->path.startup_cost);
}
