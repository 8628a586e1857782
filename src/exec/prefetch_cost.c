/*
 * prefetch_cost.c
 *	  What prefetching scans cost.
 *
 * A page of the table that is read at random costs what core says as long as it
 * is read alone.  Prefetched, what it costs beyond a page that is read in sequence
 * is divided by the square root of the depth: SSDs get about so much faster (four
 * times with 8 requests at once, nine times with 128).  The first pages are not
 * prefetched, so the costs before the first row are higher by what that takes, and
 * a plan that wants a few rows takes core's scan.
 *
 * By page the index is read without pages of the table in between.  Core takes it
 * that its pages are at random places, too, but of those of a range most follow
 * each other, and the kernel reads them ahead: all of a run of an lsm index, or of
 * a B-tree that was built from a table, or whose keys have come in order.  None of a
 * B-tree that has grown by random keys, which shows in how full its pages are.
 *
 * An index-only scan reads the pages that are not visible to all, as core has it a
 * fixed share of all.
 *
 * Processes of a parallel scan divide the rows, but not the reading, as core has
 * it.  By page, each sorts its own rows, so that a page may be read by several.
 */
#include "postgres.h"

#include <math.h>

#include "access/amapi.h"
#include "access/nbtree.h"
#include "exec/prefetch_cost.h"
#include "exec/tid_queue.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"

/* In index order, of what a page costs that is read in sequence: for each row. */
#define COPY_SHARE 0.6
/* But at most so much of what prefetching saves. */
#define COPY_BOUND 0.55

/* By page: of the pages of an index whose order is that of its file, those that follow the one before. */
#define INDEX_FOLLOWING 0.75

/*
 * How full are the leaves of a B-tree: one that was built, and one that has grown, where
 * each split leaves two halves?  (On average ln 2, as Yao found: On random 2-3 trees,
 * Acta Informatica 9, 1978.)
 */
#define FULL_BUILT 0.9
#define FULL_GROWN 0.7

/* How often will the scan run?  As core guesses: once for each outer row. */
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

/* Of the rows, and of the pages of the table, those that are read. */
double
lsm_prefetch_read_share(IndexPath *path)
{
	return path->path.pathtype == T_IndexOnlyScan ? 1 - path->path.parent->allvisfrac : 1;
}

/* The pages of so many rows at random places, as core has it for bitmap scans. */
static double
distinct_pages(double table_pages, double tuples)
{
	double		pages = Max(table_pages, 1);

	return Min(2 * pages * tuples / (2 * pages + tuples), pages);
}

/* Divide the rows among so many processes, each of which has rounds of its own. */
void
lsm_prefetch_divide(LsmScanShape *shape, RelOptInfo *rel, double processes)
{
	shape->processes = processes;
	shape->rounds = Max(ceil(shape->tuples / lsm_queue_round_limit(rel->pages)), processes);
	shape->pages_by_round = shape->rounds * distinct_pages(shape->table_pages,
																shape->tuples / shape->rounds);
}

/* Bytes of an entry in a leaf of a B-tree, with its line pointer; on average. */
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
 * Of the pages of an index, those that follow the one before.  Leaves of a B-tree with many
 * equal keys, which it writes once, seem to be more than full.
 */
static double
following_share(PlannerInfo *root, IndexOptInfo *index)
{
	double		room = BLCKSZ - SizeOfPageHeaderData - sizeof(BTPageOpaqueData);
	double		full;
	double		order;

	/* Not by relam: lsm indexes may be presented as B-trees. */
	if ((amcostestimate_function) index->amcostestimate != btcostestimate)
		return INDEX_FOLLOWING;
	full = index->tuples / Max(index->pages, 1) * entry_bytes(root, index) / room;
	order = (full - FULL_GROWN) / (FULL_BUILT - FULL_GROWN);
	return INDEX_FOLLOWING * Min(Max(order, 0), 1);
}

/* What core reckons for so many pages of an index beyond what they cost by page. */
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

/* What cost_index has reckoned with, and did not keep. */
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
	 * Of an inner side core takes it that the pages are in memory after some time.  And
	 * where no pages of the table are read in between, core's scan saves as much.
	 */
	shape->index_saved = loops > 1 ? 0 : share * index_saving(root, index, index_pages);
	shape->tuples = clamp_row_est(selectivity * rel->tuples);
	shape->pages = index_pages_fetched(shape->tuples * loops, rel->pages, index->pages, root) / loops;
	shape->neighbours = ceil(selectivity * rel->pages);
	best = shape->random_cost + (shape->neighbours - 1) * shape->sequential_cost;
	if (loops > 1)
	{
		shape->neighbours = index_pages_fetched(shape->neighbours * loops, rel->pages,
												index->pages, root) / loops;
		best = shape->neighbours * shape->random_cost;
	}
	shape->scattered = 1 - correlation * correlation;
	shape->reading_cost = share * (shape->scattered * shape->pages * shape->random_cost +
								   (1 - shape->scattered) * best);
	/* Of rows in other pages nothing is read. */
	shape->table_pages = share * rel->pages;
	shape->tuples *= share;
	shape->pages *= share;
	shape->neighbours *= share;
	lsm_prefetch_divide(shape, rel, 1);
}

/* Of a page that costs so much when read alone. */
static double
prefetched_cost(const LsmScanShape *shape, double page_cost, int depth)
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
void
lsm_prefetch_cost_in_order(CustomPath *path, const LsmScanShape *shape, int depth)
{
	double		saved = shape->random_cost - prefetched_cost(shape, shape->random_cost, depth);
	double		pages = shape->scattered * shape->pages;
	double		copying = COPY_SHARE * shape->sequential_cost * shape->scattered * shape->tuples;

	/* It leaves enough of what is saved for a LIMIT of a few hundred rows. */
	copying = Min(copying, saved * pages * COPY_BOUND);
	path->path.startup_cost += saved * LSM_RAMP_PAGES;
	path->path.total_cost += saved * LSM_RAMP_PAGES - saved * pages +
		(copying + cpu_operator_cost * pages) / shape->processes;
}

/*
 * Set the costs of a path by page.  Core's bitmap scan takes it that the more of
 * the pages are wanted, the more they are read in sequence.
 */
void
lsm_prefetch_cost_by_page(CustomPath *path, const LsmScanShape *shape, int depth)
{
	double		pages = shape->scattered * shape->pages_by_round +
		(1 - shape->scattered) * shape->neighbours;
	double		share = Min(pages / shape->rounds / Max(path->path.parent->pages, 1), 1);
	double		page_cost = shape->random_cost -
		(shape->random_cost - shape->sequential_cost) * sqrt(share);
	double		saved = page_cost - prefetched_cost(shape, page_cost, depth);
	Cost		sorting = cpu_operator_cost * shape->tuples * 0.2;

	path->path.startup_cost += saved * LSM_RAMP_PAGES;
	path->path.total_cost += saved * LSM_RAMP_PAGES - shape->reading_cost - shape->index_saved +
		pages * (page_cost - saved) + (pages * cpu_operator_cost + sorting) / shape->processes;
}
