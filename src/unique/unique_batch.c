/*
 * unique_batch.c
 *	  Checks that the keys of a batch are unique.
 *
 * First we search for the sorted keys without a lock, in each run of the current version.  We check
 * only keys that have an entry, and check them like single rows: in the table, and under the gate.
 * Each such check takes one or two reads.  (If a failed load is repeated, every key has an entry of
 * a dead row.)  Then we take the publish lock, so that nobody else adds entries (except keys with
 * NULLs, which may repeat), and do the same in the new runs.  Entries that led to dead rows in the
 * first search still do.
 * docs/design/unique.md has the proof.
 */
#include "postgres.h"

#include "base/stop_point.h"
#include "key/hash.h"
#include "miscadmin.h"
#include "read/run_probe.h"
#include "read/small_runs.h"
#include "schedule/schedule.h"
#include "storage/buffers.h"
#include "unique/unique.h"
#include "utils/memutils.h"

/* Probe a run for all keys together only if there are at least this many. */
#define LEAST_PROBES 16

/* Initial room for dead entries. */
#define FIRST_KILLS 64

/* After this many sweeps that merges overtook, use a reader that restarts by itself. */
#define MOST_SWEEPS 4

typedef struct BatchCheck
{
	LsmUnique  *unique;
	LsmIndex   *index;
	LsmKeySpace *ks;
	Relation	heap;
	const LsmItemRef *refs;
	Size		count;
	bool		is_hashed;		/* filters can be tested for the keys */
	bool		raises;			/* else a later check reports violations */
	const LsmCopyLines *lines;	/* line numbers of the rows in COPY */
	LsmProbe   *probes;			/* for each entry: does its key have an entry in the index? */
	int			runs_read;		/* by the latest sweep; all small runs together count as one */
	LsmSeenVersion seen;		/* the version that the latest sweep has read */
	MemoryContext scratch;		/* for the check of one key */
	LsmKills	kills;			/* entries that checks have found dead */
} BatchCheck;

/* Prepare to search for the keys of sorted entries. */
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
		probe->hash = lsm_hash_key(ks, &probe->entry, ks->nkeys);
		probe->repeats = i > 0 && lsm_key_equal(b->ks, &b->probes[i - 1].entry, &probe->entry);
	}
	b->is_hashed = lsm_hashing_holds(&ks->hashing);
}

/* --- looking for the keys ---------------------------------------------------- */

/*
 * Search for the keys by reading a run from the first key to the last.  Returns false if the
 * version is out of date.
 */
