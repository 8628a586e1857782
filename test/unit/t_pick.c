/*
 * t_pick.c -- what to merge next.
 *
 * The level of a job is that of its output.
 */
#include "tap.h"

#include "compact/compact.h"

static LsmRunRecord runs[LSM_MAX_RUNS];
static int	count;
static uint64 next_id;

static LsmRunRecord *
add(int level, LsmRunState state, uint32 blocks)
{
	LsmRunRecord *run = &runs[count++];

	memset(run, 0, sizeof(*run));
	run->run_id = ++next_id;
	run->level = level;
	run->state = state;
	run->blocks = blocks;
	return run;
}

/* The output of a job under way. */
static LsmRunRecord *
add_output(int level, uint32 blocks)
{
	LsmRunRecord *run = add(level, LSM_RUN_PACKED, blocks);

	run->flags = LSM_RUN_MERGING;
	return run;
}

static void
add_many(int n, int level, LsmRunState state, uint32 blocks)
{
	while (n-- > 0)
		add(level, state, blocks);
}

static void
remove_run(uint64 run_id)
{
	for (int i = 0; i < count; i++)
	{
		if (runs[i].run_id != run_id)
			continue;
		count--;
		memmove(&runs[i], &runs[i + 1], (count - i) * sizeof(LsmRunRecord));
		return;
	}
}

/* Find the first job whose inputs have this level or a higher one. */
static bool
pick(int from_level, LsmJob *job)
{
	LsmPickPlace place = {.level = from_level};

	return lsm_pick_job(runs, count, 8, &place, job);
}

/* Returns the number of jobs, counted in the order in which a worker goes through them. */
static int
count_jobs(void)
{
	LsmPickPlace place = {0};
	LsmJob		job;
	int			n = 0;

	while (lsm_pick_job(runs, count, 8, &place, &job))
		n++;
	return n;
}

static void
test_cases(void)
{
	LsmJob		job;
	LsmRunRecord *output;
	LsmPickPlace place = {0};

	count = 0;
	ok(!pick(0, &job), "an empty index has nothing to do");
	add(0, LSM_RUN_OPEN, 1);
	add_many(15, 0, LSM_RUN_SEALED, 1);
	ok(!pick(0, &job), "fifteen runs of level 0 and the open one are too few");
	add(0, LSM_RUN_SEALED, 1);
	ok(pick(0, &job) && job.count == 16 && job.level == 1 && job.blocks == 16 && job.job_id == 0 &&
	   job.blocks_left == 16,
	   "sixteen runs are merged, but not the open one");
	add_many(7, 1, LSM_RUN_PACKED, 10);
	ok(!pick(1, &job), "seven runs of a higher level are too few");
	add(1, LSM_RUN_PACKED, 10);
	ok(pick(1, &job) && job.count == 8 && job.level == 2 && job.blocks == 80,
	   "eight runs of a higher level are merged");

	add_many(8, 3, LSM_RUN_PACKED, 500);
	ok(pick(0, &job) && job.level == 1, "the lowest level first");
	ok(pick(2, &job) && job.level == 4 && job.blocks == 4000, "then higher ones");

	output = add_output(4, 10);
	for (int i = 0; i < count; i++)
	{
		if (runs[i].level == 3)
			runs[i].job_id = output->run_id;
	}
	ok(pick(2, &job) && job.job_id == output->run_id && job.count == 8 &&
	   job.level == 4 && job.blocks == 4000 && job.blocks_left == 3990,
	   "an unfinished job is continued");
	for (int i = 0; i < count; i++)
		runs[i].entries = runs[i].level == 3 ? 50000 : 100;
	output->blocks = 4100;
	output->entries = 400000;
	ok(pick(2, &job) && job.blocks == 4000 && job.blocks_left == 4000,
	   "its remaining blocks are at most those of its inputs");
	for (int i = 0; i < count; i++)
		runs[i].entries = 1000;
	output->blocks = 4000;
	output->entries = 400000;
	ok(pick(2, &job) && job.blocks_left == 80,
	   "and at least what its remaining entries need, even if its output is as large as its inputs");
	output->blocks = 10;
	output->entries = 0;
	ok(lsm_pick_count_free(runs, count, 3) == 0, "its inputs are taken");
	add_many(9, 3, LSM_RUN_PACKED, 500);
	ok(pick(2, &job) && job.job_id == output->run_id && job.count == 8,
	   "it comes before a new job of its level");
	place.level = 2;
	ok(lsm_pick_job(runs, count, 8, &place, &job) && job.job_id == output->run_id &&
	   lsm_pick_job(runs, count, 8, &place, &job) && job.job_id == 0 && job.count == 9 &&
	   job.level == 4 && !lsm_pick_job(runs, count, 8, &place, &job),
	   "the new job comes next, with other inputs");
	ok(count_jobs() == 4, "each job comes once");
	for (int i = 0; i < count; i++)
	{
		if (runs[i].job_id == output->run_id && runs[i].run_id % 2 == 0)
			runs[i].state = LSM_RUN_SPENT;
	}
	ok(lsm_pick_under_way(runs, count, output->run_id, &job) && job.count == 4 && job.level == 4,
	   "a spent run is no longer an input");

	count = 0;
	add_many(100, 0, LSM_RUN_SEALED, 1);
	ok(pick(0, &job) && job.count == LSM_MAX_JOB_INPUTS && job.inputs[0] == runs[0].run_id,
	   "a job has a limited number of inputs, and takes the oldest runs");
}

