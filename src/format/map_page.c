/*
 * map_page.c
 *	  Finds and sets the bits of the space map.
 *
 * Searches skip whole words if none or all of their blocks are in use, so a page is
 * searched in about a microsecond.
 */
#include "postgres.h"

#include "format/map_page.h"
#include "port/pg_bitutils.h"

/* Initialize a map page whose only used blocks are the fixed blocks or the page itself. */
void
lsm_map_page_init(Page page, BlockNumber self)
{
	PageHeader	header = (PageHeader) page;

	lsm_page_init(page, LSM_PAGE_MAP, 0, self);
	memset(lsm_map_words(page), 0, LSM_MAP_WORDS * sizeof(uint64));
	header->pd_lower = header->pd_upper = LSM_PAGE_SPECIAL;
	lsm_map_set(page, 0, self == LSM_BLOCK_MAP ? LSM_FIXED_BLOCKS : 1, true);
}

/* Set or clear bits.  Returns false if a bit has that value already, or does not exist. */
bool
lsm_map_set(Page page, uint32 first, uint32 count, bool used)
{
	uint64	   *words = lsm_map_words(page);

	if (first > LSM_REGION_BLOCKS || count > LSM_REGION_BLOCKS - first)
		return false;
	while (count > 0)
	{
		uint32		shift = first % 64;
		uint32		n = Min(64 - shift, count);
		uint64		mask = (n == 64 ? ~UINT64CONST(0) : (UINT64CONST(1) << n) - 1) << shift;
		uint64	   *word = &words[first / 64];

		if ((*word & mask) != (used ? 0 : mask))
			return false;
		*word ^= mask;
		first += n;
		count -= n;
	}
	return true;
}

/* Returns the first bit from `from` up to `to` - 1 that is set (or clear), or `to`. */
static uint32
next_bit(const uint64 *words, uint32 from, uint32 to, bool set)
{
	while (from < to)
	{
		uint64		word = set ? words[from / 64] : ~words[from / 64];

		word >>= from % 64;
		if (word != 0)
			return Min(from + pg_rightmost_one_pos64(word), to);
		from += 64 - from % 64;
	}
	return to;
}

/*
 * Find free blocks between `from` and `to`: the first extent of `want` blocks, or else the
 * longest extent.  Sets *first and *count.  Returns false if the longest extent has fewer
 * than `least` blocks.
 */
bool
lsm_map_find(Page page, uint32 from, uint32 to, uint32 want, uint32 least,
			 uint32 *first, uint32 *count)
{
	const uint64 *words = lsm_map_words(page);
	uint32		longest = 0;

	while (from < to)
	{
		uint32		start = next_bit(words, from, to, false);
		uint32		end = next_bit(words, start, Min(start + want, to), true);

		if (end - start > longest)
		{
			longest = end - start;
			*first = start;
			*count = longest;
			if (longest >= want)
				return true;
		}
		from = end;
	}
	return longest > 0 && longest >= least;
}

/* Returns the bit after the last set bit before `to`. */
uint32
lsm_map_used_end(Page page, uint32 to)
{
	while (to > 0 && !lsm_map_is_used(page, to - 1))
		to--;
	return to;
}
