/*
 * t_rules.c -- when workers are due, how many workers a database gets, and what writers do
 * themselves, also with a clock that is set back.
 */
#include "tap.h"

#include "base/clock.h"
#include "schedule/rules.h"

#define MS		LSM_US_PER_MS
#define DAY		(INT64CONST(86400000) * MS)
#define NOW		(INT64CONST(700000000000000))	/* some time in 2022 */
#define DELAY	10000			/* pg_lsm.idle_delay */

static TimestampTz when;

/* Is a worker due? Sets `when` to the time when one will be due, at most a day after NOW. */
static bool
is_due(bool now, bool when_idle, TimestampTz not_before, TimestampTz last_write, int idle_delay_ms)
{
	LsmAsk		ask = {now, when_idle, not_before, last_write};

	when = NOW + DAY;
	return lsm_rule_is_due(&ask, idle_delay_ms, NOW, &when);
}

static void
test_clock(void)
{
	ok(lsm_clock_elapsed_us(NOW - 5, NOW) == 5, "elapsed: the difference");
	ok(lsm_clock_elapsed_us(NOW + DAY, NOW) == 0, "elapsed: zero if the clock was set back");
	ok(lsm_clock_is_ahead(NOW + 1, NOW, 1000) && !lsm_clock_is_ahead(NOW, NOW, 1000) &&
	   !lsm_clock_is_ahead(0, NOW, 1000), "ahead: later than now");
	ok(lsm_clock_is_ahead(NOW + 1000 * MS, NOW, 1000) &&
	   !lsm_clock_is_ahead(NOW + 1000 * MS + 1, NOW, 1000), "ahead: by at most the longest wait");
	ok(!lsm_clock_was_set_back(NOW, NOW) && !lsm_clock_was_set_back(NOW + 10 * MS, NOW) &&
	   lsm_clock_was_set_back(NOW + DAY, NOW), "set back: detected if a past time is far ahead");
	ok(lsm_clock_timeout_ms(NOW, NOW - DAY, 1000) == 1 && lsm_clock_timeout_ms(NOW, NOW, 1000) == 1,
	   "timeout: short if the time has come");
	ok(lsm_clock_timeout_ms(NOW, NOW + 5 * MS, 1000) == 6, "timeout: rounded up");
	ok(lsm_clock_timeout_ms(NOW, NOW + 100 * DAY, 1000) == 1000,
	   "timeout: never longer than the longest wait");
}

static void
test_due(void)
{
	ok(!is_due(false, false, 0, 0, DELAY) && when == NOW + DAY, "due: not without a request");
	ok(is_due(true, false, 0, NOW, DELAY), "due: at once if there is a job");
	ok(is_due(true, false, 0, NOW, -1), "due: even if idle merges are disabled");
	ok(!is_due(true, false, NOW + 50 * MS, NOW, DELAY) && when == NOW + 50 * MS,
	   "due: not while the job is postponed");
	ok(is_due(true, false, NOW, NOW, DELAY), "due: when the postponement is over");
	ok(!is_due(false, true, 0, NOW - 4000 * MS, DELAY) && when == NOW + 6000 * MS,
	   "idle: due when the index has been idle for long enough");
	ok(is_due(false, true, 0, NOW - 10000 * MS, DELAY), "idle: due at exactly that time");
	ok(is_due(true, true, 0, NOW, DELAY), "idle: a job does not wait for that");
	ok(!is_due(false, true, NOW + 8000 * MS, NOW - 4000 * MS, DELAY) && when == NOW + 8000 * MS,
	   "idle and postponed: the later time counts");
	ok(!is_due(false, true, 0, 0, -1) && when == NOW + DAY,
	   "idle: never due if idle merges are disabled");
	ok(is_due(true, false, NOW + DAY, NOW, DELAY), "clock set back: a postponement is over");
	ok(is_due(false, true, 0, NOW + DAY, DELAY), "clock set back: the index counts as idle");
	ok(!is_due(false, true, 0, NOW + 10 * MS, DELAY) && when == NOW + 10010 * MS,
	   "a write just after the clock was read does not count as such");
}

/* The two rules that a worker asks must agree. Otherwise workers would start again and again. */
static void
test_idle_agrees(void)
{
	bool		agree = true;

	for (int i = 0; i < 100000; i++)
	{
		int			delay = (int) rnd(4) - 1 == -1 ? -1 : (int) rnd(20000);
		TimestampTz last_write = NOW + ((int64) rnd(60000) - 30000) * MS;

		agree &= is_due(false, true, 0, last_write, delay) ==
			lsm_rule_is_idle(last_write, NOW, delay);
		agree &= when > NOW;
	}
	ok(agree, "an index is due for idle work if and only if it is idle; otherwise it is due later");
}

