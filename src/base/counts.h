/*
 * counts.h
 *	  The counts that pg_stat_lsm_indexes shows for an index.
 */
#ifndef LSM_COUNTS_H
#define LSM_COUNTS_H

#include "base/shared.h"
#include "utils/relcache.h"

typedef struct LsmCounts
{
	uint64		values[LSM_COUNTERS];
	TimestampTz last_merge;		/* 0: none */
	TimestampTz reset_time;		/* 0: never */
} LsmCounts;

extern void lsm_stats_init(void);
extern void lsm_stats_add(Relation index, LsmCounter counter, uint64 n);
extern void lsm_stats_add_all(Oid index, const uint64 counts[LSM_COUNTERS]);
extern void lsm_stats_note_merge(Relation index);
extern void lsm_stats_get(Oid index, LsmCounts *counts);
extern void lsm_stats_reset_database(void);
extern void lsm_stats_create_index(Relation index);
extern void lsm_stats_drop_index(Oid index);

#endif							/* LSM_COUNTS_H */