static void
test_room(void)
{
	LsmJob		job;

	count = 0;
	add_many(7, 1, LSM_RUN_PACKED, 5);
	add_many(5, 2, LSM_RUN_PACKED, 50);
	ok(lsm_pick_any(runs, count, 8, &job) && job.level == 2 && job.count == 7,
	   "a full manifest: the fullest level is merged");
	count = 0;
	add(1, LSM_RUN_PACKED, 5);
	add(2, LSM_RUN_PACKED, 5);
	ok(lsm_pick_any(runs, count, 8, &job) && job.count == 2 && job.blocks == 10 && job.level == 2,
	   "single runs of several levels are merged together");
	runs[0].state = LSM_RUN_OPEN;
	ok(!lsm_pick_any(runs, count, 8, &job), "a single run is not merged");
	runs[0].state = LSM_RUN_PACKED;
	add_many(3, 1, LSM_RUN_PACKED, 100);
	runs[2].job_id = add_output(2, 50)->run_id;
	runs[3].job_id = add_output(2, 60)->run_id;
	ok(lsm_pick_any(runs, count, 8, &job) && job.job_id == runs[3].job_id && job.blocks_left == 40,
	   "unfinished jobs come first, the one with the least left first");
	runs[3].entries = runs[count - 1].entries = 1000;
	runs[count - 1].blocks = 100;
	ok(lsm_pick_any(runs, count, 8, &job) && job.job_id == runs[2].job_id && job.blocks_left == 50,
	   "even if its output is as large as its inputs, because segments were moved to it");
	runs[3].state = LSM_RUN_SPENT;
	runs[count - 1].flags = 0;
	ok(lsm_pick_any(runs, count, 8, &job) && job.job_id == runs[2].job_id && job.count == 1,
	   "when it is done, the other one comes next");
	ok(lsm_level_for(1, 8) == 0 && lsm_level_for(15, 8) == 0 && lsm_level_for(16, 8) == 1 &&
	   lsm_level_for(127, 8) == 1 && lsm_level_for(128, 8) == 2 &&
	   lsm_level_for(8192, 8) == 4, "a run's size determines its level");
	count = 0;
	add_many(5, 0, LSM_RUN_PACKED, 1);
	ok(lsm_pick_any(runs, count, 8, &job) && job.level == 1 && job.count == 5,
	   "an odd number of runs of level 0 can be merged, too");
	ok(lsm_level_for(PG_UINT32_MAX, 2) < LSM_MAX_LEVEL - 1, "the largest run is below the top level");
}

/* Begin a job as compact/job.c does. */
static void
begin(LsmJob *job)
{
	LsmRunRecord *run = add_output(job->level, 0);

	job->job_id = run->run_id;
	for (int i = 0; i < job->count; i++)
	{
		for (int k = 0; k < count; k++)
		{
			if (runs[k].run_id == job->inputs[i])
				runs[k].job_id = run->run_id;
		}
	}
}

/* Finish the job. */
static void
install(const LsmJob *job)
{
	for (int i = 0; i < job->count; i++)
		remove_run(job->inputs[i]);
	for (int k = 0; k < count; k++)
	{
		if (runs[k].run_id == job->job_id)
		{
			runs[k].flags = 0;
			runs[k].blocks = job->blocks;
		}
	}
}

