/*
 * tid_queue.c
 *	  TIDs that were taken from an index ahead of the reader.
 *
 * The queue is an array with three positions: `head`, from where the reader
 * takes; `ahead`, up to where somebody has looked for pages to prefetch; `tail`.
 *
 * In index order one TID at a time comes from the index, when the one who looks
 * ahead wants it, so that `ahead` is always `tail`.  By page, a round of TIDs is
 * read when the last one is used up, and sorted: a TID is never lossy, and what
 * does not fit is the next round's.  The first round is small, so that the first
 * row comes early, and each further one larger.
 *
 * An index-only scan has the visibility map asked when a TID comes from the index,
 * which holds on to it, so that VACUUM cannot have given it to another row.  Where
 * the page is visible to all, it is not wanted, and the row is the index's entry.
 * In index order, entries wait in the queue with their TIDs, no more than fit into
 * work_mem.  By page, such rows are not queued at all.
 *
 * A page counts as ahead from when the first of its neighbouring TIDs was looked
 * at to when that is taken.
 *
 * It uses the index through core's interface only.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/visibilitymap.h"
#include "exec/tid_queue.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define FIRST_ROUND 512

/* In index order there is room for so many TIDs for each page ahead. */
#define ITEMS_PER_PAGE 32

/* Tables of fewer pages have items of 4 bytes. */
#define NARROW_PAGES ((BlockNumber) 1 << (32 - LSM_ITEM_BLOCK_SHIFT))

/* Where entries are kept: the page of an item is not wanted. */
#define ITEM_IS_VISIBLE ((uint64) 1 << 63)

StaticAssertDecl(MaxHeapTuplesPerPage < 1 << (LSM_ITEM_BLOCK_SHIFT - 1),
				 "an item has room for all offsets");

/* Sorting begins with so many buckets, each for a range of blocks. */
#define BUCKETS 2048

/* A bucket of so many items, of so many blocks, is sorted by counting. */
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

/* Index only, in index order: the row is the entry, so that has to wait, too. */
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

/* How many TIDs of a table of so many pages fit into work_mem, and so into a round. */
Size
lsm_queue_round_limit(BlockNumber pages)
{
	return round_limit(pages <= NARROW_PAGES);
}

/*
 * The table has so many pages; TIDs of pages beyond, which have come later, are
 * left out.  The memory for items is taken from the current context when they
 * come.  An index-only scan gives its pin of the visibility map; others NULL.
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

/* Free what was taken last. */
static void
drop_taken_entry(LsmTidQueue *queue)
{
	if (queue->taken_entry != NULL)
		pfree(queue->taken_entry);
	queue->taken_entry = NULL;
}

/* Forget everything: the index is scanned anew. */
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

/* Make room for so many elements of this size in an array, which may be NULL. */
static void *
resize(LsmTidQueue *queue, void *array, Size capacity, Size element)
{
	return array == NULL ? MemoryContextAlloc(queue->context, capacity * element) :
		repalloc(array, capacity * element);
}

static void
enlarge(LsmTidQueue *queue)
{
	Size		capacity = queue->capacity == 0 ? FIRST_ROUND : queue->capacity * 2;

	capacity = Min(capacity, queue->capacity_limit);
	queue->items = resize(queue, queue->items, capacity, item_size(queue->is_narrow));
	if (keeps_entries(queue))
		queue->entries = resize(queue, queue->entries, capacity, sizeof(IndexTuple));
	queue->capacity = capacity;
}

/* Take a TID from the index.  NULL: there is none. */
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

/* Index only: need nobody look at the page of this TID, where the index is? */
static inline bool
is_visible(const LsmTidQueue *queue, IndexScanDesc index, ItemPointer tid)
{
	return queue->map != NULL &&
		VM_ALL_VISIBLE(index->heapRelation, ItemPointerGetBlockNumber(tid), queue->map);
}

/* Append a copy of the index's entry to those of the items. */
static void
keep_entry(LsmTidQueue *queue, IndexTuple entry)
{
	MemoryContext caller = MemoryContextSwitchTo(queue->context);

	queue->entries[queue->tail] = CopyIndexTuple(entry);
	queue->entry_bytes += GetMemoryChunkSpace(queue->entries[queue->tail]);
	MemoryContextSwitchTo(caller);
}

/* Append this TID, where the index is. */
static void
append(LsmTidQueue *queue, IndexScanDesc index, ItemPointer tid)
{
	uint64		item = make_item(index, tid);

	if (queue->tail == queue->capacity)
		enlarge(queue);
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

/* In index order: make room by moving what is left to the beginning. */
static bool
append_in_order(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction)
{
	ItemPointer tid;

	if (queue->entry_bytes >= (Size) work_mem * 1024 && queue->head < queue->tail)
		return false;
	if (queue->tail == queue->capacity_limit)
	{
		/* So that this happens once in many times. */
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
		append(queue, index, tid);
	return tid != NULL;
}

/* Of the items, which are sorted. */
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

/* By page: the items are a round. */
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
 * By page: read and sort the next round.  Index only, a TID whose row is the index's
 * entry does not come into it, but is returned, and reading the round goes on with
 * the next call.  NULL: it has been read; there are no items if none are left.
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
		append(queue, index, tid);
	}
	queue->is_filling = false;
	if (queue->tail > 0)
		sort_round(queue);
	return NULL;
}

/* See to it that there is an item at this position.  False: not now, or none. */
static bool
provide(LsmTidQueue *queue, Size position, IndexScanDesc index, ScanDirection direction)
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
 * By page, index only: the next TID whose row is the index's entry.  NULL: first the
 * items of this round have to be taken.  To be asked before each of their pages.
 */
ItemPointer
lsm_queue_next_visible(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction)
{
	if (queue->head < queue->tail && !queue->is_filling)
		return NULL;
	return fill_round(queue, index, direction);
}

/*
 * The next page that will be wanted, unless so many are ahead already; else
 * InvalidBlockNumber.  Each page is returned once.
 */
BlockNumber
lsm_queue_look_ahead(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction, int depth)
{
	while (queue->pages_ahead < depth)
	{
		uint64		item;

		if (!provide(queue, queue->ahead, index, direction))
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
 * Count the pages ahead when this item is taken from the head.  True: the item is
 * the first of a page that somebody has looked at.
 */
static bool
pass_page(LsmTidQueue *queue, BlockNumber block)
{
	bool		is_next = block != queue->head_block;

	queue->head_block = block;
	if (queue->head == queue->ahead)
	{
		/* Nobody has looked so far. */
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

/* The next TID.  False: there is none left. */
bool
lsm_queue_take(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction,
			   LsmQueuedTid *taken)
{
	uint64		item;

	if (!provide(queue, queue->head, index, direction))
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

/* By page: all TIDs of the next page.  False: there is none left. */
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
		/* No further than the round: the next one may begin with this page. */
		if (queue->head == queue->tail || tids->count == MaxHeapTuplesPerPage ||
			block_of(item_at(queue, queue->head)) != tids->block)
			return true;
		(void) lsm_queue_take(queue, index, direction, &taken);
	}
}
