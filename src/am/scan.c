/*
 * scan.c
 *	  Index scans: plain, index-only, bitmap; both directions; mark and restore.
 *
 * A scan moves a reader within the bounds of the current combination of array
 * elements.  Its place is the entry that it returned last, on which the reader
 * stands.  Changing direction, restoring a mark and moving to another gate are
 * all a seek to such an entry.  See "Reading" in src/README.md.
 *
 * A process of a parallel scan does the same within each range that it claims
 * (parallel.c).
 */
#include "postgres.h"

#include "access/relscan.h"
#include "am/am.h"
#include "am/parallel.h"
#include "am/remove.h"
#include "am/scankeys.h"
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

/* Where a scan is. */
typedef enum ScanPlace
{
	PLACE_NOWHERE,				/* starts from the end that the direction says */
	PLACE_ON_ENTRY,				/* the reader stands on the last entry returned */
	PLACE_AT_MARK				/* restored: goes on from the mark */
} ScanPlace;

typedef struct LsmScan
{
	LsmIndex   *index;
	LsmKeySpace *ks;
	LsmScanKeys keys;
	MemoryContext context;		/* everything of the scan */
	MemoryContext key_context;	/* until the next rescan */
	MemoryContext bound_context;	/* until the next combination of array elements */
	MemoryContext entry_context;	/* of filters: until the next entry */
	LsmTupleMaker *maker;		/* NULL until a tuple is asked for */

	LsmReader  *reader;			/* NULL until it is needed */
	MemoryContextCallback on_reset; /* of context */
	bool		is_reading;		/* the reader has a version for this scan */
	ScanDirection direction;	/* of the reader */
	ScanPlace	place;
	LsmKills	kills;			/* entries whose rows are dead */
	LsmScanClaim	claim;			/* of a parallel scan: what is being read */

	bool		has_mark;
	LsmBound	mark;
	int		   *mark_arrays;	/* current element of each array */
	LsmBound	here;			/* for seeks to the last entry */
} LsmScan;

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
	LsmScan    *s = palloc0(sizeof(LsmScan));

	s->context = context;
	s->index = lsm_index_open(rel);
	s->ks = lsm_index_keyspace(s->index);
	s->key_context = AllocSetContextCreate(context, "pg_lsm scan keys", ALLOCSET_SMALL_SIZES);
	s->bound_context = s->key_context;
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
		lsm_reader_count(s->reader);
		lsm_request_after_reads(s->index);
	}
	if (s->entry_context != NULL)
		MemoryContextReset(s->entry_context);
	MemoryContextReset(s->key_context);
	s->bound_context = s->key_context;
	old = MemoryContextSwitchTo(s->key_context);
	lsm_scankeys_prepare(&s->keys, s->ks, scan->keyData, scan->numberOfKeys);
	if (s->keys.array_count > 0)
		s->mark_arrays = palloc(s->keys.array_count * sizeof(int));
	if (s->keys.array_count > 0 || scan->parallel_scan != NULL)
		s->bound_context = AllocSetContextCreate(s->key_context, "pg_lsm bounds",
												 ALLOCSET_SMALL_SIZES);
	memset(&s->mark, 0, sizeof(LsmBound));
	memset(&s->here, 0, sizeof(LsmBound));
	memset(&s->claim, 0, sizeof(LsmScanClaim));
	MemoryContextSwitchTo(old);
	s->place = PLACE_NOWHERE;
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
	lsm_reader_seek(s->reader, from,
					ScanDirectionIsForward(direction) ? &s->keys.high : &s->keys.low,
					direction);
}

/* The bounds of the current combination of array elements. */
static void
make_bounds(LsmScan *s)
{
	MemoryContext old;

	if (s->bound_context != s->key_context)
	{
		MemoryContextReset(s->bound_context);
		lsm_scankeys_forget_bounds(&s->keys);
	}
	old = MemoryContextSwitchTo(s->bound_context);
	lsm_scankeys_make_bounds(&s->keys);
	MemoryContextSwitchTo(old);
}

/*
 * Go to the next combination of array elements, or to the first one, and make its
 * bounds.  False if there is none.
 */
static bool
next_combination(LsmScan *s, ScanDirection direction, bool first)
{
	if (first)
		lsm_scankeys_start_arrays(&s->keys, direction);
	else if (!lsm_scankeys_advance_arrays(&s->keys, direction))
		return false;
	make_bounds(s);
	return true;
}