/* Are the inputs of a job of the same kind, idle or its own, known, and each listed once? */
static bool
job_is_sound(const LsmJob *job, bool one_level)
{
	uint32		blocks = 0;

	if (job->count < 1 || job->count > LSM_MAX_JOB_INPUTS || job->level < 1 ||
		job->level >= LSM_MAX_LEVEL || job->blocks_left > job->blocks)
		return false;
	for (int i = 0; i < job->count; i++)
	{
		const LsmRunRecord *run = NULL;

		for (int k = 0; k < count; k++)
		{
			if (runs[k].run_id == job->inputs[i])
				run = &runs[k];
		}
		if (run == NULL || run->job_id != job->job_id ||
			(run->state != LSM_RUN_SEALED && run->state != LSM_RUN_PACKED) ||
			(run->flags & LSM_RUN_MERGING) ||
			(i > 0 && job->inputs[i] <= job->inputs[i - 1]))
			return false;
		/* All of one level, or of several levels up to the output's. */
		if (run->level > job->level ||
			(one_level && run->level != job->level - 1 && run->level != LSM_MAX_LEVEL - 1))
			return false;
		blocks += run->blocks;
	}
	return blocks == job->blocks;
}

/*
 * Every manifest that jobs can lead to: each picked job is sound, and a manifest that is half full
 * always has a job to pick (I12).
 */
static void
test_random(void)
{
	bool		sound = true;
	bool		room = true;
	int			jobs = 0;

	count = 0;
	for (int round = 0; round < 200000; round++)
	{
		LsmJob		job;
		bool		picked;

		if (count == 0 || rnd(2000) == 0)
		{
			count = 0;
			add(0, LSM_RUN_OPEN, 1);
		}
		/* Runs are added as by CREATE INDEX and seals, and dropped. */
		if (count < LSM_MAX_RUNS - 1)
			add(rnd(4) ? 0 : rnd(LSM_MAX_LEVEL - 1), LSM_RUN_PACKED, 1 + rnd(100));
		if (rnd(10) == 0 && runs[count / 2].job_id == 0 && runs[count / 2].state == LSM_RUN_PACKED &&
			!(runs[count / 2].flags & LSM_RUN_MERGING))
			remove_run(runs[count / 2].run_id);

		if (count > LSM_MAX_RUNS / 2)
		{
			picked = lsm_pick_any(runs, count, 8, &job);
			room &= picked;
		}
		else
		{
			LsmPickPlace place = {.level = rnd(3)};

			picked = lsm_pick_job(runs, count, 2 + rnd(8), &place, &job);
		}
		if (!picked)
			continue;
		sound &= job_is_sound(&job, job.job_id == 0 && count <= LSM_MAX_RUNS / 2);
		jobs++;
		if (job.job_id == 0 && count < LSM_MAX_RUNS)
			begin(&job);
		/* Some jobs take several steps. */
		if (rnd(3) > 0 && job.job_id != 0)
			install(&job);
	}
	ok(sound && jobs > 10000, "jobs have inputs that can be merged");
	ok(room, "a manifest that fills up can always be made smaller");
}

/*
 * Seals one page after the other, and merges at once. The number of runs stays small, and each page
 * is written about once per level.
 */
static void
test_steady_load(void)
{
	const uint32 pages = 1000000;
	uint64		written = 0;
	int			most = 0;
	LsmJob		job;

	count = 0;
	for (uint32 i = 0; i < pages; i++)
	{
		add(0, LSM_RUN_SEALED, 1);
		written++;
		while (pick(0, &job))
		{
			begin(&job);
			install(&job);
			written += job.blocks;
		}
		most = Max(most, count);
	}
	/* 16 * 8^5 < pages < 16 * 8^6 */
	ok(most <= 15 + 6 * 7, "a steady load keeps at most seven runs a level, fifteen of level 0");
	ok(written <= (uint64) pages * 7, "and writes each page once for each level");
}

