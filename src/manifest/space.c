/*
 * space.c
 *	  Takes free blocks for edits, and gives blocks back.
 *
 * A freed block can be reused at once, because a reader notices that the page has another owner
 * (I4), and restarts.  To make restarts rare, each search starts where the last one ended, so
 * blocks freed long ago tend to be reused first.  Small and large extents have separate search
 * positions, so that small extents do not fragment the space for large ones.
 *
 * An edit searches at most LSM_MOST_REGIONS map pages, however large the index is.  If the search
 * finds no extent that is long enough, the edit takes new blocks, starting at mapped_end.
 *
 * Most functions run within a change, so their caller holds the exclusive lock of the meta page.
 * All writers need that lock, so nobody should do I/O while holding it.  lsm_space_prepare and
 * lsm_space_touch read map pages in and extend the file beforehand.  The edit itself does only
 * the I/O that these functions could not foresee.
 */
#include "postgres.h"

#include "base/stop_point.h"
#include "manifest/change.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/* Extend the file by up to this many more blocks than needed, so that extensions are rare. */
#define MOST_AHEAD 128

typedef struct Extent
{
	BlockNumber start;
	uint32		length;
} Extent;

static LsmChangedPage *
change_map_page(LsmChange *change, uint32 region)
{
	return lsm_change_page(change, lsm_region_map_block(region), LSM_PAGE_MAP, 0);
}

/* May the edit search this region?  Returns false if the edit has too many map pages already. */
static bool
may_search(const LsmChange *change, uint32 region)
{
	int			map_pages = 0;

	for (int i = 0; i < change->page_count; i++)
	{
		BlockNumber block = change->pages[i].block;
		uint32		of = lsm_region_of(block);

		if (block != lsm_region_map_block(of))
			continue;
		if (of == region)
			return true;
		map_pages++;
	}
	return map_pages < LSM_MOST_REGIONS;
}

static void
set_map_bits(LsmChange *change, BlockNumber start, uint32 length, bool used)
{
	uint32		region = lsm_region_of(start);
	LsmMapSet	set;

	set.first = start - lsm_region_start(region);
	set.count = length;
	set.used = used;
	lsm_change_op(change, change_map_page(change, region), LSM_OP_MAP_SET, &set, sizeof(set));
}

/*
 * Search a region between two blocks.  If this finds a longer extent than *best, sets *best to the
 * new extent.  Returns whether *best is at least as long as wanted.
 */
static bool
search_region(LsmChange *change, uint32 region, BlockNumber from, BlockNumber to, uint32 want,
			  Extent *best)
{
	BlockNumber base = lsm_region_start(region);
	uint32		first;
	uint32		count;

	if (from >= to)
		return false;
	if (!lsm_map_find(change_map_page(change, region)->copy, from - base, to - base, want, 1,
					  &first, &count))
		return false;
	if (count > best->length)
	{
		best->start = base + first;
		best->length = count;
	}
	return best->length >= want;
}

/*
 * Returns the longest extent that a search from *place finds, at most `want` blocks.  If the extent
 * is shorter than `want`, *place moves past the regions searched, so that repeated searches cover
 * the whole file.
 */
static Extent
find_extent(LsmChange *change, BlockNumber *place, uint32 want)
{
	BlockNumber at = *place;
	BlockNumber end = change->edit.space.mapped_end;
	uint32		regions = lsm_region_of(end - 1) + 1;
	Extent		best = {InvalidBlockNumber, 0};
	uint32		region = lsm_region_of(at);

	for (uint32 n = 0; n < Min(regions, LSM_MOST_REGIONS) && may_search(change, region); n++)
	{
		BlockNumber from = Max(n == 0 ? at : 0, lsm_region_first(region));

		if (search_region(change, region, from,
						  Min(lsm_region_start(region) + LSM_REGION_BLOCKS, end), want, &best))
			return best;
		region = (region + 1) % regions;
	}
	*place = lsm_region_first(region);
	if (regions <= LSM_MOST_REGIONS)
		search_region(change, lsm_region_of(at), lsm_region_first(lsm_region_of(at)), at, want,
					  &best);
	return best;
}

/*
 * Take `want` new blocks, starting at mapped_end, or as many as the last region has left.  If the
 * region has fewer than `least` left, leave these blocks free and start the next region.
 */
