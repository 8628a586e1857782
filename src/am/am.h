/*
 * am.h
 *	  Callbacks of the access method.
 */
#ifndef LSM_AM_H
#define LSM_AM_H

#include "base/compat.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "utils/rel.h"

struct LsmIndex;
struct LsmLookedFor;
struct LsmReadCounters;

/* build.c */
extern IndexBuildResult *lsm_am_build(Relation heap, Relation index, IndexInfo *info);
extern void lsm_am_build_empty(Relation index);
extern char *lsm_am_build_phase_name(int64 phase);

/* insert.c */
extern bool lsm_am_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						  Relation heap, IndexUniqueCheck check_unique, bool unchanged,
						  IndexInfo *info);

/* statement.c */
extern void lsm_statement_init(void);
extern bool lsm_statement_batches(IndexInfo *info, int rows, CommandId *seen_from);
extern bool lsm_statement_batches_unique(IndexInfo *info, int rows, CommandId *seen_from,
										 uint64 *statement);

/* scan.c */
extern IndexScanDesc lsm_am_begin_scan(Relation index, int nkeys, int norderbys);
extern void lsm_am_rescan(IndexScanDesc scan, ScanKey keys, int nkeys,
						  ScanKey orderbys, int norderbys);
extern bool lsm_am_get_tuple(IndexScanDesc scan, ScanDirection direction);
extern int64 lsm_am_get_bitmap(IndexScanDesc scan, TIDBitmap *tbm);
extern void lsm_am_end_scan(IndexScanDesc scan);
extern void lsm_am_mark(IndexScanDesc scan);
extern void lsm_am_restore(IndexScanDesc scan);
extern bool lsm_am_can_return(Relation index, int attno);

/* Is it an index of this method?  NULL is none. */
static inline bool
lsm_is_own(Relation index)
{
	return index != NULL && index->rd_indam->amgettuple == lsm_am_get_tuple;
}

extern void lsm_scan_reads(IndexScanDesc scan, struct LsmReadCounters *reads);

/* parallel.c */
extern Size lsm_am_estimate_parallel_scan(LSM_ESTIMATE_PARALLEL_ARGS);
extern void lsm_am_init_parallel_scan(void *area);
extern void lsm_am_parallel_rescan(IndexScanDesc scan);

/* vacuum.c */
extern IndexBulkDeleteResult *lsm_am_bulk_delete(IndexVacuumInfo *info,
												 IndexBulkDeleteResult *stats,
												 IndexBulkDeleteCallback callback,
												 void *state);
extern IndexBulkDeleteResult *lsm_am_vacuum_cleanup(IndexVacuumInfo *info,
													IndexBulkDeleteResult *stats);

/* cut_file.c */
extern void lsm_cut_file(struct LsmIndex *index);

/* plan.c */
extern void lsm_am_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count,
								 Cost *startup_cost, Cost *total_cost,
								 Selectivity *selectivity, double *correlation,
								 double *pages);
extern int	lsm_am_tree_height(Relation index);

/* matching.c */
extern void lsm_matching_init(void);
#ifndef LSM_EXECUTOR_TAKES_ROWS
extern void lsm_matching_shorten_rows(PlannerInfo *root, IndexPath *path);

/* rowstart.c */
extern void lsm_rowstart_init(void);
#endif

/* index_only.c */
extern void lsm_index_only_init(void);

/* explain.c */
extern void lsm_explain_init(void);

/* constraint.c */
extern void lsm_constraint_init(void);

#ifndef LSM_SPECULATION_TAKES_ALL
/* onconflict.c */
extern void lsm_onconflict_init(void);
#endif

/* look_ahead.c */
extern void lsm_look_ahead_init(void);
extern const struct LsmLookedFor *lsm_look_ahead_known(struct LsmIndex *index);
extern void lsm_look_ahead_forget(void);

/* look_ahead_plan.c */
struct QueryDesc;
extern bool lsm_may_look_ahead(struct QueryDesc *query);

/* validate.c */
extern bool lsm_am_validate(Oid opclass);
extern void lsm_am_adjust_members(Oid opfamily, Oid opclass, List *operators, List *functions);

#endif							/* LSM_AM_H */
