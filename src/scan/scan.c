/*
 * scan.c
 *	  Index scans: plain, index-only, bitmap; both directions; mark and restore.
 *
 * A scan moves a reader from combination to combination (combinations.c), within
 * bounds that hold for the whole scan.  Its place is the entry that it returned last, on which the reader
 * stands.  Changing direction, restoring a mark and moving to another gate are
 * all a seek to such an entry.  See docs/design/scan-keys.md.
 *
 * A process of a parallel scan does the same within each range that it claims
 * (parallel.c).
 */
#include "postgres.h"

#include "access/relscan.h"
#include "scan/scan.h"
#include "scan/scan_state.h"
#include "ingest/batch.h"
#include "key/tuple.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "read/reader.h"
#include "schedule/schedule.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* Seeks after which a scan that starts again is counted. */
#define SEEKS_KEPT 256

/*
 * Entries that cost as much to read as a seek in one run, when several runs are merged.
 * With 8, an array of every 300th key took twice as long in 20 runs.
 */
#define MERGED_ENTRIES_PER_SEEK 4

/* Seeks until the scan tries to read on, at first and at most; see go_to_combination. */
#define FIRST_WAIT		2
#define LONGEST_WAIT	64

/* Lookups that may fail between two seeks. */
#define MOST_LOOKUPS	15

bool
lsm_am_can_return(Relation index, int attno)
{
	return true;				/* what was stored comes back exactly */
}

/* The scan's memory goes, perhaps after an error: then the reader is still held. */
static void
abandon_reader(void *arg)
{
	LsmScan    *s = arg;

	if (s->reader != NULL)
		lsm_reader_abandon(s->reader);
	s->reader = NULL;
}

IndexScanDesc
lsm_am_begin_scan(Relation rel, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(rel, nkeys, norderbys);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm scan",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	LsmScan    *s = palloc(sizeof(LsmScan));

	memset(s, 0, offsetof(LsmScan, keys));
	s->context = context;
	s->index = lsm_index_open(rel);
	s->ks = lsm_index_keyspace(s->index);
	s->key_context = AllocSetContextCreate(context, "pg_lsm scan keys", ALLOCSET_SMALL_SIZES);
	s->on_reset.func = abandon_reader;
	s->on_reset.arg = s;
	MemoryContextRegisterResetCallback(context, &s->on_reset);
	MemoryContextSwitchTo(old);

	scan->xs_itupdesc = RelationGetDescr(rel);
	scan->opaque = s;
	return scan;
}

/* Let go of the version and the gate. */
static void
stop_reading(LsmScan *s)
{
	if (s->is_reading)
		lsm_reader_let_go(s->reader);
	s->is_reading = false;
}

/* Take a version, with the gate if this scan's TIDs need the interlock. */
static void
start_reading(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	lsm_batch_flush_for_scan(scan->indexRelation, scan->xs_snapshot);
	if (s->reader == NULL)
		lsm_reader_hold(lsm_reader_acquire(s->index, 0, scan->xs_snapshot, false, NULL),
						&s->reader);
	s->reader->cx.snapshot = scan->xs_snapshot;
	s->reader->needs_gate = scan->xs_want_itup || !IsMVCCSnapshot(scan->xs_snapshot);
	if (scan->xs_snapshot->snapshot_type == SNAPSHOT_DIRTY)
		s->reader->cx.looked_for = lsm_looked_for_get(s->index->id);
	lsm_reader_refresh(s->reader);
	s->is_reading = true;
}

