/*
 * unique_batch.c
 *	  The check of a whole batch of a unique index.
 *
 * The sorted keys are first looked for without a lock, in all runs of the current
 * version, one run after the other.  Only those keys of which there is an entry
 * anywhere are checked as single rows are: with the table, under the gate.  That takes a
 * read or two for each of them: where the rows of a load that has failed are loaded
 * again, for all.  Then nobody else may add entries any more (the publish lock), and all
 * is done again, with what has come since: entries that led to dead rows before do so
 * still.  docs/design/unique.md proves it.
 */
#include "postgres.h"

#include "base/stop_point.h"
#include "miscadmin.h"
#include "schedule/schedule.h"
#include "storage/buffers.h"
#include "unique/unique.h"
#include "utils/memutils.h"

/* Fewer keys are looked for one by one. */
#define LEAST_PROBES 16

/* Room for entries that were found dead, at first. */
#define FIRST_KILLS 64

/* Sweeps that may be overtaken by merges; after that readers restart by themselves. */
#define PATIENCE 4

typedef struct BatchCheck
{
	LsmUnique  *unique;
	LsmIndex   *index;
	LsmKeySpace *ks;
	Relation	heap;
	const LsmItemRef *refs;
	Size		count;
	bool		raises;			/* else violations are for a later check */
	LsmProbe   *probes;			/* of the entries: is there one with that key? */
	int			runs_read;		/* by the latest sweep, the small ones as one */
	LsmSeenVersion seen;		/* that was read as a whole */
	MemoryContext scratch;		/* of the check of one key */
	LsmKills	kills;			/* entries that checks have found dead */
} BatchCheck;

/* Begin to look for the keys of entries, which are in order. */
static void
begin_check(BatchCheck *b, LsmUnique *unique, LsmIndex *index, LsmKeySpace *ks,
			const LsmItemRef *refs, Size count)
{
	memset(b, 0, sizeof(BatchCheck));
	b->unique = unique;
	b->index = index;
	b->ks = ks;
	b->refs = refs;
	b->count = count;
	b->probes = palloc_extended(Max(b->count, 1) * sizeof(LsmProbe), MCXT_ALLOC_HUGE);
	for (Size i = 0; i < b->count; i++)
	{
		LsmProbe   *probe = &b->probes[i];

		lsm_item_entry(b->refs[i].item, &probe->entry);
		probe->found = false;
		probe->prefix = b->refs[i].prefix;
		probe->hash = b->ks->encoded ? lsm_filter_hash(probe->entry.key, probe->entry.keylen) : 0;
		probe->repeats = i > 0 && lsm_key_equal(b->ks, &b->probes[i - 1].entry, &probe->entry);
	}
}

/* --- looking for the keys ---------------------------------------------------- */

