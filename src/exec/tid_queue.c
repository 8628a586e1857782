/*
 * tid_queue.c
 *	  Queues the TIDs that a prefetching scan has taken from the index in advance.
 *
 * The queue is an array with three positions.  The scan takes TIDs at `head`.  Lookahead has
 * looked for pages to prefetch up to `ahead`.  New TIDs from the index go to `tail`.
 *
 * In index order, lookahead takes TIDs from the index one by one, so `ahead` equals `tail`.  By
 * page, the queue holds one round of TIDs, sorted.  When the queue is empty, it reads the next
 * round. Unlike a bitmap, a round is never lossy: TIDs that do not fit go into the next round.
 * The first round is small, so that the first row comes early; later rounds grow.
 *
 * An index-only scan checks the visibility map when the index returns a TID.  The index still
 * protects that TID, so VACUUM cannot have freed it for another row.  If the page is
 * all-visible, the scan does not need the page: the row is the index entry.  In index order,
 * entries wait in the queue with their TIDs, up to work_mem.  By page, such rows bypass the
 * queue.
 *
 * A page counts as ahead from the time lookahead meets the first of the page's neighboring TIDs
 * until the scan takes that TID.
 *
 * The queue uses the index through core's interface only.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/visibilitymap.h"
#include "exec/tid_queue.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define FIRST_ROUND 512

/* In index order: capacity in TIDs for each page of depth. */
#define ITEMS_PER_PAGE 32

/* For tables of at most this many pages, items have 4 bytes. */
#define NARROW_PAGES ((BlockNumber) 1 << (32 - LSM_ITEM_BLOCK_SHIFT))

/* If entries are kept: the page of this item is all-visible, so the scan does not need the page. */
#define ITEM_IS_VISIBLE ((uint64) 1 << 63)

StaticAssertDecl(MaxHeapTuplesPerPage < 1 << (LSM_ITEM_BLOCK_SHIFT - 1),
				 "an item has room for all offsets");

/* Sorting begins with this many buckets, each for a range of blocks. */
#define BUCKETS 2048

/* A bucket of at most this many items and this many blocks is sorted by counting. */
#define SMALL_BUCKET 1024
#define SMALL_RANGE 256

#define ITEM_TYPE uint32
#define ITEM_SUFFIX narrow
#include "exec/tid_sort.h"

#define ITEM_TYPE uint64
#define ITEM_SUFFIX wide
#include "exec/tid_sort.h"

static inline BlockNumber
block_of(uint64 item)
{
	return (BlockNumber) (item >> LSM_ITEM_BLOCK_SHIFT);
}

static inline OffsetNumber
offset_of(uint64 item)
{
	return (OffsetNumber) (item >> 1 & ((1 << (LSM_ITEM_BLOCK_SHIFT - 1)) - 1));
}

static inline uint64
make_item(IndexScanDesc index, ItemPointer tid)
{
	return (uint64) ItemPointerGetBlockNumber(tid) << LSM_ITEM_BLOCK_SHIFT |
		(uint64) ItemPointerGetOffsetNumber(tid) << 1 | (index->xs_recheck ? 1 : 0);
}

static inline uint64
item_at(const LsmTidQueue *queue, Size position)
{
	return queue->is_narrow ? ((uint32 *) queue->items)[position] :
		((uint64 *) queue->items)[position];
}

/* Does the queue keep index entries?  Index-only scans in index order return them as rows. */
static inline bool
keeps_entries(const LsmTidQueue *queue)
{
	return queue->map != NULL && !queue->by_page;
}

static inline bool
needs_no_page(const LsmTidQueue *queue, uint64 item)
{
	return keeps_entries(queue) && (item & ITEM_IS_VISIBLE) != 0;
}

static inline Size
item_size(bool is_narrow)
{
	return is_narrow ? sizeof(uint32) : sizeof(uint64);
}

