/*
 * check_map.c
 *	  Verification of the manifest's records and of the space map.
 *
 * Both were copied at one instant.  A run gets its id before it gets blocks,
 * under the same locks, so no extent's owner can be newer than the manifest.
 */
#include "postgres.h"

#include "inspect/inspect.h"
#include "utils/memutils.h"

/* Report a record of the manifest. */
static void
bad_record(LsmCheck *c, const LsmRunRecord *run, const char *what)
{
	lsm_check_report(c, LSM_BLOCK_META, "record of run " UINT64_FORMAT ": %s",
					 run->run_id, what);
}

/* A run that is one buffer page. */
static void
check_buffer_record(LsmCheck *c, const LsmRunRecord *run)
{
	if (run->leaves != 1 || run->blocks != 1 || run->height != 0 || run->level != 0)
		bad_record(c, run, "a buffer page is a single block of level 0");
	if (run->first_leaf != run->root || run->last_leaf != run->root ||
		run->end_block != run->root + 1)
		bad_record(c, run, "block numbers contradict each other");
	if (run->state == LSM_RUN_OPEN && run->job_id != 0)
		bad_record(c, run, "an open run is the input of a job");
}

static void
check_reserved(LsmCheck *c, const LsmRunRecord *run)
{
	if (run->next_block != run->extent_end &&
		(!BlockNumberIsValid(run->next_block) || !BlockNumberIsValid(run->extent_end) ||
		 run->next_block > run->extent_end))
		bad_record(c, run, "reserved blocks are impossible");
}

static void
check_packed_record(LsmCheck *c, const LsmRunRecord *run)
{
	if (run->leaves == 0 || run->blocks < run->leaves)
		bad_record(c, run, "number of blocks is impossible");
	if (run->height > LSM_MAX_HEIGHT || (run->height == 0) != (run->blocks == 1))
		bad_record(c, run, "height does not fit the number of blocks");
	if (run->height == 0 && (run->root != run->first_leaf || run->root != run->last_leaf))
		bad_record(c, run, "block numbers contradict each other");
}

static void
check_building_record(LsmCheck *c, const LsmRunRecord *run)
{
	bool		has_inputs = false;

	if (run->job_id != 0)
		bad_record(c, run, "a run under construction is the input of a job");
	if (run->leaves > run->blocks || run->height > LSM_MAX_HEIGHT)
		bad_record(c, run, "number of blocks is impossible");
	for (uint32 i = 0; i < c->version->run_count && !has_inputs; i++)
		has_inputs = c->version->runs[i].job_id == run->run_id;
	if (!has_inputs)
		bad_record(c, run, "a run under construction has no inputs (I8)");
}

/* A part, and what it has taken the place of. */
static void
check_part_record(LsmCheck *c, const LsmRunRecord *run)
{
	check_packed_record(c, run);
	if (run->job_id == 0 || run->height == 0)
		bad_record(c, run, "a part belongs to a run under construction, with fence pages");
	if (lsm_version_part(c->version, run->job_id) != run)
		bad_record(c, run, "its job has another part");
	if (run->extent_end >= run->end_block)
		bad_record(c, run, "the frontier lies outside of the run");
}

/* Which flags may a run of this state have? */
static int
possible_flags(LsmCheck *c, const LsmRunRecord *run)
{
	int			possible = 0;

	if (run->state == LSM_RUN_BUILDING)
		return LSM_RUN_STEPPING | LSM_RUN_RETRIED | LSM_RUN_RECOVERED | LSM_RUN_PARTED;
	if (run->state == LSM_RUN_PACKED)
		possible = LSM_RUN_RECOVERED | LSM_RUN_PARTED;
	if ((run->state == LSM_RUN_PACKED || run->state == LSM_RUN_SEALED) &&
		run->job_id != 0 && lsm_version_part(c->version, run->job_id) != NULL)
		possible |= LSM_RUN_CUT;
	return possible;
}

static void
check_record(LsmCheck *c, const LsmRunRecord *run)
{
	if (run->run_id < LSM_FIRST_RUN_ID || run->run_id >= c->version->next_run_id)
		bad_record(c, run, "the id was not given out yet");
	if (run->level >= LSM_MAX_LEVEL)
		bad_record(c, run, "level is out of range");
	if ((run->flags & ~possible_flags(c, run)) != 0)
		bad_record(c, run, "flags do not fit the state");
	/* An entry has two bytes at least. */
	if (run->entries > (uint64) run->leaves * (BLCKSZ / 2))
		bad_record(c, run, "more entries than its leaves can hold");
	if (run->reserved[0] != 0 || run->reserved[1] != 0 || run->reserved[2] != 0)
		bad_record(c, run, "a reserved field is in use");
	if (run->state != LSM_RUN_BUILDING &&
		!(run->state == LSM_RUN_PACKED && (run->flags & LSM_RUN_PARTED)) &&
		(BlockNumberIsValid(run->next_block) ||
		 BlockNumberIsValid(run->extent_end) != (run->state == LSM_RUN_PART)))
		bad_record(c, run, "a finished run has reserved blocks");
	if (run->job_id != 0)
	{
		LsmRunRecord *output = lsm_version_find(c->version, run->job_id);

		if (output == NULL || output->state != LSM_RUN_BUILDING)
			bad_record(c, run, "its job is not under way (I8)");
	}

	switch ((LsmRunState) run->state)
	{
		case LSM_RUN_OPEN:
		case LSM_RUN_SEALED:
			check_buffer_record(c, run);
			return;
		case LSM_RUN_PACKED:
			check_packed_record(c, run);
			check_reserved(c, run);
			return;
		case LSM_RUN_BUILDING:
			check_building_record(c, run);
			check_reserved(c, run);
			return;
		case LSM_RUN_PART:
			check_part_record(c, run);
			return;
	}
	bad_record(c, run, "state is unknown");
}

