/*
 * read_ahead.h
 *	  Prefetches pages of a run.
 */
#ifndef LSM_READ_AHEAD_H
#define LSM_READ_AHEAD_H

#include "base/pages_read.h"
#include "portability/instr_time.h"
#include "read/run_search.h"

/* Measures what a seek, or a round of keys, reads. */
typedef struct LsmReadWatch
{
	int64		pages;			/* number of pages that the backend had read before */
	bool		timed;			/* reads are timed, since `start` */
	instr_time	start;
} LsmReadWatch;

extern void lsm_run_note_reads(LsmRunCursor *c, LsmReadWatch *watch);
extern void lsm_run_expect(LsmCursor *base, const LsmBound *from, ScanDirection direction);
extern void lsm_run_look_ahead(LsmRunCursor *c, bool missed);
extern int	lsm_run_begin_round(LsmRunCursor *c, LsmReadWatch *watch);
extern void lsm_run_end_round(LsmRunCursor *c, LsmReadWatch *watch, int keys);
extern void lsm_run_ask_expected(LsmRunCursor *c, uint32 number);
extern void lsm_run_ask_for_leaf(LsmRunCursor *c, const LsmSegment *segment,
								 const LsmBound *from);

/* Called when a seek begins. */
static inline void
lsm_run_begin_watch(LsmRunCursor *c, LsmReadWatch *watch)
{
	c->base.waited = 0;
	c->ahead.misses = 0;
	c->ahead.depth = 0;
	watch->pages = lsm_pages_read();
	watch->timed = c->cx->seeks_timed > 0;
	if (unlikely(watch->timed))
	{
		c->cx->seeks_timed--;
		INSTR_TIME_SET_CURRENT(watch->start);
	}
}

#endif							/* LSM_READ_AHEAD_H */
