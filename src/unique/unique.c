/*
 * unique.c
 *	  Checks whether another row has the same key as a new row.
 *
 * An inserter takes the key lock before it searches for the key, and holds the lock until its entry
 * is in the index.  So if two sessions insert the same key, the second finds the first one's entry.
 * To find out whether an entry's row counts, the check looks the row up under a dirty snapshot,
 * which also sees rows of transactions in progress.  Nobody waits for such a transaction while
 * holding one of our locks or pins.  See docs/design/unique.md.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "key/hash.h"
#include "miscadmin.h"
#include "schedule/schedule.h"
#include "storage/buffers.h"
#include "storage/lmgr.h"
#include "storage/ssi.h"
#include "unique/unique.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

struct LsmUnique
{
	LsmIndex   *index;
	LsmKeySpace *ks;
	MemoryContext context;
	LsmReader  *reader;			/* NULL until it is needed */
	MemoryContextCallback on_reset; /* of context */
	uint32		hash;			/* of the key that is locked */
	bool		locks_all;		/* holds the publish lock exclusively instead */
};

/* --- locks ------------------------------------------------------------------- */

/*
 * Lock the key of an entry.  If hash functions have changed since the index was built, other
 * sessions may still use the earlier ones, and would lock the key by another hash.  In that case we
 * lock all keys.
 */
static void
lock_key(LsmUnique *unique, const LsmEntry *entry)
{
	Relation	rel = unique->index->rel;

	unique->locks_all = unique->ks->hashing.outdated;
	if (unique->locks_all)
		lsm_publish_lock_exclusive(rel);
	else
	{
		unique->hash = lsm_hash_for_lock(unique->ks, entry);
		lsm_publish_lock_shared(rel);
		lsm_key_lock(rel, unique->hash);
	}
}

/* Release the locks that lock_key has taken. */
static void
unlock_key(LsmUnique *unique)
{
	Relation	rel = unique->index->rel;

	if (unique->locks_all)
		lsm_publish_unlock_exclusive(rel);
	else
	{
		lsm_key_unlock(rel, unique->hash);
		lsm_publish_unlock_shared(rel);
	}
}

/* --- readers ----------------------------------------------------------------- */

/* Prepare for checks.  The state lives in the current memory context. */
LsmUnique *
lsm_unique_create(LsmIndex *index, LsmKeySpace *ks)
{
	LsmUnique  *unique = palloc0(sizeof(LsmUnique));

	unique->index = index;
	unique->ks = ks;
	unique->context = CurrentMemoryContext;
	lsm_reader_give_up_on_reset(&unique->reader, &unique->on_reset);
	return unique;
}

/* Release the reader.  The next check acquires a reader again. */
void
lsm_unique_end(LsmUnique *unique)
{
	if (unique->reader != NULL)
		lsm_reader_release(unique->reader);
}

/*
 * Returns a reader of the current version.  A caller that uses TIDs needs the gate, since it looks
 * rows up under a snapshot that is not an MVCC snapshot (I10).
 */
LsmReader *
lsm_unique_reader(LsmUnique *unique, bool needs_gate)
{
	if (unique->reader == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(unique->context);

		lsm_reader_hold(lsm_reader_acquire(unique->index, 0, NULL, true, NULL), &unique->reader);
		MemoryContextSwitchTo(old);
	}
	unique->reader->needs_gate = needs_gate;
	lsm_reader_refresh(unique->reader);
	return unique->reader;
}

/* Go to the next entry, in a newer version if VACUUM is waiting for the gate. */
static void
go_to_next_probed(LsmReader *reader)
{
	if (lsm_reader_must_leave(reader))
		lsm_reader_seek_past(reader, lsm_reader_entry(reader));
	else
		lsm_reader_next(reader);
}

/* --- checks ------------------------------------------------------------------ */

/*
 * Search for another row that has this key and counts.  Adds entries whose rows are dead to every
 * snapshot to *kills.
 */
void
lsm_unique_probe(LsmUnique *unique, Relation heap, const LsmEntry *own, LsmConflict *conflict,
				 LsmKills *kills)
{
	LsmReader  *reader = lsm_unique_reader(unique, true);
	SnapshotData dirty;
	LsmBound	bounds[2] = {0};

	memset(conflict, 0, sizeof(LsmConflict));
	InitDirtySnapshot(dirty);
	reader->cx.looked_for = lsm_looked_for_get(unique->index->id);
	(void) lsm_reader_seek_key(reader, own, bounds);
	for (; lsm_reader_is_valid(reader) && !lsm_reader_is_beyond(reader); go_to_next_probed(reader))
	{
		const LsmEntry *entry = lsm_reader_entry(reader);
		ItemPointerData tid;
		bool		all_dead = false;

		CHECK_FOR_INTERRUPTS();
		if (entry->tid == own->tid)
		{
			conflict->found_own = true;
			continue;
		}
		lsm_int_to_tid(entry->tid, &tid);
		if (table_index_fetch_tuple_check(heap, &tid, &dirty, &all_dead))
		{
			conflict->found = true;
			conflict->xid = TransactionIdIsValid(dirty.xmin) ? dirty.xmin : dirty.xmax;
			conflict->token = dirty.speculativeToken;
			break;
		}
		if (all_dead)
			lsm_kill_note(kills, reader, entry, heap);
	}
	reader->cx.looked_for = NULL;
	lsm_reader_let_go(reader);
	lsm_reader_count(reader);
	lsm_request_after_reads(unique->index);
}

