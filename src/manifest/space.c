/*
 * space.c
 *	  Free blocks: taking and giving back extents, as part of an edit.
 *
 * Blocks that nothing needs any more are free at once: who still reads them
 * notices that they have another owner (I4).  To spare readers that, they are
 * looked for where the latest ones were found last, and on from there, so
 * those that were freed longest ago come first, about.  Small extents and large
 * ones are looked for in places of their own, so that the former do not take
 * bites out of all that is large.
 *
 * However large the index is, the allocations of an edit look at a few map pages
 * at most, and then take new blocks at the end.
 */
#include "postgres.h"

#include "manifest/change.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/* Blocks by which the file gets longer than it must, so that it does so rarely. */
#define MOST_AHEAD 128

/* An extent that was found. */
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

/* May the edit look for blocks there?  Each map page that it has counts against its limit of pages. */
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
 * Look for an extent between two blocks of a region; *best becomes what is found
 * if it is longer.  True if it is as long as wanted.
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
 * The longest extent found from `*at` on, of `want` blocks at most.  *at becomes
 * the place to go on from when that does not do: behind what was looked at, so
 * that the next ones get all around.
 */
static Extent
find_extent(LsmChange *change, BlockNumber *place, uint32 want)
{
	BlockNumber at = *place;
	BlockNumber end = change->edit.space.mapped_end;
	uint32		regions = lsm_region_of(end - 1) + 1;
	Extent		best = {InvalidBlockNumber, 0};
	uint32		region;

	if (at >= end)
		at = LSM_FIXED_BLOCKS;
	region = lsm_region_of(at);
	for (uint32 n = 0; n < Min(regions, LSM_MOST_REGIONS) && may_search(change, region); n++)
	{
		BlockNumber from = n == 0 ? at : lsm_region_first(region);

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
 * New blocks at the end: `want`, or at least `least` if a region ends there.
 * What is left of a region that has not even that many stays free.
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
		lsm_relation_extend_to(change->index->rel, space->mapped_end);
		page = lsm_change_new_page(change, self);
		lsm_change_op(change, page, LSM_OP_MAP_INIT, &self, sizeof(self));
		region_end += LSM_REGION_BLOCKS;
	}
	extent.start = space->mapped_end;
	extent.length = Min(want, region_end - space->mapped_end);
	space->mapped_end += extent.length;
	space->free_blocks += extent.length;	/* until they are taken, below */
	return extent;
}

/*
 * Take an extent of `want` blocks, or, where that is allowed (least < want), a
 * shorter one if there is none such; returns its length.  large: it is looked for where large ones are.
 *
 * Errors when the index has reached the maximum size of a relation, or the disk
 * is full; then nothing has changed.
 */
uint32
lsm_space_take(LsmChange *change, uint32 want, uint32 least, bool large, BlockNumber *start)
{
	LsmSpace   *space = &change->edit.space;
	BlockNumber *at = large ? &space->search_large : &space->search_small;
	Extent		found = {InvalidBlockNumber, 0};

	Assert(want > 0 && least > 0 && least <= want && want < LSM_REGION_BLOCKS);
	/* With much free space in a small file, fill it from the front: its end can be cut off. */
	if (space->free_blocks > space->mapped_end / 4 &&
		space->mapped_end <= LSM_MOST_REGIONS * LSM_REGION_BLOCKS)
		*at = LSM_FIXED_BLOCKS;
	if (space->free_blocks >= least)
		found = find_extent(change, at, want);
	/* Much is free, but in small pieces: take them rather than grow for ever. */
	if (least < want && space->free_blocks > space->mapped_end / 16 && space->free_blocks >= want)
		least = Min(least, Max(LSM_LEAST_EXTENT, want / 16));
	if (found.length >= least)
		*at = found.start + found.length;
	else
		found = grow_space(change, want, least);
	/*
	 * Making a file longer is not logged, so after a failover or a power failure it
	 * may be shorter than the map: also where free blocks are.
	 */
	if (RelationGetNumberOfBlocks(change->index->rel) < found.start + found.length)
		lsm_relation_extend_to(change->index->rel, found.start + found.length +
							   Min(space->mapped_end / 64, MOST_AHEAD));
	set_map_bits(change, found.start, found.length, true);
	space->free_blocks -= found.length;
	*start = found.start;
	return found.length;
}

/* Give back an extent, or a part of one.  From now on anybody may take it. */
void
lsm_space_give(LsmChange *change, BlockNumber start, uint32 length)
{
	if (length == 0)
		return;
	set_map_bits(change, start, length, false);
	/* At the end the blocks are as if they had never been used. */
	if (start + length == change->edit.space.mapped_end &&
		start > lsm_region_first(lsm_region_of(start)))
		change->edit.space.mapped_end = start;
	else
		change->edit.space.free_blocks += length;
}

/*
 * If an allocation of so many blocks will need new ones, make them before the
 * meta page is locked for it.  That takes long when buffers have to be written
 * for it, or the system limits writing; and all writers need the meta page.
 */
void
lsm_space_extend_ahead(LsmIndex *index, uint32 want)
{
	Buffer		buffer = lsm_meta_lock(index->rel, BUFFER_LOCK_SHARE);
	LsmSpace	space = lsm_meta(BufferGetPage(buffer))->space;

	UnlockReleaseBuffer(buffer);
	if (space.free_blocks < want && space.mapped_end < MaxBlockNumber - 2 * want)
		lsm_relation_extend_to(index->rel, space.mapped_end + want + Min(want / 16, 32));
}

/* The end of what is in use: no block from there on is. */
BlockNumber
lsm_space_used_end(LsmChange *change)
{
	BlockNumber end = change->edit.space.mapped_end;
	uint32		region = lsm_region_of(end - 1);

	for (;;)
	{
		BlockNumber base = lsm_region_start(region);

		end = base + lsm_map_used_end(change_map_page(change, region)->copy, end - base);
		/* Only its map page is left of a region: that goes, too. */
		if (region == 0 || end > base + 1 || change->page_count >= LSM_WAL_PAGES - 1)
			return end;
		end = base;
		region--;
	}
}

/* Forget all blocks from `end` on, which is what lsm_space_used_end has found. */
void
lsm_space_cut(LsmChange *change, BlockNumber end)
{
	LsmSpace   *space = &change->edit.space;

	for (BlockNumber at = end; at < space->mapped_end;)
	{
		uint32		region = lsm_region_of(at);
		BlockNumber next = Min(lsm_region_start(region) + LSM_REGION_BLOCKS, space->mapped_end);

		/* The map page of a region that goes as a whole was never free. */
		if (at == lsm_region_start(region))
			at++;
		space->free_blocks -= next - at;
		at = next;
	}
	space->mapped_end = end;
}