static void
test_debt(void)
{
	LsmDebt		debt;
	LsmRunRecord *output;

	count = 0;
	add_many(16, 0, LSM_RUN_SEALED, 1);
	lsm_pick_debt(runs, count, 8, 128, &debt);
	ok(debt.blocks == 16 && debt.next_blocks == 16 && debt.jobs == 0 && debt.pressure == 0,
	   "a small job is debt, but needs no further worker");
	add_many(8, 3, LSM_RUN_PACKED, 500);
	add_many(9, 5, LSM_RUN_PACKED, 30000);
	lsm_pick_debt(runs, count, 8, 128, &debt);
	ok(debt.blocks == 16 + 4000 + 270000 && debt.next_blocks == 16 && debt.jobs == 2 &&
	   debt.pressure == 0,
	   "all jobs are debt, the smallest one is next, and size is no pressure");

	count = 0;
	add_many(8, 3, LSM_RUN_PACKED, 500);
	add_many(9, 5, LSM_RUN_PACKED, 30000);
	output = add_output(4, 3900);
	for (int i = 0; i < count; i++)
	{
		if (runs[i].level == 3)
			runs[i].job_id = output->run_id;
	}
	lsm_pick_debt(runs, count, 8, 128, &debt);
	ok(debt.blocks == 100 + 270000 && debt.next_blocks == 100,
	   "what a job has already written is no debt");
	output->blocks = 5000;
	lsm_pick_debt(runs, count, 8, 128, &debt);
	ok(debt.blocks == 270000 && debt.next_blocks == 1,
	   "an output larger than its inputs causes no underflow");

	count = 0;
	add_many(16, 0, LSM_RUN_PACKED, 8);
	lsm_pick_debt(runs, count, 8, 128, &debt);
	ok(debt.next_blocks == 128 && debt.jobs == 0,
	   "a job of as many blocks as writers may merge is small");
	add_many(7, 0, LSM_RUN_PACKED, 8);
	lsm_pick_debt(runs, count, 8, 128, &debt);
	ok(debt.next_blocks == 184 && debt.jobs == 0, "it stays small while more runs arrive");
	lsm_pick_debt(runs, count, 8, 127, &debt);
	ok(debt.jobs == 1, "a job with one block more is large");

	count = 0;
	add_many(24, 2, LSM_RUN_PACKED, 50);
	lsm_pick_debt(runs, count, 8, 128, &debt);
	ok(debt.pressure == 50, "enough runs on a level for three jobs: medium pressure");
	add_many(8, 2, LSM_RUN_PACKED, 50);
	lsm_pick_debt(runs, count, 8, 128, &debt);
	ok(debt.pressure == 100, "for four jobs: full pressure");
	count = 0;
	for (int i = 0; i < 104; i++)
		add(i % (LSM_MAX_LEVEL - 1), LSM_RUN_PACKED, 10);
	lsm_pick_debt(runs, count, 8, 128, &debt);
	ok(debt.pressure > 50, "a manifest that fills up causes pressure, too");
}

static void
test_idle(void)
{
	LsmJob		job;

	count = 0;
	add(0, LSM_RUN_OPEN, 1);
	ok(!lsm_pick_idle_job(runs, count, 8, &job), "idle: nothing to do with the write buffer alone");
	add(5, LSM_RUN_PACKED, 100000);
	add(0, LSM_RUN_SEALED, 1);
	ok(!lsm_pick_idle_job(runs, count, 8, &job), "a large run is not rewritten for a small one");
	add_many(3, 0, LSM_RUN_SEALED, 1);
	add_many(2, 2, LSM_RUN_PACKED, 16);
	ok(lsm_pick_idle_job(runs, count, 8, &job) && job.count == 6 && job.blocks == 36 && job.level == 2,
	   "the small runs of all levels are merged");
	runs[count - 1].job_id = 99;
	add_output(3, 4);
	ok(!lsm_pick_idle_job(runs, count, 8, &job), "but not while a job is unfinished");
}

