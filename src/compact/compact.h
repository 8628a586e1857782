/*
 * compact.h
 *	  Compaction: what to merge (pick.c), how (job.c, append.c), when (policy.c), and who:
 *	  writers, background workers (request.c, pool.c, launcher.c, worker.c), or
 *	  somebody who asks for it (settle.c).
 */
#ifndef LSM_COMPACT_H
#define LSM_COMPACT_H

#include "base/shared.h"
#include "format/meta.h"
#include "key/cursor.h"
#include "manifest/manifest.h"
#include "portability/instr_time.h"
#include "utils/rel.h"

/* A job that was picked. */
typedef struct LsmJob
{
	int			level;			/* of the inputs; the output's is one more */
	int			count;
	uint32		blocks;			/* of the inputs, and of the part */
	uint64		run_id;			/* of the output, if the job is under way, or 0 */
	uint64		part_id;		/* run of its part, or 0 */
	uint64		inputs[LSM_MAX_JOB_INPUTS];
} LsmJob;

/* What waits to be merged. */
typedef struct LsmDebt
{
	uint64		blocks;			/* of all jobs due, less what is written */
	uint32		next_blocks;	/* of the smallest one that is not small; 0: none */
	int			pressure;		/* percent: how much writers should give way */
} LsmDebt;

/* Runs are merged when idle with others of at least a quarter of their size. */
#define LSM_IDLE_RATIO 4

/* pick.c: pure */
extern bool lsm_pick_job(const LsmRunRecord *runs, int count, int fanout, int from_level,
						 LsmJob *job);
extern bool lsm_pick_building(const LsmRunRecord *runs, int count, uint64 run_id, LsmJob *job);
extern bool lsm_pick_any(const LsmRunRecord *runs, int count, LsmJob *job);
extern int	lsm_pick_idle(const LsmRunRecord *runs, int count, int level);
extern int	lsm_pick_trigger(int level, int fanout);
extern int	lsm_level_for(uint32 blocks, int fanout);
extern void lsm_pick_debt(const LsmRunRecord *runs, int count, int fanout, uint32 small_blocks,
						  LsmDebt *debt);
extern bool lsm_pick_idle_job(const LsmRunRecord *runs, int count, int fanout, LsmJob *job);
extern bool lsm_pick_settling(const LsmRunRecord *runs, int count, int fanout, LsmJob *job,
							  bool *last);

/* job.c */
extern void lsm_job_step(Relation rel, Relation heap, LsmKeySpace *ks, LsmJob *job,
						 uint32 max_leaves);
extern void lsm_job_recover_failed(Relation rel, Relation heap);
extern void lsm_space_reclaim(Relation rel, Relation heap);

extern void lsm_job_put_run(Relation rel, const LsmRunRecord *run);
extern void lsm_job_install(Relation rel, const LsmJob *job, LsmRunRecord *run);
extern void lsm_job_take(LsmRunWriter *writer, LsmCursor *source);

/* append.c */
extern uint32 lsm_job_append(Relation rel, Relation heap, LsmKeySpace *ks, const LsmJob *job);

/* owner.c */
typedef struct LsmOwnerContext
{
	Oid			user;
	int			sec_context;
	int			guc_level;		/* 0: nothing was switched */
} LsmOwnerContext;

extern void lsm_owner_become(Relation heap, LsmOwnerContext *saved);
extern void lsm_owner_enter(Relation heap, LsmKeySpace *ks, LsmOwnerContext *saved);
extern void lsm_owner_leave(LsmOwnerContext *saved);

/* buffer.c */
extern bool lsm_compact_insert(Relation rel, Relation heap, LsmKeySpace *ks,
							   const LsmEntry *entry, uint64 *seals);
extern bool lsm_compact_seal(Relation rel, Relation heap, LsmKeySpace *ks, uint64 run_id);
extern void lsm_compact_seal_spare(Relation rel, Relation heap, LsmKeySpace *ks,
								   LsmOpenPages *last);
extern void lsm_compact_forget(Relation rel);

/* An index that is open for merging, and its table. */
typedef struct LsmTarget
{
	Relation	heap;
	Relation	index;
	LsmKeySpace *ks;
	bool		snapshot;		/* one was pushed */
	LsmOwnerContext owner;
} LsmTarget;

typedef enum LsmOpenResult
{
	LSM_OPENED,
	LSM_OPEN_LOCKED,			/* somebody holds a lock on it: later */
	LSM_OPEN_GONE				/* not there, not ready, or not visible to us */
} LsmOpenResult;

/* target.c */
extern bool lsm_index_is_partitioned(Oid oid);
extern LsmOpenResult lsm_target_open(LsmTarget *target, Oid index_oid, bool wait);
extern void lsm_target_close(LsmTarget *target);

/* request.c */
typedef struct LsmHelp
{
	LsmIndexSlot *slot;			/* or NULL */
	uint64		sealed;			/* pages that the writer has just sealed */
	bool		at_hand;		/* workers do the large merges */
	int			pressure;
} LsmHelp;

extern void lsm_request_help(Relation rel, Relation heap, const LsmVersion *version,
							 uint64 sealed, LsmHelp *help);
extern void lsm_request_note(Relation rel);
extern bool lsm_request_is_turn(const LsmHelp *help, int level, uint64 seals);
extern void lsm_request_step(Relation rel, Relation heap, LsmKeySpace *ks, LsmJob *job,
							 uint32 leaves);
extern void lsm_request_delay(Relation rel, const LsmHelp *help);
extern void lsm_request_count_time(Relation rel, instr_time start);
extern bool lsm_request_due(LsmIndexSlot *slot, TimestampTz now, TimestampTz *when);

/* pool.c */
extern void lsm_pool_init(void);
extern void lsm_pool_wake(Oid database);
extern PGDLLEXPORT void lsm_launcher_main(Datum arg);

/* worker.c */
extern PGDLLEXPORT void lsm_worker_main(Datum arg);

/* policy.c */
extern void lsm_compact_after_seal(Relation rel, Relation heap, LsmKeySpace *ks,
								   uint64 seals_before, uint64 seals);
extern void lsm_compact_make_room(Relation rel, Relation heap, LsmKeySpace *ks);

#endif							/* LSM_COMPACT_H */
