/*
 * parallel.h
 *	  What the processes of a parallel scan share: the place up to which it has
 *	  been claimed.
 */
#ifndef LSM_PARALLEL_H
#define LSM_PARALLEL_H

#include "access/relscan.h"
#include "am/scankeys.h"
#include "read/reader.h"

/*
 * What a process has claimed: the rest of a combination of array elements or a
 * part of it, in the direction of the scan; in the first case perhaps further
 * combinations, too.
 */
typedef struct LsmScanClaim
{
	bool		has_start;		/* it begins at `start`, not where the combination does */
	LsmBound	start;
	LsmBound	end;			/* room for where it ends */
	int			further;		/* combinations that follow */
} LsmScanClaim;

extern bool lsm_parallel_begin_claim(IndexScanDesc scan, LsmScanKeys *keys,
									 ScanDirection direction, LsmScanClaim *claim);
extern void lsm_parallel_end_claim(IndexScanDesc scan, LsmScanKeys *keys, LsmReader *reader,
								   ScanDirection direction, LsmScanClaim *claim);

#endif							/* LSM_PARALLEL_H */
