/*
 * space.c
 *	  The allocator of extents.
 *
 * All changes are made under the exclusive lock of the map head.  Under it the
 * whole map is read into memory (a page of it describes 300 extents), the
 * change is decided there, and the few pages that it touches are locked,
 * changed and logged together.
 *
 * What a crash leaves: an extent whose owner is not in the manifest.  The next
 * reaping frees it (I3).
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xloginsert.h"
#include "catalog/catalog.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "storage/space.h"
#include "utils/snapmgr.h"

/* The map, read into memory. */
typedef struct MapSlot
{
	LsmExtent	extent;
	int			page;			/* index into MapImage.blocks */
	int			slot;
	bool		changed;
} MapSlot;

typedef struct MapImage
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
	MapSlot    *slots;
} MapImage;

static void
image_read_page(MapImage *map, Page page, BlockNumber block)
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
			repalloc_huge(map->slots, map->slot_room * sizeof(MapSlot)) :
			palloc(map->slot_room * sizeof(MapSlot));
	}
	for (uint32 i = 0; i < header->slots; i++)
	{
		MapSlot    *slot = &map->slots[map->slot_count++];

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
static void
image_load(MapImage *map, Relation rel, Relation heap, Buffer head)
{
	BlockNumber next;

	memset(map, 0, sizeof(MapImage));
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

static Buffer
lock_head(Relation rel, int mode)
{
	return lsm_buffer_read(rel, LSM_BLOCK_MAP, LSM_KIND(LSM_PAGE_MAP), 0, mode, NULL);
}

static void
image_free(MapImage *map)
{
	pfree(map->blocks);
	pfree(map->used);
	pfree(map->slots);
}

static bool
is_reusable(MapImage *map, const LsmExtent *extent)
{
	FullTransactionId xid = FullTransactionIdFromU64(extent->free_xid);

	if (extent->length == 0 || extent->owner != LSM_OWNER_FREE)
		return false;
	if (extent->free_xid == 0)
		return true;
	return GlobalVisCheckRemovableFullXid(map->heap, xid);
}

/*
 * A slot that takes one more extent: an unused one, or a new one at the end of
 * a page that has room, or NULL.
 */
static MapSlot *
image_new_slot(MapImage *map)
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
			MapSlot    *slot;

			if (map->slot_count == map->slot_room)
			{
				map->slot_room = map->slot_room + LSM_MAP_CAPACITY;
				map->slots = repalloc_huge(map->slots, map->slot_room * sizeof(MapSlot));
			}
			slot = &map->slots[map->slot_count++];
			memset(slot, 0, sizeof(MapSlot));
			slot->page = page;
			slot->slot = map->used[page]++;
			return slot;
		}
	}
	return NULL;
}

static void
slot_set(MapSlot *slot, BlockNumber start, uint32 length, uint64 owner, uint64 xid)
{
	slot->extent.start = start;
	slot->extent.length = length;
	slot->extent.owner = length > 0 ? owner : 0;
	slot->extent.free_xid = length > 0 ? xid : 0;
	if (length == 0)
		slot->extent.start = 0;
	slot->changed = true;
}

/* The plan's entry for a page of the map, made if there is room; or NULL. */
static LsmPlanPage *
plan_page(LsmSpacePlan *plan, int *index_of, int page)
{
	LsmPlanPage *p;

	for (int at = 0; at < plan->page_count; at++)
	{
		if (index_of[at] == page)
			return &plan->pages[at];
	}
	if (plan->page_count == LSM_WAL_MAP_PAGES)
		return NULL;
	index_of[plan->page_count] = page;
	p = &plan->pages[plan->page_count++];
	memset(p, 0, sizeof(LsmPlanPage));
	p->mapped_end = InvalidBlockNumber;
	p->next = InvalidBlockNumber;
	return p;
}

static void
plan_add_change(LsmPlanPage *page, const MapSlot *slot)
{
	LsmMapChange *change;

	if (page->count == page->room)
	{
		page->room = Max(16, 2 * page->room);
		page->changes = page->changes ?
			repalloc(page->changes, page->room * sizeof(LsmMapChange)) :
			palloc(page->room * sizeof(LsmMapChange));
	}
	change = &page->changes[page->count++];
	memset(change, 0, sizeof(LsmMapChange));
	change->slot = slot->slot;
	change->extent = slot->extent;
}

/*
 * Collect the changed slots, up to what one record takes, into a plan and lock
 * their pages.  Returns true when changes are left for another record.
 *
 * The head comes first wherever it takes part: redo locks pages in the order
 * of the record, and readers hold the head while they go along the chain.
 */