/* Read a run from the first key to the last one.  False if its version is old. */
static bool
sweep_through(BatchCheck *b, LsmReader *reader, int child)
{
	LsmCursor  *cursor;
	MemoryContext old;
	LsmBound	low = {0};
	LsmBound	high = {0};
	LsmEntry	key = b->probes[0].entry;
	Size		i = 0;

	lsm_bound_set_key(b->ks, &high, &b->probes[b->count - 1].entry, -1);
	lsm_bound_set_key(b->ks, &low, &key, 1);
	cursor = lsm_reader_seek_run(reader, child, &low, &high);
	old = MemoryContextSwitchTo(reader->context);
	while (cursor->valid && i < b->count)
	{
		/* No entry has TID 0: whoever is less is before all with that key. */
		key.tid = 0;
		if (lsm_key_compare(b->ks, cursor->entry, &key) < 0)
		{
			lsm_cursor_next(cursor);
			continue;
		}
		b->probes[i].found |= lsm_key_equal(b->ks, cursor->entry, &key);
		if (++i < b->count)
			key = b->probes[i].entry;
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(old);
	return !reader->cx.stale;
}

/* Seek each key in a run.  False if its version is old. */
static bool
sweep_by_seeks(BatchCheck *b, LsmReader *reader, int child)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm unique keys",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(scratch);

	for (Size i = 0; i < b->count && !reader->cx.stale; i++)
	{
		LsmBound	low = {0};
		LsmBound	high = {0};
		LsmProbe   *probe = &b->probes[i];
		LsmCursor  *cursor;

		CHECK_FOR_INTERRUPTS();
		if (probe->found)
			continue;
		if (probe->repeats)
		{
			probe->found = b->probes[i - 1].found;
			continue;
		}
		lsm_bound_set_key(b->ks, &low, &probe->entry, 1);
		lsm_bound_set_key(b->ks, &high, &probe->entry, -1);
		cursor = lsm_reader_seek_run(reader, child, &low, &high);
		probe->found = cursor->valid &&
			!lsm_beyond(b->ks, &high, cursor->entry, ForwardScanDirection);
		MemoryContextReset(scratch);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(scratch);
	return !reader->cx.stale;
}

/* Sweep the runs of the reader's version that are not known.  False if it is old. */
static bool
sweep_runs(BatchCheck *b, LsmReader *reader)
{
	int			small[LSM_MAX_RUNS];
	int			small_count = 0;

	b->runs_read = 0;
	for (int i = 0; i < reader->child_count; i++)
	{
		LsmRunRecord *run = lsm_version_find(&reader->version, reader->child_runs[i]);
		bool		fresh;

		if (lsm_seen_has(&b->seen, reader->child_runs[i]))
			continue;
		CHECK_FOR_INTERRUPTS();
		if (b->ks->encoded && b->count >= LEAST_PROBES && run->state == LSM_RUN_PACKED &&
			lsm_run_cursor_has_filter(reader->children[i]))
		{
			if (lsm_run_cursor_is_small(reader->children[i]))
			{
				small[small_count++] = i;
				continue;
			}
			fresh = lsm_reader_probe_run(reader, i, b->probes, b->count);
		}
		/* With few entries for each key it is read from the first key to the last. */
		else if (run->entries <= b->count * LSM_ENTRIES_PER_SEEK)
			fresh = sweep_through(b, reader, i);
		else
			fresh = sweep_by_seeks(b, reader, i);
		if (!fresh)
			return false;
		b->runs_read++;
	}
	b->runs_read += small_count > 0;
	return small_count == 0 ||
		lsm_reader_probe_small_runs(reader, small, small_count, b->probes, b->count);
}

/* The slow way: the reader takes newer versions by itself. */
static void
seek_all(BatchCheck *b, LsmReader *reader)
{
	LsmBound	bounds[2] = {0};

	for (Size i = 0; i < b->count; i++)
	{
		LsmProbe   *probe = &b->probes[i];

		probe->found |= lsm_reader_seek_key(reader, &probe->entry, bounds);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Look for the keys in all that the current version has and the one noted has not;
 * and note this one.  A version that is read is complete if none of its pages was
 * another's; if one was, all is read again in a newer one.
 */
static void
sweep(BatchCheck *b)
{
	LsmReader  *reader = NULL;
	LsmSeenVersion seen = {0};

	for (int attempt = 0; attempt <= PATIENCE; attempt++)
	{
		reader = lsm_unique_reader(b->unique, false);
		lsm_seen_note(&seen, &reader->version);
		if (attempt == PATIENCE)
			seek_all(b, reader);
		else if (sweep_runs(b, reader))
			break;
	}
	lsm_reader_let_go(reader);
	if (b->seen.next_id == 0)
		lsm_reader_count_probes(reader, b->count, b->runs_read);
	lsm_reader_count(reader);
	b->seen = seen;
}

/*
 * Look for keys, which are in order, in the current version.  What is found stays in the
 * current memory context.
 */
void
lsm_unique_look_for(LsmUnique *unique, LsmIndex *index, LsmKeySpace *ks, const LsmItemRef *refs,
					Size count, LsmLookedFor *known)
{
	BatchCheck	b;

	begin_check(&b, unique, index, ks, refs, count);
	if (count > 0)
		sweep(&b);
	/* All with the same key say the same. */
	for (Size i = count; i-- > 1;)
		b.probes[i - 1].found |= b.probes[i].repeats && b.probes[i].found;
	for (Size i = 1; i < count; i++)
		b.probes[i].found |= b.probes[i].repeats && b.probes[i - 1].found;
	known->seen = b.seen;
	known->probes = b.probes;
	known->count = count;
}

/* --- checking ---------------------------------------------------------------- */

/*
 * Check the entries first to end - 1, which have the same key.  Raises an error if
 * two rows count, unless that is left to a later check.  False if somebody else's
 * transaction decides: *own is to wait.
 */
static bool
check_group(BatchCheck *b, Size first, Size end, LsmEntry *own, LsmConflict *conflict)
{
	Size		alive = 0;

	*own = b->probes[first].entry;
	if (lsm_key_may_repeat(b->ks, b->index->rel, own))
		return true;
	/* The statement itself may have deleted rows that it has inserted. */
	for (Size i = first; i < end && end - first > 1; i++)
	{
		const LsmEntry *entry = &b->probes[i].entry;

		if (!lsm_unique_is_alive(b->heap, entry))
			continue;
		if (alive++ > 0 && b->raises)
			lsm_unique_report(b->unique, b->heap, entry);
		*own = *entry;
	}
	if (!b->probes[first].found)
		return true;
	lsm_unique_probe(b->unique, b->heap, own, conflict, &b->kills);
	if (!conflict->found)
		return true;
	if (TransactionIdIsValid(conflict->xid))
		return false;
	if (b->raises && lsm_unique_is_alive(b->heap, own))
		lsm_unique_report(b->unique, b->heap, own);
	return true;
}

/*
 * Check the keys that were found.  False if somebody else's transaction decides: *own is
 * to wait.  A key that is unique counts as not found from then on, unless it is found
 * again in what comes: a row that is dead stays so, and if its TID is given to another
 * one that has an entry of its own.
 */
static bool
check_groups(BatchCheck *b, LsmEntry *own, LsmConflict *conflict)
{
	bool		decided = true;
	Size		end;

	for (Size first = 0; first < b->count && decided; first = end)
	{
		MemoryContext old;

		for (end = first + 1; end < b->count && b->probes[end].repeats; end++)
			b->probes[first].found |= b->probes[end].found;
		if (end - first == 1 && !b->probes[first].found)
			continue;
		old = MemoryContextSwitchTo(b->scratch);
		decided = check_group(b, first, end, own, conflict);
		MemoryContextSwitchTo(old);
		MemoryContextReset(b->scratch);
		for (Size i = first; i < end && decided; i++)
			b->probes[i].found = false;
		if (lsm_kill_is_full(&b->kills))
			lsm_unique_flush_kills(b->unique, b->heap, &b->kills);
	}
	return decided;
}

/*
 * Check a batch.  Nobody else adds entries when this returns, until `leave`.  Where
 * violations are for a later check this only waits for transactions that decide, as that
 * one will: two that had written the same keys before would wait for each other then.
 */
static void
enter(LsmIndex *index, LsmKeySpace *ks, Relation heap, const LsmItemRef *refs, Size count,
	  bool raises)
{
	BatchCheck	b;
	LsmConflict conflict;
	LsmEntry	own;

	begin_check(&b, lsm_unique_create(index, ks), index, ks, refs, count);
	b.heap = heap;
	b.raises = raises;
	b.scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm unique check",
									  ALLOCSET_SMALL_SIZES);
	/* Not in the scratch context, where it would grow first. */
	b.kills.room = FIRST_KILLS;
	b.kills.killed = palloc(FIRST_KILLS * sizeof(LsmKilled));
	for (;;)
	{
		bool		decided;

		if (count > 0)
			sweep(&b);
		decided = check_groups(&b, &own, &conflict);
		lsm_unique_flush_kills(b.unique, heap, &b.kills);
		if (decided)
		{
			/* Nothing.  No row with a key of the batch counts yet. */
			LSM_STOP_POINT("unique-checked");
			lsm_publish_lock(index->rel, ExclusiveLock);
			if (count > 0)
				sweep(&b);
			if (check_groups(&b, &own, &conflict))
				break;
			lsm_publish_unlock(index->rel, ExclusiveLock);
		}
		lsm_unique_wait(b.unique, &own, &conflict);
	}
	lsm_unique_end(b.unique);
	MemoryContextDelete(b.scratch);
	/* Publish lock (exclusive).  The check is complete, and nothing is written. */
	LSM_STOP_POINT("unique-publish");
}

static void
leave(LsmIndex *index)
{
	lsm_publish_unlock(index->rel, ExclusiveLock);
	/* The check has paid for the number of runs, as scans do. */
	lsm_request_after_reads(index);
}

const LsmBatchGuard lsm_unique_guard = {enter, leave};
