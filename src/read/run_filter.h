/*
 * run_filter.h
 *	  Filters that a reader makes for itself, of small runs that have none on disk.
 *
 * Batches and small merges come and go too fast for a filter to be worth its
 * writing.  But while rows pour in, they are most of the runs.  A lookup looks into
 * such a run the ordinary way at first; from the 32nd on it asks a filter in private
 * memory; and likewise one of the prefixes of its keys, if these are looked for.  Batches,
 * which look for many keys at once, ask a single filter of all these runs, the *joint*
 * filter: hardly any key is in one of them.  A run's id is never used again and nothing is
 * added to it, so either filter is good for as long as there is the run, in any version.
 */
#ifndef LSM_RUN_FILTER_H
#define LSM_RUN_FILTER_H

#include "read/cursors.h"
#include "segment/filter.h"

/*
 * Lookups of a run after which its filter is made: that costs about as much as so
 * many.  Tests shall not need as many.
 */
#ifdef USE_ASSERT_CHECKING
#define LSM_LOOKUPS_BEFORE_FILTER	2
#else
#define LSM_LOOKUPS_BEFORE_FILTER	32
#endif

/* Larger runs have one of their own, or are not worth it. */
#define LSM_RUN_FILTER_MOST_LEAVES	32

/* Larger ones are not worth reading for the joint filter. */
#define LSM_JOINT_MOST_LEAVES		64

/* A filter of the run's own. */
typedef struct LsmOwnFilter
{
	uint32		lookups;		/* so far, while there is no filter */
	int			columns;		/* of keys; or prefixes of up to so many */
	int			probes;
	uint32		block_count;	/* of 64 bytes */
	uint8	   *blocks;			/* NULL: there is no filter yet */
} LsmOwnFilter;

typedef struct LsmRunFilter
{
	uint64		run_id;
	uint64		used;			/* by this take of a version, as the set counts them */
	LsmOwnFilter of_keys;
	LsmOwnFilter of_prefixes;

	uint64		keys;			/* that batches have looked for while it was not joint */
	uint64		joined;			/* round of the joint filter that has its keys; 0: none */
	uint32		joined_keys;	/* so many; its record may say less, since a job takes from it */
	uint64		low;			/* then: prefixes of its first key, */
	uint64		high;			/* and of its last one */
} LsmRunFilter;

/*
 * The joint filter.  It keeps the keys of runs that are gone, which costs some wrong
 * answers, until it is full: then a new round begins with those that are there.
 */
typedef struct LsmJointFilter
{
	uint64		round;			/* its number, from 1 on */
	uint64		count;			/* keys */
	uint64		room;			/* for so many */
	int			probes;
	uint32		block_count;	/* of 64 bytes */
	uint8	   *blocks;
} LsmJointFilter;

typedef struct LsmRunFilterSet LsmRunFilterSet;

extern LsmRunFilterSet *lsm_run_filters_create(int bits_per_key);
extern void lsm_run_filters_begin(LsmRunFilterSet *set);
extern LsmRunFilter *lsm_run_filters_get(LsmRunFilterSet *set, uint64 run_id);
extern void lsm_run_filters_end(LsmRunFilterSet *set);
extern void lsm_own_filter_make(LsmRunFilterSet *set, LsmOwnFilter *filter, int columns,
								const LsmKeyHashes *hashes, int count);
extern LsmJointFilter *lsm_joint_filter(LsmRunFilterSet *set);
extern void lsm_joint_filter_reserve(LsmRunFilterSet *set, uint64 more, uint64 all);
extern void lsm_joint_filter_add(LsmRunFilterSet *set, LsmRunFilter *filter, const uint64 *hashes,
								 uint32 count);

/* May the run have this key, or prefix? */
static inline bool
lsm_own_filter_has(const LsmOwnFilter *filter, uint64 hash)
{
	const uint8 *block = filter->blocks +
		lsm_filter_block(hash, filter->block_count) * LSM_FILTER_BLOCK_BYTES;

	return lsm_filter_block_has(block, filter->probes, hash);
}

/* May any of the runs that have joined have this key? */
static inline bool
lsm_joint_filter_has(const LsmJointFilter *joint, uint64 hash)
{
	const uint8 *block = joint->blocks +
		lsm_filter_block(hash, joint->block_count) * LSM_FILTER_BLOCK_BYTES;

	return lsm_filter_block_has(block, joint->probes, hash);
}

#endif							/* LSM_RUN_FILTER_H */
