/*
 * clock.h
 *	  Points in time of the wall clock, which somebody may set back.
 *
 * Shared memory keeps such times, since all processes must read them alike.  An interval
 * that one process measures is an instr_time instead: that clock only goes forward.
 */
#ifndef LSM_CLOCK_H
#define LSM_CLOCK_H

#include "datatype/timestamp.h"

#define LSM_US_PER_MS INT64CONST(1000)

/* Processes note a time a little after they have read the clock. */
#define LSM_CLOCK_SLACK_MS 1000

/* Nobody keeps workers away from an index for longer. */
#define LSM_LONGEST_POSTPONE_MS 300000

/* Microseconds since a past time; 0 if the clock was set back. */
static inline int64
lsm_clock_elapsed_us(TimestampTz since, TimestampTz now)
{
	return Max(now - since, 0);
}

/* Is a time that must be past so far ahead that the clock was set back? */
static inline bool
lsm_clock_was_set_back(TimestampTz past, TimestampTz now)
{
	return past > now + LSM_CLOCK_SLACK_MS * LSM_US_PER_MS;
}

/*
 * Is `until` still to come?  A time more than longest_ms ahead was noted before the clock
 * was set back, and counts as over.
 */
static inline bool
lsm_clock_is_ahead(TimestampTz until, TimestampTz now, int64 longest_ms)
{
	return until > now && until - now <= longest_ms * LSM_US_PER_MS;
}

/* The timeout of a wait until `when`: rounded up, and at most longest_ms. */
static inline long
lsm_clock_timeout_ms(TimestampTz now, TimestampTz when, long longest_ms)
{
	if (when <= now)
		return 1;
	return (long) Min((when - now) / LSM_US_PER_MS + 1, longest_ms);
}

#endif							/* LSM_CLOCK_H */
