/*
 * read_pace.h
 *	  How far a prefetching scan looks ahead: the depth, which follows from how pages are
 *	  read.
 */
#ifndef LSM_READ_PACE_H
#define LSM_READ_PACE_H

#include "postgres.h"

#include "base/pages_read.h"
#include "portability/instr_time.h"
#include "storage/block.h"

typedef struct LsmReadPace
{
	/* Set by lsm_pace_init. */
	int			limit;			/* of the depth */
	bool		forced;			/* the depth is the limit */

	int			depth;			/* pages ahead that are wanted now */
	int			misses;			/* slow reads while the depth is 0 */
	bool		times_next;		/* with a depth of 0: the page before was read */
	BlockNumber probe;			/* is not prefetched, but timed; or invalid */
	int			since_probe;	/* pages */
	BlockNumber last_ahead;		/* the page that was looked at last; or invalid */
	int			following;		/* share of pages that follow the one before them */
	bool		has_read_ahead; /* in this scan or one before */
	uint64		missing;		/* pages that were looked at and had to be read */
} LsmReadPace;

/* How a page of the table is read, from before to after. */
typedef struct LsmReadWatch
{
	int64		pages;
	bool		is_timed;
	instr_time	time;			/* when it began, and then how long it took */
} LsmReadWatch;

extern void lsm_pace_init(LsmReadPace *pace, int limit, bool forced);
extern void lsm_pace_start_over(LsmReadPace *pace);
extern bool lsm_pace_wants_prefetch(LsmReadPace *pace, BlockNumber block);
extern void lsm_pace_note_ahead(LsmReadPace *pace, bool is_missing);
extern void lsm_pace_note_time(LsmReadPace *pace, const LsmReadWatch *watch, bool missed);

/* This page is about to be read.  Clocks are read only where it may be slow. */
static inline void
lsm_pace_begin_watch(LsmReadPace *pace, BlockNumber block, LsmReadWatch *watch)
{
	watch->pages = lsm_pages_read();
	watch->is_timed = pace->depth == 0 ? pace->times_next : block == pace->probe;
	INSTR_TIME_SET_ZERO(watch->time);
	if (watch->is_timed)
		INSTR_TIME_SET_CURRENT(watch->time);
}

/* Stop timing a read, before the page is processed. */
static inline void
lsm_pace_stop_clock(LsmReadWatch *watch)
{
	instr_time	now;

	if (!watch->is_timed)
		return;
	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, watch->time);
	watch->time = now;
}

/* It has been read, or was there.  Returns whether it had to be read. */
static inline bool
lsm_pace_note_read(LsmReadPace *pace, const LsmReadWatch *watch)
{
	bool		missed = lsm_pages_read() != watch->pages;

	if (pace->depth == 0)
		pace->times_next = missed;
	if (watch->is_timed)
		lsm_pace_note_time(pace, watch, missed);
	return missed;
}

#endif							/* LSM_READ_PACE_H */
