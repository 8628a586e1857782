/*
 * rules.c
 *	  The arithmetic of scheduling: when a worker's visit is due, how many workers a database gets,
 *	  and how much a writer merges itself.
 *
 * All functions are pure.  They get the time from their callers, and give sensible results if the
 * clock is set back.
 */
#include "postgres.h"

#include "base/clock.h"
#include "schedule/rules.h"

/* The longest pause of a writer for each page that it seals, and the most pauses in a row. */
#define DELAY_US 10000
#define MOST_DELAYS 10

/* Seals of an index between the steps that its writers take under little pressure. */
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
 * Is a visit of a worker due?  If it will be due later, sets *when to the earlier of that time and
 * its old value.
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
 * Returns the rank of an index.  Workers take the index with the lowest rank.  The rank is the size
 * of the smallest job, and halves each second, so that no index waits forever.
 */
uint64
lsm_rule_rank(uint64 blocks, int64 waited_us)
{
	int64		waited_s = waited_us / USECS_PER_SEC;

	return blocks >> Max(Min(waited_s, 63), 0);
}

/*
 * Returns how long to wait after a failure that follows `failures` others.  The wait doubles each
 * time.
 */
int64
lsm_rule_backoff_ms(int failures, int64 first_ms, int64 most_ms)
{
	return Min(first_ms << Max(Min(failures, 20), 0), most_ms);
}

/*
 * Returns how many workers to start for a database.  Each index that waits needs an idle worker.
 * `idle` and `workers` include the workers being started.
 */
int
lsm_rule_missing_workers(int waiting, int idle, int workers, int max_workers)
{
	return Max(Min(waiting - idle, max_workers - workers), 0);
}

/*
 * Workers can help, but are behind.  A writer has just sealed `sealed` pages, and the index has
 * `seals` seals in all.  Should the writer take a step of a job at this level?  Rarely under little
 * pressure, and always under full pressure.
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
 * Workers cannot help.  A writer's pages have raised the number of seals from seals_before to
 * `seals`.  Returns how many steps of a job at this level the writer takes.  A job writes at most
 * one page per sealed page, so one step for every step_blocks / 2 seals ends the job in half the
 * time until the next one is due.
 */
uint32
lsm_rule_turns(int level, uint32 step_blocks, uint64 seals_before, uint64 seals)
{
	uint64		every = Max(1, step_blocks / 2);
	uint64		shift = (uint64) level * LEVEL_STAGGER;

	return (seals + shift) / every - (seals_before + shift) / every;
}

/* Return the length of a writer's pause, and the number of pauses for `sealed` pages. */
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
