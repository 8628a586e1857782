/*
 * prefetch.h
 *	  Declares what the planner and the executor of the prefetching scan share.
 */
#ifndef LSM_PREFETCH_H
#define LSM_PREFETCH_H

#include "postgres.h"

#include "access/genam.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

#define LSM_PREFETCH_NAME "Prefetch"

/* The plan's parameters, in the order of custom_private. */
typedef struct LsmPrefetchPlan
{
	bool		by_page;		/* rows by page, in rounds; else in index order */
	int			depth;			/* largest number of pages ahead */
	int			growth;			/* each round is this many times as large as the last */
	bool		forced;			/* for tests: prefetch from the first row */
} LsmPrefetchPlan;

extern List *lsm_prefetch_write_plan(const LsmPrefetchPlan *plan);
extern void lsm_prefetch_read_plan(List *list, LsmPrefetchPlan *plan);

extern const CustomScanMethods lsm_prefetch_scan_methods;

/* Called with an index scan that will not be asked for an entry for a while. */
typedef void (*LsmPauseIndexScan) (IndexScanDesc scan);

extern LsmPauseIndexScan lsm_prefetch_pause;

extern void lsm_prefetch_init(LsmPauseIndexScan pause);
extern void lsm_prefetch_add_paths(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *entry);

#endif							/* LSM_PREFETCH_H */