static bool
image_make_plan(MapImage *map, LsmSpacePlan *plan, BlockNumber mapped_end)
{
	bool		left = false;
	bool		head_changes = BlockNumberIsValid(mapped_end);
	int			index_of[LSM_WAL_MAP_PAGES];

	plan->page_count = 0;
	for (int i = 0; i < map->slot_count && !head_changes; i++)
		head_changes = map->slots[i].changed && map->slots[i].page == 0;
	if (head_changes)
		plan_page(plan, index_of, 0)->mapped_end = mapped_end;

	for (int i = 0; i < map->slot_count; i++)
	{
		LsmPlanPage *page;

		if (!map->slots[i].changed)
			continue;
		page = plan_page(plan, index_of, map->slots[i].page);
		if (page == NULL)
		{
			left = true;
			continue;
		}
		plan_add_change(page, &map->slots[i]);
		map->slots[i].changed = false;
	}

	for (int at = 0; at < plan->page_count; at++)
	{
		if (index_of[at] == 0)
			plan->pages[at].buffer = map->head;
		else
			plan->pages[at].buffer = lsm_buffer_read(map->rel, map->blocks[index_of[at]],
													 LSM_KIND(LSM_PAGE_MAP), 0,
													 BUFFER_LOCK_EXCLUSIVE, NULL);
	}
	return left;
}

static void
plan_init(LsmSpacePlan *plan, Relation rel, Relation heap)
{
	memset(plan, 0, sizeof(LsmSpacePlan));
	plan->wal.conflict = InvalidFullTransactionId;
	plan->wal.locator = lsm_relation_locator(rel);
	plan->wal.is_catalog = heap != NULL && RelationIsAccessibleInLogicalDecoding(heap);
}

/* Change the planned pages.  In a critical section. */
void
lsm_space_plan_apply(LsmSpacePlan *plan)
{
	for (int i = 0; i < plan->page_count; i++)
	{
		LsmPlanPage *p = &plan->pages[i];
		Page		page = BufferGetPage(p->buffer);

		if (p->init)
			lsm_map_page_init(page, BufferGetBlockNumber(p->buffer));
		if (!lsm_map_page_apply(page, p->changes, p->count, p->mapped_end, p->next))
			elog(PANIC, "pg_lsm: space map slot out of range");
		MarkBufferDirty(p->buffer);
	}
}

/*
 * Add the plan to the WAL record under construction: wal as main data (first),
 * then its pages.
 *
 * REQUIRES: XLogEnsureRecordSpace for LSM_WAL_MAP_BLOCK + LSM_WAL_MAP_PAGES.
 */
void
lsm_space_plan_register(LsmSpacePlan *plan)
{
	for (int i = 0; i < plan->page_count; i++)
	{
		LsmPlanPage *p = &plan->pages[i];
		xl_lsm_map_page *head = &plan->heads[i];
		uint8		id = LSM_WAL_MAP_BLOCK + i;

		head->self = BufferGetBlockNumber(p->buffer);
		head->mapped_end = p->mapped_end;
		head->next = p->next;
		head->count = p->count;
		XLogRegisterBuffer(id, p->buffer, REGBUF_STANDARD | (p->init ? REGBUF_WILL_INIT : 0));
		XLogRegisterBufData(id, (char *) head, sizeof(xl_lsm_map_page));
		if (p->count > 0)
			XLogRegisterBufData(id, (char *) p->changes, p->count * sizeof(LsmMapChange));
	}
}

/* Stamp and unlock the changed pages; the head stays locked if it is not one. */
static void
plan_release(LsmSpacePlan *plan, XLogRecPtr lsn, Buffer head)
{
	for (int i = plan->page_count - 1; i >= 0; i--)
	{
		if (!XLogRecPtrIsInvalid(lsn))
			PageSetLSN(BufferGetPage(plan->pages[i].buffer), lsn);
		if (plan->pages[i].changes)
			pfree(plan->pages[i].changes);
		if (plan->pages[i].buffer != head)
			UnlockReleaseBuffer(plan->pages[i].buffer);
	}
}

void
lsm_space_plan_finish(LsmSpacePlan *plan, XLogRecPtr lsn)
{
	Buffer		head = InvalidBuffer;

	/* An allocation always changes the head or holds it: see plan_alloc. */
	for (int i = 0; i < plan->page_count; i++)
	{
		if (BufferGetBlockNumber(plan->pages[i].buffer) == LSM_BLOCK_MAP)
			head = plan->pages[i].buffer;
	}
	plan_release(plan, lsn, head);
	Assert(BufferIsValid(head));
	UnlockReleaseBuffer(head);
}