void
lsm_am_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	LsmScan    *s = scan->opaque;
	MemoryContext old;

	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	stop_reading(s);
	lsm_kill_flush(&s->kills, s->reader, scan->heapRelation);
	/* The inner side of a join: workers are not to learn only at its end what it costs. */
	if (s->reader != NULL && s->reader->cx.counters.seeks >= SEEKS_KEPT)
	{
		lsm_counters_add(&s->counted, &s->reader->cx.counters);
		lsm_reader_count(s->reader);
		lsm_request_after_reads(s->index);
	}
	if (s->entry_context != NULL)
		MemoryContextReset(s->entry_context);
	MemoryContextReset(s->key_context);
	old = MemoryContextSwitchTo(s->key_context);
	lsm_scankeys_prepare(&s->keys, s->ks, scan->keyData, scan->numberOfKeys);
	lsm_bound_clear(&s->mark);
	lsm_bound_clear(&s->here);
	lsm_bound_clear(&s->next);
	lsm_bound_clear(&s->until);
	lsm_bound_clear(&s->claim.start);
	MemoryContextSwitchTo(old);
	s->place = PLACE_NOWHERE;
	s->matches = 0;
	s->window = 0;
	s->has_mark = false;
}

/* Memory that the next entry does not need any more. */
static MemoryContext
entry_context(LsmScan *s)
{
	if (s->entry_context == NULL)
		s->entry_context = AllocSetContextCreate(s->context, "pg_lsm entry",
												 ALLOCSET_SMALL_SIZES);
	else
		MemoryContextReset(s->entry_context);
	return s->entry_context;
}

static void
scan_seek(LsmScan *s, const LsmBound *from, ScanDirection direction)
{
	s->direction = direction;
	s->surely_in = 0;
	s->is_lookup = false;
	lsm_reader_seek(s->reader, from,
					ScanDirectionIsForward(direction) ? &s->keys.high : &s->keys.low,
					direction);
}

/* Are there filters that tell which runs do not have a combination? */
static bool
can_look_up(const LsmScan *s)
{
	return s->keys.are_keys ||
		(s->keys.are_prefixes && s->reader->cx.packed_count > 1 &&
		 s->reader->cx.prefix_columns > 0);
}

/* The current combination is sought, not looked up: see judge_lookups. */
static void
note_sought(LsmScan *s)
{
	s->pace.is_sought = can_look_up(s);
	s->pace.found = false;
	if (s->pace.is_sought)
		s->pace.sought = lsm_combination_number(&s->keys);
}

/* Make the bounds, and begin with the first combination in this direction. */
static void
begin_combinations(LsmScan *s, ScanDirection direction)
{
	MemoryContext old = MemoryContextSwitchTo(s->key_context);

	lsm_combination_begin(&s->keys, direction);
	memset(&s->pace, 0, sizeof(LsmPace));
	s->pace.wait = FIRST_WAIT;
	MemoryContextSwitchTo(old);
	note_sought(s);
}

/*
 * Start from the end that the direction says.  In a parallel scan that is the end of
 * the next range that is ours; false if there is none.
 */
static bool
start_range(IndexScanDesc scan, ScanDirection direction)
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
	scan_seek(s, ScanDirectionIsForward(direction) ? &s->keys.low : &s->keys.high, direction);
	return true;
}

/* The range is read.  Is there another one, and is it begun? */
static bool
start_next_range(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	if (scan->parallel_scan == NULL)
		return false;
	CHECK_FOR_INTERRUPTS();
	if (lsm_reader_must_leave(s->reader))
		start_reading(scan);
	return start_range(scan, direction);
}

static void
set_here(LsmScan *s, ScanDirection direction)
{
	MemoryContext old = MemoryContextSwitchTo(s->key_context);

	lsm_bound_set_entry(&s->here, lsm_reader_entry(s->reader),
						ScanDirectionIsForward(direction) ? -1 : 1);
	MemoryContextSwitchTo(old);
}

/* VACUUM waits: take a new gate and what belongs to it, and move on behind the entry. */
static void
leave_gate(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	set_here(s, direction);
	start_reading(scan);
	scan_seek(s, &s->here, direction);
}

