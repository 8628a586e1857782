/*
 * run_cursor.h
 *	  What a cursor over a run consists of, for the files that make it up:
 *	  run_cursor.c reads, run_lookup.c asks filters.
 */
#ifndef LSM_RUN_CURSOR_H
#define LSM_RUN_CURSOR_H

#include "base/pages_read.h"
#include "portability/instr_time.h"
#include "read/run_filter.h"
#include "storage/buffers.h"

/*
 * The leaf that was entered last: further seeks of the same user may end there, too, as
 * those of a nested loop whose outer rows are sorted.  A segment's entries stay on their
 * leaves, so that cannot become wrong; the page itself tells if it is another's by now.
 */
typedef struct LsmNearLeaf
{
	uint64		segment;		/* 0: none is known */
	uint32		user;			/* who has found it */
	uint32		leaf;
	Buffer		buffer;			/* where it was */
	bool		has_keys;		/* as lsm_key_prefix has them: */
	uint64		low;			/* its first key, */
	uint64		high;			/* and that of its last group */
} LsmNearLeaf;

/* Leaves that a backward scan has asked for ahead, read_ahead.c. */
typedef struct LsmReadAhead
{
	int			misses;			/* leaves in a row that had to be read, since the latest seek */
	int			depth;			/* so many leaves ahead are asked for; 0: none */
	int			most;			/* that may be */
	uint64		segment;		/* where leaf `asked` is the lowest one that was asked for */
	uint32		asked;
} LsmReadAhead;

/* What a seek in a run reads. */
typedef struct LsmReadWatch
{
	int64		pages;			/* that the backend had read from disk before */
	bool		timed;			/* from here on: */
	instr_time	start;
} LsmReadWatch;

typedef struct RunCursor
{
	LsmCursor	base;
	LsmReadContext *cx;
	LsmRunRecord run;
	const LsmBound *clip;		/* what is before it does not count; or NULL */
	uint8		yes[INDEX_MAX_KEYS];	/* the filter's latest answers, by columns that it was
										 * asked about, less one: so many in a row; and
										 * lookups since that did not ask */
	struct LsmRunFilter *filter;	/* of a small run, or NULL; it may have one on disk, too */
	ScanDirection direction;
	bool		forward;
	bool		ends;			/* backward: the rest of the array is the last */

	LsmSegment	segment;		/* that the cursor is in */
	LsmFoundSegment *found;		/* the same in the directory; NULL until needed */
	LsmFoundSegment *walked;	/* where a walk is, see run_lookup.c; NULL until needed */
	uint32		leaf;			/* of the segment */
	LsmNearLeaf near;
	LsmReadAhead ahead;
	bool		is_near;		/* the latest seek's place is in that leaf */
	bool		is_perhaps;		/* a filter has told it that what it looks for may be there */
	bool		copied;			/* `copy` holds that leaf */
	Page		copy;			/* NULL until needed */
	int			group;			/* the next one to decode, in the scan's direction */
	LsmGroup	decoded;
	LsmBound	here;			/* for finding the place again */
	LsmGroup	last;			/* last group of a page that was asked for; no
								 * scratch area until needed */
} RunCursor;

/* run_cursor.c */
extern void lsm_run_damaged(RunCursor *c, uint32 page) __attribute__((noreturn));
extern Buffer lsm_run_read_page(RunCursor *c, uint32 number, uint16 kind);
extern bool lsm_run_search_directory(RunCursor *c, const LsmBound *bound, LsmFoundSegment **found);
extern bool lsm_run_find_segment(RunCursor *c, const LsmBound *bound);
extern bool lsm_run_prepare_seek(RunCursor *c, const LsmBound **from, ScanDirection direction);
extern bool lsm_run_next_leaf(RunCursor *c, const LsmBound *from);
extern void lsm_run_seek_in_segment(RunCursor *c, const LsmBound *from, const LsmBound *limit);

/* run_lookup.c */
extern bool lsm_run_lacks(RunCursor *c);
extern void lsm_run_note_found(RunCursor *c);
extern bool lsm_run_read_keys(RunCursor *c, LsmKeyHashes *keys, uint64 *low, uint64 *high);
extern bool lsm_run_enter_single(RunCursor *c, LsmProbe *probes, Size count, LsmBound *low);
extern bool lsm_run_asks_filter(RunCursor *c, uint32 *number);
extern bool lsm_run_filter_has(RunCursor *c);

/* To look for a key takes about as long as to put so many into a filter. */
#define LSM_ENTRIES_A_LOOKUP	32

/* read_ahead.c */
extern void lsm_run_note_reads(RunCursor *c, LsmReadWatch *watch);
extern void lsm_run_expect(LsmCursor *base, const LsmBound *from, ScanDirection direction);
extern void lsm_run_look_ahead(RunCursor *c, bool missed);
extern int	lsm_run_begin_round(RunCursor *c, LsmReadWatch *watch);
extern void lsm_run_end_round(RunCursor *c, LsmReadWatch *watch, int keys);
extern bool lsm_run_ask(RunCursor *c, uint32 number);
extern void lsm_run_ask_expected(RunCursor *c, uint32 number);
extern void lsm_run_ask_for_leaf(RunCursor *c, const LsmSegment *segment, const LsmBound *from);

/* A seek begins. */
static inline void
lsm_run_begin_watch(RunCursor *c, LsmReadWatch *watch)
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

#endif							/* LSM_RUN_CURSOR_H */