static Extent
grow_space(LsmChange *change, uint32 want, uint32 least)
{
	LsmSpace   *space = &change->edit.space;
	uint32		region = lsm_region_of(space->mapped_end - 1);
	BlockNumber region_end = lsm_region_start(region) + LSM_REGION_BLOCKS;
	Extent		extent;

	if (space->mapped_end > MaxBlockNumber - LSM_REGION_BLOCKS - 1)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index \"%s\" has reached the maximum size of a relation",
						RelationGetRelationName(change->index->rel))));
	if (region_end - space->mapped_end < least)
	{
		LsmChangedPage *page;
		BlockNumber self = region_end;

		space->free_blocks += region_end - space->mapped_end;
		space->mapped_end = region_end + 1;
		lsm_buffer_extend_file(change->index->rel, space->mapped_end, true);
		page = lsm_change_new_page(change, self);
		lsm_change_op(change, page, LSM_OP_MAP_INIT, &self, sizeof(self));
		region_end += LSM_REGION_BLOCKS;
	}
	extent.start = space->mapped_end;
	extent.length = Min(want, region_end - space->mapped_end);
	space->mapped_end += extent.length;
	space->free_blocks += extent.length;	/* the caller takes them */
	return extent;
}

/* Returns the block at which the search for free blocks begins. */
static BlockNumber
search_start(const LsmSpace *space, bool large)
{
	BlockNumber at = large ? space->search_large : space->search_small;

	/* A small file with much free space is filled from the front, so VACUUM can truncate it. */
	if (at >= space->mapped_end ||
		(space->free_blocks > space->mapped_end / 4 &&
		 space->mapped_end <= LSM_MOST_REGIONS * LSM_REGION_BLOCKS))
		return LSM_FIXED_BLOCKS;
	return at;
}

/*
 * Take an extent of `want` blocks, or the longest extent found if that has at least `least` blocks.
 * Returns the extent's length in blocks, and its start in *start.  `large` selects the search
 * position for large extents.
 *
 * Raises an error if the index has reached the maximum size of a relation, or the disk is full.  In
 * both cases, nothing has changed.
 */
uint32
lsm_space_take(LsmChange *change, uint32 want, uint32 least, bool large, BlockNumber *start)
{
	LsmSpace   *space = &change->edit.space;
	BlockNumber *at = large ? &space->search_large : &space->search_small;
	Extent		found = {InvalidBlockNumber, 0};

	Assert(want > 0 && least > 0 && least <= want && want < LSM_REGION_BLOCKS);
	*at = search_start(space, large);
	if (space->free_blocks >= least)
		found = find_extent(change, at, want);
	/* If much space is free, but fragmented, use small extents instead of growing forever. */
	if (least < want && space->free_blocks > space->mapped_end / 16 && space->free_blocks >= want)
		least = Min(least, Max(LSM_LEAST_EXTENT, want / 16));
	if (found.length >= least)
		*at = found.start + found.length;
	else
		found = grow_space(change, want, least);
	/*
	 * Extending a file is not logged.  After a failover or a power failure, the file may end
	 * before mapped_end, so even free blocks may be missing from it.
	 */
	if (RelationGetNumberOfBlocks(change->index->rel) < found.start + found.length)
		lsm_buffer_extend_file(change->index->rel, found.start + found.length +
							   Min(space->mapped_end / 64, MOST_AHEAD), !large);
	set_map_bits(change, found.start, found.length, true);
	space->free_blocks -= found.length;
	*start = found.start;
	return found.length;
}

/* Free an extent, or a part of one.  Once the edit commits, anybody may take the blocks. */
void
lsm_space_give(LsmChange *change, BlockNumber start, uint32 length)
{
	if (length == 0)
		return;
	set_map_bits(change, start, length, false);
	/* If the blocks are the last ones, move mapped_end, as if they had never been used. */
	if (start + length == change->edit.space.mapped_end &&
		start > lsm_region_first(lsm_region_of(start)))
		change->edit.space.mapped_end = start;
	else
		change->edit.space.free_blocks += length;
}

/*
 * Read in the map page of a block's region, for a change that frees or takes the block.
 *
 * REQUIRES: the caller does not hold the lock of the meta page.
 */
void
lsm_space_touch(LsmIndex *index, BlockNumber block)
{
	lsm_buffer_touch(index->rel, lsm_region_map_block(lsm_region_of(block)));
}

