/*
 * counters.h
 *	  Counts what reading an index costs, and publishes the counts in shared memory.
 */
#ifndef LSM_COUNTERS_H
#define LSM_COUNTERS_H

#include "base/shared.h"

/* The read counters.  All fields have one type, so that loops can add them. */
typedef struct LsmReadCounters
{
#define LSM_READ_COUNTER(field, column, label, description) uint64 field;
#include "base/counter_list.h"
	/* Not shown: the extra seeks in runs that readers made because there are several runs. */
	uint64		paid;
} LsmReadCounters;

/* The number of counters that are shown.  The shown counters come first. */
#define LSM_READ_COUNTERS (offsetof(LsmReadCounters, paid) / sizeof(uint64))

typedef struct LsmReadColumn
{
	const char *name;			/* in a line of EXPLAIN (LSM) */
	const char *label;			/* in other formats of EXPLAIN */
	LsmCounter	counter;		/* of the index, for all sessions */
} LsmReadColumn;

extern const LsmReadColumn lsm_read_columns[LSM_READ_COUNTERS];

static inline uint64
lsm_read_count(const LsmReadCounters *counters, int column)
{
	return ((const uint64 *) counters)[column];
}

/* Counts of this backend that have not been added to shared memory yet. */
typedef struct LsmPendingReads
{
	Oid			index;			/* InvalidOid: a temporary index, which has no slot */
	LsmReadCounters counters;
	TimestampTz published_at;	/* when a commit last published counts */
	bool		has_published;	/* since lsm_request_after_reads last looked */
} LsmPendingReads;

extern void lsm_counters_add(LsmReadCounters *to, const LsmReadCounters *from);
extern void lsm_reads_note(LsmPendingReads *pending, LsmReadCounters *counters);
extern void lsm_reads_count(LsmPendingReads *pending, LsmReadCounters *counters);
extern void lsm_reads_publish(LsmPendingReads *pending);
extern bool lsm_reads_are_due(const LsmPendingReads *pending, TimestampTz now, bool later);

#endif							/* LSM_COUNTERS_H */
