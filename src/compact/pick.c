/*
 * pick.c
 *	  Chooses what to merge next: a pure function of the manifest.
 *
 * Tiering: when a level holds enough runs that no job has taken, a job merges all of them (up to
 * LSM_MAX_JOB_INPUTS) into one run of the next level.  A job needs `fanout` runs, or twice as many
 * on level 0, whose runs have at most the pages of a batch, often only one or two.  Readers do not
 * care which runs are merged together, so any number of jobs can be under way, each with its own
 * inputs.
 */
#include "postgres.h"

#include "compact/compact.h"

static bool
is_free_on(const LsmRunRecord *run, int level)
{
	return run->level == level && lsm_run_is_free(run);
}

/*
 * Returns `fanout`, or less if the manifest has no room for it. With a fanout of f, level 0 keeps
 * up to 2f - 1 free runs, and each of the L levels above it up to f - 1. Together these must be at
 * most FREE_RUNS, so f is at most (FREE_RUNS + 1 + L) / (L + 2).
 */
#define FREE_RUNS	(LSM_MAX_RUNS - 2 * LSM_RUNS_RESERVE)

int
lsm_effective_fanout(const LsmRunRecord *runs, int count, int fanout)
{
	int			highest = 0;

	for (int i = 0; i < count; i++)
		highest = Max(highest, runs[i].level);
	return Max(Min(fanout, (FREE_RUNS + 1 + highest) / (highest + 2)), LSM_MIN_FANOUT);
}

/* Returns how many runs of a level make a job. */
int
lsm_pick_trigger(int level, int fanout)
{
	return level == 0 ? 2 * fanout : fanout;
}

/* Returns the number of runs of a level that no job has taken. */
int
lsm_pick_count_free(const LsmRunRecord *runs, int count, int level)
{
	int			free_runs = 0;

	for (int i = 0; i < count; i++)
		free_runs += is_free_on(&runs[i], level);
	return free_runs;
}

/*
 * Returns whether a writer may do the job at once. Runs that arrived while the job waited do not
 * turn a small job into a large one.
 */
bool
lsm_pick_is_small(const LsmJob *job, int trigger, uint32 small_blocks)
{
	return job->job_id == 0 &&
		(uint64) job->blocks * trigger <= (uint64) small_blocks * Max(job->count, trigger);
}

/* Returns how many blocks a job's segments should have: 1/256 of the job's blocks, within bounds. */
uint32
lsm_segment_size(uint64 job_blocks)
{
	if (lsm_segment_blocks > 0)
		return lsm_segment_blocks;
	return (uint32) Min(Max(job_blocks / LSM_JOB_SEGMENTS, LSM_MIN_SEGMENT_BLOCKS),
						LSM_MAX_SEGMENT_BLOCKS);
}

static void
init_job(LsmJob *job, int level)
{
	memset(job, 0, offsetof(LsmJob, inputs));
	job->level = Min(level, LSM_MAX_LEVEL - 1);
}

static void
add_input(const LsmRunRecord *run, LsmJob *job)
{
	job->inputs[job->count++] = run->run_id;
	job->blocks += run->blocks;
	job->blocks_left = job->blocks;
}

/*
 * Returns how many blocks of a job are left. This is the job's blocks less those of the output,
 * but at least what the remaining entries need if they fill blocks as the output's entries do. The
 * output may be larger than the inputs, because inputs may lack filters. The inputs' entry counts
 * no longer include moved segments, and an input that was moved as a whole has no blocks left.
 */
static uint32
count_blocks_left(const LsmJob *job, const LsmRunRecord *output, uint64 entries_left)
{
	uint32		left = job->blocks - Min(output->blocks, job->blocks);
	double		needed = output->entries == 0 ? 0 :
		(double) entries_left * output->blocks / output->entries;

	return Max(left, (uint32) Min(needed, (double) job->blocks));
}

static void
take_under_way(const LsmRunRecord *runs, int count, const LsmRunRecord *output, LsmJob *job)
{
	uint64		entries_left = 0;

	init_job(job, output->level);
	job->job_id = output->run_id;
	for (int i = 0; i < count && job->count < LSM_MAX_JOB_INPUTS; i++)
	{
		if (runs[i].job_id == output->run_id && runs[i].state != LSM_RUN_SPENT)
		{
			add_input(&runs[i], job);
			entries_left += runs[i].entries;
		}
	}
	job->blocks_left = count_blocks_left(job, output, entries_left);
}

