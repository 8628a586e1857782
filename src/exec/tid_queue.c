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

/* Sorting begins with so many buckets, each for a range of blocks. */
#define BUCKETS 2048

/* A bucket of so many items, of so many blocks, is sorted by counting. */
#define SMALL_BUCKET 1024
#define SMALL_RANGE 256

#define ST_SORT sort_bucket
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static inline BlockNumber
block_of(uint64 item)
{
	return (BlockNumber) (item >> 17);
}

static inline uint64
make_item(IndexScanDesc index, ItemPointer tid)
{
	return (uint64) ItemPointerGetBlockNumber(tid) << 17 |
		(uint64) ItemPointerGetOffsetNumber(tid) << 1 | (index->xs_recheck ? 1 : 0);
}

/* How many TIDs fit into work_mem, and so into a round. */
Size
lsm_queue_round_limit(void)
{
	Size		limit = (Size) work_mem * 1024 / sizeof(uint64);

	return Min(Max(limit, FIRST_ROUND), MaxAllocSize / sizeof(uint64));
}

/* The memory for items is taken from the current context when they come. */
void
lsm_queue_init(LsmTidQueue *queue, bool by_page, int growth, int depth)
{
	memset(queue, 0, sizeof(LsmTidQueue));
	queue->by_page = by_page;
	queue->growth = growth;
	queue->capacity_limit = by_page ? lsm_queue_round_limit() :
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
		queue->items = MemoryContextAlloc(queue->context, capacity * sizeof(uint64));
	else
		queue->items = repalloc(queue->items, capacity * sizeof(uint64));
	queue->capacity = capacity;
}

/* Take a TID from the index.  False: there is none. */
static bool
append(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction)
{
	ItemPointer tid;

	if (queue->at_end)
		return false;
	tid = index_getnext_tid(index, direction);
	if (tid == NULL)
	{
		queue->at_end = true;
		return false;
	}
	if (queue->tail == queue->capacity)
		enlarge(queue);
	queue->items[queue->tail++] = make_item(index, tid);
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
		memmove(queue->items, queue->items + queue->head,
				(queue->tail - queue->head) * sizeof(uint64));
		queue->tail -= queue->head;
		queue->ahead -= queue->head;
		queue->head = 0;
	}
	return append(queue, index, direction);
}

/* Exchange items until each is in its bucket: those of a bucket end at ends[]. */
static void
fill_buckets(uint64 *items, Size count, int shift, Size *ends)
{
	Size		next[BUCKETS];
	Size		sizes[BUCKETS] = {0};
	Size		position = 0;

	for (Size i = 0; i < count; i++)
		sizes[block_of(items[i]) >> shift]++;
	for (int bucket = 0; bucket < BUCKETS; bucket++)
	{
		next[bucket] = position;
		position += sizes[bucket];
		ends[bucket] = position;
	}
	for (int bucket = 0; bucket < BUCKETS; bucket++)
	{
		while (next[bucket] < ends[bucket])
		{
			uint64		item = items[next[bucket]];
			int			target = block_of(item) >> shift;

			items[next[bucket]] = items[next[target]];
			items[next[target]++] = item;
		}
	}
}

/* Sort items whose blocks differ in the lowest bits only. */
static void
count_bucket(uint64 *items, Size count, BlockNumber mask)
{
	uint64		copy[SMALL_BUCKET];
	Size		next[SMALL_RANGE] = {0};
	Size		position = 0;

	for (Size i = 0; i < count; i++)
	{
		copy[i] = items[i];
		next[block_of(items[i]) & mask]++;
	}
	for (BlockNumber i = 0; i <= mask; i++)
	{
		Size		size = next[i];

		next[i] = position;
		position += size;
	}
	for (Size i = 0; i < count; i++)
		items[next[block_of(copy[i]) & mask]++] = copy[i];
}

/* By page; several times faster than comparing all with each other. */
static void
sort_items(uint64 *items, Size count)
{
	Size		ends[BUCKETS];
	Size		begin = 0;
	BlockNumber bits = 0;
	int			shift = 0;

	if (count < BUCKETS)
	{
		sort_bucket(items, count);
		return;
	}
	for (Size i = 0; i < count; i++)
		bits |= block_of(items[i]);
	while (bits >> shift >= BUCKETS)
		shift++;
	fill_buckets(items, count, shift, ends);
	for (int bucket = 0; bucket < BUCKETS; bucket++)
	{
		Size		size = ends[bucket] - begin;

		if (size <= SMALL_BUCKET && (1 << shift) <= SMALL_RANGE)
			count_bucket(items + begin, size, (1 << shift) - 1);
		else
			sort_bucket(items + begin, size);
		begin = ends[bucket];
	}
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
	sort_items(queue->items, queue->tail);
	queue->round_size = Min(queue->round_size * queue->growth, queue->capacity_limit);
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
		block = block_of(queue->items[queue->ahead++]);
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
	item = queue->items[queue->head];
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
	ItemPointerSet(tid, block, (OffsetNumber) (item >> 1 & 0xFFFF));
	*recheck = (item & 1) != 0;
	return true;
}
