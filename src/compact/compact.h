/*
 * compact.h
 *	  Compaction: what to merge (pick.c), how (job.c), and when (policy.c).
 */
#ifndef LSM_COMPACT_H
#define LSM_COMPACT_H

#include "format/meta.h"
#include "key/cursor.h"
#include "utils/rel.h"

/* A job that was picked. */
typedef struct LsmJob
{
	int			level;			/* of the inputs; the output's is one more */
	int			count;
	uint32		blocks;			/* of the inputs */
	uint64		run_id;			/* of the output, if the job is under way, or 0 */
	uint64		inputs[LSM_MAX_JOB_INPUTS];
} LsmJob;

/* pick.c: pure */
extern bool lsm_pick_job(const LsmRunRecord *runs, int count, int fanout, int from_level,
						 LsmJob *job);
extern bool lsm_pick_any(const LsmRunRecord *runs, int count, LsmJob *job);
extern int	lsm_pick_idle(const LsmRunRecord *runs, int count, int level);
extern int	lsm_pick_trigger(int level, int fanout);
extern int	lsm_level_for(uint32 blocks, int fanout);

/* job.c */
extern void lsm_job_step(Relation rel, Relation heap, LsmKeySpace *ks, LsmJob *job,
						 uint32 max_leaves);
extern void lsm_job_abandon_failed(Relation rel);
extern void lsm_space_reclaim(Relation rel, Relation heap);

/* owner.c */
typedef struct LsmOwnerContext
{
	Oid			user;
	int			sec_context;
	int			guc_level;		/* 0: nothing was switched */
} LsmOwnerContext;

extern void lsm_owner_enter(Relation heap, LsmKeySpace *ks, LsmOwnerContext *saved);
extern void lsm_owner_leave(LsmOwnerContext *saved);

/* buffer.c */
extern bool lsm_compact_insert(Relation rel, Relation heap, LsmKeySpace *ks,
							   const LsmEntry *entry, uint64 *seals);

/* policy.c */
extern void lsm_compact_after_seal(Relation rel, Relation heap, LsmKeySpace *ks,
								   uint64 seals_before, uint64 seals);
extern void lsm_compact_make_room(Relation rel, Relation heap, LsmKeySpace *ks);

#endif							/* LSM_COMPACT_H */
