/*
 * parallel.h
 *	  What the processes of a parallel scan share: the place up to which it has
 *	  been claimed.
 */
#ifndef LSM_PARALLEL_H
#define LSM_PARALLEL_H

#include "access/relscan.h"
#include "scankey/scankey.h"
#include "read/reader.h"

/* What a process needs for its claims. */
typedef struct LsmScanClaim
{
	LsmBound	start;			/* of the latest one, if it is not the first of all */
} LsmScanClaim;

extern bool lsm_parallel_claim(IndexScanDesc scan, LsmScanKeys *keys, LsmReader *reader,
							   ScanDirection direction, LsmScanClaim *claim);

#endif							/* LSM_PARALLEL_H */
