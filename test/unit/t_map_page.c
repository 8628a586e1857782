/* t_map_page.c -- pages of the space map, against an array of flags. */
#include "tap.h"

#include "backend.h"
#include "format/map_page.h"

static PGAlignedBlock block;
static Page page = (Page) block.data;
static bool used[LSM_REGION_BLOCKS];

static void
start(BlockNumber self)
{
	uint32		fixed = self == LSM_BLOCK_MAP ? LSM_FIXED_BLOCKS : 1;

	lsm_map_page_init(page, self);
	memset(used, 0, sizeof(used));
	memset(used, true, fixed);
}

/* Set or clear bits as the page should: only if all of them have the opposite value. */
static bool
model_set(uint32 first, uint32 count, bool value)
{
	for (uint32 i = first; i < first + count; i++)
	{
		if (used[i] == value)
			return false;
	}
	memset(used + first, value, count);
	return true;
}

static bool
matches(void)
{
	for (uint32 i = 0; i < LSM_REGION_BLOCKS; i++)
	{
		if (lsm_map_is_used(page, i) != used[i])
			return false;
	}
	return true;
}

/* Find the first extent that is long enough, otherwise the first of the longest. */
static bool
model_find(uint32 from, uint32 to, uint32 want, uint32 least, uint32 *first, uint32 *count)
{
	*count = 0;
	for (uint32 i = from; i < to; i++)
	{
		uint32		n = 0;

		while (i + n < to && n < want && !used[i + n])
			n++;
		if (n > *count)
		{
			*first = i;
			*count = n;
			if (n == want)
				return true;
		}
		i += n;
	}
	return *count >= Max(least, 1);
}

static uint32
model_used_end(uint32 to)
{
	while (to > 0 && !used[to - 1])
		to--;
	return to;
}

static bool
same_find(uint32 from, uint32 to, uint32 want, uint32 least)
{
	uint32		first[2] = {0};
	uint32		count[2] = {0};
	bool		found = lsm_map_find(page, from, to, want, least, &first[0], &count[0]);

	if (found != model_find(from, to, want, least, &first[1], &count[1]))
		return false;
	return !found || (first[0] == first[1] && count[0] == count[1]);
}

static void
test_init(void)
{
	start(LSM_BLOCK_MAP);
	lsm_page_set_crc(page);
	ok(matches() && lsm_page_check_header(page, LSM_BLOCK_MAP) == NULL &&
	   backend_count_free(page) == LSM_REGION_BLOCKS - LSM_FIXED_BLOCKS,
	   "the first page begins with the fixed blocks in use");
	lsm_map_words(page)[LSM_MAP_WORDS - 1] ^= UINT64CONST(1) << 63;
	ok(lsm_page_opaque(page)->crc != lsm_page_compute_crc(page), "its checksum covers the last bit");
	start(lsm_region_start(7));
	ok(matches() && backend_count_free(page) == LSM_REGION_BLOCKS - 1 &&
	   lsm_page_opaque(page)->owner == 0, "other pages begin with themselves in use");
}

static void
test_regions(void)
{
	bool		good = lsm_region_map_block(0) == LSM_BLOCK_MAP && lsm_region_first(0) == LSM_FIXED_BLOCKS;
	uint32		regions = (uint32) (((uint64) MaxBlockNumber + 1) / LSM_REGION_BLOCKS);

	for (uint32 region = 1; region < regions; region++)
	{
		BlockNumber first = lsm_region_start(region);

		good &= lsm_region_map_block(region) == first && lsm_region_first(region) == first + 1 &&
			lsm_region_of(first) == region && lsm_region_of(first - 1) == region - 1 &&
			lsm_region_of(lsm_region_first(region)) == region;
	}
	ok(good, "regions begin with their map pages, up to the largest relation");
	ok(LSM_REGION_BLOCKS % 64 == 0 && LSM_REGION_BLOCKS > 64000, "a page describes 500 MB");
}

static void
test_borders(void)
{
	static const uint32 lengths[] = {1, 2, 63, 64, 65, 127, 128, 129, 1000};
	bool		good = true;
	bool		refused = true;

	for (int shift = 0; shift < 130; shift++)
	{
		for (int i = 0; i < lengthof(lengths); i++)
		{
			uint32		first = 1 + shift;
			uint32		n = lengths[i];

			start(lsm_region_start(1));
			good &= lsm_map_set(page, first, n, true) && model_set(first, n, true) && matches();
			/* The first and last block of each extent are in use, and their neighbors are not. */
			refused &= !lsm_map_set(page, first, 1, true) && !lsm_map_set(page, first + n - 1, 1, true);
			refused &= !lsm_map_set(page, first + n, 1, false);
			good &= lsm_map_used_end(page, LSM_REGION_BLOCKS) == first + n;
			good &= lsm_map_set(page, first, n, false) && model_set(first, n, false) && matches();
		}
	}
	ok(good, "extents of any length at any place in a word");
	ok(refused, "blocks in use are not taken again, nor freed twice");

	start(lsm_region_start(1));
	ok(lsm_map_set(page, LSM_REGION_BLOCKS - 1, 1, true) &&
	   lsm_map_used_end(page, LSM_REGION_BLOCKS) == LSM_REGION_BLOCKS, "a region's last block can be taken");
	ok(!lsm_map_set(page, LSM_REGION_BLOCKS, 1, true) &&
	   !lsm_map_set(page, LSM_REGION_BLOCKS - 1, 2, false) &&
	   !lsm_map_set(page, PG_UINT32_MAX, 1, true) && !lsm_map_set(page, 5, PG_UINT32_MAX, true) &&
	   !lsm_map_set(page, PG_UINT32_MAX, PG_UINT32_MAX, true), "but none beyond it");
}

