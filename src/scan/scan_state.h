/*
 * scan_state.h
 *	  What a scan is in the middle of, and its smallest step.
 */
#ifndef LSM_SCAN_STATE_H
#define LSM_SCAN_STATE_H

#include "access/relscan.h"
#include "scan/parallel_scan.h"
#include "scan/kill_dead.h"
#include "scankey/scankey.h"
#include "key/tuple.h"
#include "read/reader.h"

/* Where a scan is. */
typedef enum ScanPlace
{
	PLACE_NOWHERE,				/* starts from the end that the direction says */
	PLACE_ON_ENTRY,				/* the reader stands on the last entry returned */
	PLACE_AT_MARK				/* restored: goes on from the mark */
} ScanPlace;

/* How the scan gets to the next combination, judged by its latest moves. */
typedef struct LsmPace
{
	int			seeks;			/* since the scan last tried to read on */
	int			wait;			/* seeks until it tries again */
	bool		is_sought;		/* the current combination was sought, not looked up */
	uint64		sought;			/* its number, if so */
	bool		found;			/* it has entries */
	int			lookups;		/* so many lookups may fail until the next seek */
} LsmPace;

typedef struct LsmScan
{
	LsmIndex   *index;
	LsmKeySpace *ks;
	MemoryContext context;		/* everything of the scan */
	MemoryContext key_context;	/* until the next rescan */
	MemoryContext entry_context;	/* of filters and comparisons: until the next entry */
	LsmTupleMaker *maker;		/* NULL until a tuple is asked for */

	LsmReader  *reader;			/* NULL until it is needed */
	MemoryContextCallback on_reset; /* of context */
	bool		is_reading;		/* the reader has a version for this scan */
	ScanDirection direction;	/* of the reader */
	ScanPlace	place;
	LsmKills	kills;			/* entries whose rows are dead */
	LsmReadCounters counted;	/* that the reader does not have any more */

	bool		has_mark;
	bool		is_lookup;		/* the reader has entries of the current combination only */
	int			surely_in;		/* so many further entries are in it, too */
	int			matches;		/* so many further entries of the array surely match */
	int			asked;			/* of the next so many it is known whether their page is all visible: */
	uint64		visible;		/* a bit for each, the lowest is the next one's */
	int			window;			/* so many might be asked about together, the last time */
	LsmPace		pace;

	/* Large, and behind all else: a scan that begins leaves them to its first rescan. */
	LsmScanKeys keys;
	LsmScanClaim claim;			/* of a parallel scan: what is being read */
	LsmBound	mark;
	LsmBound	here;			/* for seeks to the last entry */
	LsmBound	next;			/* where the current combination begins */
	LsmBound	until;			/* where it ends, if it is looked up */
} LsmScan;

static inline void
lsm_scan_next_entry(LsmScan *s)
{
	s->surely_in -= s->surely_in > 0;
	lsm_reader_next(s->reader);
}

/*
 * Is the next entry in the array, and does it match as all of it do?  False if it may
 * take more than lsm_scan_step to get to the next match.
 */
static inline bool
lsm_scan_can_step(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	return s->matches > 0 && direction == s->direction && !scan->kill_prior_tuple &&
		!lsm_reader_must_leave(s->reader);
}

/* The entry that a step leads to.  REQUIRES: lsm_scan_can_step. */
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

#endif							/* LSM_SCAN_STATE_H */