/* Continues with the state that test_idle left: a job is unfinished. */
static void
test_under_way(void)
{
	LsmJob		job;
	bool		sound = true;
	bool		last;

	ok(lsm_pick_settling(runs, count, 8, &job, &last) && job.level == 3 && !last,
	   "settling: unfinished jobs come first");
	add(0, LSM_RUN_SEALED, 1)->job_id = add_output(1, 0)->run_id;
	ok(lsm_pick_settling(runs, count, 8, &job, &last) && job.level == 1 && job.count == 1,
	   "the lowest level comes first");
	for (int i = 0; i < count; i++)
	{
		if ((runs[i].flags & LSM_RUN_MERGING) && runs[i].level == 3)
			ok(lsm_pick_under_way(runs, count, runs[i].run_id, &job) && job.level == 3 &&
			   job.job_id == runs[i].run_id && job.count == 0, "or the requested job is picked");
		else
			sound &= lsm_pick_under_way(runs, count, runs[i].run_id, &job) ==
				((runs[i].flags & LSM_RUN_MERGING) != 0);
	}
	ok(sound && !lsm_pick_under_way(runs, count, 0, &job), "a run that is not a job's output has no job");
}

static void
test_settling(void)
{
	LsmJob		job;
	bool		last;

	count = 0;
	add(0, LSM_RUN_OPEN, 1);
	add(0, LSM_RUN_SEALED, 1);
	ok(lsm_pick_settling(runs, count, 8, &job, &last) && job.count == 1 && last,
	   "a sealed page is packed");
	add(4, LSM_RUN_PACKED, 5000);
	ok(lsm_pick_settling(runs, count, 8, &job, &last) && job.count == 2 && job.level == 4 && last,
	   "a large run is rewritten on request");
	add_many(100, 0, LSM_RUN_SEALED, 1);
	ok(lsm_pick_settling(runs, count, 8, &job, &last) && job.count == LSM_MAX_JOB_INPUTS &&
	   job.blocks == LSM_MAX_JOB_INPUTS && !last, "many runs take several jobs, the largest last");
	count = 0;
	add(4, LSM_RUN_PACKED, 5000);
	ok(!lsm_pick_settling(runs, count, 8, &job, &last), "a single run is settled");
	runs[0].entries = 1000;
	runs[0].removed = 101;
	ok(lsm_pick_settling(runs, count, 8, &job, &last) && job.count == 1 && last,
	   "unless VACUUM has removed a tenth of it");
	ok(!lsm_pick_idle_job(runs, count, 8, &job), "a tenth is not enough without a request");
	runs[0].removed = 1001;
	ok(lsm_pick_idle_job(runs, count, 8, &job) && job.count == 1 && job.level == 4,
	   "but half of it is");
	runs[0].blocks = 1;
	ok(!lsm_pick_idle_job(runs, count, 8, &job), "if that makes it shorter");
	ok(lsm_segment_size(1000) == LSM_MIN_SEGMENT_BLOCKS && lsm_segment_size(51200) == 200 &&
	   lsm_segment_size(UINT64CONST(1) << 33) == LSM_MAX_SEGMENT_BLOCKS,
	   "segments are a 256th of a job, from 1 MB to 8 MB");
}

/* Bursts with pauses between them: few runs are left, at a bounded cost. */
static void
test_bursts(void)
{
	LsmJob		job;
	uint64		written = 0;
	uint64		pages = 0;
	int			jobs = 0;
	bool		sound = true;
	bool		few = true;

	count = 0;
	for (int burst = 0; burst < 20000; burst++)
	{
		add_many(1 + rnd(20), 0, LSM_RUN_SEALED, 1);
		while (pick(0, &job) || lsm_pick_idle_job(runs, count, 8, &job))
		{
			for (int i = 1; i < job.count; i++)
				sound &= job.inputs[i] > job.inputs[i - 1];
			begin(&job);
			for (int i = 0; i < count; i++)
				sound &= runs[i].job_id != job.job_id || runs[i].level <= job.level;
			install(&job);
			written += job.blocks;
			jobs++;
		}
		few &= count <= 9;
	}
	ok(sound && jobs >= 20000, "idle jobs have inputs that can be merged");
	ok(few, "an idle index keeps few runs");
	for (int i = 0; i < count; i++)
		pages += runs[i].blocks;
	ok(written < pages * 40, "and each page is rewritten a bounded number of times");
	printf("# each page was written %.1f times\n", (double) written / pages);
}

static uint64 reads[LSM_MAX_RUNS];

/* All runs were read this often. */
static void
set_reads(uint64 n)
{
	for (int i = 0; i < LSM_MAX_RUNS; i++)
		reads[i] = n;
}

static bool
pick_for_readers(LsmJob *job, uint64 *wait)
{
	return lsm_pick_for_readers(runs, count, 8, reads, job, wait);
}

