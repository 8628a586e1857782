/*
 * scan_search.c
 *	  Finds the next match of a scan.
 *
 * The scan moves its reader from combination to combination (scankey/combinations.c), within bounds
 * that hold for the whole scan.  The place of the scan is the entry returned last, on which the
 * reader stands.  Changing direction, restoring a mark, and leaving a gate are all seeks to such an
 * entry.  See docs/design/scan-keys.md.
 *
 * A process of a parallel scan does the same within each range that it claims
 * (parallel_scan.c).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "scan/scan_state.h"
#include "utils/memutils.h"

/*
 * When several runs are merged, reading this many entries costs as much as a seek in one run.  With
 * 8, a scan for an array of every 300th key took twice as long when the index had 20 runs.
 */
#define MERGED_ENTRIES_PER_SEEK 4

/* Returns the memory context for one entry.  Each call resets it. */
static MemoryContext
get_entry_context(LsmScan *s)
{
	if (s->entry_context == NULL)
		s->entry_context = AllocSetContextCreate(s->context, "pg_lsm entry",
												 ALLOCSET_SMALL_SIZES);
	else
		MemoryContextReset(s->entry_context);
	return s->entry_context;
}

/* --- ranges ------------------------------------------------------------------ */

/* Make the bounds of the scan, and go to the first combination in this direction. */
static void
begin_combinations(LsmScan *s, ScanDirection direction)
{
	MemoryContext old = MemoryContextSwitchTo(s->key_context);

	lsm_combination_begin(&s->keys, direction);
	MemoryContextSwitchTo(old);
	lsm_pace_begin(s);
}

/*
 * Seek to the first entry in this direction.  A parallel scan claims its next range, and seeks to
 * the first entry of the range.  Returns false if a parallel scan has no range left.
 */
bool
lsm_scan_start_range(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	begin_combinations(s, direction);
	if (scan->parallel_scan != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(s->key_context);
		bool		found = lsm_parallel_claim(scan, &s->keys, s->reader, direction, &s->claim);

		MemoryContextSwitchTo(old);
		if (!found)
			return false;
	}
	lsm_count_search(scan);
	lsm_scan_seek(s, ScanDirectionIsForward(direction) ? &s->keys.low : &s->keys.high, direction);
	return true;
}

/* Start the next range of a parallel scan.  Returns false if none is left, or in a serial scan. */
static bool
start_next_range(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	if (scan->parallel_scan == NULL)
		return false;
	CHECK_FOR_INTERRUPTS();
	if (lsm_reader_must_leave(s->reader))
		lsm_scan_start_reading(scan);
	return lsm_scan_start_range(scan, direction);
}

/*
 * Move the reader past the entry that was returned last, to the mark, or to the beginning of a
 * range.  Returns false only if a parallel scan has no range left.
 */
static bool
move_to_candidate(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	if (s->place == PLACE_ON_ENTRY)
	{
		if (lsm_reader_must_leave(s->reader))
			lsm_scan_leave_gate(scan, direction);
		else if (direction != s->direction)
			lsm_scan_seek_past_entry(s, direction);
		else
			lsm_scan_next_entry(s);
		return true;
	}

	if (s->place == PLACE_PAUSED)
	{
		lsm_scan_resume(scan, direction);
		return true;
	}
	if (!s->is_reading)
		lsm_scan_start_reading(scan);
	if (s->place == PLACE_AT_MARK)
	{
		/* The scan takes the combination from the entry that the seek finds. */
		begin_combinations(s, direction);
		s->mark.tie = ScanDirectionIsForward(direction) ? -1 : 1;
		lsm_scan_seek(s, &s->mark, direction);
		return true;
	}
	return lsm_scan_start_range(scan, direction);
}

/* --- combinations ------------------------------------------------------------ */

/* Seek or look up the current combination, which begins at s->next. */
static void
seek_combination(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	lsm_count_search(scan);
	if (!lsm_pace_looks_up(s, scan->parallel_scan != NULL))
	{
		lsm_scan_seek(s, &s->next, s->direction);
		return;
	}
	lsm_combination_bound(&s->keys, &s->until, !ScanDirectionIsForward(s->direction));
	s->surely_in = 0;
	s->is_lookup = true;
	lsm_reader_seek(s->reader, &s->next, &s->until, s->direction);
	lsm_pace_note_lookup(s);
}

/*
 * Go to the next combination once the one that was looked up has been read.  Returns false if none
 * is left.
 */
static bool
go_past_lookup(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	CHECK_FOR_INTERRUPTS();
	if (lsm_combination_next(&s->keys, s->direction) == LSM_PLACE_END)
		return false;
	lsm_combination_bound(&s->keys, &s->next, ScanDirectionIsForward(s->direction));
	if (lsm_reader_must_leave(s->reader))
		lsm_scan_start_reading(scan);
	seek_combination(scan);
	return true;
}

/*
 * Move the reader to the beginning of the current combination, which is after the entry that the
 * reader stands on.  The reader may stop earlier: the scan places whatever entry comes next.
 */
static void
go_to_combination(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	LsmReader  *reader = s->reader;
	int			moved = 0;

	CHECK_FOR_INTERRUPTS();
	lsm_pace_note_next(s);
	lsm_combination_bound(&s->keys, &s->next, ScanDirectionIsForward(s->direction));
	if (lsm_reader_must_leave(reader))
		lsm_scan_start_reading(scan);
	else
	{
		/* After a seek, several runs have decoded next to nothing, but reading a little is cheap. */
		moved = lsm_reader_step(reader, &s->next,
								reader->child_count > 1 ? MERGED_ENTRIES_PER_SEEK : 0);
		if (moved == 0 && lsm_pace_tries_to_read_on(s))
		{
			moved = lsm_reader_step(reader, &s->next, reader->child_count == 1 ? LSM_ENTRIES_PER_SEEK :
									reader->child_count * MERGED_ENTRIES_PER_SEEK);
			lsm_pace_note_try(s, moved > 0);
		}
	}
	lsm_pace_note_move(s, moved);
	if (moved == 0)
		seek_combination(scan);
}

