/*
 * parallel_scan.h
 *	  Lets the processes of a parallel scan claim ranges; has the callbacks of parallel scans.
 */
#ifndef LSM_PARALLEL_SCAN_H
#define LSM_PARALLEL_SCAN_H

#include "base/compat.h"

#include "access/relscan.h"
#include "read/reader.h"
#include "scankey/scankey.h"

extern Size lsm_am_estimate_parallel_scan(LSM_ESTIMATE_PARALLEL_ARGS);
extern void lsm_am_init_parallel_scan(void *area);
extern void lsm_am_parallel_rescan(IndexScanDesc scan);

extern bool lsm_parallel_claim(IndexScanDesc scan, LsmScanKeys *keys, LsmReader *reader,
							   ScanDirection direction, LsmBound *start);

#endif							/* LSM_PARALLEL_SCAN_H */
