/*
 * counters.c
 *	  What reading an index has cost, on its way to shared memory.
 *
 * A reader counts for itself.  When a scan ends, its counts go to the handle of the
 * index.  From there they go to shared memory when there are many, or when the
 * transaction ends, unless an earlier one published less than a millisecond ago.
 * Otherwise sessions that look up single rows of one index would spend their time
 * moving a cache line between them.
 */
#include "postgres.h"

#include "base/index_slots.h"
#include "index/index.h"

/* What is counted here and not in shared memory yet, at most. */
#define MOST_SEEKS_KEPT		32
#define MOST_PAGES_KEPT		1000

/* Transactions that follow closer upon each other are published together. */
#define PUBLISH_AFTER_US	1000

#define AT(field) offsetof(LsmReadCounters, field)

const LsmReadColumn lsm_read_columns[] =
{
	{"seeks", "LSM Seeks", AT(seeks), LSM_COUNT_SEEKS},
	{"runs", "LSM Runs Read", AT(runs), LSM_COUNT_RUNS},
	{"segments", "LSM Segments Read", AT(segments), LSM_COUNT_SEGMENTS},
	{"pages", "LSM Pages Read", AT(pages), LSM_COUNT_PAGES},
	{"entries", "LSM Entries Read", AT(entries), LSM_COUNT_DECODED},
	{"restarts", "LSM Restarts", AT(restarts), LSM_COUNT_RESTARTS},
	{"removed", "LSM Entries Removed", AT(removed), LSM_COUNT_REMOVED},
	{"filter_checks", "LSM Filter Checks", AT(filter_checks), LSM_COUNT_FILTER_CHECKS},
	{"filter_skips", "LSM Filter Skips", AT(filter_skips), LSM_COUNT_FILTER_SKIPS},
	{"filter_misses", "LSM Filter Misses", AT(filter_misses), LSM_COUNT_FILTER_MISSES},
	{"prefetched", "LSM Pages Prefetched", AT(prefetched), LSM_COUNT_PREFETCHED},
};

#define COUNTERS (sizeof(LsmReadCounters) / sizeof(uint64))

StaticAssertDecl(lengthof(lsm_read_columns) == LSM_READ_COLUMNS, "LSM_READ_COLUMNS is wrong");
StaticAssertDecl(LSM_READ_COLUMNS + 1 == COUNTERS, "all but \"paid\" are shown");

void
lsm_counters_add(LsmReadCounters *to, const LsmReadCounters *from)
{
	uint64	   *sums = (uint64 *) to;
	const uint64 *counts = (const uint64 *) from;

	for (int i = 0; i < COUNTERS; i++)
		sums[i] += counts[i];
}

static bool
is_nothing(const LsmReadCounters *counters)
{
	/* Nothing is removed, or paid for, without having been read. */
	return counters->seeks == 0 && counters->pages == 0 && counters->removed == 0;
}

/*
 * Add up what reading has cost.  Allocates nothing and touches no shared memory:
 * also for the end of a failed transaction.
 */
void
lsm_index_note_reads(LsmIndex *index, LsmReadCounters *counters)
{
	if (is_nothing(counters))
		return;
	lsm_counters_add(&index->counters, counters);
	memset(counters, 0, sizeof(LsmReadCounters));
}

/* The same; and shared memory gets it if there is much. */
void
lsm_index_count(LsmIndex *index, LsmReadCounters *counters)
{
	lsm_index_note_reads(index, counters);
	if (index->counters.seeks >= MOST_SEEKS_KEPT || index->counters.pages >= MOST_PAGES_KEPT)
		lsm_index_publish(index);
}

/* Let the statistics views see what is counted. */
void
lsm_index_publish(LsmIndex *index)
{
	LsmReadCounters *c = &index->counters;
	LsmIndexSlot *slot;

	if (is_nothing(c))
		return;
	slot = index->is_local ? NULL : lsm_slot_of(index->id);
	for (int i = 0; slot != NULL && i < LSM_READ_COLUMNS; i++)
	{
		uint64		n = lsm_read_count(c, i);

		if (n != 0)
			pg_atomic_fetch_add_u64(&slot->counters[lsm_read_columns[i].counter], n);
	}
	if (slot != NULL && c->paid != 0)
		pg_atomic_fetch_add_u64(&slot->reads, c->paid);
	memset(c, 0, sizeof(LsmReadCounters));
	index->has_published = true;
}

/* The same at the end of a transaction, unless the last time was just before. */
void
lsm_index_publish_if_due(LsmIndex *index, TimestampTz now)
{
	if (is_nothing(&index->counters) || now - index->published < PUBLISH_AFTER_US)
		return;
	lsm_index_publish(index);
	index->published = now;
}