/* Log and apply a plan with a record of its own.  The head stays locked. */
static void
plan_commit(LsmSpacePlan *plan, Relation rel, Buffer head)
{
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	if (RelationNeedsWAL(rel))
		XLogEnsureRecordSpace(LSM_WAL_MAP_BLOCK + LSM_WAL_MAP_PAGES, 20);
	START_CRIT_SECTION();
	lsm_space_plan_apply(plan);
	if (RelationNeedsWAL(rel))
	{
		XLogBeginInsert();
		XLogRegisterData((char *) &plan->wal, sizeof(xl_lsm_space));
		lsm_space_plan_register(plan);
		lsn = XLogInsert(LSM_RMGR_ID, XLOG_LSM_SPACE);
	}
	END_CRIT_SECTION();
	plan_release(plan, lsn, head);
}

static int
compare_start(const void *a, const void *b)
{
	const MapSlot *x = *(MapSlot *const *) a;
	const MapSlot *y = *(MapSlot *const *) b;

	return x->extent.start < y->extent.start ? -1 : x->extent.start > y->extent.start;
}

/*
 * Join neighbouring free extents.  Joins only what is alike: both reusable
 * now, or both not, so that waiting for a newer one never holds up an older
 * one.  Each join is a record of its own.
 */
static void
coalesce(MapImage *map)
{
	MapSlot   **free_slots = palloc(Max(1, map->slot_count) * sizeof(MapSlot *));
	int			n = 0;
	MapSlot    *last = NULL;
	bool		last_reusable = false;
	LsmSpacePlan plan;

	for (int i = 0; i < map->slot_count; i++)
	{
		LsmExtent  *e = &map->slots[i].extent;

		if (e->length > 0 && e->owner == LSM_OWNER_FREE)
			free_slots[n++] = &map->slots[i];
	}
	qsort(free_slots, n, sizeof(MapSlot *), compare_start);
	for (int i = 0; i < n; i++)
	{
		MapSlot    *slot = free_slots[i];
		bool		reusable = is_reusable(map, &slot->extent);

		if (last != NULL && last_reusable == reusable &&
			last->extent.start + last->extent.length == slot->extent.start)
		{
			slot_set(last, last->extent.start, last->extent.length + slot->extent.length,
					 LSM_OWNER_FREE, Max(last->extent.free_xid, slot->extent.free_xid));
			slot_set(slot, 0, 0, 0, 0);

			/* Both slots are on two pages at most, so this is one record. */
			plan_init(&plan, map->rel, map->heap);
			image_make_plan(map, &plan, InvalidBlockNumber);
			plan_commit(&plan, map->rel, map->head);
		}
		else
		{
			last = slot;
			last_reusable = reusable;
		}
	}
	pfree(free_slots);
}

/*
 * Best fitting reusable extent, or a smaller one of at least `least` blocks, or
 * NULL.
 */
static MapSlot *
find_free(MapImage *map, uint32 want, uint32 least)
{
	MapSlot    *best = NULL;
	MapSlot    *smaller = NULL;

	for (int i = 0; i < map->slot_count; i++)
	{
		MapSlot    *slot = &map->slots[i];
		uint32		length = slot->extent.length;

		if (slot->extent.owner != LSM_OWNER_FREE || length == 0)
			continue;
		if (length >= want)
		{
			if ((best == NULL || length < best->extent.length) &&
				is_reusable(map, &slot->extent))
				best = slot;
		}
		else if (length >= least)
		{
			if ((smaller == NULL || length > smaller->extent.length) &&
				is_reusable(map, &slot->extent))
				smaller = slot;
		}
	}
	return best ? best : smaller;
}

/*
 * Make sure that at least two more slots can be found, adding a map page at
 * the end of the mapped part if need be.  A record of its own.
 */
