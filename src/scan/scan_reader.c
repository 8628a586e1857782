/*
 * scan_reader.c
 *	  Manages the reader of a scan: takes versions and gates, and seeks.
 *
 * A scan needs a gate if its TIDs need the interlock with VACUUM (I10).  When VACUUM waits, the
 * scan leaves the gate, takes a new version with the current gate, and seeks past the entry on
 * which the reader stands.
 */
#include "postgres.h"

#include "ingest/batch.h"
#include "scan/scan_state.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* Let go of the version and the gate. */
void
lsm_scan_stop_reading(LsmScan *s)
{
	if (s->is_reading)
		lsm_reader_let_go(s->reader);
	s->is_reading = false;
}

/* Take the current version, and the gate if the scan needs it. */
void
lsm_scan_start_reading(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	/* The flush may wait for a transaction.  VACUUM must not wait for our gate meanwhile. */
	lsm_scan_stop_reading(s);
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

/* Seek a place within the bounds of the scan. */
void
lsm_scan_seek(LsmScan *s, const LsmBound *from, ScanDirection direction)
{
	s->direction = direction;
	s->surely_in = 0;
	s->is_lookup = false;
	lsm_reader_seek(s->reader, from,
					ScanDirectionIsForward(direction) ? &s->keys.high : &s->keys.low,
					direction);
}

/* Make s->here the bound after the entry that the reader stands on. */
static void
set_here(LsmScan *s, ScanDirection direction)
{
	MemoryContext old = MemoryContextSwitchTo(s->key_context);

	lsm_bound_set_entry(&s->here, lsm_reader_entry(s->reader),
						ScanDirectionIsForward(direction) ? -1 : 1);
	MemoryContextSwitchTo(old);
}

/* Seek past the entry that the reader stands on. */
void
lsm_scan_seek_past_entry(LsmScan *s, ScanDirection direction)
{
	set_here(s, direction);
	lsm_scan_seek(s, &s->here, direction);
}

/*
 * Let go of the gate and the version until the next call for an entry.
 *
 * REQUIRES: the reader stands on the entry returned last.
 */
void
lsm_scan_pause_reading(LsmScan *s)
{
	set_here(s, s->direction);
	lsm_scan_stop_reading(s);
	s->matches = 0;
	s->place = PLACE_PAUSED;
}

/* Take the current version and its gate; continue after the entry in `here`. */
void
lsm_scan_resume(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	lsm_scan_start_reading(scan);
	s->here.tie = ScanDirectionIsForward(direction) ? -1 : 1;
	lsm_scan_seek(s, &s->here, direction);
}

/* Called when VACUUM waits.  Take the current version and its gate; continue after the entry. */
void
lsm_scan_leave_gate(IndexScanDesc scan, ScanDirection direction)
{
	set_here(scan->opaque, direction);
	lsm_scan_resume(scan, direction);
}
