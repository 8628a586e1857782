/*
 * read_pace.h
 *	  Sets the depth of a prefetching scan: how many pages it looks ahead.
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
	bool		times_next;		/* at depth 0: the previous page had to be read, so time the next */
	BlockNumber probe;			/* a page that is timed, not prefetched; or invalid */
	int			since_probe;	/* pages since the last probe */
	BlockNumber last_ahead;		/* the latest page ahead, or invalid */
	int			following;		/* share of pages that follow the previous one, of FOLLOWING_ONE */
	bool		has_read_ahead; /* in this scan of the index or an earlier one */
	uint64		missing;		/* pages ahead that had to be read */
} LsmReadPace;

/* Observes one read of a table page. */
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

/* Called before a page is read.  Reads the clock only if the read is to be timed. */
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

/* Called after the page was read or found in shared buffers.  Returns whether it had to be read. */
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