static Size
round_limit(bool is_narrow)
{
	Size		limit = (Size) work_mem * 1024 / item_size(is_narrow);

	return Min(Max(limit, FIRST_ROUND), MaxAllocSize / item_size(is_narrow));
}

/* Returns how many TIDs of a table with `pages` pages fit into work_mem, and so into a round. */
Size
lsm_queue_round_limit(BlockNumber pages)
{
	return round_limit(pages <= NARROW_PAGES);
}

/*
 * Initialize a queue for a table that has `pages` pages.  The queue may skip TIDs of later pages.
 * When the first item comes, the queue allocates items in the memory context that is current now.
 * An index-only scan passes its pin on the visibility map.  Other scans pass NULL.
 */
void
lsm_queue_init(LsmTidQueue *queue, BlockNumber pages, bool by_page, int growth, int depth,
			   Buffer *map)
{
	memset(queue, 0, sizeof(LsmTidQueue));
	queue->by_page = by_page;
	queue->growth = growth;
	queue->map = map;
	queue->is_narrow = pages <= NARROW_PAGES && !keeps_entries(queue);
	queue->capacity_limit = by_page ? round_limit(queue->is_narrow) :
		Max((Size) depth * ITEMS_PER_PAGE, FIRST_ROUND);
	queue->context = CurrentMemoryContext;
	lsm_queue_reset(queue);
}

/* Free the entry that was taken last. */
static void
drop_taken_entry(LsmTidQueue *queue)
{
	if (queue->taken_entry != NULL)
		pfree(queue->taken_entry);
	queue->taken_entry = NULL;
}

/* Empty the queue, for a new scan of the index. */
void
lsm_queue_reset(LsmTidQueue *queue)
{
	if (queue->entries != NULL)
	{
		for (Size i = queue->head; i < queue->tail; i++)
			pfree(queue->entries[i]);
		queue->entry_bytes = 0;
		drop_taken_entry(queue);
	}
	queue->head = queue->ahead = queue->tail = 0;
	queue->head_block = queue->ahead_block = InvalidBlockNumber;
	queue->pages_ahead = 0;
	queue->round_size = FIRST_ROUND;
	queue->round_pages = 0;
	queue->taken = 0;
	queue->is_filling = queue->at_end = false;
}

void
lsm_queue_free(LsmTidQueue *queue)
{
	lsm_queue_reset(queue);
	if (queue->items != NULL)
		pfree(queue->items);
	if (queue->entries != NULL)
		pfree(queue->entries);
	queue->items = NULL;
	queue->entries = NULL;
	queue->capacity = 0;
}

/* Resize an array, which may be NULL, to `capacity` elements. */
static void *
resize_array(LsmTidQueue *queue, void *array, Size capacity, Size element)
{
	return array == NULL ? MemoryContextAlloc(queue->context, capacity * element) :
		repalloc(array, capacity * element);
}

static void
enlarge_queue(LsmTidQueue *queue)
{
	Size		capacity = queue->capacity == 0 ? FIRST_ROUND : queue->capacity * 2;

	capacity = Min(capacity, queue->capacity_limit);
	queue->items = resize_array(queue, queue->items, capacity, item_size(queue->is_narrow));
	if (keeps_entries(queue))
		queue->entries = resize_array(queue, queue->entries, capacity, sizeof(IndexTuple));
	queue->capacity = capacity;
}

/* Take a TID from the index.  Returns NULL at the end. */
static ItemPointer
next_tid(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction)
{
	ItemPointer tid;

	if (queue->at_end)
		return NULL;
	do
	{
		tid = index_getnext_tid(index, direction);
		if (tid == NULL)
		{
			queue->at_end = true;
			return NULL;
		}
		queue->taken++;
	} while (queue->is_narrow && ItemPointerGetBlockNumber(tid) >= NARROW_PAGES);
	return tid;
}

/* Index-only: is the page of this TID, which the index has just returned, all-visible? */
static inline bool
is_visible(const LsmTidQueue *queue, IndexScanDesc index, ItemPointer tid)
{
	return queue->map != NULL &&
		VM_ALL_VISIBLE(index->heapRelation, ItemPointerGetBlockNumber(tid), queue->map);
}

