/*
 * read_ahead.c
 *	  Prefetches pages of a run, so that several reads are in flight at once.
 *
 * Nothing is prefetched while pages are found in memory.  Otherwise there are three cases:
 *
 * - A seek looks into the runs one by one.  Once it has waited for a read in one run, the remaining
 *   runs prefetch the leaves or filter pages that they will need (merge.c calls lsm_run_expect).  A
 *   whole key is usually in one run only, so its lookup prefetches the filter page instead of the
 *   leaf.  A prefix may be in many runs, so its lookup prefetches a missing filter page together
 *   with the leaf.  Pages in the kernel's cache arrive at once, and prefetching them costs
 *   more than it saves.  So after a seek that has read a page, the next SEEKS_TIMED seeks measure
 *   how long reads take.
 *
 * - A backward scan prefetches the next leaves after two leaves in a row that were not in memory.
 *   The number of prefetched leaves doubles with each leaf that is read, up to the number of reads
 *   that may be in flight.  The number falls again when leaves are in memory.  For a forward scan
 *   the kernel reads ahead by itself, in larger pieces that our requests would break up.
 *
 * - A round looks for many keys in a run (run_probe.c).  After a round with slow reads, the
 *   next rounds prefetch the filter pages, and then the leaves, that their keys need.
 */
#include "postgres.h"

#include "base/io_depth.h"
#include "base/limits.h"
#include "read/looked_for.h"
#include "read/read_ahead.h"
#include "read/run_lookup.h"
#include "storage/buffers.h"

/* After a seek that has read a page, this many seeks in runs are timed. */
#define SEEKS_TIMED		64

/* A backward scan prefetches after this many leaves in a row that were not in memory. */
#define MISSES_TO_START	2

/* After a round whose reads were slow, this many rounds prefetch. */
#define ROUNDS_AHEAD	64

/* Returns how many reads may be in flight, or 0 if prefetching is off. */
static int
depth_of_reads(LsmRunCursor *c)
{
	return lsm_reads_in_flight(c->cx->index->rel->rd_rel->reltablespace, c->cx->is_merge);
}

/* Prefetch a page of the cursor's segment.  Returns false if the page is in shared buffers. */
static bool
ask_for_page(LsmRunCursor *c, uint32 number)
{
	bool		asked = lsm_buffer_ask(c->cx->index->rel, c->segment.start + number);

	c->cx->counters.prefetched += asked;
	return asked;
}

/* Like ask_for_page, for a page that was expected: see lsm_buffer_expect. */
void
lsm_run_ask_expected(LsmRunCursor *c, uint32 number)
{
	c->cx->counters.prefetched += lsm_buffer_ask_expected(c->cx->index->rel,
														  c->segment.start + number);
}

/* Called at the end of a seek that has read pages.  With lsm_debug_prefetch_scan: of every seek. */
void
lsm_run_note_reads(LsmRunCursor *c, LsmReadWatch *watch)
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
		c->base.waited = depth_of_reads(c);
}

/* Prefetch what a seek will need. */
static void
ask_for_seek(LsmRunCursor *c, const LsmBound *from, ScanDirection direction)
{
	LsmReadContext *cx = c->cx;
	uint32		filter_page;

	if (cx->without != NULL && lsm_seen_has(cx->without, c->run.run_id))
		return;
	if (!lsm_run_prepare_seek(c, &from, direction))
		return;
	if (cx->lookup_columns > 0 && !c->is_near && lsm_run_asks_filter(c, &filter_page))
	{
		bool		in_memory = filter_page == LSM_NO_CHILD || !ask_for_page(c, filter_page);

		if (cx->lookup_columns == cx->ks->nkeys || (in_memory && !lsm_run_filter_admits(c)))
			return;
	}
	if (lsm_run_find_leaf(c, from))
		ask_for_page(c, c->leaf);
}

/* See LsmCursorOps. */
void
lsm_run_expect(LsmCursor *base, const LsmBound *from, ScanDirection direction)
{
	LsmRunCursor *c = (LsmRunCursor *) base;
	LsmReadCounters counted = c->cx->counters;

	ask_for_seek(c, from, direction);
	/* Count only the prefetches: the seek itself will visit the same pages. */
	counted.prefetched = c->cx->counters.prefetched;
	c->cx->counters = counted;
}

/* Called when a backward scan reads leaf c->leaf.  `missed`: the leaf was not in memory. */
void
lsm_run_look_ahead(LsmRunCursor *c, bool missed)
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
		a->most = depth_of_reads(c);
		a->depth = Min(2, a->most);
		a->segment = 0;
	}
	/* Go on from the last prefetched leaf, if that leaf is ahead. */
	if (a->segment != c->segment.id || a->asked > c->leaf)
		a->asked = c->leaf;
	a->segment = c->segment.id;
	for (last = c->leaf - Min(c->leaf, (uint32) a->depth); a->asked > last;)
	{
		if (ask_for_page(c, --a->asked))
			missing++;
		else
			in_memory++;
	}
	a->depth = missing > 0 ? Min(2 * a->depth, a->most) : Max(a->depth - in_memory, 0);
}

/* Begin a round of keys.  Returns how many pages the round may prefetch at a time. */
int
lsm_run_begin_round(LsmRunCursor *c, LsmReadWatch *watch)
{
	watch->pages = lsm_pages_read();
	INSTR_TIME_SET_CURRENT(watch->start);
	if (c->cx->rounds_ahead == 0 && !lsm_debug_prefetch_scan)
		return 0;
	c->cx->rounds_ahead = Max(c->cx->rounds_ahead - 1, 0);
	return depth_of_reads(c);
}

/* End a round.  The keys themselves take up to a microsecond each, and the reads take the rest. */
void
lsm_run_end_round(LsmRunCursor *c, LsmReadWatch *watch, int keys)
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

/* Prefetch the leaf for a position in a segment. */
void
lsm_run_ask_for_leaf(LsmRunCursor *c, const LsmSegment *segment, const LsmBound *from)
{
	LsmReadCounters counted = c->cx->counters;

	c->segment = *segment;
	c->is_near = false;
	if (lsm_run_find_leaf(c, from))
		ask_for_page(c, c->leaf);
	/* Count only the prefetch: the seek itself will visit the same pages. */
	counted.prefetched = c->cx->counters.prefetched;
	c->cx->counters = counted;
}
