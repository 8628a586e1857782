/*
 * scan.c
 *	  The callbacks of index scans: plain, index-only and bitmap scans, mark and restore.
 *
 * scan_search.c finds the entries, scan_reader.c manages the reader, and parallel_scan.c has the
 * callbacks of parallel scans.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "scan/scan.h"
#include "scan/scan_state.h"
#include "schedule/schedule.h"
#include "utils/memutils.h"

/* The number of seeks after which a rescan adds the scan's counters to those of the index. */
#define SEEKS_KEPT 256

/* TIDs that go to the bitmap in one call. */
#define BITMAP_TIDS 64

bool
lsm_am_can_return(Relation index, int attno)
{
	return true;				/* keys are stored exactly, encoded or not */
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
	lsm_reader_give_up_on_reset(&s->reader, &s->on_reset);
	MemoryContextSwitchTo(old);

	scan->xs_itupdesc = RelationGetDescr(rel);
	scan->opaque = s;
	return scan;
}

void
lsm_am_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	LsmScan    *s = scan->opaque;

	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	lsm_scan_stop_reading(s);
	lsm_kill_flush(&s->kills, s->reader, scan->heapRelation);
	/*
	 * The inner side of a join rescans often.  Workers should learn its costs before the scan ends.
	 */
	if (s->reader != NULL && s->reader->cx.counters.seeks >= SEEKS_KEPT)
	{
		lsm_counters_add(&s->counted, &s->reader->cx.counters);
		lsm_reader_count(s->reader);
		lsm_request_after_reads(s->index);
	}
	if (s->entry_context != NULL)
		MemoryContextReset(s->entry_context);
	s->is_prepared = false;
	s->place = PLACE_NOWHERE;
	s->matches = 0;
	s->window = 0;
	s->has_mark = false;
}

static inline LsmTupleMaker *
get_tuple_maker(LsmScan *s)
{
	if (unlikely(s->maker == NULL))
	{
		MemoryContext old = MemoryContextSwitchTo(s->context);

		s->maker = lsm_tuple_maker_create(s->ks);
		MemoryContextSwitchTo(old);
	}
	return s->maker;
}

bool
lsm_am_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;
	const LsmEntry *entry;

	if (lsm_scan_can_step(scan, direction))
		lsm_scan_step(s);
	else if (!lsm_scan_next_match(scan, direction))
		return false;
	entry = lsm_reader_entry(s->reader);
	scan->xs_recheck = false;
	lsm_int_to_tid(entry->tid, &scan->xs_heaptid);
	if (scan->xs_want_itup)
		scan->xs_itup = lsm_tuple_make(get_tuple_maker(s), entry);
	return true;
}

/*
 * A bitmap has no order, but the scan still reads in order: a reader that takes a newer version
 * must know where to continue.  Bitmap scans have MVCC snapshots and need no gate.
 */
int64
lsm_am_get_bitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	LsmScan    *s = scan->opaque;
	ItemPointerData tids[BITMAP_TIDS];
	int			n = 0;
	int64		count = 0;

	lsm_scan_prepare(scan);
	if (s->keys.impossible)
		return 0;
	pgstat_count_index_scan(scan->indexRelation);
	lsm_scan_start_reading(scan);
	Assert(!s->reader->needs_gate);
	(void) lsm_scan_start_range(scan, ForwardScanDirection);
	while (lsm_scan_find_match(scan))
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
	lsm_scan_stop_reading(s);
	s->place = PLACE_NOWHERE;
	return count + n;
}

void
lsm_am_end_scan(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	lsm_scan_stop_reading(s);
	lsm_kill_flush(&s->kills, s->reader, scan->heapRelation);
	if (s->reader != NULL)
	{
		lsm_reader_release(s->reader);
		lsm_request_after_reads(s->index);
	}
	MemoryContextDelete(s->context);
}

/*
 * Get the counters of the scan, over all its rescans.  First removes the entries that the scan has
 * found dead, since the counters include removed entries.
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

/*
 * Called before the executor works for long without asking for an entry.  VACUUM and redo need not
 * wait for the scan's gate meanwhile.  Does nothing if the index is not an lsm index.
 */
void
lsm_scan_pause(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	if (lsm_is_own(scan->indexRelation) && s->place == PLACE_ON_ENTRY && s->reader->needs_gate)
		lsm_scan_pause_reading(s);
}

void
lsm_am_mark(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	MemoryContext old = MemoryContextSwitchTo(s->key_context);

	/*
	 * A parallel scan cannot read again the ranges that others have claimed since the mark.  Core
	 * does not ask for marks in parallel scans.
	 */
	if (scan->parallel_scan != NULL)
		elog(ERROR, "a parallel scan cannot be marked");
	Assert(s->place != PLACE_PAUSED);
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
