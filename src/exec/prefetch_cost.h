/*
 * prefetch_cost.h
 *	  Computes the costs of prefetching scans.
 */
#ifndef LSM_PREFETCH_COST_H
#define LSM_PREFETCH_COST_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/* Pages to read before prefetching pays. */
#define LSM_RAMP_PAGES 16

/* The parts of an index scan's cost. */
typedef struct LsmScanShape
{
	double		processes;		/* processes that divide the rows */
	double		table_pages;	/* index-only: those not all-visible; else all */
	double		tuples;			/* fetched from the table */
	double		pages;			/* pages read, if there is no correlation */
	double		rounds;			/* by page: number of rounds, of all processes */
	double		pages_by_round; /* as `pages`, summed over all rounds */
	double		neighbors;		/* pages read, if the correlation is perfect */
	double		scattered;		/* 1: no correlation; 0: perfect */
	double		random_cost;	/* of a page */
	double		sequential_cost;
	double		reading_cost;	/* of all pages, as core computes it */
	double		index_saved;	/* by page: excess in core's charge for index pages */
} LsmScanShape;

extern bool lsm_prefetch_is_btree(const IndexOptInfo *index);
extern bool lsm_prefetch_is_lsm(const IndexOptInfo *index);
extern double lsm_prefetch_loop_count(PlannerInfo *root, IndexPath *path);
extern double lsm_prefetch_read_share(IndexPath *path);
extern void lsm_prefetch_read_shape(PlannerInfo *root, IndexPath *path, LsmScanShape *shape);
extern void lsm_prefetch_divide(LsmScanShape *shape, RelOptInfo *rel, double processes);
extern void lsm_prefetch_cost_in_order(CustomPath *path, const LsmScanShape *shape, int depth);
extern void lsm_prefetch_cost_by_page(CustomPath *path, const LsmScanShape *shape, int depth);

#endif							/* LSM_PREFETCH_COST_H */