/* Move the reader to the candidate after the last entry returned.  False: nothing is left. */
static bool
move_on(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	if (s->place == PLACE_ON_ENTRY)
	{
		if (lsm_reader_must_leave(s->reader))
			leave_gate(scan, direction);
		else if (direction != s->direction)
		{
			set_here(s, direction);
			scan_seek(s, &s->here, direction);
		}
		else
			lsm_scan_next_entry(s);
		return true;
	}

	if (!s->is_reading)
		start_reading(scan);
	if (s->place == PLACE_AT_MARK)
	{
		/* The entry that is found tells the combination. */
		begin_combinations(s, direction);
		s->mark.tie = ScanDirectionIsForward(direction) ? -1 : 1;
		scan_seek(s, &s->mark, direction);
		return true;
	}
	return start_range(scan, direction);
}

/* --- combinations ----------------------------------------------------------- */

/*
 * The current combination was sought, and the entry found behind it tells the next one that
 * may exist.  If the two are neighbours, the scan may look combinations up one by one.  If
 * the seek passed others, lookups do not pay: they do not tell how far the next one is.
 * Nor do they pay in a single run that has the combination: its filter cannot skip it.
 */
static void
judge_lookups(LsmScan *s)
{
	LsmPace    *pace = &s->pace;
	uint64		number = lsm_combination_number(&s->keys);
	uint64		passed = number > pace->sought ? number - pace->sought : pace->sought - number;

	pace->is_sought = false;
	pace->lookups = passed > 1 || (pace->found && s->reader->child_count == 1) ? 0 : MOST_LOOKUPS;
}

/*
 * Go to where the current combination begins (s->next).  If filters tell which runs do
 * not have it, it is looked up, that is, sought by itself.  The reader stands nowhere
 * behind the combination then, so now and then it is sought instead, for reading on to
 * be tried.  In a parallel scan always: the range may end within the combination.
 */
static void
seek_combination(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	LsmPace    *pace = &s->pace;

	pace->seeks++;
	lsm_count_search(scan);
	if (scan->parallel_scan != NULL || !can_look_up(s) ||
		pace->seeks >= pace->wait || pace->lookups == 0)
	{
		note_sought(s);
		scan_seek(s, &s->next, s->direction);
		return;
	}
	lsm_combination_bound(&s->keys, &s->until, !ScanDirectionIsForward(s->direction));
	s->surely_in = 0;
	s->is_lookup = true;
	lsm_reader_seek(s->reader, &s->next, &s->until, s->direction);
	if (!lsm_reader_is_valid(s->reader))
		pace->lookups--;
	else if (s->reader->child_count == 1)
		pace->lookups = 0;
}

/* The combination that was looked up is read.  Go to the next one; false if there is none. */
static bool
look_up_next(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	CHECK_FOR_INTERRUPTS();
	if (lsm_combination_next(&s->keys, s->direction) == LSM_PLACE_END)
		return false;
	lsm_combination_bound(&s->keys, &s->next, ScanDirectionIsForward(s->direction));
	if (lsm_reader_must_leave(s->reader))
		start_reading(scan);
	seek_combination(scan);
	return true;
}

/*
 * Move the reader to where the current combination begins, which is behind the entry it
 * stands on, or part of the way: the scan places whatever entry comes next.
 *
 * Within the array that the reader has decoded the move is cheap.  Beyond the array, a seek
 * costs as much as reading some entries, and nobody knows how many lie between.  So the
 * scan tries to read on; when that fails it seeks, and tries again after a number of seeks
 * that doubles with each failure.
 */