/* Keep a copy of the index entry for the next item. */
static void
keep_entry(LsmTidQueue *queue, IndexTuple entry)
{
	MemoryContext caller = MemoryContextSwitchTo(queue->context);

	queue->entries[queue->tail] = CopyIndexTuple(entry);
	queue->entry_bytes += GetMemoryChunkSpace(queue->entries[queue->tail]);
	MemoryContextSwitchTo(caller);
}

/* Append the TID that the index has just returned. */
static void
append_tid(LsmTidQueue *queue, IndexScanDesc index, ItemPointer tid)
{
	uint64		item = make_item(index, tid);

	if (queue->tail == queue->capacity)
		enlarge_queue(queue);
	if (keeps_entries(queue))
	{
		if (is_visible(queue, index, tid))
			item |= ITEM_IS_VISIBLE;
		keep_entry(queue, index->xs_itup);
	}
	if (queue->is_narrow)
		((uint32 *) queue->items)[queue->tail++] = (uint32) item;
	else
		((uint64 *) queue->items)[queue->tail++] = item;
}

/*
 * In index order: append the next TID.  If the array is full, first move the remaining items to
 * its beginning.  Returns false if there is no room now, or no TID.
 */
static bool
append_in_order(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction)
{
	ItemPointer tid;

	if (queue->entry_bytes >= (Size) work_mem * 1024 && queue->head < queue->tail)
		return false;
	if (queue->tail == queue->capacity_limit)
	{
		/* Move rarely: only when at least half of the array is free. */
		if (queue->head < queue->capacity_limit / 2)
			return false;
		memmove(queue->items, (char *) queue->items + queue->head * item_size(queue->is_narrow),
				(queue->tail - queue->head) * item_size(queue->is_narrow));
		if (keeps_entries(queue))
			memmove(queue->entries, queue->entries + queue->head,
					(queue->tail - queue->head) * sizeof(IndexTuple));
		queue->tail -= queue->head;
		queue->ahead -= queue->head;
		queue->head = 0;
	}
	tid = next_tid(queue, index, direction);
	if (tid != NULL)
		append_tid(queue, index, tid);
	return tid != NULL;
}

/* Returns the number of pages of the items.  The items are sorted. */
static Size
count_pages(const LsmTidQueue *queue)
{
	Size		pages = 1;

	for (Size i = queue->head + 1; i < queue->tail; i++)
	{
		if (block_of(item_at(queue, i)) != block_of(item_at(queue, i - 1)))
			pages++;
	}
	return pages;
}

/* By page: sort a complete round, and set the size of the next one. */
static void
sort_round(LsmTidQueue *queue)
{
	if (queue->is_narrow)
		sort_items_narrow(queue->items, queue->tail);
	else
		sort_items_wide(queue->items, queue->tail);
	queue->round_pages = count_pages(queue);
	queue->round_size = queue->round_size > queue->capacity_limit / queue->growth ?
		queue->capacity_limit : queue->round_size * queue->growth;
	queue->rounds++;
}

/*
 * By page: read and sort the next round.  Returns NULL when the round is complete; the round is
 * empty at the end of the index.  In an index-only scan, returns each TID on an all-visible page
 * instead of queueing the TID, and the next call continues with the round.
 */