/*
 * Prepare for an allocation of `want` blocks: read in the map pages that the allocation may search,
 * and extend the file if it will need new blocks.  `large` is as for lsm_space_take.
 *
 * REQUIRES: the caller does not hold the lock of the meta page.
 */
void
lsm_space_prepare(LsmIndex *index, uint32 want, bool large)
{
	Buffer		buffer = lsm_meta_lock(index->rel, BUFFER_LOCK_SHARE);
	LsmSpace	space = lsm_meta(BufferGetPage(buffer))->space;
	uint32		regions = lsm_region_of(space.mapped_end - 1) + 1;
	uint32		region = lsm_region_of(search_start(&space, large));
	BlockNumber end;

	UnlockReleaseBuffer(buffer);
	lsm_space_touch(index, space.mapped_end - 1);
	for (uint32 n = 0; n < Min(regions, LSM_MOST_REGIONS) && space.free_blocks > 0; n++)
	{
		lsm_space_touch(index, lsm_region_start(region));
		region = (region + 1) % regions;
	}
	end = space.mapped_end + want + (large ? Min(want / 16, 32) : 0);
	if (space.free_blocks >= want || space.mapped_end >= MaxBlockNumber - 2 * want ||
		RelationGetNumberOfBlocks(index->rel) >= end)
		return;
	/* Holds the same locks as at space-reserved, batch-write or page-seal. */
	LSM_STOP_POINT("space-extend");
	/*
	 * Buffer the new blocks of small extents, because a batch writes its pages under the lock of
	 * the meta page.  A segment is written through a ring instead.
	 */
	lsm_buffer_extend_file(index->rel, large ? end : end + Min(end / 64, MOST_AHEAD), !large);
}

/*
 * Read in the map pages that lsm_space_used_end will look at.
 *
 * REQUIRES: the caller does not hold the lock of the meta page.
 */
void
lsm_space_touch_end(LsmIndex *index)
{
	Buffer		buffer = lsm_meta_lock(index->rel, BUFFER_LOCK_SHARE);
	BlockNumber end = lsm_meta(BufferGetPage(buffer))->space.mapped_end;
	uint32		region = lsm_region_of(end - 1);

	UnlockReleaseBuffer(buffer);
	for (int n = 0; n < LSM_WAL_PAGES; n++, region--)
	{
		BlockNumber base = lsm_region_start(region);
		uint32		used;

		CHECK_FOR_INTERRUPTS();
		buffer = lsm_buffer_read_owned(index->rel, lsm_region_map_block(region), LSM_PAGE_MAP, 0,
									   BUFFER_LOCK_SHARE, NULL);
		if (!BufferIsValid(buffer))
			return;
		used = lsm_map_used_end(BufferGetPage(buffer), end - base);
		UnlockReleaseBuffer(buffer);
		if (region == 0 || used > 1)
			return;
		end = base;
	}
}

/*
 * Returns the block after the last one in use, or a later block if the edit has no room for more
 * map pages.
 */
BlockNumber
lsm_space_used_end(LsmChange *change)
{
	BlockNumber end = change->edit.space.mapped_end;
	uint32		region = lsm_region_of(end - 1);

	for (;;)
	{
		BlockNumber base = lsm_region_start(region);

		end = base + lsm_map_used_end(change_map_page(change, region)->copy, end - base);
		/* If a region has nothing left but its map page, cut off the map page as well. */
		if (region == 0 || end > base + 1 || change->page_count >= LSM_WAL_PAGES - 1)
			return end;
		end = base;
		region--;
	}
}

/*
 * Forget the block `end` and all blocks after it.
 *
 * REQUIRES: `end` comes from lsm_space_used_end, in the same change.
 */
void
lsm_space_cut(LsmChange *change, BlockNumber end)
{
	LsmSpace   *space = &change->edit.space;

	for (BlockNumber at = end; at < space->mapped_end;)
	{
		uint32		region = lsm_region_of(at);
		BlockNumber next = Min(lsm_region_start(region) + LSM_REGION_BLOCKS, space->mapped_end);

		/* A map page is not counted as free, so do not deduct it. */
		if (at == lsm_region_start(region))
			at++;
		space->free_blocks -= next - at;
		at = next;
	}
	space->mapped_end = end;
}