/*
 * Move the reader to the first of the next few entries that is in some combination, or else to the
 * last of them.
 */
static LsmPlace
find_combination(LsmScan *s)
{
	LsmCursor  *c = s->reader->cursor;
	int			count = s->reader->within ? Min(c->left + 1, s->pace.unplaced) : 1;
	int			n = lsm_combination_find(&s->keys, c->entry, c->stride, count);
	bool		found = n < count;

	lsm_reader_skip(s->reader, found ? n : n - 1);
	s->pace.unplaced -= found ? n + 1 : n;
	return found ? LSM_PLACE_IN : LSM_PLACE_OUTSIDE;
}

/*
 * Find the combination of the entry that the reader stands on, and whether the combination contains
 * all remaining entries that the reader has decoded (s->surely_in).  May move the reader past
 * entries that are in no combination.
 */
static LsmPlace
enter_combination(LsmScan *s)
{
	MemoryContext old = CurrentMemoryContext;
	LsmCursor  *c = s->reader->cursor;
	LsmPlace	place;

	if (s->surely_in > 0)
		return LSM_PLACE_IN;
	if (!s->ks->encoded)
		MemoryContextSwitchTo(get_entry_context(s));
	if (lsm_pace_filters(s))
		place = find_combination(s);
	else
	{
		place = lsm_combination_place(&s->keys, c->entry, s->direction);
		s->pace.found |= place == LSM_PLACE_IN;
		if (place == LSM_PLACE_IN && c->left > 0 &&
			lsm_combination_has(&s->keys, c->entry + c->stride * c->left))
		{
			lsm_pace_note_move(s, 0);
			s->surely_in = c->left + 1;
		}
		else if (place == LSM_PLACE_IN && !s->keys.is_same)
			lsm_pace_note_move(s, 1);
	}
	MemoryContextSwitchTo(old);
	return place;
}

/* --- matches ----------------------------------------------------------------- */

/* Does the entry that the reader stands on pass the filters? */
static bool
passes_filters(LsmScan *s)
{
	MemoryContext old = MemoryContextSwitchTo(get_entry_context(s));
	bool		pass = lsm_scankeys_pass(&s->keys, lsm_reader_entry(s->reader));

	MemoryContextSwitchTo(old);
	return pass;
}

/*
 * Move the reader to the next match, which may be the entry that the reader stands on.  Returns
 * false if the range has no more matches.  If VACUUM waits meanwhile, the scan leaves its gate.
 */
bool
lsm_scan_find_match(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	LsmReader  *reader = s->reader;

	for (;;)
	{
		LsmPlace	place = LSM_PLACE_IN;

		if (!lsm_reader_is_valid(reader) || lsm_reader_is_beyond(reader))
		{
			if (!s->is_lookup || !go_past_lookup(scan))
				return false;
			continue;
		}
		if (s->keys.has_combinations)
			place = enter_combination(s);
		if (place == LSM_PLACE_END)
			return false;
		if (place == LSM_PLACE_BEFORE)
		{
			go_to_combination(scan);
			continue;
		}
		if (place == LSM_PLACE_IN && (s->keys.filter_columns == 0 || passes_filters(s)))
			return true;
		CHECK_FOR_INTERRUPTS();
		if (lsm_reader_must_leave(reader))
			lsm_scan_leave_gate(scan, s->direction);
		else
			lsm_scan_next_entry(s);
	}
}

/* Called when the executor says that the row returned last is dead to everybody. */
static void
kill_last_entry(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	MemoryContext old = MemoryContextSwitchTo(s->context);

	if (lsm_kill_is_full(&s->kills))
		lsm_kill_flush(&s->kills, s->reader, scan->heapRelation);
	lsm_kill_note(&s->kills, s->reader, lsm_reader_entry(s->reader), scan->heapRelation);
	MemoryContextSwitchTo(old);
}

/* Move to the next match, in this range or a later one.  Returns false if there is none. */
bool
lsm_scan_next_match(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;
	bool		more;

	s->matches = 0;
	/* Some answers of the visibility map were wasted, so ask about few entries (index_only.c). */
	if (s->asked > 0)
		s->window = 0;
	s->asked = 0;
	lsm_scan_prepare(scan);
	if (s->keys.impossible)
		return false;
	if (s->place == PLACE_NOWHERE)
		pgstat_count_index_scan(scan->indexRelation);
	if (unlikely(scan->kill_prior_tuple && s->place == PLACE_ON_ENTRY))
		kill_last_entry(scan);
	more = move_to_candidate(scan, direction);
	while (more && !lsm_scan_find_match(scan))
		more = start_next_range(scan, direction);
	if (!more)
	{
		/* A later call starts again from one end. */
		lsm_scan_stop_reading(s);
		s->place = PLACE_NOWHERE;
		return false;
	}
	s->place = PLACE_ON_ENTRY;
	if (s->keys.filter_columns == 0 && s->reader->within &&
		(!s->keys.has_combinations || s->surely_in > 0))
		s->matches = s->reader->cursor->left;
	return true;
}
