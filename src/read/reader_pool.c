/*
 * reader_pool.c
 *	  Hands out the readers of a backend's handle of an index, and counts what their reads cost.
 */
#include "postgres.h"

#include "base/options.h"
#include "key/merge.h"
#include "read/reader.h"
#include "read/run_filter.h"
#include "utils/memutils.h"

/*
 * A batch that looks for this many keys in a run pays one seek: asking the run's filter about one
 * of many keys takes about a tenth of a seek.
 */
#define PROBES_PER_SEEK 12

/*
 * A seek in a run that must read blocks into shared buffers costs as much as this many others: a few
 * if the operating system has the blocks, and more than a hundred if they come from disk.
 */
#define SEEKS_PER_MISS 32

/*
 * If a transaction has more readers than this, unused ones are freed.  A reader takes about 100 kB.
 * A transaction that uses this many indexes in turn makes readers anew, with their filters.
 */
#define MOST_READERS 256

static int	reader_count = 0;

/* Unlink a reader from the list, and free it. */
static void
free_reader(LsmReader **at)
{
	LsmReader  *reader = *at;

	reader_count--;
	*at = reader->next;
	MemoryContextDelete(reader->context);
}

/* Returns how many keys a reader's joint filter knows.  Freeing the reader loses the filter. */
static uint64
count_known_keys(const LsmReader *reader)
{
	return reader->cx.filters == NULL ? 0 : lsm_joint_filter(reader->cx.filters)->count;
}

/* Returns the reader whose joint filter knows the most keys, or NULL.  Skips readers of jobs. */
static LsmReader *
choose_reader_to_keep(LsmIndex *index)
{
	LsmReader  *best = NULL;

	for (LsmReader *reader = index->readers; reader != NULL; reader = reader->next)
	{
		if (reader->job_id == 0 &&
			(best == NULL || count_known_keys(reader) > count_known_keys(best)))
			best = reader;
	}
	return best;
}

static void give_up(LsmReader *reader);

/*
 * Forget readers; see LsmForget.  With LSM_FORGET_UNUSED, keeps the readers that are in use.
 * Otherwise the transaction has ended and nobody uses readers, although an error may have left some
 * readers marked as in use.  Returns the memory of the reader that is kept for the next transaction.
 */
static Size
forget_users(LsmIndex *index, LsmForget which)
{
	LsmReader **at = &index->readers;
	LsmReader  *kept = which == LSM_FORGET_BUT_ONE ? choose_reader_to_keep(index) : NULL;

	while (*at != NULL)
	{
		LsmReader  *reader = *at;

		if (which == LSM_FORGET_UNUSED && reader->in_use)
		{
			at = &reader->next;
			continue;
		}
		give_up(reader);
		if (reader == kept)
			at = &reader->next;
		else
			free_reader(at);
	}
	return kept != NULL ? MemoryContextMemAllocated(kept->context, true) : 0;
}

/* Does the session have so many readers that idle ones should be released? */
bool
lsm_reader_is_crowded(void)
{
	return reader_count >= MOST_READERS;
}

void
lsm_reader_init(void)
{
	lsm_index_on_forget(forget_users);
}

