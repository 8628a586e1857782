/*
 * map_page.h
 *	  Pages of the space map have a bit for each block, set while the block is in use.
 *
 * A map page describes a region of LSM_REGION_BLOCKS neighboring blocks.  It is the
 * first block of the region, or block 3 in the first region.  No extent crosses the
 * boundary of a region.
 *
 *		24	8136	1017 words of 64 bits, native byte order.  Bit i % 64 of word
 *					i / 64 is block i of the region; 1: in use.
 *
 * The bits of the map page itself and of the fixed pages are set.  The bits of mapped_end
 * (LsmSpace) and all later blocks are clear.
 */
#ifndef LSM_MAP_PAGE_H
#define LSM_MAP_PAGE_H

#include "format/page.h"

#define LSM_MAP_WORDS		((int) ((LSM_PAGE_SPECIAL - LSM_PAGE_CONTENT) / sizeof(uint64)))
#define LSM_REGION_BLOCKS	((uint32) LSM_MAP_WORDS * 64)

#define lsm_map_words(page) ((uint64 *) ((char *) (page) + LSM_PAGE_CONTENT))

#define lsm_region_of(block)	((block) / LSM_REGION_BLOCKS)
#define lsm_region_start(region) ((BlockNumber) (region) * LSM_REGION_BLOCKS)

/* Returns the block of a region's map page. */
static inline BlockNumber
lsm_region_map_block(uint32 region)
{
	return region == 0 ? LSM_BLOCK_MAP : lsm_region_start(region);
}

/* Returns the first block of a region after the fixed blocks or the map page. */
static inline BlockNumber
lsm_region_first(uint32 region)
{
	return region == 0 ? LSM_FIXED_BLOCKS : lsm_region_start(region) + 1;
}

static inline bool
lsm_map_is_used(Page page, uint32 bit)
{
	return (lsm_map_words(page)[bit / 64] >> (bit % 64)) & 1;
}

extern void lsm_map_page_init(Page page, BlockNumber self);
extern bool lsm_map_set(Page page, uint32 first, uint32 count, bool used);
extern bool lsm_map_find(Page page, uint32 from, uint32 to, uint32 want, uint32 least,
						 uint32 *first, uint32 *count);
extern uint32 lsm_map_used_end(Page page, uint32 to);

#endif							/* LSM_MAP_PAGE_H */
