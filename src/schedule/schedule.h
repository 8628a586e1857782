/*
 * schedule.h
 *	  Decides who merges and when: writers (policy.c), background workers (worker.c, started by
 *	  launcher.c), or lsm_compact (inspect/compact_index.c).
 *
 * request.c has the requests of writers and readers to the workers.  rules.c has the arithmetic.
 */
#ifndef LSM_SCHEDULE_H
#define LSM_SCHEDULE_H

#include "base/shared.h"
#include "compact/compact.h"
#include "portability/instr_time.h"
#include "utils/rel.h"

/* An index that is open for merging, and its table. */
typedef struct LsmTarget
{
	Relation	heap;
	Relation	rel;
	LsmIndex   *index;
	bool		has_snapshot;	/* a snapshot was pushed */
	LsmOwnerContext owner;
} LsmTarget;

typedef enum LsmOpenResult
{
	LSM_OPENED,
	LSM_OPEN_LOCKED,			/* another session holds a conflicting lock: try later */
	LSM_OPEN_GONE				/* dropped, not ready, or not visible to us */
} LsmOpenResult;

/* target.c */
extern bool lsm_index_is_partitioned(Oid oid);
extern LsmOpenResult lsm_target_open(LsmTarget *target, Oid index_oid, bool wait);
extern void lsm_target_close(LsmTarget *target);

/* request.c */

/* The help that a writer gets from workers. */
typedef struct LsmHelp
{
	uint64		sealed;			/* pages that the writer has just sealed */
	bool		at_hand;		/* workers do the large merges */
	int			pressure;		/* percent: how far the workers are behind */
} LsmHelp;

extern void lsm_request_help(LsmIndex *index, Relation heap, const LsmVersion *version,
							 uint64 sealed, LsmHelp *help);
extern void lsm_request_note(LsmIndex *index, bool when_idle);
extern void lsm_request_truncate(LsmIndex *index);
extern void lsm_request_after_reads(LsmIndex *index);
extern void lsm_request_begin(LsmIndexSlot *slot);
extern bool lsm_request_for_readers(LsmIndex *index, const LsmVersion *version, LsmJob *job);
extern LsmStepResult lsm_request_step(LsmIndex *index, Relation heap, LsmJob *job);
extern void lsm_request_delay(LsmIndex *index, const LsmHelp *help);
extern void lsm_request_count_time(LsmIndex *index, instr_time start);
extern bool lsm_request_due(LsmIndexSlot *slot, TimestampTz now, TimestampTz *when);

/* policy.c */
extern void lsm_schedule_after_seal(LsmIndex *index, Relation heap, uint64 seals_before,
									uint64 seals);
extern void lsm_schedule_make_room(LsmIndex *index, Relation heap);
extern void lsm_schedule_expect_room(LsmIndex *index, Relation heap);

/* seal.c */
extern void lsm_seal_spare_pages(LsmIndex *index);
extern bool lsm_seal_last_page(LsmIndex *index);

/* truncate.c */
extern bool lsm_truncation_is_wanted(LsmIndex *index);
extern bool lsm_truncate(LsmIndex *index);

/* pool.c */
extern void lsm_pool_wake(Oid database);
extern bool lsm_pool_has_worker(Oid database);

/* launcher.c */
extern void lsm_launcher_init(void);
extern PGDLLEXPORT void lsm_launcher_main(Datum arg);

/* worker.c */
extern PGDLLEXPORT void lsm_worker_main(Datum arg);

#endif							/* LSM_SCHEDULE_H */
