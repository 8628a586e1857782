/*
 * tid_queue.h
 *	  TIDs that were taken from an index ahead of the reader.
 */
#ifndef LSM_TID_QUEUE_H
#define LSM_TID_QUEUE_H

#include "postgres.h"

#include "access/relscan.h"
#include "access/sdir.h"
#include "storage/itemptr.h"

typedef struct LsmTidQueue
{
	/* Set by lsm_queue_init. */
	bool		by_page;		/* sort rounds by page; else keep index order */
	int			growth;			/* of the size of a round */
	Size		capacity_limit; /* items that may be allocated */
	MemoryContext context;		/* of the items */

	uint64	   *items;			/* block << 17 | offset << 1 | recheck */
	Size		capacity;
	Size		head;			/* the next to be taken */
	Size		ahead;			/* the next to be looked at, not before head */
	Size		tail;			/* the end */
	Size		round_size;		/* items of the next round */
	uint64		rounds;			/* filled since lsm_queue_init */
	BlockNumber head_block;		/* of the item taken last */
	BlockNumber ahead_block;	/* of the item looked at last */
	int			pages_ahead;	/* pages between the two */
	bool		at_end;			/* the index has no more */
} LsmTidQueue;

extern Size lsm_queue_round_limit(void);
extern void lsm_queue_init(LsmTidQueue *queue, bool by_page, int growth, int depth);
extern void lsm_queue_reset(LsmTidQueue *queue);
extern void lsm_queue_free(LsmTidQueue *queue);
extern BlockNumber lsm_queue_look_ahead(LsmTidQueue *queue, IndexScanDesc index,
										ScanDirection direction, int depth);
extern bool lsm_queue_take(LsmTidQueue *queue, IndexScanDesc index, ScanDirection direction,
						   ItemPointer tid, bool *recheck);

/* Has everything been taken that came from the index so far? */
static inline bool
lsm_queue_is_empty(const LsmTidQueue *queue)
{
	return queue->head == queue->tail;
}

#endif							/* LSM_TID_QUEUE_H */
