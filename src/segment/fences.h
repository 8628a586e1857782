/*
 * fences.h
 *	  Keeps an upper bound on a segment's number of fence pages, updated with each leaf.
 *
 * A segment must fit into the blocks that it may use, and its fence pages are written after all
 * leaves. This code fills the lowest fence pages as the builder will, with entries no shorter than
 * the builder's, so the builder will not need more pages on that level. The builder's pages may
 * begin at other entries, so the entries on the levels above may differ too. On those levels,
 * each entry therefore counts with the size of the longest entry. Every page of a level except
 * the last holds at least as many entries as fit with that size.
 */
#ifndef LSM_FENCES_H
#define LSM_FENCES_H

#include "postgres.h"

#include "base/limits.h"
#include "format/leaf.h"

/* Largest size of an entry on a fence page, besides its key. */
#define LSM_FENCE_OVERHEAD	48

StaticAssertDecl(LSM_LEAF_CAPACITY / (LSM_MAX_ENTRY_SIZE + LSM_FENCE_OVERHEAD) >= 2,
				 "a level of fence pages must be smaller than the one below");

typedef struct LsmFences
{
	uint32		pages;			/* of the lowest level */
	Size		used;			/* bytes on the last page */
	uint32		entries;		/* entries on the last page */
	Size		longest;		/* size of the longest entry */
} LsmFences;

/* Returns the most entries that a fence page may have.  Tests set a low limit. */
static inline uint32
lsm_fences_most_entries(void)
{
	return lsm_page_entries > 0 ? (uint32) Max(lsm_page_entries, 8) : PG_UINT32_MAX;
}

/* Count a new leaf, whose separator has this many bytes. */
static inline void
lsm_fences_add(LsmFences *fences, uint32 keylen)
{
	Size		size = keylen + LSM_FENCE_OVERHEAD;

	if (fences->pages == 0 || fences->used + size > LSM_LEAF_CAPACITY ||
		fences->entries >= lsm_fences_most_entries())
	{
		fences->pages++;
		fences->used = 0;
		fences->entries = 0;
	}
	fences->used += size;
	fences->entries++;
	fences->longest = Max(fences->longest, size);
}

/* Returns the bound, for all levels. It is 1 for a single leaf, which needs no fence page. */
static inline uint32
lsm_fences_count(const LsmFences *fences)
{
	uint32		level = fences->pages;
	uint32		all = level;

	while (level > 1)
	{
		uint32		fit = Min(LSM_LEAF_CAPACITY / fences->longest, lsm_fences_most_entries());

		level = (level + fit - 1) / fit;
		all += level;
	}
	return all;
}

#endif							/* LSM_FENCES_H */
