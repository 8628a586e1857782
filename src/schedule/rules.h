/*
 * rules.h
 *	  The arithmetic of scheduling: pure functions of plain values.
 */
#ifndef LSM_RULES_H
#define LSM_RULES_H

#include "datatype/timestamp.h"

/* An index's requests to the workers; see LsmIndexSlot. */
typedef struct LsmAsk
{
	bool		now;			/* there is a job, or readers may have paid for one */
	bool		when_idle;
	TimestampTz not_before;
	TimestampTz last_write;
} LsmAsk;

/* When a worker's visit is due. */
extern bool lsm_rule_is_idle(TimestampTz last_write, TimestampTz now, int idle_delay_ms);
extern bool lsm_rule_is_due(const LsmAsk *ask, int idle_delay_ms, TimestampTz now,
							TimestampTz *when);
extern uint64 lsm_rule_rank(uint64 blocks, int64 waited_us);
extern int64 lsm_rule_backoff_ms(int failures, int64 first_ms, int64 most_ms);

/* How many workers a database gets. */
extern int	lsm_rule_missing_workers(int waiting, int idle, int workers, int max_workers);

/* How much a writer merges itself. */
extern bool lsm_rule_is_turn(int pressure, int level, uint64 sealed, uint64 seals);
extern uint32 lsm_rule_turns(int level, uint32 step_blocks, uint64 seals_before, uint64 seals);
extern int64 lsm_rule_delay_us(int pressure);
extern int	lsm_rule_delays(uint64 sealed);

#endif							/* LSM_RULES_H */