static void
go_to_combination(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	LsmReader  *reader = s->reader;
	LsmPace    *pace = &s->pace;
	int			moved = 0;

	CHECK_FOR_INTERRUPTS();
	if (pace->is_sought)
		judge_lookups(s);
	lsm_combination_bound(&s->keys, &s->next, ScanDirectionIsForward(s->direction));
	if (lsm_reader_must_leave(reader))
		start_reading(scan);
	else
	{
		bool		try = pace->seeks >= pace->wait;

		/* After a seek, which is dear, a merge has decoded next to nothing. */
		moved = lsm_reader_step(reader, &s->next,
								reader->child_count > 1 ? MERGED_ENTRIES_PER_SEEK : 0);
		if (moved == 0 && try)
		{
			moved = lsm_reader_step(reader, &s->next, reader->child_count == 1 ? LSM_ENTRIES_PER_SEEK :
									reader->child_count * MERGED_ENTRIES_PER_SEEK);
			pace->wait = moved > 0 ? FIRST_WAIT : Min(2 * pace->wait, LONGEST_WAIT);
			if (moved == 0)
				pace->seeks = 0;
		}
	}
	if (moved == 0)
		seek_combination(scan);
}

/*
 * Find out which combination the entry belongs to that the reader stands on.  If it
 * is the same one as before, the whole array may be in it.
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
		MemoryContextSwitchTo(entry_context(s));
	place = lsm_combination_place(&s->keys, c->entry, s->direction);
	s->pace.found |= place == LSM_PLACE_IN;
	if (place == LSM_PLACE_IN && s->keys.is_same && c->left > 0 &&
		lsm_combination_has(&s->keys, c->entry + c->stride * c->left))
		s->surely_in = c->left + 1;
	MemoryContextSwitchTo(old);
	return place;
}

/* Do the filters let the entry pass that the reader stands on? */
static bool
passes_filters(LsmScan *s)
{
	MemoryContext old = MemoryContextSwitchTo(entry_context(s));
	bool		pass = lsm_scankeys_pass(&s->keys, lsm_reader_entry(s->reader));

	MemoryContextSwitchTo(old);
	return pass;
}

/*
 * Is the reader on an entry that passes, or can be moved to one?  A scan that has a
 * gate leaves it, when it must, also while it looks for one.
 */
static bool
find_match(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	LsmReader  *reader = s->reader;

	for (;;)
	{
		if (!lsm_reader_is_valid(reader) || lsm_reader_is_beyond(reader))
		{
			if (!s->is_lookup || !look_up_next(scan))
				return false;
			continue;
		}
		if (s->keys.has_combinations)
		{
			LsmPlace	place = enter_combination(s);

			if (place == LSM_PLACE_END)
				return false;
			if (place == LSM_PLACE_BEHIND)
			{
				go_to_combination(scan);
				continue;
			}
		}
		if (s->keys.filter_columns == 0 || passes_filters(s))
			return true;
		CHECK_FOR_INTERRUPTS();
		if (lsm_reader_must_leave(reader))
			leave_gate(scan, s->direction);
		else
			lsm_scan_next_entry(s);
	}
}

static inline LsmTupleMaker *
tuple_maker(LsmScan *s)
{
	if (unlikely(s->maker == NULL))
	{
		MemoryContext old = MemoryContextSwitchTo(s->context);

		s->maker = lsm_tuple_maker_create(s->ks);
		MemoryContextSwitchTo(old);
	}
	return s->maker;
}

/* The row of the entry that was returned last is dead to everybody. */
static void
kill_entry(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	MemoryContext old = MemoryContextSwitchTo(s->context);

	if (lsm_kill_is_full(&s->kills))
		lsm_kill_flush(&s->kills, s->reader, scan->heapRelation);
	lsm_kill_note(&s->kills, s->reader, lsm_reader_entry(s->reader), scan->heapRelation);
	MemoryContextSwitchTo(old);
}

