/*
 * tid_queue.h
 *	  TIDs that were taken from an index ahead of the reader.
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

/* A TID that was taken. */
typedef struct LsmQueuedTid
{
	ItemPointerData tid;
	bool		recheck;
	bool		begins_page;	/* that lsm_queue_look_ahead has returned */

	/* Index only, in index order. */
	bool		is_visible;		/* to all, as its whole page, when the index gave it */
	IndexTuple	entry;			/* until the next is taken */
} LsmQueuedTid;

/* The TIDs of a page that are taken together. */
typedef struct LsmPageTids
{
	BlockNumber block;
	bool		was_ahead;		/* lsm_queue_look_ahead has returned it */
	int			count;
	OffsetNumber offsets[MaxHeapTuplesPerPage];
	bool		rechecks[MaxHeapTuplesPerPage];
} LsmPageTids;

typedef struct LsmTidQueue
{
	/* Set by lsm_queue_init. */
	bool		by_page;		/* sort rounds by page; else keep index order */
	int			growth;			/* of the size of a round */
	bool		is_narrow;		/* items have 4 bytes, else 8 */
	Size		capacity_limit; /* items that may be allocated */
	Buffer	   *map;			/* index only: pin of the visibility map; else NULL */
	MemoryContext context;		/* of the items */

	void	   *items;			/* NULL: none so far */
	IndexTuple *entries;		/* index only, in index order: of the items */
	IndexTuple	taken_entry;	/* of the item taken last; or NULL */
	Size		entry_bytes;	/* of those of items */
	Size		capacity;
	Size		head;			/* the next to be taken */
	Size		ahead;			/* the next to be looked at, not before head */
	Size		tail;			/* the end */
	Size		round_size;		/* items of the next round */
	Size		round_pages;	/* pages of the present one */
	uint64		rounds;			/* filled since lsm_queue_init */
	uint64		taken;			/* TIDs that the index has given in this scan of it */
	BlockNumber head_block;		/* of the item taken last */
	BlockNumber ahead_block;	/* of the item looked at last */
	int			pages_ahead;	/* pages between the two */
	bool		is_filling;		/* by page: the round is being read */
	bool		at_end;			/* the index has no more */
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

/* Has nobody looked at what will be taken next? */
static inline bool
lsm_queue_has_none_ahead(const LsmTidQueue *queue)
{
	return queue->head == queue->ahead;
}

/* Has everything been taken that came from the index so far? */
static inline bool
lsm_queue_is_empty(const LsmTidQueue *queue)
{
	return queue->head == queue->tail;
}

#endif							/* LSM_TID_QUEUE_H */
