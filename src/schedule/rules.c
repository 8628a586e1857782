/*
 * rules.c
 *	  The arithmetic of scheduling: when a worker is due, how many workers a database
 *	  gets, and how much a writer does itself.
 *
 * All functions are pure.  They get the time from their callers, and stay sensible if
 * the clock is set back.
 */
#include "postgres.h"

#include "base/clock.h"
#include "schedule/rules.h"

/* The longest pause of a writer for a page that it seals, and the most pauses at once. */
#define DELAY_US 10000
#define MOST_DELAYS 10

/* Pages between a writer's own steps when there is little pressure. */
#define LAZY_SEALS 32

/* Levels take their steps at different seals. */
#define LEVEL_STAGGER 7

/* Has nobody written to the index for idle_delay_ms?  -1: no index is ever idle. */
bool
lsm_rule_is_idle(TimestampTz last_write, TimestampTz now, int idle_delay_ms)
{
	if (idle_delay_ms < 0)
		return false;
	return lsm_clock_was_set_back(last_write, now) ||
		now - last_write >= idle_delay_ms * LSM_US_PER_MS;
}

/*
 * Is a visit of a worker due?  If it will be later, *when becomes the earlier of that
 * time and its old value.
 */
bool
lsm_rule_is_due(const LsmAsk *ask, int idle_delay_ms, TimestampTz now, TimestampTz *when)
{
	TimestampTz due = now;

	if (!ask->now && (!ask->when_idle || idle_delay_ms < 0))
		return false;
	if (lsm_clock_is_ahead(ask->not_before, now, LSM_LONGEST_POSTPONE_MS))
		due = ask->not_before;
	if (!ask->now && !lsm_rule_is_idle(ask->last_write, now, idle_delay_ms))
		due = Max(due, ask->last_write + idle_delay_ms * LSM_US_PER_MS);
	if (due <= now)
		return true;
	*when = Min(*when, due);
	return false;
}

/*
 * Workers take the index with the lowest rank: the one with the smallest job.  The rank
 * halves each second, so that no index waits forever.
 */
uint64
lsm_rule_rank(uint64 blocks, int64 waited_us)
{
	int64		waited_s = waited_us / USECS_PER_SEC;

	return blocks >> Max(Min(waited_s, 63), 0);
}

/* Returns how long to wait after a failure that follows `failures` others: it doubles each time. */
int64
lsm_rule_backoff_ms(int failures, int64 first_ms, int64 most_ms)
{
	return Min(first_ms << Max(Min(failures, 20), 0), most_ms);
}

/*
 * Workers to start for a database: one for each index that waits, less the idle ones,
 * which include those being started.
 */
int
lsm_rule_missing_workers(int waiting, int idle, int workers, int max_workers)
{
	return Max(Min(waiting - idle, max_workers - workers), 0);
}

/*
 * A worker is at hand, but late.  Should a writer that has just sealed `sealed` pages,
 * `seals` of the index in all, take a step of a job at this level?  Under little
 * pressure it does so rarely, under full pressure for every page.
 */
bool
lsm_rule_is_turn(int pressure, int level, uint64 sealed, uint64 seals)
{
	uint64		every;

	if (pressure <= 0)
		return false;
	every = Max(1, LAZY_SEALS * (100 - pressure) / 100);
	seals += (uint64) level * LEVEL_STAGGER;
	return seals / every != (seals - Min(sealed, seals)) / every;
}

/*
 * No worker is at hand.  How many steps of a job at this level does a writer take whose
 * pages bring the index from seals_before to `seals`?  A job writes at most one page per
 * sealed page, so a step every half of its blocks keeps up with twice the pace.
 */
uint32
lsm_rule_turns(int level, uint32 step_blocks, uint64 seals_before, uint64 seals)
{
	uint64		every = Max(1, step_blocks / 2);
	uint64		shift = (uint64) level * LEVEL_STAGGER;

	return (seals + shift) / every - (seals_before + shift) / every;
}

/* The length of one pause of a writer, and the number of pauses for `sealed` pages. */
int64
lsm_rule_delay_us(int pressure)
{
	return DELAY_US * (int64) Max(Min(pressure, 100), 0) / 100;
}

int
lsm_rule_delays(uint64 sealed)
{
	return (int) Min(sealed, MOST_DELAYS);
}