/* The same in a parallel scan: the next range of ours, with its bounds. */
static bool
next_claim(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;
	MemoryContext old;

	if (s->claim.further > 0)
	{
		s->claim.further--;
		return next_combination(s, direction, false);
	}
	old = MemoryContextSwitchTo(s->key_context);
	if (lsm_parallel_begin_claim(scan, &s->keys, direction, &s->claim))
	{
		make_bounds(s);
		lsm_parallel_end_claim(scan, &s->keys, s->reader, direction, &s->claim);
		MemoryContextSwitchTo(old);
		return true;
	}
	MemoryContextSwitchTo(old);
	return false;
}

/*
 * Start the next range, or the first one, from its end: a combination of array
 * elements, or what was claimed.  False if there is none.  Several arrays may have
 * millions of combinations without a match.
 */
static bool
start_range(IndexScanDesc scan, ScanDirection direction, bool first)
{
	LsmScan    *s = scan->opaque;
	bool		found;

	CHECK_FOR_INTERRUPTS();
	if (scan->parallel_scan != NULL)
		found = next_claim(scan, direction);
	else
		found = next_combination(s, direction, first);
	if (!found)
		return false;
	lsm_count_search(scan);
	scan_seek(s, ScanDirectionIsForward(direction) ? &s->keys.low : &s->keys.high, direction);
	return true;
}

static void
set_here(LsmScan *s, ScanDirection direction)
{
	MemoryContext old = MemoryContextSwitchTo(s->key_context);

	lsm_bound_set_entry(&s->here, lsm_reader_entry(s->reader),
						ScanDirectionIsForward(direction) ? -1 : 1);
	MemoryContextSwitchTo(old);
}

/* Move the reader to the candidate after the last entry returned.  False: nothing is left. */
static bool
move_on(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	if (s->place == PLACE_ON_ENTRY)
	{
		if (lsm_reader_must_leave(s->reader))
		{
			/* VACUUM waits: take a new gate and what belongs to it, and move on. */
			set_here(s, direction);
			start_reading(scan);
			scan_seek(s, &s->here, direction);
		}
		else if (direction != s->direction)
		{
			set_here(s, direction);
			scan_seek(s, &s->here, direction);
		}
		else
			lsm_reader_next(s->reader);
		return true;
	}

	if (!s->is_reading)
		start_reading(scan);
	if (s->place == PLACE_AT_MARK)
	{
		make_bounds(s);
		s->mark.tie = ScanDirectionIsForward(direction) ? -1 : 1;
		scan_seek(s, &s->mark, direction);
		return true;
	}
	return start_range(scan, direction, true);
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
 * Is the reader on an entry of the current combination that passes?  A scan
 * that has a gate leaves it, when it must, also while it looks for one.
 */
static bool
find_match(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	LsmReader  *reader = s->reader;

	while (lsm_reader_is_valid(reader) && !lsm_reader_is_beyond(reader))
	{
		if (s->keys.filter_columns == 0 || passes_filters(s))
			return true;
		CHECK_FOR_INTERRUPTS();
		if (lsm_reader_must_leave(reader))
		{
			set_here(s, s->direction);
			start_reading(scan);
			scan_seek(s, &s->here, s->direction);
		}
		else
			lsm_reader_next(reader);
	}
	return false;
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

bool
lsm_am_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;
	const LsmEntry *entry;
	bool		more;

	if (s->keys.impossible)
		return false;
	if (s->place == PLACE_NOWHERE)
		pgstat_count_index_scan(scan->indexRelation);
	if (unlikely(scan->kill_prior_tuple && s->place == PLACE_ON_ENTRY))
		kill_entry(scan);
	more = move_on(scan, direction);
	while (more && !find_match(scan))
	{
		if (lsm_reader_must_leave(s->reader))
			start_reading(scan);
		more = start_range(scan, direction, false);
	}
	if (!more)
	{
		/* The end.  A later call comes back from this end. */
		stop_reading(s);
		s->place = PLACE_NOWHERE;
		return false;
	}

	s->place = PLACE_ON_ENTRY;
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
	for (bool more = start_range(scan, ForwardScanDirection, true); more;
		 more = start_range(scan, ForwardScanDirection, false))
	{
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
			lsm_reader_next(s->reader);
		}
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
		for (int i = 0; i < s->keys.array_count; i++)
			s->mark_arrays[i] = s->keys.arrays[i].current;
	}
	else if (s->place == PLACE_NOWHERE)
		s->has_mark = false;
	MemoryContextSwitchTo(old);
}

void
lsm_am_restore(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	if (!s->has_mark)
	{
		s->place = PLACE_NOWHERE;
		return;
	}
	for (int i = 0; i < s->keys.array_count; i++)
		s->keys.arrays[i].current = s->mark_arrays[i];
	s->place = PLACE_AT_MARK;
}
