/*
 * prefetch_cost.h
 *	  What prefetching scans cost.
 */
#ifndef LSM_PREFETCH_COST_H
#define LSM_PREFETCH_COST_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/* So many pages are read before reading ahead pays. */
#define LSM_RAMP_PAGES 16

/* What the costs of an index scan are made of. */
typedef struct LsmScanShape
{
	double		processes;		/* among which the rows are divided */
	double		table_pages;	/* index only: those not visible to all; else all */
	double		tuples;			/* fetched from the table */
	double		pages;			/* read at random, were there no correlation */
	double		rounds;			/* by page */
	double		pages_by_round; /* as `pages`, of all rounds together */
	double		neighbours;		/* read, were it perfect */
	double		scattered;		/* 1: no correlation; 0: perfect */
	double		random_cost;	/* of a page */
	double		sequential_cost;
	double		reading_cost;	/* of all pages, as core has it */
	double		index_saved;	/* by page: of what core reckons for the index */
} LsmScanShape;

extern double lsm_prefetch_loop_count(PlannerInfo *root, IndexPath *path);
extern double lsm_prefetch_read_share(IndexPath *path);
extern void lsm_prefetch_read_shape(PlannerInfo *root, IndexPath *path, LsmScanShape *shape);
extern void lsm_prefetch_divide(LsmScanShape *shape, RelOptInfo *rel, double processes);
extern void lsm_prefetch_cost_in_order(CustomPath *path, const LsmScanShape *shape, int depth);
extern void lsm_prefetch_cost_by_page(CustomPath *path, const LsmScanShape *shape, int depth);

#endif							/* LSM_PREFETCH_COST_H */