static void
test_for_readers(void)
{
	const uint64 price_of_all = LSM_READS_PER_BLOCK * (LSM_JOB_BLOCKS + 10 + 20 + 1000);
	const uint64 price_of_two = LSM_READS_PER_EVEN_BLOCK * (LSM_JOB_BLOCKS + 10 + 20);
	LsmJob		job;
	uint64		wait;

	count = 0;
	set_reads(UINT64CONST(1) << 50);
	ok(!pick_for_readers(&job, &wait) && wait == PG_UINT64_MAX,
	   "readers: an empty index has nothing to merge");
	add(5, LSM_RUN_PACKED, 1000);
	add(0, LSM_RUN_OPEN, 1);
	ok(!pick_for_readers(&job, &wait) && wait == PG_UINT64_MAX,
	   "a single run is not merged, however often it is read");

	add(1, LSM_RUN_PACKED, 20);
	add(0, LSM_RUN_PACKED, 10);
	set_reads(0);
	ok(!pick_for_readers(&job, &wait) && wait == price_of_two, "runs that nobody has read are left alone");
	reads[3] = price_of_two - 7;
	ok(!pick_for_readers(&job, &wait) && wait == 7, "the number of missing reads is returned");
	reads[3] += wait;
	ok(pick_for_readers(&job, &wait) && job.count == 2 && job.blocks == 30 && job.level == 1 &&
	   job.inputs[0] == runs[2].run_id && job.inputs[1] == runs[3].run_id,
	   "the smallest runs are merged once they were read that often");
	reads[0] = UINT64CONST(1) << 50;
	ok(pick_for_readers(&job, &wait) && job.count == 2, "reads of the largest run do not matter");
	reads[2] = price_of_all - reads[3] - 1;
	ok(pick_for_readers(&job, &wait) && job.count == 2 && wait == 1,
	   "a run that is not paid for is not merged");
	reads[2]++;
	ok(pick_for_readers(&job, &wait) && job.count == 3 && job.blocks == 1030 && job.level == 5,
	   "a run that is paid for is merged");
	reads[3] = 0;
	reads[2] = price_of_all;
	ok(pick_for_readers(&job, &wait) && job.count == 3,
	   "all are merged even if the smaller ones alone are not paid for");

	runs[0].job_id = add_output(6, 100)->run_id;
	ok(!pick_for_readers(&job, &wait) && wait == price_of_two, "inputs and outputs of jobs do not count");

	count = 0;
	set_reads(UINT64CONST(1) << 60);
	add_many(100, 0, LSM_RUN_SEALED, PG_UINT32_MAX / 64);
	ok(pick_for_readers(&job, &wait) && job.count == LSM_MAX_JOB_INPUTS,
	   "a job takes as many runs as it can have");
	add_many(LSM_MAX_RUNS - LSM_RUNS_RESERVE - count, 0, LSM_RUN_SEALED, 1);
	ok(!pick_for_readers(&job, &wait), "but not if the manifest is nearly full");
	count = 0;
	add_many(2, 0, LSM_RUN_SEALED, PG_UINT32_MAX / 2);
	set_reads(0);
	ok(!pick_for_readers(&job, &wait) &&
	   wait == LSM_READS_PER_EVEN_BLOCK * ((uint64) PG_UINT32_MAX - 1 + LSM_JOB_BLOCKS),
	   "large runs have large prices");

	count = 0;
	add(0, LSM_RUN_PACKED, 30);
	add(1, LSM_RUN_PACKED, 30 * LSM_IDLE_RATIO);
	set_reads(LSM_READS_PER_EVEN_BLOCK * (LSM_JOB_BLOCKS + 30 * (1 + LSM_IDLE_RATIO)));
	ok(pick_for_readers(&job, &wait) && job.count == 2,
	   "a run that is not much larger than the others costs a fraction of the price");
	runs[1].blocks++;
	set_reads(LSM_READS_PER_BLOCK * (LSM_JOB_BLOCKS + 30 * (1 + LSM_IDLE_RATIO)));
	ok(!pick_for_readers(&job, &wait) && wait == LSM_READS_PER_BLOCK, "a larger one costs it all");
}

int
main(void)
{
	test_debt();
	test_idle();
	test_under_way();
	test_settling();
	test_bursts();
	test_cases();
	test_room();
	test_random();
	test_steady_load();
	test_for_readers();
	return done();
}
