/*
 * run_search.h
 *	  Declares the state of a cursor over a run, and searches the run for a position.
 *
 * run_lookup.c asks filters, read_ahead.c prefetches, run_cursor.c reads entries, and run_probe.c
 * looks for many keys.  All of them work on this state.
 */
#ifndef LSM_RUN_SEARCH_H
#define LSM_RUN_SEARCH_H

#include "read/filter_habit.h"
#include "read/near_leaf.h"
#include "read/read_context.h"
#include "manifest/manifest.h"

/* Prefetching of leaves by a backward scan, see read_ahead.c. */
typedef struct LsmReadAhead
{
	int			misses;			/* leaves in a row that were not in memory, since the seek */
	int			depth;			/* leaves to prefetch; 0: none */
	int			most;			/* limit of depth */
	uint64		segment;		/* the segment that contains leaf `asked` */
	uint32		asked;			/* the lowest prefetched leaf */
} LsmReadAhead;

/* If a run is at most this large, a lookup of a whole key first tests all filters of the run. */
#define LSM_FEW_SEGMENTS	4
#define LSM_FEW_BLOCKS		1024

typedef struct LsmRunCursor
{
	LsmCursor	base;
	LsmReadContext *cx;
	LsmRunRecord run;
	const LsmBound *clip;		/* entries before this bound do not count; or NULL */
	LsmFilterHabit habits[INDEX_MAX_KEYS];	/* of asking about 1, 2, ... columns */
	struct LsmRunFilter *filter;	/* a small run's filters in private memory, or NULL; the run
									 * may also have a filter on disk */
	ScanDirection direction;
	bool		forward;
	bool		ends;			/* backward: no entries follow the array */

	LsmSegment	segment;		/* the segment that the cursor is in */
	LsmFoundSegment *found;		/* the segment in the directory; NULL until needed */
	LsmSegment	few[LSM_FEW_SEGMENTS];	/* all segments of a small run: see run_lookup.c */
	int			few_count;
	uint64		few_edits;		/* last edit of the version that `few` is from */
	uint64		few_run;		/* the run of these segments; 0: none */
	LsmFoundSegment *walked;	/* the place of a walk, see run_probe.c; NULL until needed */
	uint32		leaf;			/* number in the segment */
	LsmNearLeaf near;
	LsmReadAhead ahead;
	bool		is_near;		/* the latest seek's position is in the near leaf */
	bool		is_perhaps;		/* a filter has let the latest seek through */
	bool		copied;			/* `copy` holds the leaf */
	Page		copy;			/* NULL until needed */
	int			group;			/* next group to decode, in the scan's direction */
	LsmGroup	decoded;
	uint8	   *rests;			/* of decoded entries, if there is no copy; NULL until needed */
	LsmBound	here;			/* to find the position again */
	LsmGroup	last;			/* last group of a page; no scratch area until needed */
} LsmRunCursor;

extern void lsm_run_damaged(LsmRunCursor *c, uint32 page) __attribute__((noreturn));
extern Buffer lsm_run_read_page(LsmRunCursor *c, uint32 number, uint16 kind);
extern void lsm_run_set_direction(LsmRunCursor *c, ScanDirection direction);
extern bool lsm_run_search_directory(LsmRunCursor *c, const LsmBound *bound,
									 LsmFoundSegment **found);
extern bool lsm_run_find_segment(LsmRunCursor *c, const LsmBound *bound);
extern bool lsm_run_next_segment(LsmRunCursor *c);
extern bool lsm_run_begin_seek(LsmRunCursor *c, const LsmBound **from, ScanDirection direction);
extern bool lsm_run_enter_segment(LsmRunCursor *c, const LsmBound *from);
extern bool lsm_run_prepare_seek(LsmRunCursor *c, const LsmBound **from,
								 ScanDirection direction);
extern bool lsm_run_find_leaf(LsmRunCursor *c, const LsmBound *from);
extern Buffer lsm_run_read_leaf(LsmRunCursor *c, const LsmBound *from);
extern void lsm_run_note_near(LsmRunCursor *c, Buffer buffer);

#endif							/* LSM_RUN_SEARCH_H */
