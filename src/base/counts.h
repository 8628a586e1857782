/*
 * counts.h
 *	  The counters in shared memory.
 */
#ifndef LSM_COUNTS_H
#define LSM_COUNTS_H

#include "base/shared.h"
#include "utils/relcache.h"

extern void lsm_stats_add(Relation index, LsmCounter counter, uint64 n);
extern void lsm_stats_reset(LsmIndexSlot *slot);

#endif							/* LSM_COUNTS_H */
