/*
 * check_unique.c
 *	  Verifies a unique index: no two rows that a snapshot sees have the same key.
 *
 * The check reads all entries in order, and looks at rows only where neighbors have the same key.
 * The check needs no gate: if VACUUM has freed a TID that was read, an MVCC snapshot does not see
 * the row that has the TID now.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "base/stop_point.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "read/reader.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

typedef struct UniqueCheck
{
	LsmCheck   *c;
	Snapshot	snapshot;
	LsmSavedEntry last;
	bool		last_seen;		/* the row of the last entry has been checked */
	bool		found;			/* a visible row with the last entry's key was found */
	uint64		tid;			/* TID of the visible row */
} UniqueCheck;

/* Does the snapshot see a row at this TID? */
static bool
sees_row(UniqueCheck *u, uint64 tid)
{
	ItemPointerData pointer;

	lsm_int_to_tid(tid, &pointer);
	return table_index_fetch_tuple_check(u->c->heap, &pointer, u->snapshot, NULL);
}

/*
 * Note the entry's row if the snapshot sees it.  Raises an error if the key has another such row.
 */
static void
note_row_if_visible(UniqueCheck *u, const LsmEntry *entry)
{
	if (!sees_row(u, entry->tid))
		return;
	if (u->found)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("unique index \"%s\" has two rows with the same key",
						RelationGetRelationName(u->c->rel)),
				 errdetail("They are at (%u,%u) and (%u,%u) in the table.",
						   (uint32) (u->tid >> 16), (uint32) (u->tid & 0xFFFF),
						   (uint32) (entry->tid >> 16), (uint32) (entry->tid & 0xFFFF))));
	u->found = true;
	u->tid = entry->tid;
}

static void
check_unique_entry(UniqueCheck *u, const LsmEntry *entry)
{
	if (u->last.valid && lsm_key_equal(u->c->ks, &u->last.entry, entry))
	{
		if (!lsm_key_may_repeat(u->c->ks, u->c->rel, &u->last.entry))
		{
			if (!u->last_seen)
				note_row_if_visible(u, &u->last.entry);
			note_row_if_visible(u, entry);
		}
		u->last_seen = true;
		return;
	}
	lsm_check_saved_set(&u->last, entry);
	u->last_seen = false;
	u->found = false;
}

/*
 * Check the keys of a unique index.  Does nothing if the constraint is deferrable and this
 * transaction has written anything, since its deferred checks may still be due.
 */
void
lsm_check_unique(LsmCheck *c)
{
	UniqueCheck u = {0};
	LsmReader  *reader;
	LsmBound	start = {0};

	if (!c->rel->rd_index->indisunique ||
		(!c->rel->rd_index->indimmediate && TransactionIdIsValid(GetTopTransactionIdIfAny())))
		return;
	u.c = c;
	/* The transaction's snapshot might see rows from before the index existed. */
	u.snapshot = RegisterSnapshot(GetLatestSnapshot());
	lsm_check_saved_init(&u.last);
	reader = lsm_reader_acquire(c->index, 0, u.snapshot, false, c->strategy);
	lsm_bound_init(&start, 1);
	lsm_reader_refresh(reader);
	lsm_check_begin_reading(c, LSM_CHECK_UNIQUE, reader);
	/* Holds locks on the table and the index. */
	LSM_STOP_POINT("check-unique");
	lsm_reader_seek(reader, &start, NULL, ForwardScanDirection);
	while (lsm_reader_is_valid(reader))
	{
		MemoryContext old_context = MemoryContextSwitchTo(c->scratch);

		check_unique_entry(&u, lsm_reader_entry(reader));
		MemoryContextSwitchTo(old_context);
		MemoryContextReset(c->scratch);
		lsm_reader_next(reader);
		lsm_check_note_blocks(c, reader->cx.counters.pages);
		CHECK_FOR_INTERRUPTS();
	}
	lsm_reader_release(reader);
	UnregisterSnapshot(u.snapshot);
}
