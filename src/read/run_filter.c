/*
 * run_filter.c
 *	  The filters of a reader, by run; see run_filter.h.
 */
#include "postgres.h"

#include "read/run_filter.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* More filters than that belong to runs that are gone: look for them. */
#define MOST_FILTERS	(2 * LSM_MAX_RUNS)

#define BITS_PER_KEY	10

struct LsmRunFilterSet
{
	MemoryContext context;
	HTAB	   *filters;
	uint64		takes;			/* of versions */
};

/* An empty set, in the current memory context. */
LsmRunFilterSet *
lsm_run_filters_create(void)
{
	LsmRunFilterSet *set = palloc0(sizeof(LsmRunFilterSet));
	HASHCTL		info = {.keysize = sizeof(uint64),.entrysize = sizeof(LsmRunFilter),
	.hcxt = CurrentMemoryContext};

	set->context = CurrentMemoryContext;
	set->filters = hash_create("pg_lsm run filters", LSM_MAX_RUNS, &info,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	return set;
}

/* A version is taken: its small runs come now. */
void
lsm_run_filters_begin(LsmRunFilterSet *set)
{
	set->takes++;
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
	return filter;
}

/* That were all: forget those of runs that are gone, from time to time. */
void
lsm_run_filters_end(LsmRunFilterSet *set)
{
	HASH_SEQ_STATUS status;
	LsmRunFilter *filter;

	if (hash_get_num_entries(set->filters) <= MOST_FILTERS)
		return;
	hash_seq_init(&status, set->filters);
	while ((filter = hash_seq_search(&status)) != NULL)
	{
		if (filter->used == set->takes)
			continue;
		if (filter->blocks)
			pfree(filter->blocks);
		hash_search(set->filters, &filter->run_id, HASH_REMOVE, NULL);
	}
}

/* Make the filter of a run with these keys. */
void
lsm_run_filter_make(LsmRunFilterSet *set, LsmRunFilter *filter, const uint64 *hashes, uint32 count)
{
	uint32		blocks = count * BITS_PER_KEY / LSM_FILTER_BLOCK_BITS + 1;
	uint8	   *bytes = MemoryContextAllocZero(set->context, blocks * LSM_FILTER_BLOCK_BYTES);

	for (uint32 i = 0; i < count; i++)
		lsm_filter_block_add(bytes + lsm_filter_block(hashes[i], blocks) * LSM_FILTER_BLOCK_BYTES,
							 BITS_PER_KEY * 3 / 5, hashes[i]);
	filter->probes = BITS_PER_KEY * 3 / 5;
	filter->block_count = blocks;
	filter->blocks = bytes;
}
