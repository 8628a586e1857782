/*
 * counters.h
 *	  What reading an index has cost, on its way to shared memory.
 */
#ifndef LSM_COUNTERS_H
#define LSM_COUNTERS_H

#include "base/shared.h"

/* What reading has cost.  All fields have one type, so that loops can add them. */
typedef struct LsmReadCounters
{
	uint64		seeks;			/* of a whole index */
	uint64		runs;			/* looked into by them */
	uint64		segments;
	uint64		pages;			/* of segments and directories */
	uint64		entries;		/* decoded */
	uint64		restarts;		/* because a version had become old */
	uint64		filter_checks;	/* of filters, by lookups */
	uint64		filter_skips;	/* segments that one of them has spared */
	uint64		filter_misses;	/* segments that one of them has not, with nothing to be found */
	uint64		prefetched;		/* pages asked for before they are read */
	uint64		removed;		/* entries whose rows are dead to all, taken out */
	uint64		paid;			/* for there being several runs, in seeks in each of them */
} LsmReadCounters;

/* How EXPLAIN shows a counter, in the order of the columns of pg_stat_lsm_indexes. */
typedef struct LsmReadColumn
{
	const char *name;			/* in a line of EXPLAIN */
	const char *property;		/* in EXPLAIN's other formats */
	size_t		offset;			/* in LsmReadCounters */
	LsmCounter	counter;		/* of the index, for all sessions */
} LsmReadColumn;

#define LSM_READ_COLUMNS 11

extern const LsmReadColumn lsm_read_columns[];

static inline uint64
lsm_read_count(const LsmReadCounters *counters, int column)
{
	return *(const uint64 *) ((const char *) counters + lsm_read_columns[column].offset);
}

/* What this backend has read of an index and not yet added to shared memory. */
typedef struct LsmPendingReads
{
	Oid			index;			/* InvalidOid: of a temporary table, which has no slot */
	LsmReadCounters counters;
	TimestampTz published_at;	/* by the end of a transaction */
	bool		has_published;	/* since lsm_request_after_reads looked last */
} LsmPendingReads;

extern void lsm_counters_add(LsmReadCounters *to, const LsmReadCounters *from);
extern void lsm_reads_note(LsmPendingReads *pending, LsmReadCounters *counters);
extern void lsm_reads_count(LsmPendingReads *pending, LsmReadCounters *counters);
extern void lsm_reads_publish(LsmPendingReads *pending);
extern void lsm_reads_publish_if_due(LsmPendingReads *pending, TimestampTz now);

#endif							/* LSM_COUNTERS_H */
