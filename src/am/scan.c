/*
 * scan.c
 *	  Index scans: plain, index-only, bitmap; both directions; mark and restore.
 *
 * A scan is a merge cursor over a version, within the bounds of the current
 * combination of array elements.  Its place is the entry that it returned
 * last, on which the cursor stands.  Changing direction, restoring a mark and
 * moving to another gate are all a seek to such an entry.  See "Scans and the
 * gate" in src/README.md.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "am/am.h"
#include "am/scankeys.h"
#include "compact/batch.h"
#include "manifest/manifest.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "read/read.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* Where a scan is. */
typedef enum ScanPlace
{
	PLACE_NOWHERE,				/* starts from the end that the direction says */
	PLACE_ON_ENTRY,				/* the cursor stands on the last entry returned */
	PLACE_AT_MARK				/* restored: goes on from the mark */
} ScanPlace;

typedef struct LsmScan
{
	LsmKeySpace *ks;
	LsmScanKeys keys;
	MemoryContext context;		/* everything of the scan */
	MemoryContext key_context;	/* until the next rescan */
	MemoryContext bound_context;	/* until the next combination of array elements */
	MemoryContext read_context; /* version and cursors */
	MemoryContext entry_context;	/* until the next entry */

	LsmVersion *version;		/* NULL: not taken yet */
	LsmCursor  *cursor;
	Buffer		gate;			/* pinned, or invalid (I12) */
	ScanDirection direction;	/* of the cursor */
	ScanPlace	place;

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

IndexScanDesc
lsm_am_begin_scan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm scan",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	LsmScan    *s = palloc0(sizeof(LsmScan));

	s->context = context;
	s->ks = lsm_keyspace_create(index);
	s->key_context = AllocSetContextCreate(context, "pg_lsm scan keys", ALLOCSET_SMALL_SIZES);
	s->bound_context = AllocSetContextCreate(context, "pg_lsm scan bounds", ALLOCSET_SMALL_SIZES);
	s->read_context = AllocSetContextCreate(context, "pg_lsm cursors", ALLOCSET_DEFAULT_SIZES);
	s->entry_context = AllocSetContextCreate(context, "pg_lsm entry", ALLOCSET_SMALL_SIZES);
	s->gate = InvalidBuffer;
	MemoryContextSwitchTo(old);

	scan->xs_itupdesc = RelationGetDescr(index);
	scan->opaque = s;
	return scan;
}

/* Let go of version, cursors and gate. */
static void
release(LsmScan *s)
{
	MemoryContextReset(s->read_context);
	s->version = NULL;
	s->cursor = NULL;
	if (BufferIsValid(s->gate))
		ReleaseBuffer(s->gate);
	s->gate = InvalidBuffer;
}

/* Take a version, with the gate if this scan's TIDs need the interlock. */
static void
acquire(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	bool		needs_gate = scan->xs_want_itup || !IsMVCCSnapshot(scan->xs_snapshot);
	MemoryContext old = MemoryContextSwitchTo(s->read_context);

	lsm_batch_flush_for_scan(scan->indexRelation, scan->xs_snapshot);
	s->ks->snapshot = scan->xs_snapshot;
	s->version = lsm_version_read(scan->indexRelation, needs_gate ? &s->gate : NULL);
	s->cursor = lsm_read_version(scan->indexRelation, s->ks, s->version);
	MemoryContextSwitchTo(old);
}

void
lsm_am_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	LsmScan    *s = scan->opaque;
	MemoryContext old;

	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	release(s);
	MemoryContextReset(s->entry_context);
	MemoryContextReset(s->key_context);
	old = MemoryContextSwitchTo(s->key_context);
	lsm_scankeys_prepare(&s->keys, s->ks, scan->keyData, scan->numberOfKeys);
	s->mark_arrays = palloc((s->keys.array_count + 1) * sizeof(int));
	memset(&s->mark, 0, sizeof(LsmBound));
	memset(&s->here, 0, sizeof(LsmBound));
	MemoryContextSwitchTo(old);
	s->place = PLACE_NOWHERE;
	s->has_mark = false;
}

static void
seek(LsmScan *s, const LsmBound *from, ScanDirection direction)
{
	MemoryContext old = MemoryContextSwitchTo(s->read_context);

	s->direction = direction;
	lsm_cursor_seek(s->cursor, from,
					ScanDirectionIsForward(direction) ? &s->keys.high : &s->keys.low,
					direction);
	MemoryContextSwitchTo(old);
}

/* The bounds of the current combination, in place of those of the last one. */
static void
make_bounds(LsmScan *s)
{
	MemoryContext old;

	MemoryContextReset(s->bound_context);
	old = MemoryContextSwitchTo(s->bound_context);
	lsm_scankeys_make_bounds(&s->keys);
	MemoryContextSwitchTo(old);
}

/*
 * Start the current combination of array elements from its end.  Several arrays
 * may have millions of combinations without a match.
 */
static void
start_combination(LsmScan *s, ScanDirection direction)
{
	CHECK_FOR_INTERRUPTS();
	make_bounds(s);
	seek(s, ScanDirectionIsForward(direction) ? &s->keys.low : &s->keys.high, direction);
}

static void
step(LsmScan *s)
{
	MemoryContext old = MemoryContextSwitchTo(s->read_context);

	lsm_cursor_next(s->cursor);
	MemoryContextSwitchTo(old);
}

