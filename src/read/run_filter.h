/*
 * run_filter.h
 *	  Keeps filters that a reader makes for small runs, in private memory.
 *
 * Runs of batches and of small merges do not exist long enough for a filter on disk to pay.  But
 * during heavy inserts, most runs are such runs.  At first a lookup searches such a run without a
 * filter.  When lookups have cost as much as making a filter, the next lookup makes one: of the
 * run's keys, or of the keys' prefixes if the lookup is for a prefix.  Batches look for many keys
 * at once, and ask the joint filter of all small runs (joint_filter.h).
 *
 * A run's id is never reused, and a run of one segment never gets more entries.  So the run's
 * filter is valid as long as the run exists, in any version.  The filter of a page of the write
 * buffer grows with the page (page_filter.h).
 */
#ifndef LSM_RUN_FILTER_H
#define LSM_RUN_FILTER_H

#include "read/joint_filter.h"
#include "read/page_filter.h"
#include "segment/filter.h"

/* After fewer lookups, a seek makes no filter of the run.  A round of keys may: see run_probe.c. */
#define LSM_LEAST_LOOKUPS			32

/* Larger runs have a filter on disk, or are not worth a filter. */
#define LSM_RUN_FILTER_MOST_LEAVES	32

/* Larger runs are not worth reading for the joint filter. */
#define LSM_JOINT_MOST_LEAVES		64

/* A filter of one run. */
typedef struct LsmOwnFilter
{
	uint32		lookups;		/* lookups so far, while there is no filter */
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
	LsmPageFilter of_page;		/* of a page of the write buffer */
} LsmRunFilter;

/* The filters of a reader. */
typedef struct LsmRunFilterSet LsmRunFilterSet;

/* Count a lookup.  Is the filter due?  With assertions, it is due at the second lookup. */
static inline bool
lsm_own_filter_is_due(LsmOwnFilter *own, uint64 entries)
{
	own->lookups++;
#ifdef USE_ASSERT_CHECKING
	return own->lookups >= 2;
#else
	return own->lookups >= LSM_LEAST_LOOKUPS && lsm_memory_filter_is_due(own->lookups, entries);
#endif
}

extern LsmRunFilterSet *lsm_run_filters_create(int bits_per_key);
extern void lsm_run_filters_begin(LsmRunFilterSet *set);
extern LsmRunFilter *lsm_run_filters_get(LsmRunFilterSet *set, uint64 run_id);
extern void lsm_run_filters_end(LsmRunFilterSet *set);
extern void lsm_own_filter_make(LsmRunFilterSet *set, LsmOwnFilter *own, int columns,
								const LsmKeyHashes *hashes, int count);
extern bool lsm_run_filters_note_page(LsmRunFilterSet *set, LsmPageFilter *filter, LsmKeySpace *ks,
									  const LsmPageNews *news);
extern LsmJointFilter *lsm_joint_filter(LsmRunFilterSet *set);

#endif							/* LSM_RUN_FILTER_H */
