/*
 * scan_state.h
 *	  The state of a scan, and its smallest step.  For this directory only.
 */
#ifndef LSM_SCAN_STATE_H
#define LSM_SCAN_STATE_H

#include "access/relscan.h"
#include "scan/parallel_scan.h"
#include "scan/kill_dead.h"
#include "scankey/scankey.h"
#include "key/tuple.h"
#include "read/reader.h"

/* The place of a scan. */
typedef enum ScanPlace
{
	PLACE_NOWHERE,				/* the next call starts from one end */
	PLACE_ON_ENTRY,				/* the reader stands on the entry returned last */
	PLACE_AT_MARK,				/* restored: the next call continues from the mark */
	PLACE_PAUSED				/* the next call continues after the entry in `here` */
} ScanPlace;

/* The latest moves between combinations; see scan_pace.c. */
typedef struct LsmPace
{
	int			seeks;			/* and lookups since reading on last failed */
	int			wait;			/* value of `seeks` at which the scan tries again */
	bool		is_sought;		/* the current combination was sought, not looked up */
	uint64		sought;			/* is_sought: number of the combination */
	bool		found;			/* is_sought: the combination has entries */
	int			lookups;		/* lookups that may fail until the next seek */
	int			near;			/* combinations in a row that were a few entries away */
	int			unplaced;		/* entries to filter before the next entry is placed */
} LsmPace;

typedef struct LsmScan
{
	LsmIndex   *index;
	LsmKeySpace *ks;
	MemoryContext context;		/* everything of the scan */
	MemoryContext key_context;	/* until the next rescan */
	MemoryContext entry_context;	/* until the next entry; NULL until it is needed */
	LsmTupleMaker *maker;		/* NULL until a tuple is requested */

	LsmReader  *reader;			/* NULL until it is needed */
	MemoryContextCallback on_reset; /* of context */
	bool		is_prepared;	/* keys are those of the latest rescan */
	bool		is_reading;		/* the reader has a version for this scan */
	ScanDirection direction;	/* of the reader */
	ScanPlace	place;
	LsmKills	kills;			/* entries whose rows are dead */
	LsmReadCounters counted;	/* counters that were taken from the reader */

	bool		has_mark;
	bool		is_lookup;		/* the reader has entries of the current combination only */
	int			surely_in;		/* this many next entries are in the current combination */
	int			matches;		/* further entries of the array that match */
	LsmPace		pace;

	/* The visibility map, index_only.c. */
	int			asked;			/* further entries whose pages were looked up in the map */
	uint64		visible;		/* a bit for each, from the lowest: its page is all-visible */
	int			window;			/* the number looked up last; 0: start over */

	/* Large, so they come last: the first fetch initializes them. */
	LsmScanKeys keys;
	LsmBound	claim;			/* parallel: where the claimed range begins */
	LsmBound	mark;
	LsmBound	here;			/* after the entry returned last */
	LsmBound	next;			/* where the current combination begins */
	LsmBound	until;			/* is_lookup: where the current combination ends */
} LsmScan;

static inline void
lsm_scan_next_entry(LsmScan *s)
{
	s->surely_in -= s->surely_in > 0;
	lsm_reader_next(s->reader);
}

/* Is the next entry the next match, so that lsm_scan_step may go to it? */
static inline bool
lsm_scan_can_step(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	return s->matches > 0 && direction == s->direction && !scan->kill_prior_tuple &&
		!lsm_reader_must_leave(s->reader);
}

/* Returns the entry that a step leads to.  REQUIRES: lsm_scan_can_step. */
static inline const LsmEntry *
lsm_scan_peek(const LsmScan *s)
{
	return s->reader->cursor->entry + s->reader->cursor->stride;
}

/* Step to the next match.  REQUIRES: lsm_scan_can_step. */
static inline void
lsm_scan_step(LsmScan *s)
{
	s->matches--;
	s->asked -= s->asked > 0;
	s->visible >>= 1;
	lsm_scan_next_entry(s);
}

/* scan_keys.c */
extern void lsm_scan_prepare(IndexScanDesc scan);

/* scan_reader.c */
extern void lsm_scan_start_reading(IndexScanDesc scan);
extern void lsm_scan_stop_reading(LsmScan *s);
extern void lsm_scan_seek(LsmScan *s, const LsmBound *from, ScanDirection direction);
extern void lsm_scan_seek_past_entry(LsmScan *s, ScanDirection direction);
extern void lsm_scan_leave_gate(IndexScanDesc scan, ScanDirection direction);
extern void lsm_scan_pause_reading(LsmScan *s);
extern void lsm_scan_resume(IndexScanDesc scan, ScanDirection direction);

/* scan_pace.c */
extern void lsm_pace_begin(LsmScan *s);
extern void lsm_pace_note_next(LsmScan *s);
extern bool lsm_pace_tries_to_read_on(const LsmScan *s);
extern void lsm_pace_note_try(LsmScan *s, bool succeeded);
extern bool lsm_pace_looks_up(LsmScan *s, bool is_parallel);
extern void lsm_pace_note_lookup(LsmScan *s);
extern bool lsm_pace_filters(LsmScan *s);
extern void lsm_pace_note_move(LsmScan *s, int moved);

/* scan_search.c */
extern bool lsm_scan_next_match(IndexScanDesc scan, ScanDirection direction);
extern bool lsm_scan_start_range(IndexScanDesc scan, ScanDirection direction);
extern bool lsm_scan_find_match(IndexScanDesc scan);

#endif							/* LSM_SCAN_STATE_H */
