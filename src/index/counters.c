/*
 * counters.c
 *	  Counts what reading an index costs, and publishes the counts in shared memory.
 *
 * Each reader has its own counts.  When a scan ends, its reader's counts are added to those of the
 * index's handle.  The handle publishes its counts in shared memory when there are many.  It also
 * publishes them when a transaction is about to commit, unless an earlier transaction did so less
 * than a millisecond ago.  Publishing more often would be slow: sessions that look up single rows
 * of one index would spend their time passing a cache line around.
 */
#include "postgres.h"

#include "base/clock.h"
#include "base/counts.h"
#include "base/index_slots.h"
#include "index/counters.h"

/* A handle that has counted this much publishes at once. */
#define MOST_SEEKS_KEPT		32
#define MOST_PAGES_KEPT		1000

/* A commit does not publish if an earlier one published less than this long ago. */
#define PUBLISH_AFTER_US	1000

const LsmReadColumn lsm_read_columns[LSM_READ_COUNTERS] =
{
#define LSM_READ_COUNTER(field, column, label, description) {#field, label, LSM_COUNT_READ_##field},
#include "base/counter_list.h"
};

void
lsm_counters_add(LsmReadCounters *to, const LsmReadCounters *from)
{
	uint64	   *sums = (uint64 *) to;
	const uint64 *counts = (const uint64 *) from;

	for (int i = 0; i < sizeof(LsmReadCounters) / sizeof(uint64); i++)
		sums[i] += counts[i];
}

static bool
is_nothing(const LsmReadCounters *counters)
{
	/* The other counters hardly ever grow without one of these, and may wait until one does. */
	return counters->seeks == 0 && counters->pages == 0 && counters->removed == 0;
}

/*
 * Move a reader's counts to the handle.  Allocates nothing and touches no shared memory, so it is
 * safe to call while a transaction aborts.
 */
void
lsm_reads_note(LsmPendingReads *pending, LsmReadCounters *counters)
{
	if (is_nothing(counters))
		return;
	lsm_counters_add(&pending->counters, counters);
	memset(counters, 0, sizeof(LsmReadCounters));
}

/* Like lsm_reads_note, but publish if there are many counts. */
void
lsm_reads_count(LsmPendingReads *pending, LsmReadCounters *counters)
{
	lsm_reads_note(pending, counters);
	if (pending->counters.seeks >= MOST_SEEKS_KEPT || pending->counters.pages >= MOST_PAGES_KEPT)
		lsm_reads_publish(pending);
}

/* Add the counts to those of the index, and tell workers what readers have paid. */
static void
publish_counts(Oid index, const LsmReadCounters *c)
{
	uint64		counts[LSM_COUNTERS] = {0};
	LsmIndexSlot *slot;

	for (int i = 0; i < LSM_READ_COUNTERS; i++)
		counts[lsm_read_columns[i].counter] = lsm_read_count(c, i);
	lsm_stats_add_all(index, counts);
	slot = lsm_slot_of(index);
	if (slot != NULL && c->paid != 0)
		pg_atomic_fetch_add_u64(&slot->reads, c->paid);
}

/* Make the counts visible to other processes. */
void
lsm_reads_publish(LsmPendingReads *pending)
{
	LsmReadCounters *c = &pending->counters;

	if (is_nothing(c))
		return;
	if (OidIsValid(pending->index))
		publish_counts(pending->index, c);
	memset(c, 0, sizeof(LsmReadCounters));
	pending->has_published = true;
}

/*
 * Are there counts to publish when a transaction is about to commit?  With `later`, returns false
 * if an earlier commit has just published counts, since a later commit can publish these.
 */
bool
lsm_reads_are_due(const LsmPendingReads *pending, TimestampTz now, bool later)
{
	return !is_nothing(&pending->counters) &&
		(!later || now - pending->published_at >= PUBLISH_AFTER_US ||
		 lsm_clock_was_set_back(pending->published_at, now));
}