static void
test_double_set(void)
{
	bool		refused = true;

	for (int round = 0; round < 5000; round++)
	{
		uint32		first = 1 + rnd(1000);
		uint32		n = 1 + rnd(300);
		uint32		other = first + rnd(n);

		start(lsm_region_start(1));
		refused &= lsm_map_set(page, other, 1, true) && !lsm_map_set(page, first, n, true);
		start(lsm_region_start(1));
		refused &= lsm_map_set(page, first, n, true) && lsm_map_set(page, other, 1, false) &&
			!lsm_map_set(page, first, n, false);
	}
	ok(refused,
	   "one block in use is enough to refuse to take an extent, and one free block to refuse to free it");
}

static void
test_find(void)
{
	uint32		first;
	uint32		count;

	start(lsm_region_start(1));
	lsm_map_set(page, 1, LSM_REGION_BLOCKS - 1, true);
	ok(!lsm_map_find(page, 0, LSM_REGION_BLOCKS, 1, 1, &first, &count), "find: nothing in a full region");
	lsm_map_set(page, 100, 10, false);
	lsm_map_set(page, 300, 30, false);
	lsm_map_set(page, 500, 20, false);
	ok(lsm_map_find(page, 0, LSM_REGION_BLOCKS, 10, 10, &first, &count) && first == 100 && count == 10,
	   "find: the first extent that is long enough");
	ok(lsm_map_find(page, 0, LSM_REGION_BLOCKS, 11, 1, &first, &count) && first == 300 && count == 11,
	   "find: no more blocks than requested");
	ok(lsm_map_find(page, 0, LSM_REGION_BLOCKS, 31, 30, &first, &count) && first == 300 && count == 30,
	   "find: otherwise the longest extent");
	ok(!lsm_map_find(page, 0, LSM_REGION_BLOCKS, 32, 31, &first, &count),
	   "find: unless that is too short");
	ok(lsm_map_find(page, 310, LSM_REGION_BLOCKS, 25, 5, &first, &count) && first == 310 && count == 20,
	   "find: only from the given block on");
	ok(lsm_map_find(page, 0, 306, 20, 5, &first, &count) && first == 100 && count == 10 &&
	   lsm_map_find(page, 200, 306, 20, 5, &first, &count) && first == 300 && count == 6,
	   "find: and up to the given block");
	ok(!lsm_map_find(page, 200, 200, 1, 1, &first, &count), "find: nothing in an empty range");
	lsm_map_set(page, LSM_REGION_BLOCKS - 3, 3, false);
	ok(lsm_map_find(page, 600, LSM_REGION_BLOCKS, 3, 3, &first, &count) &&
	   first == LSM_REGION_BLOCKS - 3 && count == 3, "find: up to the end of the region");
}

/* After any sequence of sets and clears, every query gives the same answer as an array. */
static void
test_random(void)
{
	bool		sets = true;
	bool		finds = true;
	bool		ends = true;
	int			changed = 0;

	for (int round = 0; round < 20; round++)
	{
		uint32		longest = 1 << rnd(11);

		start(round % 2 ? LSM_BLOCK_MAP : lsm_region_start(3));
		for (int i = 0; i < 2000; i++)
		{
			uint32		first = rnd(LSM_REGION_BLOCKS);
			uint32		n = 1 + rnd(longest);
			bool		value = rnd(100) < 60;
			PGAlignedBlock before = block;
			bool		taken;

			n = Min(n, LSM_REGION_BLOCKS - first);
			taken = lsm_map_set(page, first, n, value);
			sets &= taken == model_set(first, n, value);
			changed += taken;
			/* If a change is rejected, the caller discards all of it: the page is a copy. */
			if (!taken)
				block = before;
			if (i % 20 == 0)
			{
				uint32		from = rnd(LSM_REGION_BLOCKS);
				uint32		to = from + rnd(LSM_REGION_BLOCKS - from + 1);

				finds &= same_find(from, to, 1 + rnd(3 * longest), 1 + rnd(longest));
				ends &= lsm_map_used_end(page, to) == model_used_end(to);
			}
		}
		sets &= matches();
	}
	ok(sets && changed > 5000, "random extents are set and cleared");
	ok(finds, "random extents are found");
	ok(ends, "the end of the blocks in use is found");
}

int
main(void)
{
	test_init();
	test_regions();
	test_borders();
	test_double_set();
	test_find();
	test_random();
	return done();
}
