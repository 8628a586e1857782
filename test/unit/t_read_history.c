/*
 * t_read_history.c -- how often an index was read since its runs were written, and what workers
 * merge for its readers.
 */
#include "tap.h"

#include "base/read_history.h"
#include "compact/compact.h"

static LsmReadHistory history;

static void
note(uint64 reads, int n, const uint64 *ids, uint64 *since)
{
	lsm_read_history_note(&history, reads, ids, n, since);
}

static void
test_notes(void)
{
	uint64		since[LSM_MAX_RUNS];
	uint64		many[LSM_MAX_RUNS];
	bool		exact = true;

	memset(&history, 0, sizeof(history));
	note(5000, 2, (uint64[]) {7, 9}, since);
	ok(since[0] == 0 && since[1] == 0, "reads before a run was first seen do not count");
	note(5700, 3, (uint64[]) {7, 9, 12}, since);
	ok(since[0] == 700 && since[1] == 700 && since[2] == 0, "those after it do");
	note(6000, 3, (uint64[]) {12, 9, 3}, since);
	ok(since[0] == 300 && since[1] == 1000 && since[2] == 0, "in any order of the runs");
	note(6100, 2, (uint64[]) {7, 3}, since);
	ok(since[0] == 0 && since[1] == 100, "a run that is gone is forgotten");
	note(6200, 0, NULL, since);
	note(UINT64CONST(1) << 60, 1, (uint64[]) {3}, since);
	ok(since[0] == 0, "and so are all runs");
	for (int i = 0; i < LSM_MAX_RUNS; i++)
		many[i] = i + 1;
	note(UINT64CONST(1) << 60, LSM_MAX_RUNS, many, since);
	note((UINT64CONST(1) << 61) + 5, LSM_MAX_RUNS, many, since);
	for (int i = 0; i < LSM_MAX_RUNS; i++)
		exact &= since[i] == (UINT64CONST(1) << 60) + 5;
	ok(exact, "a full manifest is remembered for a long time");
}

/* --- an index ---------------------------------------------------------------- */

static LsmRunRecord runs[LSM_MAX_RUNS];
static int	count;
static uint64 next_id;
static uint64 reads;			/* of the index */
static uint64 paid;				/* extra seeks because of several runs */
static uint64 merged;			/* blocks */
static uint64 jobs;
static uint64 looks;
static uint64 wanted;			/* reads until the next check */

static void
add(int level, uint32 blocks)
{
	LsmRunRecord *run = &runs[count++];

	memset(run, 0, sizeof(*run));
	run->run_id = next_id++;
	run->level = level;
	run->state = LSM_RUN_PACKED;
	run->blocks = blocks;
	wanted = Min(wanted, reads + LSM_READS_PER_LOOK);
}

static void
start(void)
{
	memset(&history, 0, sizeof(history));
	count = 0;
	next_id = 1;
	reads = paid = merged = jobs = looks = 0;
	wanted = LSM_READS_PER_LOOK;
}

/* Do a whole job at once. */
static void
merge(const LsmJob *job)
{
	int			kept = 0;

	for (int i = 0; i < count; i++)
	{
		bool		is_input = false;

		for (int k = 0; k < job->count; k++)
			is_input |= runs[i].run_id == job->inputs[k];
		if (!is_input)
			runs[kept++] = runs[i];
	}
	count = kept;
	add(job->level, job->blocks);
}

/* A worker's visit. */
static void
look(void)
{
	uint64		since[LSM_MAX_RUNS];
	uint64		ids[LSM_MAX_RUNS];
	uint64		wait;
	LsmJob		job;

	for (;;)
	{
		looks++;
		for (int i = 0; i < count; i++)
			ids[i] = runs[i].run_id;
		lsm_read_history_note(&history, reads, ids, count, since);
		if (!lsm_pick_for_readers(runs, count, 16, since, &job, &wait))
			break;
		merged += job.blocks;
		jobs++;
		merge(&job);
	}
	wanted = wait == PG_UINT64_MAX ? wait : reads + Max(wait, LSM_READS_PER_LOOK);
}

