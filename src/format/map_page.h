/*
 * map_page.h
 *	  Pages of the space map: an array of extents.
 *
 * The head (block 3) also holds `mapped_end`, the first block that no extent
 * covers yet.  Slots are in no order; a slot with length 0 is unused.  Pages
 * are chained through LsmPageOpaque.next.
 */
#ifndef LSM_MAP_PAGE_H
#define LSM_MAP_PAGE_H

#include "format/page.h"

/* Owners.  Run ids start above them. */
#define LSM_OWNER_FREE		0
#define LSM_OWNER_MAP		1
#define LSM_FIRST_RUN_ID	16

typedef struct LsmExtent
{
	BlockNumber start;
	uint32		length;			/* blocks; 0: slot unused */
	uint64		owner;			/* LSM_OWNER_* or run id */
	uint64		free_xid;		/* free extent: full XID when freed, or 0 */
} LsmExtent;

StaticAssertDecl(sizeof(LsmExtent) == 24, "LsmExtent is part of the on-disk format");

typedef struct LsmMapHeader
{
	BlockNumber mapped_end;		/* on the head page only */
	uint32		slots;			/* slots in use or once used: the array's length */
} LsmMapHeader;

#define lsm_map_header(page) ((LsmMapHeader *) ((char *) (page) + LSM_PAGE_CONTENT))
#define lsm_map_slots(page) \
	((LsmExtent *) ((char *) (page) + LSM_PAGE_CONTENT + MAXALIGN(sizeof(LsmMapHeader))))
#define LSM_MAP_CAPACITY \
	((int) ((LSM_PAGE_SPECIAL - LSM_PAGE_CONTENT - MAXALIGN(sizeof(LsmMapHeader))) / sizeof(LsmExtent)))

/* One change of a map page, as SPACE and SEAL records carry it. */
typedef struct LsmMapChange
{
	uint32		slot;
	uint32		reserved;
	LsmExtent	extent;
} LsmMapChange;

extern void lsm_map_page_init(Page page, BlockNumber self);
extern bool lsm_map_page_apply(Page page, const LsmMapChange *changes, int count,
							   BlockNumber mapped_end, BlockNumber next);
extern const char *lsm_map_page_check(Page page);

#endif							/* LSM_MAP_PAGE_H */
