/*
 * run_filter.c
 *	  The filters of a reader, by run; see run_filter.h.
 */
#include "postgres.h"

#include "read/run_filter.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* When there are more filters than that of runs that are gone, they go, too. */
#define MOST_GONE	8

struct LsmRunFilterSet
{
	MemoryContext context;
	int			bits_per_key;
	HTAB	   *filters;
	uint64		takes;			/* of versions */
	long		in_use;			/* filters of runs of the version */
	LsmJointFilter joint;
};

/* The joint filter has room for so many keys at least.  Tests shall see many rounds. */
#ifdef USE_ASSERT_CHECKING
#define LEAST_JOINT_ROOM	500
#else
#define LEAST_JOINT_ROOM	(1 << 15)
#endif

/* An empty set, in the current memory context.  Its filters shall be as good as those on disk. */
LsmRunFilterSet *
lsm_run_filters_create(int bits_per_key)
{
	LsmRunFilterSet *set = palloc0(sizeof(LsmRunFilterSet));
	HASHCTL		info = {.keysize = sizeof(uint64),.entrysize = sizeof(LsmRunFilter),
	.hcxt = CurrentMemoryContext};

	set->context = CurrentMemoryContext;
	set->bits_per_key = bits_per_key;
	set->filters = hash_create("pg_lsm run filters", LSM_MAX_RUNS, &info,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	return set;
}

/* A version is taken: its small runs come now. */
void
lsm_run_filters_begin(LsmRunFilterSet *set)
{
	set->takes++;
	set->in_use = 0;
}

/* The filter of a run, made or not; it stays where it is while the run is in the reader's version. */
LsmRunFilter *
lsm_run_filters_get(LsmRunFilterSet *set, uint64 run_id)
{
	bool		found;
	LsmRunFilter *filter = hash_search(set->filters, &run_id, HASH_ENTER, &found);

	if (!found)
	{
		memset(filter, 0, sizeof(LsmRunFilter));
		filter->run_id = run_id;
	}
	filter->used = set->takes;
	set->in_use++;
	return filter;
}

/* That were all: forget those of runs that are gone, when they are some. */
void
lsm_run_filters_end(LsmRunFilterSet *set)
{
	HASH_SEQ_STATUS status;
	LsmRunFilter *filter;

	if (hash_get_num_entries(set->filters) <= set->in_use + MOST_GONE)
		return;
	hash_seq_init(&status, set->filters);
	while ((filter = hash_seq_search(&status)) != NULL)
	{
		if (filter->used == set->takes)
			continue;
		if (filter->of_keys.blocks)
			pfree(filter->of_keys.blocks);
		if (filter->of_prefixes.blocks)
			pfree(filter->of_prefixes.blocks);
		hash_search(set->filters, &filter->run_id, HASH_REMOVE, NULL);
	}
}

/* Blocks of a filter for so many keys. */
static uint32
block_count(const LsmRunFilterSet *set, uint64 keys)
{
	return (uint32) (keys * set->bits_per_key / LSM_FILTER_BLOCK_BITS + 1);
}

static int
probe_count(const LsmRunFilterSet *set)
{
	return Min(Max(set->bits_per_key * 3 / 5, 1), LSM_FILTER_MOST_PROBES);
}

/* Put keys into so many blocks. */
static void
add_keys(uint8 *bytes, uint32 blocks, int probes, const uint64 *hashes, uint64 count)
{
	for (uint64 i = 0; i < count; i++)
		lsm_filter_block_add(bytes + lsm_filter_block(hashes[i], blocks) * LSM_FILTER_BLOCK_BYTES,
							 probes, hashes[i]);
}

/*
 * Make a filter of a run: of its keys, which have so many columns, or of the prefixes of
 * one column, of two, up to so many.
 */
void
lsm_own_filter_make(LsmRunFilterSet *set, LsmOwnFilter *filter, int columns,
					const LsmKeyHashes *hashes, int count)
{
	uint64		all = 0;
	uint32		blocks;
	uint8	   *bytes;

	for (int i = 0; i < count; i++)
		all += hashes[i].count;
	blocks = block_count(set, all);
	bytes = MemoryContextAllocZero(set->context, (Size) blocks * LSM_FILTER_BLOCK_BYTES);
	filter->columns = columns;
	filter->probes = probe_count(set);
	for (int i = 0; i < count; i++)
		add_keys(bytes, blocks, filter->probes, hashes[i].hashes, hashes[i].count);
	filter->block_count = blocks;
	filter->blocks = bytes;
}

/* --- the joint filter ---------------------------------------------------------- */

LsmJointFilter *
lsm_joint_filter(LsmRunFilterSet *set)
{
	return &set->joint;
}

/*
 * Make room for so many keys more.  If there is none, a new round begins, in which no run
 * has joined yet, with room for more than `all` that are to join then.
 */
void
lsm_joint_filter_reserve(LsmRunFilterSet *set, uint64 more, uint64 all)
{
	LsmJointFilter *joint = &set->joint;
	uint64		room = Max(3 * all, LEAST_JOINT_ROOM);

	if (joint->blocks != NULL && joint->count + more <= joint->room)
		return;
	/* Runs of the round before have not joined this one, whatever happens. */
	joint->round++;
	joint->count = 0;
	if (joint->blocks == NULL || room > joint->room || room < joint->room / 4)
	{
		uint32		blocks = block_count(set, room);

		if (joint->blocks != NULL)
			pfree(joint->blocks);
		joint->blocks = NULL;
		joint->blocks = MemoryContextAllocHuge(set->context,
											   (Size) blocks * LSM_FILTER_BLOCK_BYTES);
		joint->room = room;
		joint->block_count = blocks;
		joint->probes = probe_count(set);
	}
	memset(joint->blocks, 0, (Size) joint->block_count * LSM_FILTER_BLOCK_BYTES);
}

/* A run joins: these are all of its keys. */
void
lsm_joint_filter_add(LsmRunFilterSet *set, LsmRunFilter *filter, const uint64 *hashes,
					 uint32 count)
{
	LsmJointFilter *joint = &set->joint;

	add_keys(joint->blocks, joint->block_count, joint->probes, hashes, count);
	joint->count += count;
	filter->joined = joint->round;
	filter->joined_keys = count;
}
