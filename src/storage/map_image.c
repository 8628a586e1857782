/*
 * map_image.c
 *	  The space map, read into memory.
 *
 * The caller holds the map's head locked, for as long as he uses the image.
 */
#include "postgres.h"

#include "access/transam.h"
#include "storage/buffers.h"
#include "storage/map_image.h"
#include "storage/proc.h"
#include "utils/snapmgr.h"

static void
image_read_page(LsmMapImage *map, Page page, BlockNumber block)
{
	LsmMapHeader *header = lsm_map_header(page);
	const char *wrong = lsm_map_page_check(page);

	if (wrong != NULL)
		lsm_report_corruption(map->rel, block, wrong);
	if (map->page_count == map->page_room)
	{
		map->page_room = Max(8, map->page_room * 2);
		map->blocks = map->blocks ?
			repalloc(map->blocks, map->page_room * sizeof(BlockNumber)) :
			palloc(map->page_room * sizeof(BlockNumber));
		map->used = map->used ?
			repalloc(map->used, map->page_room * sizeof(int)) :
			palloc(map->page_room * sizeof(int));
	}
	if (map->slot_count + LSM_MAP_CAPACITY > map->slot_room)
	{
		map->slot_room = Max(2 * LSM_MAP_CAPACITY, map->slot_room * 2);
		map->slots = map->slots ?
			repalloc_huge(map->slots, map->slot_room * sizeof(LsmMapSlot)) :
			palloc(map->slot_room * sizeof(LsmMapSlot));
	}
	for (uint32 i = 0; i < header->slots; i++)
	{
		LsmMapSlot *slot = &map->slots[map->slot_count++];

		slot->extent = lsm_map_slots(page)[i];
		slot->page = map->page_count;
		slot->slot = i;
		slot->changed = false;
	}
	map->blocks[map->page_count] = block;
	map->used[map->page_count] = header->slots;
	map->page_count++;
}

/* Read the map.  The head is locked by the caller. */
void
lsm_map_image_load(LsmMapImage *map, Relation rel, Relation heap, Buffer head)
{
	BlockNumber next;

	memset(map, 0, sizeof(LsmMapImage));
	map->rel = rel;
	map->heap = heap;
	map->head = head;
	map->mapped_end = lsm_map_header(BufferGetPage(head))->mapped_end;
	image_read_page(map, BufferGetPage(head), LSM_BLOCK_MAP);
	next = lsm_page_opaque(BufferGetPage(head))->next;
	while (BlockNumberIsValid(next))
	{
		Buffer		buffer;
		BlockNumber block = next;

		if (block >= map->mapped_end || map->page_count > (int) map->mapped_end)
			lsm_report_corruption(rel, block, "chain of map pages is broken");
		buffer = lsm_buffer_read(rel, block, LSM_KIND(LSM_PAGE_MAP), 0,
								 BUFFER_LOCK_SHARE, NULL);
		image_read_page(map, BufferGetPage(buffer), block);
		next = lsm_page_opaque(BufferGetPage(buffer))->next;
		UnlockReleaseBuffer(buffer);
	}
}

void
lsm_map_image_free(LsmMapImage *map)
{
	pfree(map->blocks);
	pfree(map->used);
	pfree(map->slots);
}

bool
lsm_map_is_reusable(LsmMapImage *map, const LsmExtent *extent)
{
	FullTransactionId xid = FullTransactionIdFromU64(extent->free_xid);

	if (extent->length == 0 || extent->owner != LSM_OWNER_FREE)
		return false;
	if (extent->free_xid == 0)
		return true;

	/*
	 * Of temporary tables the horizon does not count this session's snapshots:
	 * no other session changes them.  But a cursor that is older than a merge
	 * reads on in what that has replaced.
	 */
	if (RelationUsesLocalBuffers(map->rel) && TransactionIdIsValid(MyProc->xmin) &&
		!TransactionIdPrecedes(XidFromFullTransactionId(xid), MyProc->xmin))
		return false;
	return GlobalVisCheckRemovableFullXid(map->heap, xid);
}

/*
 * A slot that takes one more extent: an unused one, or a new one at the end of
 * a page that has room, or NULL.
 */
LsmMapSlot *
lsm_map_image_new_slot(LsmMapImage *map)
{
	for (int i = 0; i < map->slot_count; i++)
	{
		if (map->slots[i].extent.length == 0)
			return &map->slots[i];
	}
	for (int page = 0; page < map->page_count; page++)
	{
		if (map->used[page] < LSM_MAP_CAPACITY)
		{
			LsmMapSlot *slot;

			if (map->slot_count == map->slot_room)
			{
				map->slot_room = map->slot_room + LSM_MAP_CAPACITY;
				map->slots = repalloc_huge(map->slots, map->slot_room * sizeof(LsmMapSlot));
			}
			slot = &map->slots[map->slot_count++];
			memset(slot, 0, sizeof(LsmMapSlot));
			slot->page = page;
			slot->slot = map->used[page]++;
			return slot;
		}
	}
	return NULL;
}

void
lsm_map_slot_set(LsmMapSlot *slot, BlockNumber start, uint32 length, uint64 owner, uint64 xid)
{
	slot->extent.start = start;
	slot->extent.length = length;
	slot->extent.owner = length > 0 ? owner : 0;
	slot->extent.free_xid = length > 0 ? xid : 0;
	if (length == 0)
		slot->extent.start = 0;
	slot->changed = true;
}

/* The extent of an owner that a block is in, or NULL. */
LsmMapSlot *
lsm_map_image_find(LsmMapImage *map, uint64 owner, BlockNumber block)
{
	for (int i = 0; i < map->slot_count; i++)
	{
		LsmExtent  *e = &map->slots[i].extent;

		if (e->owner == owner && e->start <= block && block < e->start + e->length)
			return &map->slots[i];
	}
	return NULL;
}
