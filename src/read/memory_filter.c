/*
 * memory_filter.c
 *	  Makes, fills and clears filters in private memory.
 */
#include "postgres.h"

#include "read/memory_filter.h"
#include "utils/memutils.h"

static Size
filter_bytes(const LsmMemoryFilter *filter)
{
	return (Size) filter->block_count * LSM_FILTER_BLOCK_BYTES;
}

/* Make an empty filter for `keys` keys, in place of an earlier filter if there is one. */
void
lsm_memory_filter_make(LsmMemoryFilter *filter, MemoryContext context, int bits_per_key,
					   uint64 keys)
{
	uint8	   *old = filter->blocks;

	/* If the allocation fails, there is no filter. */
	filter->blocks = NULL;
	if (old != NULL)
		pfree(old);
	filter->block_count = (uint32) (keys * bits_per_key / LSM_FILTER_BLOCK_BITS + 1);
	filter->probes = Min(Max(bits_per_key * 3 / 5, 1), LSM_FILTER_MOST_PROBES);
	filter->blocks = MemoryContextAllocHuge(context, filter_bytes(filter));
	lsm_memory_filter_clear(filter);
}

/* Remove all keys. */
void
lsm_memory_filter_clear(LsmMemoryFilter *filter)
{
	memset(filter->blocks, 0, filter_bytes(filter));
}

void
lsm_memory_filter_add(LsmMemoryFilter *filter, const uint64 *hashes, uint64 count)
{
	for (uint64 i = 0; i < count; i++)
		lsm_filter_block_add(filter->blocks + lsm_filter_block(hashes[i], filter->block_count) *
							 LSM_FILTER_BLOCK_BYTES, filter->probes, hashes[i]);
}