static void
test_rank(void)
{
	ok(lsm_rule_rank(1000, 0) == 1000 && lsm_rule_rank(1000, 999999) == 1000, "rank: the size at first");
	ok(lsm_rule_rank(1000, 1000000) == 500 && lsm_rule_rank(1000, 3000000) == 125,
	   "rank: halves every second");
	ok(lsm_rule_rank(PG_UINT64_MAX, 63000000) == 1 && lsm_rule_rank(PG_UINT64_MAX, DAY) == 1 &&
	   lsm_rule_rank(1000, DAY) == 0, "rank: the minimum after a minute");
	ok(lsm_rule_rank(1000, -DAY) == 1000, "rank: the size if the clock was set back");
}

static void
test_backoff(void)
{
	ok(lsm_rule_backoff_ms(0, 200, 30000) == 200 && lsm_rule_backoff_ms(1, 200, 30000) == 400 &&
	   lsm_rule_backoff_ms(7, 200, 30000) == 25600, "backoff: twice as long each time");
	ok(lsm_rule_backoff_ms(8, 200, 30000) == 30000 && lsm_rule_backoff_ms(PG_INT32_MAX, 200, 30000) == 30000,
	   "backoff: up to the limit");
	ok(lsm_rule_backoff_ms(-1, 200, 30000) == 200, "backoff: a negative count equals zero");
}

static void
test_workers(void)
{
	ok(lsm_rule_missing_workers(3, 0, 0, 8) == 3, "workers: one for each waiting index");
	ok(lsm_rule_missing_workers(3, 2, 2, 8) == 1, "workers: minus those that are idle");
	ok(lsm_rule_missing_workers(3, 0, 1, 2) == 1, "workers: up to the limit");
	ok(lsm_rule_missing_workers(3, 0, 2, 2) == 0 && lsm_rule_missing_workers(3, 0, 4, 2) == 0,
	   "workers: none beyond it, even after it was lowered");
	ok(lsm_rule_missing_workers(0, 0, 0, 8) == 0 && lsm_rule_missing_workers(1, 4, 4, 8) == 0,
	   "workers: none if no index waits, or if the idle ones suffice");
}

/* The number of turns that a writer takes while it seals pages one by one. */
static int
count_turns(int pressure, int level, uint64 seals)
{
	int			turns = 0;

	for (uint64 i = 1; i <= seals; i++)
		turns += lsm_rule_is_turn(pressure, level, 1, i);
	return turns;
}

static void
test_turns(void)
{
	uint32		turns = 0;
	bool		apart = true;

	ok(count_turns(0, 1, 1000) == 0, "turns: none without pressure");
	ok(count_turns(1, 1, 3100) == 100, "turns: rare with little pressure");
	ok(count_turns(50, 1, 1600) == 100, "turns: every sixteenth page with half pressure");
	ok(count_turns(100, 1, 1000) == 1000, "turns: each page with full pressure");
	ok(count_turns(101, 1, 1000) == 1000 && count_turns(-1, 1, 1000) == 0,
	   "turns: values outside the range count as its ends");
	ok(lsm_rule_is_turn(50, 1, 64, 70), "turns: a batch takes its turn, too");
	ok(!lsm_rule_is_turn(1, 0, 40, 20),
	   "turns: a batch of more pages than were ever sealed causes no underflow");

	for (uint64 i = 0; i < 6400; i++)
		turns += lsm_rule_turns(3, 128, i, i + 1);
	ok(turns == 100, "without workers: a step for every half of a step's blocks");
	ok(lsm_rule_turns(3, 128, 0, 6400) == 100,
	   "without workers: as many steps for pages that arrive at once");
	ok(lsm_rule_turns(3, 1, 10, 20) == 10 && lsm_rule_turns(3, 0, 10, 20) == 10,
	   "without workers: one step a page if steps have the minimum size");
	for (uint64 i = 0; i < 1000; i++)
		apart &= lsm_rule_turns(1, 128, i, i + 1) + lsm_rule_turns(2, 128, i, i + 1) < 2;
	ok(apart, "without workers: neighboring levels take their turns at different pages");
}

static void
test_delay(void)
{
	ok(lsm_rule_delay_us(0) == 0 && lsm_rule_delay_us(50) == 5000 && lsm_rule_delay_us(100) == 10000,
	   "delay: grows with the pressure");
	ok(lsm_rule_delay_us(1000) == 10000 && lsm_rule_delay_us(-5) == 0, "delay: stays within bounds");
	ok(lsm_rule_delays(0) == 0 && lsm_rule_delays(1) == 1 && lsm_rule_delays(PG_UINT64_MAX) == 10,
	   "delay: one for each page, ten at most");
}

int
main(void)
{
	test_clock();
	test_due();
	test_idle_agrees();
	test_rank();
	test_backoff();
	test_workers();
	test_turns();
	test_delay();
	return done();
}
