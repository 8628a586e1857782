/*
 * filter.c
 *	  The filter of a segment that is being built; see filter.h.
 */
#include "postgres.h"

#include "segment/filter.h"
#include "utils/memutils.h"

/* Keys whose lines are on their way from memory while others are put in. */
#define KEYS_AHEAD	8

void
lsm_hashes_grow(LsmKeyHashes *h)
{
	uint64		room = Max(1024, 2 * h->room);

	h->hashes = h->hashes ? repalloc_huge(h->hashes, room * sizeof(uint64)) :
		MemoryContextAlloc(h->context, room * sizeof(uint64));
	h->room = room;
}

/* The pages of the filter, without owner and place, in the memory context of the hashes. */
char *
lsm_filter_make(LsmKeyHashes *h, uint32 pages)
{
	char	   *filter = MemoryContextAllocHuge(h->context, (Size) pages * BLCKSZ);
	int			probes = lsm_filter_probes(h->count, pages);

	for (uint32 i = 0; i < pages; i++)
		lsm_filter_page_init((Page) (filter + (Size) i * BLCKSZ), probes, pages);
	for (uint64 i = 0; i < h->count; i++)
	{
		LsmFilterPlace place = lsm_filter_place(h->hashes[i], pages);

		if (i + KEYS_AHEAD < h->count)
		{
			LsmFilterPlace next = lsm_filter_place(h->hashes[i + KEYS_AHEAD], pages);

			__builtin_prefetch(lsm_filter_page_block((Page) (filter + (Size) next.page * BLCKSZ),
													 &next), 1);
		}
		lsm_filter_page_add((Page) (filter + (Size) place.page * BLCKSZ), &place, h->hashes[i]);
	}
	return filter;
}