/* Finds the job under way with this output. Returns false if there is none. */
bool
lsm_pick_under_way(const LsmRunRecord *runs, int count, uint64 job_id, LsmJob *job)
{
	for (int i = 0; i < count && job_id != 0; i++)
	{
		if (runs[i].run_id == job_id && (runs[i].flags & LSM_RUN_MERGING))
		{
			take_under_way(runs, count, &runs[i], job);
			return true;
		}
	}
	return false;
}

/* Make a new job of all free runs of a level. */
static void
take_level(const LsmRunRecord *runs, int count, int level, LsmJob *job)
{
	init_job(job, level + 1);
	for (int i = 0; i < count && job->count < LSM_MAX_JOB_INPUTS; i++)
	{
		if (is_free_on(&runs[i], level))
			add_input(&runs[i], job);
	}
}

/*
 * Returns one job per call, from the lowest level up: for each level the jobs under way, then
 * the job to begin. Returns false when there are no more.
 */
bool
lsm_pick_job(const LsmRunRecord *runs, int count, int fanout, LsmPickPlace *place, LsmJob *job)
{
	fanout = lsm_effective_fanout(runs, count, fanout);
	for (; place->level < LSM_MAX_LEVEL; place->level++, place->run = 0)
	{
		while (place->run < count)
		{
			const LsmRunRecord *run = &runs[place->run++];

			if ((run->flags & LSM_RUN_MERGING) &&
				Max(run->level, 1) == place->level + 1)
			{
				take_under_way(runs, count, run, job);
				return true;
			}
		}
		if (place->run++ == count &&
			lsm_pick_count_free(runs, count, place->level) >= lsm_pick_trigger(place->level, fanout))
		{
			take_level(runs, count, place->level, job);
			return true;
		}
	}
	return false;
}

/*
 * Returns the level whose runs are about this large: the highest level that merges of one-block
 * runs could reach with this many blocks.
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

/* Returns how far `value` is from `soft` (0) to `hard` (100). */
static int
pressure_percent(int value, int soft, int hard)
{
	if (value <= soft)
		return 0;
	return value >= hard ? 100 : (value - soft) * 100 / (hard - soft);
}

/*
 * Computes the debt. Its pressure says how late the merges are. The pressure does not depend on
 * the size of the index: a merge of half the index is no reason to hurry while runs arrive no
 * faster than they are merged. The pressure is 0 until some level has more than two jobs' worth of
 * free runs, or about three quarters of the manifest's records are in use. The pressure is 100 when
 * a level has four jobs' worth, or when the manifest is nearly full.
 */
