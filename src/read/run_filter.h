/*
 * run_filter.h
 *	  Filters that a reader makes for small runs, in private memory.
 *
 * Batches and small merges come and go too fast for a filter on disk to be worth writing.
 * But while rows pour in, they are most of the runs.  A lookup reads such a run the
 * ordinary way at first.  The 32nd lookup makes a filter of the run's keys, or of their
 * prefixes if it looks for a prefix.  Batches, which look for many keys at once, ask one
 * filter of all these runs (joint_filter.h).
 *
 * A run's id is never reused and nothing is added to a run.  So its filter is good for as
 * long as the run exists, in any version.
 */
#ifndef LSM_RUN_FILTER_H
#define LSM_RUN_FILTER_H

#include "read/joint_filter.h"
#include "segment/filter.h"

/*
 * Lookups of a run before its filter is made, which costs about as much as these.  Tests
 * should not need as many.
 */
#ifdef USE_ASSERT_CHECKING
#define LSM_LOOKUPS_BEFORE_FILTER	2
#else
#define LSM_LOOKUPS_BEFORE_FILTER	32
#endif

/* Larger runs have a filter on disk, or are not worth it. */
#define LSM_RUN_FILTER_MOST_LEAVES	32

/* Larger runs are not worth reading for the joint filter. */
#define LSM_JOINT_MOST_LEAVES		64

/* A filter of one run. */
typedef struct LsmOwnFilter
{
	uint32		lookups;		/* so far, while there is no filter */
	int			columns;		/* of keys; or of the longest prefixes */
	LsmMemoryFilter filter;
} LsmOwnFilter;

typedef struct LsmRunFilter
{
	uint64		run_id;
	uint64		version;		/* number of the last version that had the run */
	LsmOwnFilter of_keys;
	LsmOwnFilter of_prefixes;
	LsmJointMember member;
} LsmRunFilter;

/* The filters of a reader. */
typedef struct LsmRunFilterSet LsmRunFilterSet;

extern LsmRunFilterSet *lsm_run_filters_create(int bits_per_key);
extern void lsm_run_filters_begin(LsmRunFilterSet *set);
extern LsmRunFilter *lsm_run_filters_get(LsmRunFilterSet *set, uint64 run_id);
extern void lsm_run_filters_end(LsmRunFilterSet *set);
extern void lsm_own_filter_make(LsmRunFilterSet *set, LsmOwnFilter *own, int columns,
								const LsmKeyHashes *hashes, int count);
extern LsmJointFilter *lsm_joint_filter(LsmRunFilterSet *set);

#endif							/* LSM_RUN_FILTER_H */