static bool
sweep_by_reading(BatchCheck *b, LsmReader *reader, int child)
{
	LsmCursor  *cursor;
	MemoryContext old;
	LsmBound	low = {0};
	LsmBound	high = {0};
	LsmEntry	key = b->probes[0].entry;
	uint64		missed;
	Size		i = 0;

	lsm_bound_set_key(b->ks, &high, &b->probes[b->count - 1].entry, -1);
	lsm_bound_set_key(b->ks, &low, &key, 1);
	cursor = lsm_reader_seek_run(reader, child, &low, &high);
	missed = lsm_blocks_missed;
	old = MemoryContextSwitchTo(reader->context);
	while (cursor->valid && i < b->count)
	{
		/* No entry has TID 0, so a lesser entry precedes all entries with the key. */
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
	lsm_reader_count_missed(reader, missed);
	MemoryContextSwitchTo(old);
	return !reader->cx.stale;
}

/*
 * Search for the keys by seeking each of them in a run.  Returns false if the version is out of
 * date.
 */
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

/*
 * Search for the keys in a run.  Counts the run in runs_read if the search may cost as much as
 * seeks.  If the run should be probed together with other small runs, sets *is_small and does
 * nothing.  Returns false if the version is out of date.
 */
static bool
sweep_run(BatchCheck *b, LsmReader *reader, int child, bool *is_small)
{
	const LsmRunRecord *run = lsm_version_find(&reader->version, reader->child_runs[child]);

	if (b->is_hashed && run->state != LSM_RUN_PACKED)
	{
		bool		done;
		bool		fresh = lsm_reader_probe_page(reader, child, b->probes, b->count, &done);

		if (done || !fresh)
			return fresh;
		b->runs_read++;
	}
	else if (b->is_hashed && b->count >= LEAST_PROBES && lsm_run_has_filter(reader->children[child]))
	{
		*is_small = lsm_run_is_small(reader->children[child]);
		b->runs_read += !*is_small;
		return *is_small || lsm_reader_probe_run(reader, child, b->probes, b->count);
	}
	else
		b->runs_read++;
	/* If the run has few entries for each key, reading the run is cheaper than seeks. */
	if (run->entries <= b->count * LSM_ENTRIES_PER_SEEK)
		return sweep_by_reading(b, reader, child);
	return sweep_by_seeks(b, reader, child);
}

/*
 * Search for the keys in the runs that the latest sweep has not read.  Returns false if the version
 * is out of date.
 */
static bool
sweep_runs(BatchCheck *b, LsmReader *reader)
{
	int			small[LSM_MAX_RUNS];
	int			small_count = 0;

	b->runs_read = 0;
	for (int i = 0; i < reader->child_count; i++)
	{
		bool		is_small = false;

		if (lsm_seen_has(&b->seen, reader->child_runs[i]))
			continue;
		CHECK_FOR_INTERRUPTS();
		if (!sweep_run(b, reader, i, &is_small))
			return false;
		if (is_small)
			small[small_count++] = i;
	}
	b->runs_read += small_count > 0;
	return small_count == 0 ||
		lsm_reader_probe_small_runs(reader, small, small_count, b->probes, b->count);
}

/* Seek each key in all runs.  Slow, but the reader takes newer versions by itself. */
static void
seek_all_keys(BatchCheck *b, LsmReader *reader)
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
 * Search for the keys in the runs of the current version that are not in b->seen.  Then set b->seen
 * to that version.  If a page now belongs to another segment, the version is out of date, and we
 * start again with a newer one.
 */
static void
sweep_new_runs(BatchCheck *b)
{
	LsmReader  *reader = NULL;
	LsmSeenVersion seen = {0};

	for (int attempt = 0; attempt <= MOST_SWEEPS; attempt++)
	{
		reader = lsm_unique_reader(b->unique, false);
		lsm_seen_note(&seen, &reader->version);
		if (attempt == MOST_SWEEPS)
			seek_all_keys(b, reader);
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
 * Search for sorted keys in the current version.  The result lives in the current memory context.
 */
void
lsm_unique_look_for(LsmUnique *unique, LsmIndex *index, LsmKeySpace *ks, const LsmItemRef *refs,
					Size count, LsmLookedFor *known)
{
	BatchCheck	b;

	begin_check(&b, unique, index, ks, refs, count);
	if (count > 0)
		sweep_new_runs(&b);
	/* All probes of the same key get the same result. */
	for (Size i = count; i-- > 1;)
		b.probes[i - 1].found |= b.probes[i].repeats && b.probes[i].found;
	for (Size i = 1; i < count; i++)
		b.probes[i].found |= b.probes[i].repeats && b.probes[i - 1].found;
	lsm_looked_for_make(known, &b.seen, b.probes, b.is_hashed ? count : 0);
}

/* --- checking ---------------------------------------------------------------- */

/*
 * Check the entries first to end - 1, which have the same key.  Raises an error if two rows are
 * alive, unless a later check reports violations.  Returns false if the outcome depends on another
 * transaction.  In that case, the caller must pass *own and *conflict to lsm_unique_wait.
 */
static bool
check_key(BatchCheck *b, Size first, Size end, LsmEntry *own, LsmConflict *conflict)
{
	Size		alive = 0;

	*own = b->probes[first].entry;
	if (lsm_key_may_repeat(b->ks, b->index->rel, own))
		return true;
	/* The statement may have deleted rows that it inserted. */
	for (Size i = first; i < end && end - first > 1; i++)
	{
		const LsmEntry *entry = &b->probes[i].entry;

		if (!lsm_unique_is_alive(b->heap, entry))
			continue;
		if (alive++ > 0 && b->raises)
			lsm_unique_report(b->unique, b->heap, entry, b->lines);
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
		lsm_unique_report(b->unique, b->heap, own, b->lines);
	return true;
}

/*
 * Check the keys that were found.  Returns false if the outcome depends on another transaction.  In
 * that case, the caller must pass *own and *conflict to lsm_unique_wait.  A key that has passed the
 * check counts as not found until a later sweep finds the key.  One check is enough: a dead row
 * stays dead, and a new row that gets the dead row's TID has an entry of its own.
 */
static bool
check_found_keys(BatchCheck *b, LsmEntry *own, LsmConflict *conflict)
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
		decided = check_key(b, first, end, own, conflict);
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
 * Check a batch.  After this function returns, nobody else adds entries until leave_batch.  If a
 * later check reports violations, this function only waits for the transactions that the outcome
 * depends on.  The wait is necessary: two transactions that wrote the same keys without waiting
 * would deadlock in their later checks.
 */
static void
enter_batch(LsmIndex *index, LsmKeySpace *ks, Relation heap, const LsmItemRef *refs, Size count,
			bool raises, const LsmCopyLines *lines)
{
	BatchCheck	b;
	LsmConflict conflict;
	LsmEntry	own;

	begin_check(&b, lsm_unique_create(index, ks), index, ks, refs, count);
	b.heap = heap;
	b.raises = raises;
	b.lines = lines;
	b.scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm unique check",
									  ALLOCSET_SMALL_SIZES);
	/* Allocate the array here, so that it does not grow in the scratch context. */
	b.kills.room = FIRST_KILLS;
	b.kills.killed = palloc(FIRST_KILLS * sizeof(LsmKilled));
	for (;;)
	{
		bool		decided;

		if (count > 0)
			sweep_new_runs(&b);
		decided = check_found_keys(&b, &own, &conflict);
		lsm_unique_flush_kills(b.unique, heap, &b.kills);
		if (decided)
		{
			/* Holds no lock.  No row with a key of the batch counts yet. */
			LSM_STOP_POINT("unique-checked");
			lsm_publish_lock_exclusive(index->rel);
			if (count > 0)
				sweep_new_runs(&b);
			if (check_found_keys(&b, &own, &conflict))
				break;
			lsm_publish_unlock_exclusive(index->rel);
		}
		lsm_unique_wait(b.unique, &own, &conflict);
	}
	lsm_unique_end(b.unique);
	MemoryContextDelete(b.scratch);
	/* Holds the publish lock (exclusive).  The check is complete, and nothing is written. */
	LSM_STOP_POINT("unique-publish");
}

/* Let others add entries again.  Called when the batch is written. */
static void
leave_batch(LsmIndex *index)
{
	lsm_publish_unlock_exclusive(index->rel);
	/* The check has read all runs.  These reads may make a merge due. */
	lsm_request_after_reads(index);
}

const LsmBatchGuard lsm_unique_guard = {enter_batch, leave_batch};
