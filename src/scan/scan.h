/*
 * scan.h
 *	  The callbacks of index scans, and index-only steps.
 */
#ifndef LSM_SCAN_H
#define LSM_SCAN_H

#include "base/compat.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

struct LsmReadCounters;

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
extern void lsm_scan_pause(IndexScanDesc scan);
extern void lsm_scan_reads(IndexScanDesc scan, struct LsmReadCounters *reads);

/* Is this an lsm index?  Returns false for NULL. */
static inline bool
lsm_is_own(Relation index)
{
	return index != NULL && index->rd_indam->amgettuple == lsm_am_get_tuple;
}

/* index_only.c */
extern void lsm_index_only_start(PlanState *plan);

#endif							/* LSM_SCAN_H */