static ItemPointer
fill_round(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction)
{
	ItemPointer tid;

	if (!queue->is_filling)
		queue->head = queue->ahead = queue->tail = 0;
	queue->is_filling = true;
	while (queue->tail < queue->round_size &&
		   (tid = next_tid(queue, index, direction)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (is_visible(queue, index, tid))
			return tid;
		append_tid(queue, index, tid);
	}
	queue->is_filling = false;
	if (queue->tail > 0)
		sort_round(queue);
	return NULL;
}

/* Make sure that there is an item at this position.  Returns false if this is not possible now. */
static bool
provide_item(LsmTidQueue *queue, Size position, IndexScanDesc index, ScanDirection direction)
{
	if (position < queue->tail)
		return true;
	if (!queue->by_page)
		return append_in_order(queue, index, direction);
	if (queue->head < queue->tail)
		return false;
	(void) fill_round(queue, index, direction);
	return queue->tail > 0;
}

/*
 * By page, index-only: returns the next TID on an all-visible page.  The row is the index's
 * current entry.  Returns NULL if the items of the round must be taken first.  Call this before
 * taking each page.
 */
ItemPointer
lsm_queue_next_visible(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction)
{
	if (queue->head < queue->tail && !queue->is_filling)
		return NULL;
	return fill_round(queue, index, direction);
}

/*
 * Returns the next page that the scan will need.  Returns InvalidBlockNumber if `depth` pages are
 * already ahead, or if the queue cannot get another page now.  Returns each page once, even if
 * many neighboring TIDs are on it.
 */
BlockNumber
lsm_queue_look_ahead(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction, int depth)
{
	while (queue->pages_ahead < depth)
	{
		uint64		item;

		if (!provide_item(queue, queue->ahead, index, direction))
			break;
		item = item_at(queue, queue->ahead++);
		if (!needs_no_page(queue, item) && block_of(item) != queue->ahead_block)
		{
			queue->ahead_block = block_of(item);
			queue->pages_ahead++;
			return queue->ahead_block;
		}
	}
	return InvalidBlockNumber;
}

/*
 * Adjust the count of pages ahead when an item is taken from the head.  Returns whether the item
 * is the first of a page that lsm_queue_look_ahead has returned.
 */
static bool
pass_page(LsmTidQueue *queue, BlockNumber block)
{
	bool		is_next = block != queue->head_block;

	queue->head_block = block;
	if (queue->head == queue->ahead)
	{
		/* Lookahead has not reached this item. */
		Assert(queue->pages_ahead == 0);
		queue->ahead_block = block;
		return false;
	}
	if (is_next)
	{
		Assert(queue->pages_ahead > 0);
		queue->pages_ahead--;
	}
	return is_next;
}

/* Take the next TID.  Returns false if none is left. */
bool
lsm_queue_take(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction,
			   LsmQueuedTid *taken)
{
	uint64		item;

	if (!provide_item(queue, queue->head, index, direction))
		return false;
	item = item_at(queue, queue->head);
	ItemPointerSet(&taken->tid, block_of(item), offset_of(item));
	taken->recheck = (item & 1) != 0;
	taken->is_visible = needs_no_page(queue, item);
	taken->begins_page = !taken->is_visible && pass_page(queue, block_of(item));
	if (keeps_entries(queue))
	{
		drop_taken_entry(queue);
		taken->entry = queue->taken_entry = queue->entries[queue->head];
		queue->entry_bytes -= GetMemoryChunkSpace(taken->entry);
	}
	if (queue->head == queue->ahead)
		queue->ahead++;
	queue->head++;
	return true;
}

/* By page: take all TIDs of the next page.  Returns false if none is left. */
bool
lsm_queue_take_page(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction,
					LsmPageTids *tids)
{
	LsmQueuedTid taken;

	Assert(queue->by_page);
	if (!lsm_queue_take(queue, index, direction, &taken))
		return false;
	tids->block = queue->head_block;
	tids->was_ahead = taken.begins_page;
	tids->count = 0;
	for (;;)
	{
		tids->offsets[tids->count] = ItemPointerGetOffsetNumber(&taken.tid);
		tids->rechecks[tids->count++] = taken.recheck;
		/* Stop at the end of the round, even if the next round begins with the same page. */
		if (queue->head == queue->tail || tids->count == MaxHeapTuplesPerPage ||
			block_of(item_at(queue, queue->head)) != tids->block)
			return true;
		(void) lsm_queue_take(queue, index, direction, &taken);
	}
}
