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
#include "storage/map_image.h"
#include "storage/space.h"

/* Large runs take free extents from this size on, rather than grow the file. */
#define LEAST_EXTENT	16

static Buffer
lock_head(Relation rel, int mode)
{
	return lsm_buffer_read(rel, LSM_BLOCK_MAP, LSM_KIND(LSM_PAGE_MAP), 0, mode, NULL);
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
plan_add_change(LsmPlanPage *page, const LsmMapSlot *slot)
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
image_make_plan(LsmMapImage *map, LsmSpacePlan *plan, BlockNumber mapped_end)
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
	BlockNumber x = (*(LsmMapSlot *const *) a)->extent.start;
	BlockNumber y = (*(LsmMapSlot *const *) b)->extent.start;

	return x < y ? -1 : x > y;
}

/*
 * Join neighbouring free extents.  Joins only what is alike: both reusable
 * now, or both not, so that waiting for a newer one never holds up an older
 * one.  Each join is a record of its own.
 */
static void
coalesce(LsmMapImage *map)
{
	LsmMapSlot **free_slots = palloc(Max(1, map->slot_count) * sizeof(LsmMapSlot *));
	int			n = 0;
	LsmMapSlot *last = NULL;
	bool		last_reusable = false;
	LsmSpacePlan plan;

	for (int i = 0; i < map->slot_count; i++)
	{
		LsmExtent  *e = &map->slots[i].extent;

		if (e->length > 0 && e->owner == LSM_OWNER_FREE)
			free_slots[n++] = &map->slots[i];
	}
	qsort(free_slots, n, sizeof(LsmMapSlot *), compare_start);
	for (int i = 0; i < n; i++)
	{
		LsmMapSlot *slot = free_slots[i];
		bool		reusable = lsm_map_is_reusable(map, &slot->extent);

		if (last != NULL && last_reusable == reusable &&
			last->extent.start + last->extent.length == slot->extent.start)
		{
			lsm_map_slot_set(last, last->extent.start, last->extent.length + slot->extent.length,
							 LSM_OWNER_FREE, Max(last->extent.free_xid, slot->extent.free_xid));
			lsm_map_slot_set(slot, 0, 0, 0, 0);

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
static LsmMapSlot *
find_free(LsmMapImage *map, uint32 want, uint32 least)
{
	LsmMapSlot *best = NULL;
	LsmMapSlot *smaller = NULL;

	for (int i = 0; i < map->slot_count; i++)
	{
		LsmMapSlot *slot = &map->slots[i];
		uint32		length = slot->extent.length;

		if (slot->extent.owner != LSM_OWNER_FREE || length == 0)
			continue;
		if (length >= want)
		{
			if ((best == NULL || length < best->extent.length) &&
				lsm_map_is_reusable(map, &slot->extent))
				best = slot;
		}
		else if (length >= least)
		{
			if ((smaller == NULL || length > smaller->extent.length) &&
				lsm_map_is_reusable(map, &slot->extent))
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
make_room(LsmMapImage *map)
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

	lsm_map_image_free(map);
	lsm_map_image_load(map, map->rel, map->heap, map->head);
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
	LsmMapImage map;
	LsmMapSlot *from;
	LsmMapSlot *to = NULL;
	BlockNumber mapped_end = InvalidBlockNumber;

	Assert(want > 0 && least <= want && owner >= LSM_FIRST_RUN_ID);
	lsm_map_image_load(&map, rel, heap, head);
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
		lsm_map_slot_set(from, old.start + plan->length, old.length - plan->length,
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
		lsm_map_slot_set(to, to->extent.start, to->extent.length + plan->length, owner, 0);
	else
		lsm_map_slot_set(lsm_map_image_new_slot(&map), plan->start, plan->length, owner, 0);

	/*
	 * At most two slots have changed.  The head goes into the plan in any case
	 * (mapped_end set to what it is), so that finishing releases it.
	 */
	image_make_plan(&map, plan, BlockNumberIsValid(mapped_end) ? mapped_end : map.mapped_end);
	lsm_map_image_free(&map);
}

/*
 * If an allocation will need new blocks at the end of the file, make them before
 * the map is locked.  For a large extent that takes long, when buffers have to be
 * written for it, or the system limits writing; and all writers need the map.
 */
static void
extend_ahead(Relation rel, Relation heap, uint32 want, uint32 least)
{
	Buffer		head = lock_head(rel, BUFFER_LOCK_SHARE);
	LsmMapImage map;
	BlockNumber end = InvalidBlockNumber;
	uint32		ahead = Min(want / 16, 32);	/* others may take some meanwhile */

	lsm_map_image_load(&map, rel, heap, head);
	if (find_free(&map, want, least) == NULL && want + ahead < MaxBlockNumber - map.mapped_end)
		end = map.mapped_end + want + ahead;
	lsm_map_image_free(&map);
	UnlockReleaseBuffer(head);
	if (BlockNumberIsValid(end))
		lsm_relation_extend_to(rel, end);
}

/* Allocate with a record of its own. */
void
lsm_space_alloc(Relation rel, Relation heap, uint64 owner, uint32 want,
				BlockNumber grow_at, BlockNumber *start, uint32 *length)
{
	uint32		least = Min((want + 3) / 4, LEAST_EXTENT);
	LsmSpacePlan plan;
	Buffer		head;

	if (want >= LEAST_EXTENT)
		extend_ahead(rel, heap, want, least);
	lsm_space_plan_alloc(&plan, rel, heap, owner, want, least, grow_at);
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
	LsmMapImage map;
	LsmMapSlot *slot;
	LsmSpacePlan plan;
	BlockNumber mapped_end = InvalidBlockNumber;

	if (unused >= end)
		return;
	head = lock_head(rel, BUFFER_LOCK_EXCLUSIVE);
	lsm_map_image_load(&map, rel, heap, head);
	make_room(&map);
	slot = lsm_map_image_find(&map, owner, unused);
	if (slot != NULL && slot->extent.start + slot->extent.length == end)
	{
		lsm_map_slot_set(slot, slot->extent.start, unused - slot->extent.start, owner, 0);
		if (end == map.mapped_end)
			mapped_end = unused;
		else
			lsm_map_slot_set(lsm_map_image_new_slot(&map), unused, end - unused, LSM_OWNER_FREE, 0);
	}
	plan_init(&plan, rel, heap);
	image_make_plan(&map, &plan, mapped_end);
	if (plan.page_count > 0)
		plan_commit(&plan, rel, head);
	lsm_map_image_free(&map);
	UnlockReleaseBuffer(head);
}

/*
 * Free blocks [start, end) as far as the first extent goes; what is left of that
 * stays the owner's.  Returns where to go on, or `end`.
 */
static BlockNumber
free_range(LsmMapImage *map, uint64 owner, BlockNumber start, BlockNumber end, uint64 xid)
{
	LsmMapSlot *slot;
	LsmExtent	old;
	LsmSpacePlan plan;

	/* It may need two more slots. */
	make_room(map);
	slot = lsm_map_image_find(map, owner, start);
	if (slot == NULL)
		return end;
	old = slot->extent;
	end = Min(end, old.start + old.length);
	lsm_map_slot_set(slot, start, end - start, LSM_OWNER_FREE, xid);
	if (old.start < start)
		lsm_map_slot_set(lsm_map_image_new_slot(map), old.start, start - old.start, owner, 0);
	if (end < old.start + old.length)
		lsm_map_slot_set(lsm_map_image_new_slot(map), end, old.start + old.length - end, owner, 0);
	plan_init(&plan, map->rel, map->heap);
	image_make_plan(map, &plan, InvalidBlockNumber);
	plan_commit(&plan, map->rel, map->head);
	return end;
}

static int
compare_blocks(const void *a, const void *b)
{
	BlockNumber x = *(const BlockNumber *) a;
	BlockNumber y = *(const BlockNumber *) b;

	return x < y ? -1 : x > y;
}

/*
 * Free blocks of a run that goes on to exist: no version that is read from now
 * on leads to them.  Sorts them.
 *
 * What a crash in between leaves is freed with the run.
 */
void
lsm_space_free(Relation rel, Relation heap, uint64 owner, BlockNumber *blocks, Size count)
{
	Buffer		head;
	LsmMapImage map;
	uint64		xid = U64FromFullTransactionId(ReadNextFullTransactionId());
	Size		first = 0;

	if (count == 0)
		return;
	qsort(blocks, count, sizeof(BlockNumber), compare_blocks);
	head = lock_head(rel, BUFFER_LOCK_EXCLUSIVE);
	lsm_map_image_load(&map, rel, heap, head);
	for (Size i = 1; i <= count; i++)
	{
		if (i < count && blocks[i] == blocks[i - 1] + 1)
			continue;
		for (BlockNumber next = blocks[first]; next <= blocks[i - 1];)
			next = free_range(&map, owner, next, blocks[i - 1] + 1, xid);
		first = i;
	}
	coalesce(&map);
	lsm_map_image_free(&map);
	UnlockReleaseBuffer(head);
}

/*
 * Free all blocks of a run but these, which are sorted here.  Not in an order
 * that matters: a crash in between leaves less to be freed the next time.
 */
void
lsm_space_keep_only(Relation rel, Relation heap, uint64 owner, BlockNumber *blocks, Size count)
{
	int			extent_count;
	BlockNumber mapped_end;
	LsmExtent  *extents = lsm_space_list(rel, &extent_count, &mapped_end);
	BlockNumber *unused = NULL;
	Size		unused_count = 0;

	qsort(blocks, count, sizeof(BlockNumber), compare_blocks);
	for (int i = 0; i < extent_count; i++)
	{
		if (extents[i].owner != owner)
			continue;
		unused = unused ?
			repalloc_huge(unused, (unused_count + extents[i].length) * sizeof(BlockNumber)) :
			palloc_extended(extents[i].length * sizeof(BlockNumber), MCXT_ALLOC_HUGE);
		for (uint32 k = 0; k < extents[i].length; k++)
		{
			BlockNumber block = extents[i].start + k;

			if (bsearch(&block, blocks, count, sizeof(BlockNumber), compare_blocks) == NULL)
				unused[unused_count++] = block;
		}
	}
	lsm_space_free(rel, heap, owner, unused, unused_count);
	pfree(extents);
	if (unused != NULL)
		pfree(unused);
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
	LsmMapImage map;
	LsmSpacePlan plan;
	uint64		xid = U64FromFullTransactionId(ReadNextFullTransactionId());
	bool		left = true;
	int			freed = 0;

	lsm_map_image_load(&map, rel, heap, head);
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
		lsm_map_slot_set(&map.slots[i], e->start, e->length, LSM_OWNER_FREE, xid);
		freed++;
	}
	while (freed > 0 && left)
	{
		plan_init(&plan, rel, heap);
		left = image_make_plan(&map, &plan, InvalidBlockNumber);
		plan_commit(&plan, rel, head);
	}
	coalesce(&map);
	lsm_map_image_free(&map);
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
	LsmMapImage map;
	LsmExtent  *result;
	int			n = 0;

	lsm_map_image_load(&map, rel, NULL, head);
	result = palloc_extended(Max(1, map.slot_count) * sizeof(LsmExtent), MCXT_ALLOC_HUGE);
	for (int i = 0; i < map.slot_count; i++)
	{
		if (map.slots[i].extent.length > 0)
			result[n++] = map.slots[i].extent;
	}
	*count = n;
	*mapped_end = map.mapped_end;
	lsm_map_image_free(&map);
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
