/*
 * map_image.h
 *	  The space map, read into memory; private to storage/.
 */
#ifndef LSM_MAP_IMAGE_H
#define LSM_MAP_IMAGE_H

#include "format/map_page.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

typedef struct LsmMapSlot
{
	LsmExtent	extent;
	int			page;			/* index into LsmMapImage.blocks */
	int			slot;
	bool		changed;
} LsmMapSlot;

typedef struct LsmMapImage
{
	Relation	rel;
	Relation	heap;			/* for the horizon; NULL: the strictest one */
	Buffer		head;			/* locked */
	BlockNumber mapped_end;
	int			page_count;
	int			page_room;
	BlockNumber *blocks;
	int		   *used;			/* slots of each page */
	int			slot_count;
	int			slot_room;
	LsmMapSlot *slots;
} LsmMapImage;

extern void lsm_map_image_load(LsmMapImage *map, Relation rel, Relation heap, Buffer head);
extern void lsm_map_image_free(LsmMapImage *map);
extern LsmMapSlot *lsm_map_image_new_slot(LsmMapImage *map);
extern LsmMapSlot *lsm_map_image_find(LsmMapImage *map, uint64 owner, BlockNumber block);
extern void lsm_map_slot_set(LsmMapSlot *slot, BlockNumber start, uint32 length, uint64 owner,
							 uint64 xid);
extern bool lsm_map_is_reusable(LsmMapImage *map, const LsmExtent *extent);

#endif							/* LSM_MAP_IMAGE_H */
