/*
 * memory_filter.h
 *	  Filters in private memory.  They have the same blocks as filters on disk, but no pages.
 */
#ifndef LSM_MEMORY_FILTER_H
#define LSM_MEMORY_FILTER_H

#include "format/filter_page.h"
#include "utils/palloc.h"

typedef struct LsmMemoryFilter
{
	int			probes;			/* bits that are set for each key */
	uint32		block_count;	/* of 64 bytes */
	uint8	   *blocks;			/* NULL: there is no filter yet */
} LsmMemoryFilter;

/* The number of keys that can be added to a filter in the time of a lookup. */
#define LSM_ENTRIES_PER_LOOKUP	32

extern void lsm_memory_filter_make(LsmMemoryFilter *filter, MemoryContext context,
								   int bits_per_key, uint64 keys);
extern void lsm_memory_filter_clear(LsmMemoryFilter *filter);
extern void lsm_memory_filter_add(LsmMemoryFilter *filter, const uint64 *hashes, uint64 count);

/* Do `lookups` lookups cost as much as making a filter of `entries` keys? */
static inline bool
lsm_memory_filter_is_due(uint64 lookups, uint64 entries)
{
	return lookups * LSM_ENTRIES_PER_LOOKUP >= entries;
}

/* May the filter contain the key or prefix with this hash? */
static inline bool
lsm_memory_filter_has(const LsmMemoryFilter *filter, uint64 hash)
{
	const uint8 *block = filter->blocks +
		lsm_filter_block(hash, filter->block_count) * LSM_FILTER_BLOCK_BYTES;

	return lsm_filter_block_has(block, filter->probes, hash);
}

#endif							/* LSM_MEMORY_FILTER_H */