/* The records of the manifest, each and among themselves (I7, I8). */
void
lsm_check_manifest(LsmCheck *c)
{
	int			open = 0;

	for (uint32 i = 0; i < c->version->run_count; i++)
	{
		const LsmRunRecord *run = &c->version->runs[i];

		/* Records are in the order in which runs were added, so ids ascend. */
		if (i > 0 && run->run_id <= run[-1].run_id)
			bad_record(c, run, "the id does not ascend");
		check_record(c, run);
		if (run->end_block > c->mapped_end)
			bad_record(c, run, "end lies beyond the space map");
		open += run->state == LSM_RUN_OPEN;
	}
	if (open > LSM_MAX_OPEN_RUNS)
		lsm_check_report(c, LSM_BLOCK_META, "%d runs are open (I7)", open);
}

/* Copy the extents of one map page. */
static void
copy_extents(LsmCheck *c, BlockNumber block, Page page)
{
	const char *wrong = lsm_map_page_check(page);
	uint32		slots = lsm_map_header(page)->slots;

	if (wrong != NULL)
		lsm_check_report(c, block, "%s", wrong);
	if (c->extent_count + (int) slots > c->extent_room)
	{
		c->extent_room = Max(c->extent_room * 2, c->extent_count + LSM_MAP_CAPACITY);
		c->extents = c->extents ?
			repalloc_huge(c->extents, c->extent_room * sizeof(LsmExtent)) :
			palloc(c->extent_room * sizeof(LsmExtent));
	}
	for (uint32 i = 0; i < slots; i++)
	{
		LsmExtent	extent = lsm_map_slots(page)[i];

		if (extent.length > 0)
			c->extents[c->extent_count++] = extent;
		else if (extent.start != 0 || extent.owner != 0 || extent.free_xid != 0)
			lsm_check_report(c, block, "slot %u is unused, but not empty", i);
	}
}

/* Add a block to the chain of map pages. */
static void
add_map_block(LsmCheck *c, BlockNumber block)
{
	for (int i = 0; i < c->map_count; i++)
	{
		if (c->map_blocks[i] == block)
			lsm_check_report(c, block, "chain of map pages has a cycle");
	}
	if (c->map_count % 64 == 0)
		c->map_blocks = c->map_blocks ?
			repalloc(c->map_blocks, (c->map_count + 64) * sizeof(BlockNumber)) :
			palloc(64 * sizeof(BlockNumber));
	c->map_blocks[c->map_count++] = block;
}

/*
 * Copy the space map, under the share lock of its head.  The caller holds that
 * of the meta page.
 */
void
lsm_check_copy_map(LsmCheck *c)
{
	Page		copy = palloc(BLCKSZ);
	BlockNumber block = LSM_BLOCK_MAP;
	BlockNumber file_blocks = LSM_FIXED_BLOCKS;
	Buffer		head = InvalidBuffer;

	while (BlockNumberIsValid(block))
	{
		Buffer		buffer;

		add_map_block(c, block);
		if (block >= file_blocks)
			lsm_check_report(c, block, "the file ends before this block");
		buffer = lsm_buffer_read(c->index, block, LSM_KIND(LSM_PAGE_MAP), 0,
								 BUFFER_LOCK_SHARE, NULL);
		memcpy(copy, BufferGetPage(buffer), BLCKSZ);
		lsm_check_page(c, block, LSM_PAGE_MAP, LSM_OWNER_FREE, copy);
		copy_extents(c, block, copy);
		block = lsm_page_opaque(copy)->next;
		if (BufferIsValid(head))
			UnlockReleaseBuffer(buffer);
		else
		{
			/* While it is locked, no page is added to the chain. */
			head = buffer;
			c->mapped_end = lsm_map_header(copy)->mapped_end;
			file_blocks = RelationGetNumberOfBlocks(c->index);
		}
	}
	UnlockReleaseBuffer(head);
	pfree(copy);
}

