/*
 * read_ahead.c
 *	  Asking for pages of a run before they are read, so that several reads are
 *	  in flight where each of them is to be waited for.
 *
 * Nothing is asked for as long as pages are found in memory.  Three cases:
 *
 * - A seek looks into one run after the other.  When it has waited in one of
 *   them, the runs that follow ask for the leaves, or pages of filters, that they
 *   will need (merge.c calls them).  A whole key is in one run at most, mostly, but
 *   many runs may have a prefix: then a page of a filter that is not in memory is
 *   asked for together with the leaf.  What is read at once was in the kernel's
 *   cache, where asking costs more than it saves.  So a read is timed; but not
 *   all are: only those of some seeks after one that has read anything.
 *
 * - A backward scan goes on from leaf to leaf.  From the third one on, if they had
 *   to be read, it asks for those that follow: twice as many with each leaf, up to
 *   the number of reads that may be in flight; less again when they are in memory.
 *   Forward the kernel does so by itself, in larger pieces, which our requests
 *   would only break up, of several runs at once, too.
 *
 * - Many keys are looked for in a run, in rounds.  After a round whose reads were slow
 *   the next ones ask for the pages of filters, and then for the leaves, that their keys
 *   need: as many are on their way as reads may be in flight.
 */
#include "postgres.h"

#include "base/io_depth.h"
#include "base/limits.h"
#include "portability/instr_time.h"
#include "read/run_cursor.h"
#include "storage/buffers.h"

/* Seeks in a run that are timed after one that had to read a page. */
#define SEEKS_TIMED		64

/* Leaves in a row that had to be read before the next ones are asked for. */
#define MISSES_TO_START	2

/* Rounds of keys that ask ahead after one whose reads were slow. */
#define ROUNDS_AHEAD	64

/* How many reads may be in flight; 0: one at a time. */
static int
reads_in_flight(RunCursor *c)
{
	return lsm_reads_in_flight(c->cx->index->rel->rd_rel->reltablespace, c->cx->is_merge);
}

/* Ask for a page of the segment that the cursor is in.  False if it is in shared buffers. */
bool
lsm_run_ask(RunCursor *c, uint32 number)
{
	bool		asked = lsm_buffer_ask(c->cx->index->rel, c->segment.start + number);

	c->cx->counters.prefetched += asked;
	return asked;
}

/* The same for one that was expected: see lsm_buffer_expect. */
void
lsm_run_ask_expected(RunCursor *c, uint32 number)
{
	c->cx->counters.prefetched += lsm_buffer_ask_expected(c->cx->index->rel,
														  c->segment.start + number);
}

/* A seek has ended, and has read pages from disk (or is to be taken as if it had). */
void
lsm_run_note_reads(RunCursor *c, LsmReadWatch *watch)
{
	double		taken_us = 0;

	c->cx->seeks_timed = SEEKS_TIMED;
	if (watch->timed)
	{
		instr_time	taken;

		INSTR_TIME_SET_CURRENT(taken);
		INSTR_TIME_SUBTRACT(taken, watch->start);
		taken_us = INSTR_TIME_GET_MICROSEC(taken);
	}
	if (taken_us >= LSM_SLOW_READ_US || lsm_debug_prefetch_scan)
		c->base.waited = reads_in_flight(c);
}

/* Ask for what a seek will need. */
static void
run_expect(RunCursor *c, const LsmBound *from, ScanDirection direction)
{
	LsmReadContext *cx = c->cx;
	uint32		filter_page;

	if (cx->without != NULL && lsm_seen_has(cx->without, c->run.run_id))
		return;
	if (!lsm_run_prepare_seek(c, &from, direction))
		return;
	if (cx->lookup_columns > 0 && !c->is_near && lsm_run_asks_filter(c, &filter_page))
	{
		bool		in_memory = filter_page == LSM_NO_CHILD || !lsm_run_ask(c, filter_page);

		if (cx->lookup_columns == cx->ks->nkeys || (in_memory && !lsm_run_filter_has(c)))
			return;
	}
	if (lsm_run_next_leaf(c, from))
		lsm_run_ask(c, c->leaf);
}

/* See LsmCursorOps. */
void
lsm_run_expect(LsmCursor *base, const LsmBound *from, ScanDirection direction)
{
	RunCursor  *c = (RunCursor *) base;
	LsmReadCounters counted = c->cx->counters;

	run_expect(c, from, direction);
	/* The seek goes the same way, and is what counts; but we have asked. */
	counted.prefetched = c->cx->counters.prefetched;
	c->cx->counters = counted;
}

/* The leaf c->leaf of a backward scan is read; `missed` says that it was not in memory. */
void
lsm_run_look_ahead(RunCursor *c, bool missed)
{
	LsmReadAhead *a = &c->ahead;
	uint32		last;
	int			missing = 0;
	int			in_memory = 0;

	if (a->depth == 0)
	{
		a->misses = missed ? a->misses + 1 : 0;
		if (a->misses < MISSES_TO_START && !lsm_debug_prefetch_scan)
			return;
		a->most = reads_in_flight(c);
		a->depth = Min(2, a->most);
		a->segment = 0;
	}
	/* From here, or the last one that was asked for, on. */
	if (a->segment != c->segment.id || a->asked > c->leaf)
		a->asked = c->leaf;
	a->segment = c->segment.id;
	for (last = c->leaf - Min(c->leaf, (uint32) a->depth); a->asked > last;)
	{
		if (lsm_run_ask(c, --a->asked))
			missing++;
		else
			in_memory++;
	}
	a->depth = missing > 0 ? Min(2 * a->depth, a->most) : Max(a->depth - in_memory, 0);
}

/* A round of keys begins.  How many of its reads may be asked for ahead? */
int
lsm_run_begin_round(RunCursor *c, LsmReadWatch *watch)
{
	watch->pages = lsm_pages_read();
	INSTR_TIME_SET_CURRENT(watch->start);
	if (c->cx->rounds_ahead == 0 && !lsm_debug_prefetch_scan)
		return 0;
	c->cx->rounds_ahead = Max(c->cx->rounds_ahead - 1, 0);
	return reads_in_flight(c);
}

/* It ends; of what has taken time, each key costs up to a microsecond without any read. */
void
lsm_run_end_round(RunCursor *c, LsmReadWatch *watch, int keys)
{
	int64		pages = lsm_pages_read() - watch->pages;
	instr_time	taken;

	if (pages == 0)
		return;
	INSTR_TIME_SET_CURRENT(taken);
	INSTR_TIME_SUBTRACT(taken, watch->start);
	if (INSTR_TIME_GET_MICROSEC(taken) >= (double) pages * LSM_SLOW_READ_US + keys)
		c->cx->rounds_ahead = ROUNDS_AHEAD;
}

/* Ask for the leaf of a segment that a place lies in. */
void
lsm_run_ask_for_leaf(RunCursor *c, const LsmSegment *segment, const LsmBound *from)
{
	LsmReadCounters counted = c->cx->counters;

	c->segment = *segment;
	c->is_near = false;
	if (lsm_run_next_leaf(c, from))
		lsm_run_ask(c, c->leaf);
	/* The way there is gone once more, and counts then. */
	counted.prefetched = c->cx->counters.prefetched;
	c->cx->counters = counted;
}
