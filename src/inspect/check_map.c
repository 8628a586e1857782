/*
 * check_map.c
 *	  Verifies the space map (I2).
 *
 * A block in use has one user: the fixed pages, the map, a segment, a directory, or a
 * reservation.  An edit changes the map together with the users of blocks, and the verifier copied
 * both at one instant.  So a used bit without a user is a fault, and so is a user without a used
 * bit.
 */
#include "postgres.h"

#include "inspect/inspect.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

static inline Page
map_page_of(LsmCheck *c, uint32 region)
{
	return (Page) (c->instant->map + (Size) region * BLCKSZ);
}

/* Check each page of the map by itself. */
static void
map_check_pages(LsmCheck *c)
{
	LsmInstant *in = c->instant;
	uint32		last = in->region_count - 1;

	for (uint32 i = 0; i < in->region_count; i++)
	{
		lsm_check_page(c, lsm_region_map_block(i), LSM_PAGE_MAP, 0, map_page_of(c, i));
		if (lsm_page_opaque(map_page_of(c, i))->stamp > in->version.edits)
			lsm_check_report(c, lsm_region_map_block(i),
							 "page has the stamp of a future edit");
	}
	for (uint32 bit = in->version.space.mapped_end - lsm_region_start(last);
		 bit < LSM_REGION_BLOCKS; bit++)
	{
		if (lsm_map_is_used(map_page_of(c, last), bit))
			lsm_check_report(c, lsm_region_start(last) + bit,
							 "block is in use, but lies beyond the end of the space map (I2)");
	}
}

/*
 * Note a user of these blocks.  The map must show the blocks as used, and they must have no
 * other user.
 */
static void
map_name_blocks(LsmCheck *c, uint64 *named, BlockNumber start, uint32 length)
{
	for (BlockNumber block = start; block < start + length; block++)
	{
		uint64	   *word = &named[block / 64];
		uint64		bit = UINT64CONST(1) << (block % 64);

		if (!lsm_map_is_used(map_page_of(c, lsm_region_of(block)), block % LSM_REGION_BLOCKS))
			lsm_check_report(c, block, "block is in use, but free in the space map (I2)");
		if (*word & bit)
			lsm_check_report(c, block, "block is used twice (I2)");
		*word |= bit;
	}
}

/* Note all users of blocks.  Their extents have been checked (check_manifest.c). */
static void
map_name_all(LsmCheck *c, uint64 *named)
{
	LsmInstant *in = c->instant;

	map_name_blocks(c, named, 0, LSM_FIXED_BLOCKS);
	for (uint32 i = 1; i < in->region_count; i++)
		map_name_blocks(c, named, lsm_region_map_block(i), 1);
	for (int i = 0; i < in->segment_count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		map_name_blocks(c, named, in->segments[i].segment.start, in->segments[i].segment.blocks);
	}
	for (int i = 0; i < in->directory_count; i++)
		map_name_blocks(c, named, in->directories[i].block, 1);
	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
		map_name_blocks(c, named, in->version.reservations[i].start,
						in->version.reservations[i].length);
}

/* Check that each used block of a region has a user.  Adds the number of used blocks to *used. */
static void
map_check_region(LsmCheck *c, uint32 region, const uint64 *named, uint64 *used)
{
	const uint64 *words = lsm_map_words(map_page_of(c, region));

	for (int i = 0; i < LSM_MAP_WORDS; i++)
	{
		uint64		lost = words[i] & ~named[i];

		if (lost != 0)
			lsm_check_report(c, lsm_region_start(region) + i * 64 + pg_rightmost_one_pos64(lost),
							 "block is in use in the space map, but nothing uses it (I2)");
		*used += pg_popcount64(words[i]);
	}
}

/*
 * Check the space map.
 *
 * REQUIRES: lsm_check_segments has listed the segments.
 */
void
lsm_check_map(LsmCheck *c)
{
	LsmInstant *in = c->instant;
	const LsmSpace *space = &in->version.space;
	/* This array has a word for each word of the map pages. */
	Size		size = (Size) in->region_count * LSM_MAP_WORDS * sizeof(uint64);
	uint64	   *named = MemoryContextAllocExtended(in->context, size,
												   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	uint64		used = 0;

	map_check_pages(c);
	map_name_all(c, named);
	for (uint32 i = 0; i < in->region_count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		map_check_region(c, i, named + (Size) i * LSM_MAP_WORDS, &used);
	}
	if (used + space->free_blocks != space->mapped_end)
		lsm_check_report(c, LSM_BLOCK_META,
						 "meta page says %u blocks are free, but the space map says " UINT64_FORMAT,
						 space->free_blocks, space->mapped_end - used);
	pfree(named);

	/* Extending a file is not logged, so a crash may have lost its end. */
	if (in->file_blocks < space->mapped_end)
		ereport(DEBUG1,
				(errmsg_internal("index \"%s\": the file has %u blocks of %u",
								 RelationGetRelationName(c->rel), in->file_blocks,
								 space->mapped_end)));
}