static LsmReader *
make_reader(LsmIndex *index)
{
	MemoryContext context = AllocSetContextCreate(index->context, "pg_lsm reader",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	LsmReader  *reader = palloc0(sizeof(LsmReader));

	reader->context = context;
	reader->cx.index = index;
	reader->cx.ks = lsm_index_keyspace(index);
	reader->cx.generation = 1;
	reader->gate = InvalidBuffer;
	reader->merge = lsm_merge_create(reader->cx.ks, true, false);
	reader->cx.seen = palloc0(LSM_PAGES_SEEN * sizeof(LsmPageRef));
	if (lsm_hashing_holds(&reader->cx.ks->hashing) && lsm_filter_bits(index->rel) > 0)
	{
		reader->cx.filters = lsm_run_filters_create(lsm_filter_bits(index->rel));
		reader->cx.prefix_columns = lsm_filter_prefix(index->rel, reader->cx.ks->nkeys,
													  &reader->cx.prefixes_if_worth);
	}
	MemoryContextSwitchTo(old);
	reader->next = index->readers;
	index->readers = reader;
	reader_count++;
	return reader;
}

/*
 * Returns a reader for the caller alone, until the caller releases it or the transaction ends.  If
 * job_id is 0, the reader reads all runs; otherwise, the inputs of that job, entry by entry.  With
 * needs_gate, the caller uses TIDs only under the gate of the reader's version (I10).
 */
LsmReader *
lsm_reader_acquire(LsmIndex *index, uint64 job_id, Snapshot snapshot, bool needs_gate,
				   BufferAccessStrategy strategy)
{
	LsmReader  *reader = index->readers;

	while (reader != NULL && (reader->in_use || job_id != 0))
		reader = reader->next;
	if (reader == NULL)
	{
		if (reader_count >= MOST_READERS)
			lsm_index_trim_readers();
		reader = make_reader(index);
	}
	reader->in_use = true;
	reader->cx.user++;
	reader->cx.snapshot = snapshot;
	reader->cx.strategy = strategy;
	reader->cx.stale = false;
	reader->cx.looked_for = NULL;
	reader->needs_gate = needs_gate;
	if (job_id != 0)
	{
		MemoryContext old = MemoryContextSwitchTo(reader->context);

		/* A merge may copy whole pages, so it must not copy entries ahead into an array. */
		reader->job_id = job_id;
		reader->cx.is_merge = true;
		pfree(reader->cx.seen);
		reader->cx.seen = NULL;
		reader->cx.filters = NULL;
		lsm_cursor_close(reader->merge);
		reader->merge = lsm_merge_create(reader->cx.ks, false, false);
		MemoryContextSwitchTo(old);
	}
	return reader;
}

/* Count what a reader has paid, in seeks.  The fraction of a seek stays for the next time. */
static void
add_payment(LsmReader *reader, double seeks)
{
	reader->unpaid += seeks;
	reader->cx.counters.paid += (uint64) reader->unpaid;
	reader->unpaid -= (uint64) reader->unpaid;
}

/*
 * Count what a scan has paid because there are several runs, averaged over the runs of the version.
 * The scan pays for merging the entries, and for the seeks in runs that filters did not save.
 * Seeks that had to read blocks cost more, except one per seek of the scan: a single run would need
 * that one, too.
 */
static void
count_paid(LsmReader *reader)
{
	LsmReadCounters *c = &reader->cx.counters;

	if (reader->child_seeks > c->seeks)
	{
		uint64		missed = reader->cx.missed_runs;
		double		seeks = c->runs - Min(reader->cx.spared / 16.0, c->runs);
		double		misses = SEEKS_PER_MISS * (double) (missed - Min(missed, c->seeks));
		double		merges = c->entries / LSM_ENTRIES_PER_SEEK;

		add_payment(reader, (seeks + misses + merges) * c->seeks / reader->child_seeks);
	}
	reader->child_seeks = 0;
	reader->cx.spared = 0;
	reader->cx.missed_runs = 0;
}

/*
 * Count what a batch pays for looking for `count` keys in `runs` runs.  The batch pays for these
 * runs only: looking into all small runs at once costs next to nothing.
 */
void
lsm_reader_count_probes(LsmReader *reader, Size count, int runs)
{
	if (reader->child_count > 1)
		add_payment(reader, (double) count * runs / reader->child_count / PROBES_PER_SEEK);
}

/* Complete the reader's counters before they are added up. */
static void
prepare_counters(LsmReader *reader)
{
	/* Merges are counted elsewhere. */
	if (reader->job_id != 0)
		memset(&reader->cx.counters, 0, sizeof(LsmReadCounters));
	else
		count_paid(reader);
}

static void
end_use(LsmReader *reader)
{
	reader->in_use = false;
	if (reader->holder != NULL)
		*reader->holder = NULL;
	reader->holder = NULL;
}

/* Take a reader from its user, who is gone.  Its pins are released elsewhere. */
static void
give_up(LsmReader *reader)
{
	prepare_counters(reader);
	lsm_reads_note(&reader->cx.index->reads, &reader->cx.counters);
	end_use(reader);
	reader->gate = InvalidBuffer;
}

/*
 * Free a reader that nobody else can use: the reader of a job, or of a handle that was replaced.
 * Also free a reader that has given up filters because a type was being changed.  The next user
 * gets a new one.
 */
static void
free_if_useless(LsmReader *reader)
{
	LsmIndex   *index = reader->cx.index;

	if (reader->job_id != 0 || !index->valid || reader->cx.ks->hashing.outdated)
	{
		LsmReader **at = &index->readers;

		while (*at != reader)
			at = &(*at)->next;
		free_reader(at);
	}
}

/* The memory of a holder is reset.  After an error, it still holds its reader. */
static void
give_up_held_reader(void *arg)
{
	LsmReader  *reader = *(LsmReader **) arg;

	if (reader != NULL)
	{
		give_up(reader);
		free_if_useless(reader);
	}
}

/*
 * Prepare to hold a reader at *holder, which is NULL and lives in the current memory context.  The
 * reader is given up when that context is reset.
 */
void
lsm_reader_give_up_on_reset(LsmReader **holder, MemoryContextCallback *callback)
{
	callback->func = give_up_held_reader;
	callback->arg = holder;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
}

/*
 * Record that the caller keeps the reader at *holder, until the reader is released or given up.
 * Then *holder becomes NULL.
 */
void
lsm_reader_hold(LsmReader *reader, LsmReader **holder)
{
	*holder = reader;
	reader->holder = holder;
}

/* Count what the reader has cost so far. */
void
lsm_reader_count(LsmReader *reader)
{
	prepare_counters(reader);
	lsm_reads_count(&reader->cx.index->reads, &reader->cx.counters);
}

void
lsm_reader_release(LsmReader *reader)
{
	lsm_reader_let_go(reader);
	lsm_reader_count(reader);
	end_use(reader);
	reader->cx.snapshot = NULL;
	reader->cx.strategy = NULL;
	free_if_useless(reader);
}