static void
set_here(LsmScan *s, ScanDirection direction)
{
	MemoryContext old = MemoryContextSwitchTo(s->key_context);

	lsm_bound_set_entry(&s->here, s->cursor->entry, ScanDirectionIsForward(direction) ? -1 : 1);
	MemoryContextSwitchTo(old);
}

/* Does VACUUM wait for us? */
static inline bool
must_leave(LsmScan *s)
{
	return BufferIsValid(s->gate) && lsm_gate_is_closed(s->gate);
}

/* VACUUM waits: take a new gate and what belongs to it, and move on. */
static void
change_gate(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	set_here(s, direction);
	release(s);
	acquire(scan);
	seek(s, &s->here, direction);
}

/* Move the cursor to the candidate after the last entry returned. */
static void
move(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	if (s->place == PLACE_ON_ENTRY)
	{
		if (must_leave(s))
			change_gate(scan, direction);
		else if (direction != s->direction)
		{
			set_here(s, direction);
			seek(s, &s->here, direction);
		}
		else
			step(s);
		return;
	}

	if (s->version == NULL)
		acquire(scan);
	if (s->place == PLACE_AT_MARK)
	{
		make_bounds(s);
		s->mark.tie = ScanDirectionIsForward(direction) ? -1 : 1;
		seek(s, &s->mark, direction);
	}
	else
	{
		lsm_scankeys_start_arrays(&s->keys, direction);
		lsm_count_search(scan);
		start_combination(s, direction);
	}
}

/*
 * Is the cursor on an entry of the current combination that passes?  A scan
 * that has a gate leaves it, when it must, also while it looks for one.
 */
static bool
find_match(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	const LsmBound *limit = ScanDirectionIsForward(s->direction) ? &s->keys.high : &s->keys.low;

	while (s->cursor->valid && !lsm_beyond(s->ks, limit, s->cursor->entry, s->direction))
	{
		if (s->keys.filter_columns == 0)
			return true;
		else
		{
			MemoryContext old = MemoryContextSwitchTo(s->entry_context);
			bool		pass;

			MemoryContextReset(s->entry_context);
			pass = lsm_scankeys_pass(&s->keys, s->cursor->entry);
			MemoryContextSwitchTo(old);
			if (pass)
				return true;
		}
		CHECK_FOR_INTERRUPTS();
		if (must_leave(s))
			change_gate(scan, s->direction);
		else
			step(s);
	}
	return false;
}

bool
lsm_am_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	LsmScan    *s = scan->opaque;

	if (s->keys.impossible)
		return false;
	if (s->place == PLACE_NOWHERE)
		pgstat_count_index_scan(scan->indexRelation);
	move(scan, direction);
	while (!find_match(scan))
	{
		if (!lsm_scankeys_advance_arrays(&s->keys, direction))
		{
			/* The end.  A later call comes back from this end. */
			release(s);
			s->place = PLACE_NOWHERE;
			return false;
		}
		if (must_leave(s))
		{
			release(s);
			acquire(scan);
		}
		lsm_count_search(scan);
		start_combination(s, direction);
	}

	s->place = PLACE_ON_ENTRY;
	scan->xs_recheck = false;
	lsm_int_to_tid(s->cursor->entry->tid, &scan->xs_heaptid);
	if (scan->xs_want_itup)
	{
		MemoryContext old = MemoryContextSwitchTo(s->entry_context);

		MemoryContextReset(s->entry_context);
		scan->xs_itup = lsm_keyspace_index_tuple(s->ks, s->cursor->entry);
		MemoryContextSwitchTo(old);
	}
	return true;
}

/*
 * A bitmap has no order, so runs are read one after the other, unmerged: all
 * count as one search for each combination, as in the other scans.  Bitmap scans
 * have MVCC snapshots and need no gate.
 */
int64
lsm_am_get_bitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	LsmScan    *s = scan->opaque;
	int64		count = 0;
	bool		first_run = true;

	if (s->keys.impossible)
		return 0;
	pgstat_count_index_scan(scan->indexRelation);
	release(s);
	acquire(scan);
	Assert(!BufferIsValid(s->gate));
	for (uint32 i = 0; i < s->version->run_count; i++)
	{
		MemoryContext old;

		if (s->version->runs[i].state == LSM_RUN_BUILDING)
			continue;
		old = MemoryContextSwitchTo(s->read_context);
		s->cursor = lsm_read_run(scan->indexRelation, s->ks, s->version, &s->version->runs[i],
								 NULL);
		MemoryContextSwitchTo(old);
		lsm_scankeys_start_arrays(&s->keys, ForwardScanDirection);
		do
		{
			if (first_run)
				lsm_count_search(scan);
			start_combination(s, ForwardScanDirection);
			while (find_match(scan))
			{
				ItemPointerData tid;

				lsm_int_to_tid(s->cursor->entry->tid, &tid);
				tbm_add_tuples(tbm, &tid, 1, false);
				count++;
				CHECK_FOR_INTERRUPTS();
				step(s);
			}
		} while (lsm_scankeys_advance_arrays(&s->keys, ForwardScanDirection));
		lsm_cursor_close(s->cursor);
		s->cursor = NULL;
		first_run = false;
	}
	release(s);
	s->place = PLACE_NOWHERE;
	return count;
}

void
lsm_am_end_scan(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	release(s);
	MemoryContextDelete(s->context);
}

void
lsm_am_mark(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	MemoryContext old = MemoryContextSwitchTo(s->key_context);

	if (s->place == PLACE_ON_ENTRY)
	{
		lsm_bound_set_entry(&s->mark, s->cursor->entry, -1);
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
