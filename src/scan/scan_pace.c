/*
 * scan_pace.c
 *	  Decides how a scan gets to the next combination, judging by its latest moves.
 *
 * scan_search.c asks this file whether to read on or to seek, and whether to look up a combination.
 * Any answer is correct, and affects only speed. (But the scan filters only if keys.can_filter is
 * set, and s->pace.unplaced entries.)
 *
 * Reading on is cheap within the array that the reader has decoded.  Beyond the array, a seek costs
 * as much as reading a certain number of entries, and the scan does not know how many entries come
 * before the combination.  So the scan tries to read on.  If that fails, the scan seeks, and tries
 * again after a number of seeks that doubles with each failure.
 *
 * If filters tell which runs lack a combination, the scan may look up the combination, that is,
 * seek only its entries.  But then the reader does not stand on an entry after the combination.  So
 * the scan sometimes seeks instead, in order to try to read on.
 *
 * If the next combination is always a few entries away, finding it costs more than reading these
 * entries.  Then the scan only tests whether each entry is in some combination.
 *
 * With 40 runs, an array of 1000 keys takes 0.63 of the time of seeking each key (0.5 if the keys do
 * not exist).  Filtering makes conditions on later columns alone up to 12 times as fast.
 */
#include "postgres.h"

#include "scan/scan_state.h"

/* The number of seeks until the scan tries to read on, at first and at most. */
#define FIRST_WAIT		2
#define LONGEST_WAIT	64

/* The number of lookups that may fail between two seeks. */
#define MOST_LOOKUPS	15

/*
 * After 2 to NEAR_MOVES moves in a row by at most FEW_ENTRIES, the scan filters FILTERED_ENTRIES.  (A
 * move to an entry of the next combination counts twice.)
 */
#define NEAR_MOVES		4
#define FEW_ENTRIES		8
#define FILTERED_ENTRIES 64

/* Are there filters that tell which runs lack a combination? */
static bool
has_lookup_filters(const LsmScan *s)
{
	return s->keys.are_keys ||
		(s->keys.are_prefixes && s->reader->cx.packed_count > 1 &&
		 s->reader->cx.prefix_columns > 0);
}

/* Note that the scan seeks the current combination. */
static void
note_sought_combination(LsmScan *s)
{
	s->pace.is_sought = has_lookup_filters(s);
	s->pace.found = false;
	if (s->pace.is_sought)
		s->pace.sought = lsm_combination_number(&s->keys);
}

/* Called when the scan goes to its first combination. */
void
lsm_pace_begin(LsmScan *s)
{
	memset(&s->pace, 0, sizeof(LsmPace));
	s->pace.wait = FIRST_WAIT;
	note_sought_combination(s);
}

/*
 * Called when the scan has placed an entry after a combination.  The next combination is now
 * current.  If the scan sought the previous combination, decide whether lookups may pay.  They may
 * pay if the two combinations are neighbors.  They do not pay if the seek passed other
 * combinations: lookups do not tell how far away the next entry is.  Nor do they pay if there is a
 * single run and it has the combination, since its filter cannot rule out the combination.
 */
void
lsm_pace_note_next(LsmScan *s)
{
	LsmPace    *pace = &s->pace;
	uint64		number;
	uint64		passed;

	if (!pace->is_sought)
		return;
	number = lsm_combination_number(&s->keys);
	passed = number > pace->sought ? number - pace->sought : pace->sought - number;
	pace->is_sought = false;
	pace->lookups = passed > 1 || (pace->found && s->reader->child_count == 1) ? 0 : MOST_LOOKUPS;
}

/* Should the scan try to read on before it seeks? */
bool
lsm_pace_tries_to_read_on(const LsmScan *s)
{
	return s->pace.seeks >= s->pace.wait;
}

/* Note that the scan has tried to read on. */
void
lsm_pace_note_try(LsmScan *s, bool succeeded)
{
	LsmPace    *pace = &s->pace;

	pace->wait = succeeded ? FIRST_WAIT : Min(2 * pace->wait, LONGEST_WAIT);
	if (!succeeded)
		pace->seeks = 0;
}

/*
 * Should the scan look up the current combination?  Otherwise it seeks the combination.  A parallel
 * scan always seeks: its range may end within the combination.
 */
bool
lsm_pace_looks_up(LsmScan *s, bool is_parallel)
{
	LsmPace    *pace = &s->pace;

	pace->seeks++;
	if (!is_parallel && has_lookup_filters(s) && pace->seeks < pace->wait && pace->lookups > 0)
		return true;
	note_sought_combination(s);
	return false;
}

/* Note that the scan has looked up a combination. */
void
lsm_pace_note_lookup(LsmScan *s)
{
	if (!lsm_reader_is_valid(s->reader))
		s->pace.lookups--;
	else if (s->reader->child_count == 1)
		s->pace.lookups = 0;
}

/*
 * Should the scan test whether the next s->pace.unplaced entries are in some combination?
 * Otherwise it places the next entry.
 */
bool
lsm_pace_filters(LsmScan *s)
{
	LsmPace    *pace = &s->pace;

	if (pace->unplaced > 0)
		return true;
	if (pace->near < NEAR_MOVES)
		return false;
	pace->near = NEAR_MOVES - 1;
	pace->unplaced = FILTERED_ENTRIES;
	return false;
}

/*
 * Note that the scan has moved to another combination by `moved` entries.  0: by a seek, or the
 * combination has many entries.
 */
void
lsm_pace_note_move(LsmScan *s, int moved)
{
	if (moved >= 1 && moved <= FEW_ENTRIES)
		s->pace.near += s->keys.can_filter;
	else
		s->pace.near = s->pace.unplaced = 0;
}