static void
make_room(MapImage *map)
{
	int			free_slots = 0;
	LsmSpacePlan plan;
	LsmPlanPage *page;
	BlockNumber block;
	Buffer		last = map->head;

	for (int i = 0; i < map->slot_count && free_slots < 2; i++)
		free_slots += map->slots[i].extent.length == 0;
	for (int i = 0; i < map->page_count && free_slots < 2; i++)
		free_slots += LSM_MAP_CAPACITY - map->used[i];
	if (free_slots >= 2)
		return;

	block = map->mapped_end;
	lsm_relation_extend_to(map->rel, block + 1);
	if (map->page_count > 1)
		last = lsm_buffer_read(map->rel, map->blocks[map->page_count - 1],
							   LSM_KIND(LSM_PAGE_MAP), 0, BUFFER_LOCK_EXCLUSIVE, NULL);

	plan_init(&plan, map->rel, map->heap);
	page = &plan.pages[plan.page_count++];
	page->buffer = map->head;
	page->mapped_end = block + 1;
	page->next = last == map->head ? block : InvalidBlockNumber;
	if (last != map->head)
	{
		page = &plan.pages[plan.page_count++];
		page->buffer = last;
		page->mapped_end = InvalidBlockNumber;
		page->next = block;
	}
	page = &plan.pages[plan.page_count++];
	page->buffer = ReadBufferExtended(map->rel, MAIN_FORKNUM, block, RBM_ZERO_AND_LOCK, NULL);
	page->init = true;
	page->mapped_end = InvalidBlockNumber;
	page->next = InvalidBlockNumber;
	page->count = 1;
	page->changes = palloc0(sizeof(LsmMapChange));
	page->changes[0].extent.start = block;
	page->changes[0].extent.length = 1;
	page->changes[0].extent.owner = LSM_OWNER_MAP;
	plan_commit(&plan, map->rel, map->head);

	image_free(map);
	image_load(map, map->rel, map->heap, map->head);
}

/*
 * Plan an allocation of at most `want` blocks for `owner`: what is found may
 * be shorter, but not than `least`.  grow_at is the end of the owner's last
 * extent, or invalid; when the new extent starts there the old one is extended.
 */
void
lsm_space_plan_alloc(LsmSpacePlan *plan, Relation rel, Relation heap,
					 uint64 owner, uint32 want, uint32 least, BlockNumber grow_at)
{
	Buffer		head = lock_head(rel, BUFFER_LOCK_EXCLUSIVE);
	MapImage	map;
	MapSlot    *from;
	MapSlot    *to = NULL;
	BlockNumber mapped_end = InvalidBlockNumber;

	Assert(want > 0 && least <= want && owner >= LSM_FIRST_RUN_ID);
	image_load(&map, rel, heap, head);
	make_room(&map);
	plan_init(plan, rel, heap);

	from = find_free(&map, want, least);
	if (from != NULL)
	{
		LsmExtent	old = from->extent;

		plan->start = old.start;
		plan->length = Min(want, old.length);
		plan->wal.conflict = XLogStandbyInfoActive() ?
			FullTransactionIdFromU64(old.free_xid) : InvalidFullTransactionId;
		slot_set(from, old.start + plan->length, old.length - plan->length,
				 LSM_OWNER_FREE, old.free_xid);
	}
	else
	{
		plan->start = map.mapped_end;
		plan->length = want;
		mapped_end = map.mapped_end + want;
		if (mapped_end < map.mapped_end || mapped_end > MaxBlockNumber)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("index \"%s\" has reached the maximum size of a relation",
							RelationGetRelationName(rel))));
	}
	lsm_relation_extend_to(rel, plan->start + plan->length);

	for (int i = 0; i < map.slot_count && BlockNumberIsValid(grow_at); i++)
	{
		LsmExtent  *e = &map.slots[i].extent;

		if (e->owner == owner && e->start + e->length == grow_at && grow_at == plan->start)
			to = &map.slots[i];
	}
	if (to != NULL)
		slot_set(to, to->extent.start, to->extent.length + plan->length, owner, 0);
	else
		slot_set(image_new_slot(&map), plan->start, plan->length, owner, 0);

	/*
	 * At most two slots have changed.  The head goes into the plan in any case
	 * (mapped_end set to what it is), so that finishing releases it.
	 */
	image_make_plan(&map, plan, BlockNumberIsValid(mapped_end) ? mapped_end : map.mapped_end);
	image_free(&map);
}

/* Allocate with a record of its own. */
void
lsm_space_alloc(Relation rel, Relation heap, uint64 owner, uint32 want,
				BlockNumber grow_at, BlockNumber *start, uint32 *length)
{
	LsmSpacePlan plan;
	Buffer		head;

	lsm_space_plan_alloc(&plan, rel, heap, owner, want, (want + 3) / 4, grow_at);
	head = InvalidBuffer;
	for (int i = 0; i < plan.page_count; i++)
	{
		if (BufferGetBlockNumber(plan.pages[i].buffer) == LSM_BLOCK_MAP)
			head = plan.pages[i].buffer;
	}
	plan_commit(&plan, rel, head);
	UnlockReleaseBuffer(head);
	*start = plan.start;
	*length = plan.length;
}

