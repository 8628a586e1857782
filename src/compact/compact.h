/*
 * compact.h
 *	  Compaction: pick.c chooses what to merge, and job.c merges it. schedule/ decides when to
 *	  merge, and in which process.
 */
#ifndef LSM_COMPACT_H
#define LSM_COMPACT_H

#include "manifest/manifest.h"

/* A job that pick.c has chosen. */
typedef struct LsmJob
{
	int			level;			/* of the output */
	int			count;
	uint32		blocks;			/* of the inputs */
	uint32		blocks_left;	/* blocks of the inputs still to be merged */
	uint64		job_id;			/* output run, if the job is under way, or 0 */
	uint64		inputs[LSM_MAX_JOB_INPUTS];
} LsmJob;

/* The place where lsm_pick_job continues.  Initially zeroed. */
typedef struct LsmPickPlace
{
	int			level;			/* of the inputs */
	int			run;
} LsmPickPlace;

/* The merge work that is due. */
typedef struct LsmDebt
{
	uint64		blocks;			/* blocks still to be merged, over all jobs due */
	uint32		next_blocks;	/* of these, blocks of the smallest job; 0: no job */
	int			jobs;			/* jobs that are large or under way */
	int			pressure;		/* percent: how much writers should slow down */
} LsmDebt;

/*
 * An idle index merges a run only with others that together have at least a quarter of its size.
 * Readers pay a lower price for such merges (LSM_READS_PER_EVEN_BLOCK).
 */
#define LSM_IDLE_RATIO 4

/*
 * How many seeks in a run cost as much as merging a block of it. A seek descends to a leaf and
 * decodes a group of entries, which takes about a microsecond. Merging a block means merging,
 * logging and writing about a thousand entries. In addition, every job, however small, costs as
 * much as merging LSM_JOB_BLOCKS blocks.
 */
#define LSM_READS_PER_BLOCK 64
#define LSM_READS_PER_EVEN_BLOCK 16
#define LSM_JOB_BLOCKS 16

/* pick.c: pure */
extern bool lsm_pick_job(const LsmRunRecord *runs, int count, int fanout, LsmPickPlace *place,
						 LsmJob *job);
extern bool lsm_pick_under_way(const LsmRunRecord *runs, int count, uint64 job_id, LsmJob *job);
extern bool lsm_pick_any(const LsmRunRecord *runs, int count, int fanout, LsmJob *job);
extern int	lsm_pick_count_free(const LsmRunRecord *runs, int count, int level);
extern int	lsm_pick_trigger(int level, int fanout);
extern int	lsm_effective_fanout(const LsmRunRecord *runs, int count, int fanout);
extern int	lsm_level_for(uint32 blocks, int fanout);
extern void lsm_pick_debt(const LsmRunRecord *runs, int count, int fanout, uint32 small_blocks,
						  LsmDebt *debt);
extern bool lsm_pick_idle_job(const LsmRunRecord *runs, int count, int fanout, LsmJob *job);
extern bool lsm_pick_for_readers(const LsmRunRecord *runs, int count, int fanout,
								 const uint64 *reads, LsmJob *job, uint64 *wait);
extern bool lsm_pick_settling(const LsmRunRecord *runs, int count, int fanout, LsmJob *job,
							  bool *last);
extern bool lsm_pick_is_small(const LsmJob *job, int trigger, uint32 small_blocks);
extern uint32 lsm_segment_size(uint64 job_blocks);

/* job.c */
typedef enum LsmStepResult
{
	LSM_STEP_DONE,				/* the job is complete */
	LSM_STEP_MORE,				/* a step was taken */
	LSM_STEP_BUSY				/* cannot lock, begin or reserve, or the job is gone */
} LsmStepResult;

extern LsmStepResult lsm_job_step(LsmIndex *index, Relation heap, LsmJob *job, uint32 most_blocks,
								  bool wait);

#endif							/* LSM_COMPACT_H */