/* Get to the next match, wherever that is. */
static bool
go_to_match(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;
	bool		more;

	s->matches = 0;
	/* Answers about pages that are thrown away: begin with few again. */
	if (s->asked > 0)
		s->window = 0;
	s->asked = 0;
	if (s->keys.impossible)
		return false;
	if (s->place == PLACE_NOWHERE)
		pgstat_count_index_scan(scan->indexRelation);
	if (unlikely(scan->kill_prior_tuple && s->place == PLACE_ON_ENTRY))
		kill_entry(scan);
	more = move_on(scan, direction);
	while (more && !find_match(scan))
		more = start_next_range(scan, direction);
	if (!more)
	{
		/* The end.  A later call comes back from this end. */
		stop_reading(s);
		s->place = PLACE_NOWHERE;
		return false;
	}
	s->place = PLACE_ON_ENTRY;
	if (s->keys.filter_columns == 0 && s->reader->within &&
		(!s->keys.has_combinations || s->surely_in > 0))
		s->matches = s->reader->cursor->left;
	return true;
}

bool
lsm_am_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;
	const LsmEntry *entry;

	if (lsm_scan_can_step(scan, direction))
		lsm_scan_step(s);
	else if (!go_to_match(scan, direction))
		return false;
	entry = lsm_reader_entry(s->reader);
	scan->xs_recheck = false;
	lsm_int_to_tid(entry->tid, &scan->xs_heaptid);
	if (scan->xs_want_itup)
		scan->xs_itup = lsm_tuple_make(tuple_maker(s), entry);
	return true;
}

/* TIDs that go to the bitmap in one call. */
#define BITMAP_TIDS 64

/*
 * A bitmap has no order, but a reader that has to take a newer version must know
 * what it has given out.  Bitmap scans have MVCC snapshots and need no gate.
 */
int64
lsm_am_get_bitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	LsmScan    *s = scan->opaque;
	ItemPointerData tids[BITMAP_TIDS];
	int			n = 0;
	int64		count = 0;

	if (s->keys.impossible)
		return 0;
	pgstat_count_index_scan(scan->indexRelation);
	start_reading(scan);
	Assert(!s->reader->needs_gate);
	(void) start_range(scan, ForwardScanDirection);
	while (find_match(scan))
	{
		lsm_int_to_tid(lsm_reader_entry(s->reader)->tid, &tids[n++]);
		if (n == BITMAP_TIDS)
		{
			tbm_add_tuples(tbm, tids, n, false);
			count += n;
			n = 0;
			CHECK_FOR_INTERRUPTS();
		}
		lsm_scan_next_entry(s);
	}
	if (n > 0)
		tbm_add_tuples(tbm, tids, n, false);
	stop_reading(s);
	s->place = PLACE_NOWHERE;
	return count + n;
}

void
lsm_am_end_scan(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	stop_reading(s);
	lsm_kill_flush(&s->kills, s->reader, scan->heapRelation);
	if (s->reader != NULL)
	{
		lsm_reader_release(s->reader);
		lsm_request_after_reads(s->index);
	}
	s->reader = NULL;
	MemoryContextDelete(s->context);
}

/*
 * What the scan has read so far, over all its rescans.  It removes what it has found
 * dead before: that belongs to it, too.
 */
void
lsm_scan_reads(IndexScanDesc scan, LsmReadCounters *reads)
{
	LsmScan    *s = scan->opaque;

	*reads = s->counted;
	if (s->reader == NULL)
		return;
	lsm_kill_flush(&s->kills, s->reader, scan->heapRelation);
	lsm_counters_add(reads, &s->reader->cx.counters);
}

void
lsm_am_mark(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	MemoryContext old = MemoryContextSwitchTo(s->key_context);

	/* What others have claimed since cannot be given back; core does not ask for it. */
	if (scan->parallel_scan != NULL)
		elog(ERROR, "a parallel scan cannot be marked");
	if (s->place == PLACE_ON_ENTRY)
	{
		lsm_bound_set_entry(&s->mark, lsm_reader_entry(s->reader), -1);
		s->has_mark = true;
	}
	else if (s->place == PLACE_NOWHERE)
		s->has_mark = false;
	MemoryContextSwitchTo(old);
}

void
lsm_am_restore(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	s->matches = 0;
	if (!s->has_mark)
	{
		s->place = PLACE_NOWHERE;
		return;
	}
	s->place = PLACE_AT_MARK;
}
