/*
 * pick.c
 *	  What to merge next: a pure function of the manifest.
 *
 * Tiering: when a level holds enough runs that no job has taken, all of them
 * (up to LSM_MAX_JOB_INPUTS) become one run of the next level: `fanout` runs,
 * or twice as many of level 0, whose runs are of a page or two and cost little
 * to read.  One job at a time takes its inputs from a level.
 */
#include "postgres.h"

#include "compact/compact.h"

static bool
is_idle(const LsmRunRecord *run, int level)
{
	return run->level == level && run->job_id == 0 &&
		(run->state == LSM_RUN_SEALED || run->state == LSM_RUN_PACKED);
}

/* How many runs of a level make a job. */
int
lsm_pick_trigger(int level, int fanout)
{
	return level == 0 ? 2 * fanout : fanout;
}

/* Number of runs of a level that no job has taken. */
int
lsm_pick_idle(const LsmRunRecord *runs, int count, int level)
{
	int			idle = 0;

	for (int i = 0; i < count; i++)
		idle += is_idle(&runs[i], level);
	return idle;
}

/* The run that a job which takes its inputs from this level builds, or NULL. */
static const LsmRunRecord *
building_from(const LsmRunRecord *runs, int count, int level)
{
	for (int i = 0; i < count; i++)
	{
		if (runs[i].state == LSM_RUN_BUILDING && runs[i].level == level + 1)
			return &runs[i];
	}
	return NULL;
}

static void
take(const LsmRunRecord *run, LsmJob *job)
{
	job->inputs[job->count++] = run->run_id;
	job->blocks += run->blocks;
}

/*
 * The job of the lowest level at or above from_level that has one: under way,
 * or to be begun.  False if there is none.
 */
bool
lsm_pick_job(const LsmRunRecord *runs, int count, int fanout, int from_level, LsmJob *job)
{
	for (int level = from_level; level < LSM_MAX_LEVEL; level++)
	{
		const LsmRunRecord *building = building_from(runs, count, level);

		memset(job, 0, offsetof(LsmJob, inputs));
		job->level = level;
		if (building != NULL)
		{
			job->run_id = building->run_id;
			for (int i = 0; i < count; i++)
			{
				if (runs[i].job_id == building->run_id && job->count < LSM_MAX_JOB_INPUTS)
					take(&runs[i], job);
			}
			return true;
		}
		if (lsm_pick_idle(runs, count, level) < lsm_pick_trigger(level, fanout))
			continue;
		for (int i = 0; i < count && job->count < LSM_MAX_JOB_INPUTS; i++)
		{
			if (is_idle(&runs[i], level))
				take(&runs[i], job);
		}
		return true;
	}
	return false;
}

/*
 * Some job that makes the manifest smaller, when it must be: the fullest level
 * with two runs or more, or one that is under way.
 */
bool
lsm_pick_any(const LsmRunRecord *runs, int count, LsmJob *job)
{
	int			best = -1;
	int			most = 1;

	for (int level = 0; level < LSM_MAX_LEVEL; level++)
	{
		int			idle = lsm_pick_idle(runs, count, level);

		if (idle > most && building_from(runs, count, level) == NULL)
		{
			most = idle;
			best = level;
		}
	}
	if (best < 0)
		return lsm_pick_job(runs, count, LSM_MAX_RUNS, 0, job);
	/* However few they are: the trigger of level 0 is twice the fanout. */
	return lsm_pick_job(runs, count, best == 0 ? most / 2 : most, best, job);
}

/*
 * The level whose runs are about this large: the highest one whose merges
 * would give a run of this size or less.
 */
int
lsm_level_for(uint32 blocks, int fanout)
{
	int			level = 0;
	uint64		size = lsm_pick_trigger(0, fanout);

	while (size <= blocks && level < LSM_MAX_LEVEL - 2)
	{
		level++;
		size *= lsm_pick_trigger(level, fanout);
	}
	return level;
}