/* Remove the dead entries that probes have noted, and clear *kills. */
void
lsm_unique_flush_kills(LsmUnique *unique, Relation heap, LsmKills *kills)
{
	if (unique->reader != NULL)
		lsm_kill_flush(kills, unique->reader, heap);
	kills->count = 0;
}

/* Probe a single key, and remove dead entries. */
static void
probe_and_kill(LsmUnique *unique, Relation heap, const LsmEntry *own, LsmConflict *conflict)
{
	LsmKills	kills = {0};

	lsm_unique_probe(unique, heap, own, conflict, &kills);
	lsm_unique_flush_kills(unique, heap, &kills);
}

/*
 * Wait for the transaction that decides whether there is a conflict, or for its speculative
 * insertion.  REQUIRES: the process holds none of our locks and no pin.
 */
void
lsm_unique_wait(LsmUnique *unique, const LsmEntry *own, const LsmConflict *conflict)
{
	ItemPointerData tid;

	lsm_int_to_tid(own->tid, &tid);
	if (conflict->token != 0)
		SpeculativeInsertionWait(conflict->xid, conflict->token);
	else
		XactLockTableWait(conflict->xid, unique->index->rel, &tid, XLTW_InsertIndex);
}

/*
 * Is the new row still alive?  CREATE INDEX CONCURRENTLY inserts entries for rows that may have
 * died since.  Any live member of the row's HOT chain counts.  The conflicting row is not a member,
 * since it has an entry of its own.
 */
bool
lsm_unique_is_alive(Relation heap, const LsmEntry *own)
{
	ItemPointerData tid;

	lsm_int_to_tid(own->tid, &tid);
	return table_index_fetch_tuple_check(heap, &tid, SnapshotSelf, NULL);
}

static char *
describe_key(Relation index, LsmKeySpace *ks, const LsmEntry *entry)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	lsm_keyspace_deform(ks, entry, ks->nkeys, values, isnull);
	return BuildIndexValueDescription(index, values, isnull);
}

/* Raise the error for a row with the same key as another row. */
void
lsm_unique_report(LsmUnique *unique, Relation heap, const LsmEntry *own,
				  const LsmCopyLines *lines)
{
	Relation	rel = unique->index->rel;
	char	   *key = describe_key(rel, unique->ks, own);

	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"",
					RelationGetRelationName(rel)),
			 key ? errdetail("Key %s already exists.", key) : 0,
			 lsm_copy_lines_context(lines, own->tid),
			 errtableconstraint(heap, RelationGetRelationName(rel))));
}

/* Raise the error of CREATE INDEX for two rows with this key. */
void
lsm_unique_report_build(Relation index, Relation heap, LsmKeySpace *ks, const LsmEntry *entry)
{
	char	   *key = describe_key(index, ks, entry);

	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"", RelationGetRelationName(index)),
			 key ? errdetail("Key %s is duplicated.", key) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(heap, RelationGetRelationName(index))));
}

/*
 * Lock the key of an entry that is about to be inserted, and check that the key is unique.  Waits
 * for transactions that decide this, and raises an error if the key is not unique.  With
 * UNIQUE_CHECK_PARTIAL, neither waits nor raises an error, but returns false if the key is or may
 * become a duplicate.  Returns with the key locked.
 */
bool
lsm_unique_lock_and_check(LsmUnique *unique, Relation heap, const LsmEntry *entry,
						  IndexUniqueCheck mode)
{
	Relation	rel = unique->index->rel;
	LsmConflict	conflict;

	for (;;)
	{
		lock_key(unique, entry);
		probe_and_kill(unique, heap, entry, &conflict);
		if (!conflict.found)
			return true;
		if (mode == UNIQUE_CHECK_PARTIAL)
			return false;
		if (!TransactionIdIsValid(conflict.xid))
			break;
		unlock_key(unique);
		lsm_unique_wait(unique, entry, &conflict);
	}
	if (!lsm_unique_is_alive(heap, entry))
		return true;
	/* Otherwise the unique violation would hide a serialization failure. */
	lsm_ssi_check(unique->ks, rel, entry);
	unlock_key(unique);
	lsm_unique_report(unique, heap, entry, NULL);
	return false;
}

/* Unlock the key, once the entry is in the index. */
void
lsm_unique_unlock(LsmUnique *unique)
{
	unlock_key(unique);
}

/*
 * Do the deferred check of an entry that is in the index.  Raises an error if another row with the
 * entry's key counts.  Needs no lock, since anybody who inserts the key later finds the entry.
 */
void
lsm_unique_check_existing(LsmUnique *unique, Relation heap, const LsmEntry *entry)
{
	Relation	rel = unique->index->rel;
	LsmConflict	conflict;

	for (;;)
	{
		probe_and_kill(unique, heap, entry, &conflict);
		if (!conflict.found || !TransactionIdIsValid(conflict.xid))
			break;
		lsm_unique_wait(unique, entry, &conflict);
	}
	if (conflict.found && lsm_unique_is_alive(heap, entry))
	{
		lsm_ssi_check(unique->ks, rel, entry);
		lsm_unique_report(unique, heap, entry, NULL);
	}
	if (!conflict.found && !conflict.found_own)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("failed to re-find tuple within index \"%s\"",
						RelationGetRelationName(rel)),
				 errhint("This may be because of a non-immutable index expression."),
				 errtableconstraint(heap, RelationGetRelationName(rel))));
}