void
lsm_pick_debt(const LsmRunRecord *runs, int count, int fanout, uint32 small_blocks, LsmDebt *debt)
{
	LsmPickPlace place = {0};
	LsmJob		job;

	memset(debt, 0, sizeof(LsmDebt));
	fanout = lsm_effective_fanout(runs, count, fanout);
	while (lsm_pick_job(runs, count, fanout, &place, &job))
	{
		debt->blocks += job.blocks_left;
		if (!lsm_pick_is_small(&job, lsm_pick_trigger(place.level, fanout), small_blocks))
			debt->jobs++;
		if (debt->next_blocks == 0 || job.blocks_left < debt->next_blocks)
			debt->next_blocks = Max(job.blocks_left, 1);
	}
	for (int level = 0; level < LSM_MAX_LEVEL; level++)
	{
		int			job_runs = lsm_pick_trigger(level, fanout);

		debt->pressure = Max(debt->pressure,
							 pressure_percent(lsm_pick_count_free(runs, count, level),
											  2 * job_runs, 4 * job_runs));
	}
	debt->pressure = Max(debt->pressure,
						 pressure_percent(count, LSM_MAX_RUNS - 2 * LSM_RUNS_RESERVE,
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

/* Lists the runs that no job has taken, smallest first. Sets *busy if a job is under way. */
static int
sort_free(const LsmRunRecord *runs, int count, const LsmRunRecord **sorted, bool *busy)
{
	int			n = 0;

	*busy = false;
	for (int i = 0; i < count; i++)
	{
		*busy |= (runs[i].flags & LSM_RUN_MERGING) != 0;
		if (lsm_run_is_free(&runs[i]))
			sorted[n++] = &runs[i];
	}
	qsort(sorted, n, sizeof(*sorted), compare_blocks);
	return n;
}

static int
compare_input_ids(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/*
 * Make a job of the n smallest runs, whatever their levels. The output goes to the level of
 * runs of the output's size, but not below the level of any input.
 */
static void
take_smallest(const LsmRunRecord **sorted, int n, int fanout, LsmJob *job)
{
	int			level = 1;

	init_job(job, 0);
	for (int i = 0; i < n; i++)
	{
		add_input(sorted[i], job);
		level = Max(level, sorted[i]->level);
	}
	qsort(job->inputs, job->count, sizeof(uint64), compare_input_ids);
	job->level = Min(Max(level, lsm_level_for(job->blocks, fanout)), LSM_MAX_LEVEL - 1);
}

/* Returns whether job a writes fewer blocks per freed record than job b. */
static bool
is_cheaper(const LsmJob *a, int a_freed, const LsmJob *b, int b_freed)
{
	return (uint64) a->blocks_left * b_freed < (uint64) b->blocks_left * a_freed;
}

/*
 * Returns a job that frees run records in a full manifest: the job that costs least per record
 * freed, so that no process has to complete a merge of half the index first. A job under way frees
 * the records of its inputs. A new job first needs a record for its output, so a new job is
 * considered only while a record is free. If no record is free and no job is under way, fewer than
 * two runs can be merged.
 */
bool
lsm_pick_any(const LsmRunRecord *runs, int count, int fanout, LsmJob *job)
{
	const LsmRunRecord *sorted[LSM_MAX_RUNS];
	bool		busy;
	int			n = sort_free(runs, count, sorted, &busy);
	int			freed = 0;
	LsmJob		other;

	for (int i = 0; i < count && busy; i++)
	{
		if (!lsm_pick_under_way(runs, count, runs[i].run_id, &other))
			continue;
		if (freed == 0 || is_cheaper(&other, Max(other.count, 1), job, freed))
		{
			*job = other;
			freed = Max(other.count, 1);
		}
	}
	for (int level = 0; level < LSM_MAX_LEVEL && count < LSM_MAX_RUNS; level++)
	{
		if (lsm_pick_count_free(runs, count, level) < 2)
			continue;
		take_level(runs, count, level, &other);
		if (freed == 0 || is_cheaper(&other, other.count - 1, job, freed))
		{
			*job = other;
			freed = other.count - 1;
		}
	}
	if (freed == 0 && n >= 2 && count < LSM_MAX_RUNS)
	{
		take_smallest(sorted, Min(n, LSM_MAX_JOB_INPUTS), fanout, job);
		freed = job->count - 1;
	}
	return freed > 0;
}

/* Returns whether VACUUM has removed more entries of a run than it has left there. */
static bool
is_thinned(const LsmRunRecord *run)
{
	return run->state == LSM_RUN_PACKED && run->removed > run->entries && run->blocks > 1;
}

/*
 * Returns what to merge while nothing is urgent and nobody writes: as many of the smallest runs as
 * are worth merging.  The largest run of a job is rewritten only together with smaller runs whose
 * total size is at least a quarter of its size.  So each remaining run is more than four times as
 * large as all smaller runs together.  Such runs are few, and no page is rewritten forever.  If no
 * runs are worth merging, returns a job of a single run that has lost more than half its entries to
 * VACUUM.
 */
bool
lsm_pick_idle_job(const LsmRunRecord *runs, int count, int fanout, LsmJob *job)
{
	const LsmRunRecord *sorted[LSM_MAX_RUNS];
	bool		busy;
	int			n = sort_free(runs, count, sorted, &busy);
	int			best = 0;
	uint64		sum = 0;

	if (busy)
		return false;
	for (int i = 0; i < n && i < LSM_MAX_JOB_INPUTS; i++)
	{
		if (i > 0 && sorted[i]->blocks <= LSM_IDLE_RATIO * sum)
			best = i + 1;
		sum += sorted[i]->blocks;
	}
	if (best > 0)
	{
		take_smallest(sorted, best, fanout, job);
		return true;
	}
	for (int i = 0; i < n; i++)
	{
		if (is_thinned(sorted[i]))
		{
			take_smallest(&sorted[i], 1, fanout, job);
			return true;
		}
	}
	return false;
}

/*
 * Choose a merge that readers have paid for.  reads[i] tells how often the index was read since
 * run i was written.  Each of these reads had to seek in run i.  If the run had been merged with
 * others, the reads would have saved these seeks.  Merge the n smallest runs when the reads of
 * these runs, without the largest of them, cost as much as the merge:
 *
 *		reads of run 1 + ... + reads of run n-1  >=
 *			LSM_READS_PER_BLOCK * (LSM_JOB_BLOCKS + blocks of run 1 + ... + blocks of run n)
 *
 * Take the largest such n.  Each read of a run pays for only one merge, since that merge removes
 * the run.  (Reads during a merge also count for the output.)  So all merges together cost at most
 * about as much as the reads have cost already.  This is the ski rental rule: buy when the rent
 * paid has reached the price.  An index without reads is left alone.
 *
 * If the largest of the n runs is at most LSM_IDLE_RATIO times as large as the others together, a
 * fraction of the price suffices.  Such merges are few, since each makes the largest run at least a
 * quarter larger.
 *
 * If there is no such n, returns false and sets *wait.  After that number of further reads, a
 * merge is worthwhile if nothing else happens.  PG_UINT64_MAX means that no number is enough.
 */
bool
lsm_pick_for_readers(const LsmRunRecord *runs, int count, int fanout, const uint64 *reads,
					 LsmJob *job, uint64 *wait)
{
	const LsmRunRecord *sorted[LSM_MAX_RUNS];
	bool		busy;
	int			n = sort_free(runs, count, sorted, &busy);
	int			best = 0;
	uint64		paid = 0;
	uint64		blocks = 0;

	*wait = PG_UINT64_MAX;
	for (int i = 0; i < n && i < LSM_MAX_JOB_INPUTS; i++)
	{
		bool		is_even = sorted[i]->blocks <= LSM_IDLE_RATIO * blocks;
		uint64		price;

		blocks += sorted[i]->blocks;
		price = (LSM_JOB_BLOCKS + blocks) *
			(is_even ? LSM_READS_PER_EVEN_BLOCK : LSM_READS_PER_BLOCK);
		if (i > 0 && paid >= price)
			best = i + 1;
		else if (i > 0)
			*wait = Min(*wait, (price - paid + i - 1) / i);
		paid += reads[sorted[i] - runs];
	}
	/* The last records are reserved for jobs that free more records. */
	if (best == 0 || count + LSM_RUNS_RESERVE >= LSM_MAX_RUNS)
		return false;
	take_smallest(sorted, best, fanout, job);
	return true;
}

/*
 * Returns the next job towards a single packed run: a job under way or due, or else a job of all
 * runs.  If a job cannot take all runs, it takes the smallest runs.  A single packed run is
 * rewritten only if the entries that VACUUM has removed are more than a tenth of those left.  Sets
 * *last if the job leaves a single run.
 */
bool
lsm_pick_settling(const LsmRunRecord *runs, int count, int fanout, LsmJob *job, bool *last)
{
	const LsmRunRecord *sorted[LSM_MAX_RUNS];
	bool		busy;
	int			n = sort_free(runs, count, sorted, &busy);

	*last = false;
	if (busy)
	{
		LsmPickPlace place = {0};

		return lsm_pick_job(runs, count, LSM_MAX_RUNS, &place, job);
	}
	if (n == 0 || (n == 1 && sorted[0]->state == LSM_RUN_PACKED &&
				   sorted[0]->removed <= sorted[0]->entries / 10))
		return false;
	*last = n <= LSM_MAX_JOB_INPUTS;
	take_smallest(sorted, Min(n, LSM_MAX_JOB_INPUTS), fanout, job);
	return true;
}
