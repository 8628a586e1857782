/*
 * run_filter.c
 *	  Keeps the filters that a reader makes for small runs and for pages of the write buffer.
 */
#include "postgres.h"

#include "base/limits.h"
#include "read/run_filter.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* If more filters than this belong to runs that are gone, these filters are freed. */
#define MOST_GONE	8

struct LsmRunFilterSet
{
	HTAB	   *filters;
	uint64		version;		/* counts the versions that were taken */
	long		in_use;			/* filters of runs of the version */
	LsmJointFilter joint;
};

/* Create an empty set in the current memory context. */
LsmRunFilterSet *
lsm_run_filters_create(int bits_per_key)
{
	LsmRunFilterSet *set = palloc0(sizeof(LsmRunFilterSet));
	HASHCTL		info = {.keysize = sizeof(uint64),.entrysize = sizeof(LsmRunFilter),
	.hcxt = CurrentMemoryContext};

	set->joint.context = CurrentMemoryContext;
	set->joint.bits_per_key = bits_per_key;
	set->filters = hash_create("pg_lsm run filters", LSM_MAX_RUNS, &info,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	return set;
}

/*
 * Called when the reader takes a version.  The reader then calls lsm_run_filters_get for each small
 * run and each page of the write buffer.
 */
void
lsm_run_filters_begin(LsmRunFilterSet *set)
{
	set->version++;
	set->in_use = 0;
}

/*
 * Returns the filters of a run, whether or not they have been made.  The pointer is valid while the
 * version has the run.
 */
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
	filter->version = set->version;
	set->in_use++;
	return filter;
}

static void
free_own_filter(LsmOwnFilter *own)
{
	if (own->filter.blocks)
		pfree(own->filter.blocks);
}

/*
 * Called when the reader has the filters of all the version's runs.  Frees those of other runs
 * if there are more than MOST_GONE.
 */
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
		if (filter->version == set->version)
			continue;
		free_own_filter(&filter->of_keys);
		free_own_filter(&filter->of_prefixes);
		if (filter->of_page.filter.blocks)
			pfree(filter->of_page.filter.blocks);
		hash_search(set->filters, &filter->run_id, HASH_REMOVE, NULL);
	}
}

/*
 * Make a filter of a run's keys, or of their prefixes.  Keys have `columns` columns, and `hashes`
 * has one element.  Prefixes have from 1 to `columns` columns, and `hashes` has an element for each
 * length.  `count` is the number of elements.
 */
void
lsm_own_filter_make(LsmRunFilterSet *set, LsmOwnFilter *own, int columns,
					const LsmKeyHashes *hashes, int count)
{
	uint64		all = 0;

	for (int i = 0; i < count; i++)
		all += hashes[i].count;
	own->columns = columns;
	lsm_memory_filter_make(&own->filter, set->joint.context, set->joint.bits_per_key, all);
	for (int i = 0; i < count; i++)
		lsm_memory_filter_add(&own->filter, hashes[i].hashes, hashes[i].count);
}

/* Add the new items of a page of the write buffer.  Returns what lsm_page_filter_add does. */
bool
lsm_run_filters_note_page(LsmRunFilterSet *set, LsmPageFilter *filter, LsmKeySpace *ks,
						  const LsmPageNews *news)
{
	return lsm_page_filter_add(filter, ks, set->joint.context, set->joint.bits_per_key, news);
}

LsmJointFilter *
lsm_joint_filter(LsmRunFilterSet *set)
{
	return &set->joint;
}