/*
 * Give back blocks [unused, end), the tail of one of the owner's extents.  No
 * scan has seen them: they can be used again at once.
 */
void
lsm_space_trim(Relation rel, Relation heap, uint64 owner, BlockNumber unused, BlockNumber end)
{
	Buffer		head;
	MapImage	map;
	LsmSpacePlan plan;
	BlockNumber mapped_end = InvalidBlockNumber;

	if (unused >= end)
		return;
	head = lock_head(rel, BUFFER_LOCK_EXCLUSIVE);
	image_load(&map, rel, heap, head);
	make_room(&map);
	for (int i = 0; i < map.slot_count; i++)
	{
		MapSlot    *slot = &map.slots[i];

		if (slot->extent.owner != owner || slot->extent.start + slot->extent.length != end ||
			slot->extent.start > unused)
			continue;
		slot_set(slot, slot->extent.start, unused - slot->extent.start, owner, 0);
		if (end == map.mapped_end)
			mapped_end = unused;
		else
			slot_set(image_new_slot(&map), unused, end - unused, LSM_OWNER_FREE, 0);
		break;
	}
	plan_init(&plan, rel, heap);
	image_make_plan(&map, &plan, mapped_end);
	if (plan.page_count > 0)
		plan_commit(&plan, rel, head);
	image_free(&map);
	UnlockReleaseBuffer(head);
}

/*
 * Free the extents of runs that the manifest does not know: those of replaced
 * runs and those that a crash has left.  `known` and next_run_id come from the
 * manifest, copied before; runs that were added since have higher ids (I3).
 */
void
lsm_space_reap(Relation rel, Relation heap, const uint64 *known, int known_count,
			   uint64 next_run_id)
{
	Buffer		head = lock_head(rel, BUFFER_LOCK_EXCLUSIVE);
	MapImage	map;
	LsmSpacePlan plan;
	uint64		xid = U64FromFullTransactionId(ReadNextFullTransactionId());
	bool		left = true;
	int			freed = 0;

	image_load(&map, rel, heap, head);
	for (int i = 0; i < map.slot_count; i++)
	{
		LsmExtent  *e = &map.slots[i].extent;
		bool		is_known = false;

		if (e->length == 0 || e->owner < LSM_FIRST_RUN_ID || e->owner >= next_run_id)
			continue;
		for (int k = 0; k < known_count && !is_known; k++)
			is_known = known[k] == e->owner;
		if (is_known)
			continue;
		slot_set(&map.slots[i], e->start, e->length, LSM_OWNER_FREE, xid);
		freed++;
	}
	while (freed > 0 && left)
	{
		plan_init(&plan, rel, heap);
		left = image_make_plan(&map, &plan, InvalidBlockNumber);
		plan_commit(&plan, rel, head);
	}
	coalesce(&map);
	image_free(&map);
	UnlockReleaseBuffer(head);
}

/*
 * Make the file as long as the map says.  A power failure may have lost the
 * last extension, which is not logged.
 */
void
lsm_space_ensure(Relation rel)
{
	Buffer		head = lock_head(rel, BUFFER_LOCK_EXCLUSIVE);

	lsm_relation_extend_to(rel, lsm_map_header(BufferGetPage(head))->mapped_end);
	UnlockReleaseBuffer(head);
}

/* All extents, palloc'd.  The caller holds the map head locked. */
LsmExtent *
lsm_space_list_locked(Relation rel, Buffer head, int *count, BlockNumber *mapped_end)
{
	MapImage	map;
	LsmExtent  *result;
	int			n = 0;

	image_load(&map, rel, NULL, head);
	result = palloc_extended(Max(1, map.slot_count) * sizeof(LsmExtent), MCXT_ALLOC_HUGE);
	for (int i = 0; i < map.slot_count; i++)
	{
		if (map.slots[i].extent.length > 0)
			result[n++] = map.slots[i].extent;
	}
	*count = n;
	*mapped_end = map.mapped_end;
	image_free(&map);
	return result;
}

LsmExtent *
lsm_space_list(Relation rel, int *count, BlockNumber *mapped_end)
{
	Buffer		head = lock_head(rel, BUFFER_LOCK_SHARE);
	LsmExtent  *result = lsm_space_list_locked(rel, head, count, mapped_end);

	UnlockReleaseBuffer(head);
	return result;
}
