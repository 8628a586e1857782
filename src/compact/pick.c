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
	if (run->state == LSM_RUN_PART)
		job->part_id = run->run_id;
	else
		job->inputs[job->count++] = run->run_id;
	job->blocks += run->blocks;
}

static void
take_building(const LsmRunRecord *runs, int count, const LsmRunRecord *building, LsmJob *job)
{
	memset(job, 0, offsetof(LsmJob, inputs));
	job->level = building->level - 1;
	job->run_id = building->run_id;
	for (int i = 0; i < count; i++)
	{
		if (runs[i].job_id == building->run_id)
			take(&runs[i], job);
	}
}

/* The job under way that builds this run; false if there is none. */
bool
lsm_pick_building(const LsmRunRecord *runs, int count, uint64 run_id, LsmJob *job)
{
	for (int i = 0; i < count; i++)
	{
		if (runs[i].run_id == run_id && runs[i].state == LSM_RUN_BUILDING)
		{
			take_building(runs, count, &runs[i], job);
			return true;
		}
	}
	return false;
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

		if (building != NULL)
		{
			take_building(runs, count, building, job);
			return true;
		}
		memset(job, 0, offsetof(LsmJob, inputs));
		job->level = level;
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

/* Pages of a job that are still to be written. */
static uint64
blocks_left(const LsmRunRecord *runs, int count, const LsmJob *job)
{
	for (int i = 0; i < count && job->run_id != 0; i++)
	{
		if (runs[i].run_id == job->run_id)
			return job->blocks - Min(runs[i].blocks, job->blocks);
	}
	return job->blocks;
}

/* How far `value` is from `soft` (0) to `hard` (100). */
static int
percentage(int value, int soft, int hard)
{
	if (value <= soft)
		return 0;
	return value >= hard ? 100 : (value - soft) * 100 / (hard - soft);
}

/*
 * What waits to be merged.  The pressure says how late that is, and does not
 * depend on the size of the index: a merge of half of it is no reason to hurry
 * while runs arrive at the pace at which they are merged.  It is 0 until some
 * level has two jobs' worth of idle runs, or three quarters of the manifest are
 * in use, and 100 with four of them or when the manifest is about to be full.
 */
void
lsm_pick_debt(const LsmRunRecord *runs, int count, int fanout, uint32 small_blocks, LsmDebt *debt)
{
	LsmJob		job;

	memset(debt, 0, sizeof(LsmDebt));
	for (int level = 0; lsm_pick_job(runs, count, fanout, level, &job); level = job.level + 1)
	{
		uint64		left = blocks_left(runs, count, &job);

		debt->blocks += left;
		if ((job.run_id != 0 || job.blocks > small_blocks) &&
			(debt->next_blocks == 0 || left < debt->next_blocks))
			debt->next_blocks = Max(left, 1);
	}
	for (int level = 0; level < LSM_MAX_LEVEL; level++)
	{
		int			job_runs = lsm_pick_trigger(level, fanout);

		debt->pressure = Max(debt->pressure,
							 percentage(lsm_pick_idle(runs, count, level),
										2 * job_runs, 4 * job_runs));
	}
	debt->pressure = Max(debt->pressure,
						 percentage(count, LSM_MAX_RUNS - 2 * LSM_RUNS_RESERVE,
									LSM_MAX_RUNS - LSM_RUNS_RESERVE));
}

static int
compare_blocks(const void *a, const void *b)
{
	const LsmRunRecord *x = *(const LsmRunRecord *const *) a;
	const LsmRunRecord *y = *(const LsmRunRecord *const *) b;

	if (x->blocks != y->blocks)
		return x->blocks < y->blocks ? -1 : 1;
	return x->run_id < y->run_id ? -1 : x->run_id > y->run_id;
}

/* The runs that no job has taken, smallest first; -1 if a job is under way. */
static int
sort_idle(const LsmRunRecord *runs, int count, const LsmRunRecord **sorted)
{
	int			n = 0;

	for (int i = 0; i < count; i++)
	{
		if (runs[i].state == LSM_RUN_BUILDING)
			return -1;
		if (is_idle(&runs[i], runs[i].level))
			sorted[n++] = &runs[i];
	}
	qsort(sorted, n, sizeof(*sorted), compare_blocks);
	return n;
}

static int
compare_ids(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/*
 * A job of the n smallest runs, whatever their levels.  Its output goes where
 * runs of that size are, but not below any of its inputs.
 */
static void
take_smallest(const LsmRunRecord **sorted, int n, int fanout, LsmJob *job)
{
	int			output;

	memset(job, 0, offsetof(LsmJob, inputs));
	output = 1;
	for (int i = 0; i < n; i++)
	{
		take(sorted[i], job);
		output = Max(output, sorted[i]->level);
	}
	qsort(job->inputs, job->count, sizeof(uint64), compare_ids);
	output = Min(Max(output, lsm_level_for(job->blocks, fanout)), LSM_MAX_LEVEL - 1);
	job->level = output - 1;
}

/*
 * What to merge while nothing is urgent and nobody writes: as many of the
 * smallest runs as are worth it.  A run is rewritten only together with others
 * that have at least a quarter of its size, so runs that are left grow
 * fivefold from one to the next: they are few, and a page is not rewritten
 * for ever.
 */
bool
lsm_pick_idle_job(const LsmRunRecord *runs, int count, int fanout, LsmJob *job)
{
	const LsmRunRecord *sorted[LSM_MAX_RUNS];
	int			n = sort_idle(runs, count, sorted);
	int			best = 0;
	uint64		sum = 0;

	for (int i = 0; i < n && i < LSM_MAX_JOB_INPUTS; i++)
	{
		if (i > 0 && sorted[i]->blocks <= LSM_IDLE_RATIO * sum)
			best = i + 1;
		sum += sorted[i]->blocks;
	}
	if (best == 0)
		return false;
	take_smallest(sorted, best, fanout, job);
	return true;
}

/*
 * The next job towards a single packed run: what is under way, else all that
 * is there, from the smallest on.  *last: the job leaves a single run.
 */
bool
lsm_pick_settling(const LsmRunRecord *runs, int count, int fanout, LsmJob *job, bool *last)
{
	const LsmRunRecord *sorted[LSM_MAX_RUNS];
	int			n = sort_idle(runs, count, sorted);

	*last = false;
	if (n < 0)
		return lsm_pick_job(runs, count, LSM_MAX_RUNS + 1, 0, job);
	if (n == 0 || (n == 1 && sorted[0]->state == LSM_RUN_PACKED))
		return false;
	*last = n <= LSM_MAX_JOB_INPUTS;
	take_smallest(sorted, Min(n, LSM_MAX_JOB_INPUTS), fanout, job);
	return true;
}
