/*
 * tid_queue.h
 *	  Queues the TIDs that a prefetching scan has taken from the index in advance.
 */
#ifndef LSM_TID_QUEUE_H
#define LSM_TID_QUEUE_H

#include "postgres.h"

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/sdir.h"
#include "storage/buf.h"
#include "storage/itemptr.h"

/* An item is block << LSM_ITEM_BLOCK_SHIFT | offset << 1 | recheck. */
#define LSM_ITEM_BLOCK_SHIFT (BLCKSZ <= 8192 ? 10 : BLCKSZ <= 16384 ? 11 : 12)

/* A TID taken from the queue. */
typedef struct LsmQueuedTid
{
	ItemPointerData tid;
	bool		recheck;
	bool		begins_page;	/* the first TID of a page that lsm_queue_look_ahead returned */

	/* Index-only scans in index order. */
	bool		is_visible;		/* the page was all-visible when the index returned the TID */
	IndexTuple	entry;			/* valid until the next TID is taken */
} LsmQueuedTid;

/* The TIDs of one page, taken together. */
typedef struct LsmPageTids
{
	BlockNumber block;
	bool		was_ahead;		/* lsm_queue_look_ahead has returned the page */
	int			count;
	OffsetNumber offsets[MaxHeapTuplesPerPage];
	bool		rechecks[MaxHeapTuplesPerPage];
} LsmPageTids;

typedef struct LsmTidQueue
{
	/* Set by lsm_queue_init. */
	bool		by_page;		/* sort rounds by page; else keep index order */
	int			growth;			/* each round is this many times as large as the last */
	bool		is_narrow;		/* items have 4 bytes, else 8 */
	Size		capacity_limit; /* upper bound on capacity, in items */
	Buffer	   *map;			/* index-only: pin on the visibility map; else NULL */
	MemoryContext context;		/* holds items and entries */

	void	   *items;			/* NULL until the first one comes */
	IndexTuple *entries;		/* index-only, in index order: the entry of each item */
	IndexTuple	taken_entry;	/* entry of the item taken last, or NULL */
	Size		entry_bytes;	/* memory of the entries that wait */
	Size		capacity;		/* allocated items */
	Size		head;			/* next item to take */
	Size		ahead;			/* next item to look at, not before head */
	Size		tail;			/* end of the items */
	Size		round_size;		/* items of the next round */
	Size		round_pages;	/* pages of the current round */
	uint64		rounds;			/* rounds read since lsm_queue_init */
	uint64		taken;			/* TIDs that the index returned since the last reset */
	BlockNumber head_block;		/* page of the item taken last */
	BlockNumber ahead_block;	/* page of the item looked at last */
	int			pages_ahead;	/* pages between head and ahead */
	bool		is_filling;		/* by page: a round is being read */
	bool		at_end;			/* the index has no more TIDs */
} LsmTidQueue;

extern Size lsm_queue_round_limit(BlockNumber pages);
extern void lsm_queue_init(LsmTidQueue *queue, BlockNumber pages, bool by_page, int growth,
						   int depth, Buffer *map);
extern void lsm_queue_reset(LsmTidQueue *queue);
extern void lsm_queue_free(LsmTidQueue *queue);
extern BlockNumber lsm_queue_look_ahead(LsmTidQueue *queue, IndexScanDesc index,
										ScanDirection direction, int depth);
extern ItemPointer lsm_queue_next_visible(LsmTidQueue *queue, IndexScanDesc index,
										  ScanDirection direction);
extern bool lsm_queue_take(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction,
						   LsmQueuedTid *taken);
extern bool lsm_queue_take_page(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction,
								LsmPageTids *tids);

/* Has lookahead not reached the next item to take? */
static inline bool
lsm_queue_has_none_ahead(const LsmTidQueue *queue)
{
	return queue->head == queue->ahead;
}

/* Have all TIDs that came from the index been taken? */
static inline bool
lsm_queue_is_empty(const LsmTidQueue *queue)
{
	return queue->head == queue->tail;
}

#endif							/* LSM_TID_QUEUE_H */
