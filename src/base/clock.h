/*
 * clock.h
 *	  Wall-clock times, robust against a clock that is set back.
 *
 * Times in shared memory are wall-clock times, since all processes must agree on them.  For an
 * interval that one process measures, use instr_time: that clock only goes forward.
 */
#ifndef LSM_CLOCK_H
#define LSM_CLOCK_H

#include "datatype/timestamp.h"

#define LSM_US_PER_MS INT64CONST(1000)

/*
 * Tolerated delay between reading the clock and comparing the time with a stored one.  Meanwhile,
 * another process may store a later time.
 */
#define LSM_CLOCK_SLACK_MS 1000

/* Workers stay away from an index for at most this long. */
#define LSM_LONGEST_POSTPONE_MS 300000

/* Returns the microseconds since a past time, or 0 if the clock was set back. */
static inline int64
lsm_clock_elapsed_us(TimestampTz since, TimestampTz now)
{
	return Max(now - since, 0);
}

/* Was the clock set back, so that a time from the past now seems to be in the future? */
static inline bool
lsm_clock_was_set_back(TimestampTz past, TimestampTz now)
{
	return past > now + LSM_CLOCK_SLACK_MS * LSM_US_PER_MS;
}

/*
 * Is `until` in the future?  A time more than longest_ms ahead was stored before the clock was
 * set back, and counts as past.
 */
static inline bool
lsm_clock_is_ahead(TimestampTz until, TimestampTz now, int64 longest_ms)
{
	return until > now && until - now <= longest_ms * LSM_US_PER_MS;
}

/* A message about a lasting problem is logged at most once in this interval. */
#define LSM_LOG_INTERVAL_MS 60000

/* Is it time to repeat a message that was last logged at *logged?  If so, sets *logged to now. */
static inline bool
lsm_clock_log_is_due(TimestampTz *logged, TimestampTz now)
{
	if (lsm_clock_is_ahead(*logged + LSM_LOG_INTERVAL_MS * LSM_US_PER_MS, now, LSM_LOG_INTERVAL_MS))
		return false;
	*logged = now;
	return true;
}

/* Returns the timeout for a wait until `when`: rounded up, at least 1 ms, at most longest_ms. */
static inline long
lsm_clock_timeout_ms(TimestampTz now, TimestampTz when, long longest_ms)
{
	if (when <= now)
		return 1;
	return (long) Min((when - now) / LSM_US_PER_MS + 1, longest_ms);
}

#endif							/* LSM_CLOCK_H */