static void
read_index(uint64 n)
{
	reads += n;
	paid += n * (count - 1);
	if (reads >= wanted)
		look();
}

/* Merges that are due regardless of reads. */
static void
do_what_is_due(void)
{
	LsmPickPlace place = {0};
	LsmJob		job;

	while (lsm_pick_job(runs, count, 16, &place, &job))
	{
		merge(&job);
		memset(&place, 0, sizeof(place));
	}
}

static void
test_reads_only(void)
{
	uint64		blocks = 0;
	uint64		price;
	uint64		looks_before;

	start();
	for (int i = 0; i < 60; i++)
		add(i % 4, 1 << (i % 12));
	for (int i = 0; i < count; i++)
		blocks += runs[i].blocks;
	price = LSM_READS_PER_BLOCK * (blocks + LSM_JOB_BLOCKS);
	for (int i = 0; i < 100 && count > 10; i++)
		read_index(LSM_READS_PER_LOOK);
	ok(count <= 10, "reads: after some, few runs are left");
	while (reads < 4 * price && count > 1)
		read_index(LSM_READS_PER_LOOK);
	ok(count == 1, "reads: after a bounded number, a single run is left");
	printf("# %.2f reads for each that a merge of all costs, %.2f paid; %.1f times merged; %d jobs, %d looks\n",
		   (double) reads / price, (double) paid / price, (double) merged / blocks, (int) jobs,
		   (int) looks);
	ok(LSM_READS_PER_EVEN_BLOCK * (merged + LSM_JOB_BLOCKS * jobs) <= paid,
	   "reads: readers have paid for each merge");
	ok(paid <= 6 * price, "reads: readers paid at most six times the price of merging at once");
	looks_before = looks;
	for (int i = 0; i < 1000; i++)
		read_index(LSM_READS_PER_LOOK);
	ok(looks <= looks_before + 1, "reads: a single run is not checked again");
}

/* Runs arrive while the index is read. */
static void
test_ingest(uint64 reads_per_run, uint32 least_blocks, uint32 most_blocks)
{
	uint64		runs_read = 0;
	uint64		runs_if_unread = 0;
	uint64		written = 0;
	const int	rounds = 20000;
	char		name[128];

	/* How many runs would exist without readers? */
	start();
	for (int i = 0; i < rounds; i++)
	{
		add(0, least_blocks + rnd(most_blocks - least_blocks + 1));
		do_what_is_due();
		runs_if_unread += count;
	}
	start();
	for (int i = 0; i < rounds; i++)
	{
		add(0, least_blocks + rnd(most_blocks - least_blocks + 1));
		written += runs[count - 1].blocks;
		do_what_is_due();
		for (int k = 0; k < 8; k++)
		{
			read_index(reads_per_run / 8);
			runs_read += count;
		}
	}
	printf("# %d reads a run of %d to %d blocks: %.1f runs, without readers %.1f; "
		   "merged for them %.1f times; they paid %.1f times the price; %.2f looks a job\n",
		   (int) reads_per_run, least_blocks, most_blocks, (double) runs_read / (8 * rounds),
		   (double) runs_if_unread / rounds, (double) merged / written,
		   (double) paid / (LSM_READS_PER_BLOCK * (merged + LSM_JOB_BLOCKS * jobs) + 1),
		   (double) looks / (jobs + 1));
	snprintf(name, sizeof(name), "%d reads a run: readers have paid for each merge", (int) reads_per_run);
	ok(LSM_READS_PER_EVEN_BLOCK * (merged + LSM_JOB_BLOCKS * jobs) <= paid, name);
	ok(runs_read <= 8 * runs_if_unread, "and there are not more runs than without them");
}

int
main(void)
{
	test_notes();
	test_reads_only();
	test_ingest(8, 1, 1);
	test_ingest(80, 1, 4);
	test_ingest(800, 1, 22);
	test_ingest(8000, 22, 22);
	test_ingest(80000, 22, 22);
	return done();
}
