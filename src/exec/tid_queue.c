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
 * A page counts as ahead from when the first of its neighbouring TIDs was looked
 * at to when that is taken.
 *
 * It uses the index through core's interface only.
 */
#include "postgres.h"

#include "access/genam.h"
#include "exec/tid_queue.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define FIRST_ROUND 512

/* In index order there is room for so many TIDs for each page ahead. */
#define ITEMS_PER_PAGE 32

/* Tables of fewer pages have items of 4 bytes. */
#define NARROW_PAGES ((BlockNumber) 1 << (32 - LSM_ITEM_BLOCK_SHIFT))

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
 * come.
 */
void
lsm_queue_init(LsmTidQueue *queue, BlockNumber pages, bool by_page, int growth, int depth)
{
	memset(queue, 0, sizeof(LsmTidQueue));
	queue->by_page = by_page;
	queue->growth = growth;
	queue->is_narrow = pages <= NARROW_PAGES;
	queue->capacity_limit = by_page ? round_limit(queue->is_narrow) :
		Max((Size) depth * ITEMS_PER_PAGE, FIRST_ROUND);
	queue->context = CurrentMemoryContext;
	lsm_queue_reset(queue);
}

/* Forget everything: the index is scanned anew. */
void
lsm_queue_reset(LsmTidQueue *queue)
{
	queue->head = queue->ahead = queue->tail = 0;
	queue->head_block = queue->ahead_block = InvalidBlockNumber;
	queue->pages_ahead = 0;
	queue->round_size = FIRST_ROUND;
	queue->round_pages = 0;
	queue->taken = 0;
	queue->at_end = false;
}

void
lsm_queue_free(LsmTidQueue *queue)
{
	if (queue->items != NULL)
		pfree(queue->items);
	queue->items = NULL;
	queue->capacity = 0;
}

static void
enlarge(LsmTidQueue *queue)
{
	Size		capacity = queue->capacity == 0 ? FIRST_ROUND : queue->capacity * 2;

	capacity = Min(capacity, queue->capacity_limit);
	if (queue->items == NULL)
		queue->items = MemoryContextAlloc(queue->context, capacity * item_size(queue->is_narrow));
	else
		queue->items = repalloc(queue->items, capacity * item_size(queue->is_narrow));
	queue->capacity = capacity;
}

/* Take a TID from the index.  False: there is none. */
static bool
append(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction)
{
	ItemPointer tid;

	if (queue->at_end)
		return false;
	do
	{
		tid = index_getnext_tid(index, direction);
		if (tid == NULL)
		{
			queue->at_end = true;
			return false;
		}
		queue->taken++;
	} while (queue->is_narrow && ItemPointerGetBlockNumber(tid) >= NARROW_PAGES);
	if (queue->tail == queue->capacity)
		enlarge(queue);
	if (queue->is_narrow)
		((uint32 *) queue->items)[queue->tail++] = (uint32) make_item(index, tid);
	else
		((uint64 *) queue->items)[queue->tail++] = make_item(index, tid);
	return true;
}

/* In index order: make room by moving what is left to the beginning. */
static bool
append_in_order(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction)
{
	if (queue->tail == queue->capacity_limit)
	{
		/* So that this happens once in many times. */
		if (queue->head < queue->capacity_limit / 2)
			return false;
		memmove(queue->items, (char *) queue->items + queue->head * item_size(queue->is_narrow),
				(queue->tail - queue->head) * item_size(queue->is_narrow));
		queue->tail -= queue->head;
		queue->ahead -= queue->head;
		queue->head = 0;
	}
	return append(queue, index, direction);
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

/* By page: read and sort the next round. */
static bool
fill_round(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction)
{
	queue->head = queue->ahead = queue->tail = 0;
	while (queue->tail < queue->round_size && append(queue, index, direction))
		CHECK_FOR_INTERRUPTS();
	if (queue->tail == 0)
		return false;
	if (queue->is_narrow)
		sort_items_narrow(queue->items, queue->tail);
	else
		sort_items_wide(queue->items, queue->tail);
	queue->round_pages = count_pages(queue);
	queue->round_size = queue->round_size > queue->capacity_limit / queue->growth ?
		queue->capacity_limit : queue->round_size * queue->growth;
	queue->rounds++;
	return true;
}

/* See to it that there is an item at this position.  False: not now, or none. */
static bool
provide(LsmTidQueue *queue, Size position, IndexScanDesc index, ScanDirection direction)
{
	if (position < queue->tail)
		return true;
	if (!queue->by_page)
		return append_in_order(queue, index, direction);
	return queue->head == queue->tail && fill_round(queue, index, direction);
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
		BlockNumber block;

		if (!provide(queue, queue->ahead, index, direction))
			break;
		block = block_of(item_at(queue, queue->ahead++));
		if (block != queue->ahead_block)
		{
			queue->ahead_block = block;
			queue->pages_ahead++;
			return block;
		}
	}
	return InvalidBlockNumber;
}

/* The next TID.  False: there is none left. */
bool
lsm_queue_take(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction,
			   ItemPointer tid, bool *recheck)
{
	uint64		item;
	BlockNumber block;

	if (!provide(queue, queue->head, index, direction))
		return false;
	item = item_at(queue, queue->head);
	block = block_of(item);
	if (queue->head == queue->ahead)
	{
		/* Nobody has looked so far. */
		Assert(queue->pages_ahead == 0);
		queue->ahead++;
		queue->ahead_block = block;
	}
	else if (block != queue->head_block)
	{
		Assert(queue->pages_ahead > 0);
		queue->pages_ahead--;
	}
	queue->head++;
	queue->head_block = block;
	ItemPointerSet(tid, block, offset_of(item));
	*recheck = (item & 1) != 0;
	return true;
}

/* By page: all TIDs of the next page.  False: there is none left. */
bool
lsm_queue_take_page(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction,
					LsmPageTids *tids)
{
	ItemPointerData tid;
	bool		recheck;

	Assert(queue->by_page);
	if (!lsm_queue_take(queue, index, direction, &tid, &recheck))
		return false;
	tids->block = queue->head_block;
	tids->count = 0;
	for (;;)
	{
		tids->offsets[tids->count] = ItemPointerGetOffsetNumber(&tid);
		tids->rechecks[tids->count++] = recheck;
		/* No further than the round: the next one may begin with this page. */
		if (queue->head == queue->tail || tids->count == MaxHeapTuplesPerPage ||
			block_of(item_at(queue, queue->head)) != tids->block)
			return true;
		(void) lsm_queue_take(queue, index, direction, &tid, &recheck);
	}
}