static int
compare_start(const void *a, const void *b)
{
	BlockNumber x = ((const LsmExtent *) a)->start;
	BlockNumber y = ((const LsmExtent *) b)->start;

	return x < y ? -1 : x > y;
}

static void
check_owner(LsmCheck *c, const LsmExtent *extent)
{
	if (extent->owner == LSM_OWNER_FREE)
		return;
	if (extent->free_xid != 0)
		lsm_check_report(c, LSM_BLOCK_MAP, "extent at %u is in use and free at once",
						 extent->start);
	if (extent->owner == LSM_OWNER_MAP)
		return;
	if (extent->owner < LSM_FIRST_RUN_ID || extent->owner >= c->version->next_run_id)
		lsm_check_report(c, LSM_BLOCK_MAP,
						 "extent at %u belongs to run " UINT64_FORMAT ", which there never was",
						 extent->start, extent->owner);
	/* Not a fault: the next reaping frees it (I3). */
	if (lsm_version_find(c->version, extent->owner) == NULL)
		ereport(DEBUG1,
				(errmsg_internal("index \"%s\": %u blocks at %u belong to run " UINT64_FORMAT ", which is gone",
								 RelationGetRelationName(c->index), extent->length,
								 extent->start, extent->owner)));
}

/*
 * Each block from the end of the fixed ones to mapped_end is in one extent
 * (I2), and the extents of the map itself are the pages of its chain.
 */
void
lsm_check_map(LsmCheck *c)
{
	uint64		end = LSM_FIXED_BLOCKS;
	uint64		map_blocks;

	qsort(c->extents, c->extent_count, sizeof(LsmExtent), compare_start);
	for (int i = 0; i < c->extent_count; i++)
	{
		const LsmExtent *extent = &c->extents[i];

		if (extent->start != end)
			lsm_check_report(c, LSM_BLOCK_MAP, extent->start > end ?
							 "no extent covers block " UINT64_FORMAT " (I2)" :
							 "several extents cover block " UINT64_FORMAT " (I2)",
							 Min(end, extent->start));
		end += extent->length;
		check_owner(c, extent);
	}
	if (end != c->mapped_end)
		lsm_check_report(c, LSM_BLOCK_MAP,
						 "extents end at block " UINT64_FORMAT ", the map at %u (I2)",
						 end, c->mapped_end);

	c->used = MemoryContextAllocExtended(CurrentMemoryContext, (Size) c->mapped_end / 8 + 1,
										 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (int i = 1; i < c->map_count; i++)
		lsm_check_use_block(c, c->map_blocks[i], LSM_OWNER_MAP);
	map_blocks = lsm_check_owned_blocks(c, LSM_OWNER_MAP, NULL);
	if (map_blocks != (uint64) c->map_count - 1)
		lsm_check_report(c, LSM_BLOCK_MAP,
						 "the map has " UINT64_FORMAT " blocks, but its chain %d pages",
						 map_blocks, c->map_count - 1);

	/* The extension of a file is not logged: a crash may have lost its end. */
	if (c->file_blocks < c->mapped_end)
		ereport(DEBUG1,
				(errmsg_internal("index \"%s\": the file has %u blocks of %u",
								 RelationGetRelationName(c->index), c->file_blocks,
								 c->mapped_end)));
}

/* Note that a block is in use, by its owner according to the map, and once. */
void
lsm_check_use_block(LsmCheck *c, BlockNumber block, uint64 owner)
{
	int			low = 0;
	int			high = c->extent_count;

	/* The last extent that does not start after the block. */
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (c->extents[middle].start <= block)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || block >= c->mapped_end)
		lsm_check_report(c, block, "block is in use, but not in the space map (I2)");
	if (c->extents[low - 1].owner != owner)
		lsm_check_report(c, block,
						 "block is used by " UINT64_FORMAT ", but the space map says " UINT64_FORMAT,
						 owner, c->extents[low - 1].owner);
	if (c->used[block / 8] & (1 << block % 8))
		lsm_check_report(c, block, "block is used twice");
	c->used[block / 8] |= 1 << block % 8;
}

/*
 * Number of blocks in an owner's extents.  *unused becomes the first one that
 * has not been noted as used, or invalid.
 */
uint64
lsm_check_owned_blocks(LsmCheck *c, uint64 owner, BlockNumber *unused)
{
	uint64		blocks = 0;

	if (unused != NULL)
		*unused = InvalidBlockNumber;
	for (int i = 0; i < c->extent_count; i++)
	{
		const LsmExtent *extent = &c->extents[i];

		if (extent->owner != owner)
			continue;
		blocks += extent->length;
		if (unused == NULL || BlockNumberIsValid(*unused))
			continue;
		for (uint32 k = 0; k < extent->length; k++)
		{
			BlockNumber block = extent->start + k;

			if ((c->used[block / 8] & (1 << block % 8)) == 0)
			{
				*unused = block;
				break;
			}
		}
	}
	return blocks;
}
