/*
 * t_scale_merge.c -- merges of an index that grows to 10^12 entries.
 *
 * Simulates run records as compact/pick.c sees them, without entries. Runs arrive. For each block
 * that arrived, merges do a fixed number of blocks of work, on jobs in the order of
 * schedule/worker.c, lowest level first. When the manifest is full, the writer merges as
 * lsm_schedule_make_room does.
 *
 * The work of the lowest levels is known. To be fast where the fanout is small, runs of a higher
 * level arrive, and the records that the lower levels may use count as used. docs/scale.md has the
 * figures.
 */
#include "tap.h"

#include "compact/compact.h"

/* A thousand entries on a page. */
#define TOTAL_BLOCKS UINT64CONST(1000000000)

/* Arrivals between two rounds of work: runs, and batches. */
#define CHUNK 4
#define CHUNK_BATCHES 32

/* Run counts at which batches and pages are refused, and at which there is room again. */
#define FULL (LSM_MAX_RUNS - LSM_RUNS_RESERVE)
#define ROOM (LSM_MAX_RUNS - 2 * LSM_RUNS_RESERVE)

/* Limit of temporary space: 500 MB, of 8 TB. */
#define MOST_TEMPORARY 64000

/* How runs arrive with a fanout. */
typedef struct Arrival
{
	int			fanout;
	int			level;
	uint32		blocks;
	int			records_below;
	int			pace;			/* blocks of work for each block that arrives */
} Arrival;

typedef struct Figures
{
	uint64		arrived;		/* blocks */
	uint64		written;		/* including what the lowest levels wrote */
	int			most_runs;
	int			full;			/* times that the manifest was full */
	uint64		first_full;		/* blocks that had arrived then */
	uint64		stall_sum;		/* blocks merged by writers at those times */
	uint64		stall_most;		/* the most at one time */
	uint64		most_temporary; /* blocks that merges needed in addition to live ones */
	bool		always_room;
	bool		sound;
} Figures;

static LsmRunRecord runs[LSM_MAX_RUNS];
static int	count;
static uint64 next_id;
static Figures figures;

static LsmRunRecord *
add_run(int level, uint32 blocks, uint8 flags)
{
	LsmRunRecord *run = &runs[count++];

	memset(run, 0, sizeof(LsmRunRecord));
	run->run_id = ++next_id;
	run->level = level;
	run->blocks = blocks;
	run->segments = Max(1, blocks / lsm_segment_size(blocks));
	run->state = LSM_RUN_PACKED;
	run->flags = flags;
	figures.most_runs = Max(figures.most_runs, count);
	return run;
}

/* Records of the levels that are not simulated. No merge can free them. */
static void
add_records_below(int n)
{
	while (n-- > 0)
		add_run(0, 1, 0)->state = LSM_RUN_OPEN;
}

static void
remove_records_below(void)
{
	int			kept = 0;

	for (int i = 0; i < count; i++)
	{
		if (runs[i].state != LSM_RUN_OPEN)
			runs[kept++] = runs[i];
	}
	count = kept;
}

static LsmRunRecord *
find_run(uint64 run_id)
{
	for (int i = 0; i < count; i++)
	{
		if (runs[i].run_id == run_id)
			return &runs[i];
	}
	return NULL;
}

/*
 * Blocks that an unfinished job needs besides live ones: the segment that it writes, and the part of each
 * input that it has passed but not freed. That part is at most one segment; for an input with one segment
 * it is the whole segment.
 */
static uint64
temporary_of_job(const LsmRunRecord *output, uint64 total)
{
	uint64		sum = Min(lsm_segment_size(total), output->blocks);

	for (int i = 0; i < count; i++)
	{
		const LsmRunRecord *input = &runs[i];

		if (input->job_id == output->run_id)
			sum += Min(((uint64) input->blocks * output->blocks + total - 1) / total,
					   (input->blocks + input->segments - 1) / input->segments);
	}
	return sum;
}

/* Note that a job has made progress. Each output stores its job's temporary blocks in `entries`. */
static void
note_temporary(LsmRunRecord *output, uint64 total)
{
	uint64		sum = 0;

	output->entries = temporary_of_job(output, total);
	for (int i = 0; i < count; i++)
	{
		if (runs[i].flags & LSM_RUN_MERGING)
			sum += runs[i].entries;
	}
	figures.most_temporary = Max(figures.most_temporary, sum);
}

/* Begin a job unless it has begun. Returns false if no record is free for its output. */
static bool
begin(LsmJob *job)
{
	if (job->job_id != 0)
		return true;
	if (count == LSM_MAX_RUNS)
		return false;
	job->job_id = add_run(job->level, 0, LSM_RUN_MERGING)->run_id;
	find_run(job->job_id)->segments = Max(1, job->blocks / lsm_segment_size(job->blocks));
	for (int i = 0; i < job->count; i++)
	{
		LsmRunRecord *input = find_run(job->inputs[i]);

		figures.sound &= input != NULL && input->job_id == 0 && !(input->flags & LSM_RUN_MERGING) &&
			input->level <= job->level;
		input->job_id = job->job_id;
	}
	return true;
}

static void
finish(uint64 job_id)
{
	int			kept = 0;

	for (int i = 0; i < count; i++)
	{
		if (runs[i].job_id != job_id)
			runs[kept++] = runs[i];
	}
	count = kept;
	find_run(job_id)->flags = 0;
}

/* Write at most this many blocks of a job. Returns how many were written. */
static uint64
work_on(const LsmJob *job, uint64 most)
{
	LsmRunRecord *output = find_run(job->job_id);
	uint64		n = Min(most, job->blocks - output->blocks);

	output->blocks += n;
	figures.written += n;
	note_temporary(output, job->blocks);
	if (output->blocks == job->blocks)
		finish(job->job_id);
	return n;
}

/* As take_next_step in schedule/worker.c: always work on the first job. */
static void
work(int fanout, uint64 budget)
{
	while (budget > 0)
	{
		LsmPickPlace place = {0};
		LsmJob		job;

		if (!lsm_pick_job(runs, count, fanout, &place, &job) || !begin(&job))
			return;
		budget -= work_on(&job, budget);
	}
}

/* As lsm_schedule_make_room. */
static void
make_room(int fanout)
{
	uint64		stall = 0;
	LsmJob		job;

	if (figures.full++ == 0)
		figures.first_full = figures.arrived;
	while (count >= ROOM && lsm_pick_any(runs, count, fanout, &job))
	{
		int			before = count;

		if (!begin(&job))
		{
			figures.always_room = false;
			break;
		}
		stall += work_on(&job, PG_UINT64_MAX);
		/* The output takes one record, and at least two inputs free theirs. */
		figures.always_room &= count < before;
	}
	figures.always_room &= count < ROOM;
	figures.stall_sum += stall;
	figures.stall_most = Max(figures.stall_most, stall);
}

/* Let runs arrive until the index has this many blocks. */
static void
load(const Arrival *a, uint64 until)
{
	uint64		n = 0;
	uint64		budget = 0;

	remove_records_below();
	add_records_below(a->records_below);
	while (figures.arrived < until)
	{
		int			many = a->level == 0 ? CHUNK_BATCHES : 1;

		for (int i = 0; i < many; i++)
		{
			if (count >= FULL)
				make_room(a->fanout);
			add_run(a->level, a->blocks, 0);
		}
		figures.arrived += (uint64) many * a->blocks;
		figures.written += (uint64) many * a->blocks * (a->level + 1);
		budget += (uint64) many * a->blocks * a->pace;
		if (a->level == 0 || ++n % CHUNK == 0)
		{
			work(a->fanout, budget);
			budget = 0;
		}
	}
}

static void
begin_figures(void)
{
	count = 0;
	memset(&figures, 0, sizeof(figures));
	figures.always_room = figures.sound = true;
}

static void
show(const char *name)
{
	uint64		blocks = 0;

	for (int i = 0; i < count; i++)
		blocks += runs[i].state == LSM_RUN_OPEN ? 0 : runs[i].blocks;
	/* A run that is written and its inputs are both there. */
	figures.sound &= blocks >= figures.arrived;
	printf("# %s: each byte written %.1f times, %d runs at most\n", name,
		   (double) figures.written / figures.arrived, figures.most_runs);
	printf("# %s: merges needed %.0f MB of temporary space at most\n", name,
		   (double) figures.most_temporary * BLCKSZ / (1 << 20));
	if (figures.full > 0)
		printf("# %s: the manifest was full %d times, first at %.2g entries; writers did %.1f %% of all "
			   "merging then, and %.0f GB at once\n", name, figures.full, figures.first_full * 1000.0,
			   100.0 * figures.stall_sum / figures.written, (double) figures.stall_most * BLCKSZ / 1e9);
}

static void
test_fanout(const Arrival *a, double most_written)
{
	char		name[100];

	begin_figures();
	load(a, TOTAL_BLOCKS);
	snprintf(name, sizeof(name), "fanout %d, 10^12 entries", a->fanout);
	show(name);
	snprintf(name, sizeof(name), "fanout %d: jobs have inputs that can be merged", a->fanout);
	ok(figures.sound, name);
	snprintf(name, sizeof(name), "fanout %d: a full manifest can always be made smaller", a->fanout);
	ok(figures.always_room, name);
	snprintf(name, sizeof(name), "fanout %d: the manifest has room for all runs", a->fanout);
	ok(figures.most_runs < LSM_MAX_RUNS, name);
	snprintf(name, sizeof(name), "fanout %d: merges need little temporary space", a->fanout);
	ok(figures.most_temporary > 0 && figures.most_temporary <= MOST_TEMPORARY, name);
	snprintf(name, sizeof(name), "fanout %d: each byte is written %.0f times at most", a->fanout,
			 most_written);
	ok(figures.written <= most_written * figures.arrived, name);
}

/* The fanout changes when half of the entries have arrived. */
static void
test_altered(const Arrival *from, const Arrival *to, double most_written)
{
	char		name[100];

	begin_figures();
	load(from, TOTAL_BLOCKS / 2);
	load(to, TOTAL_BLOCKS);
	snprintf(name, sizeof(name), "fanout %d, then %d", from->fanout, to->fanout);
	show(name);
	snprintf(name, sizeof(name), "fanout %d, then %d: a full manifest can always be made smaller",
			 from->fanout, to->fanout);
	ok(figures.always_room && figures.sound && figures.most_runs < LSM_MAX_RUNS, name);
	snprintf(name, sizeof(name), "fanout %d, then %d: merges need little temporary space",
			 from->fanout, to->fanout);
	ok(figures.most_temporary > 0 && figures.most_temporary <= MOST_TEMPORARY, name);
	snprintf(name, sizeof(name), "fanout %d, then %d: each byte is written %.0f times at most",
			 from->fanout, to->fanout, most_written);
	ok(figures.written <= most_written * figures.arrived, name);
}

/* Batches and levels: 2 f of level 0, f of any other. */
static const Arrival fanout_2 = {2, 11, 4 << 10, 3 + 10 * 1, 40};
static const Arrival fanout_3 = {3, 6, 6 * 243, 5 + 5 * 2, 30};
static const Arrival fanout_4 = {4, 5, 8 * 256, 7 + 4 * 3, 24};
static const Arrival fanout_16 = {16, 1, 32 * 20, 31, 12};
static const Arrival fanout_32 = {32, 0, 24, 0, 10};

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_fanout(&fanout_2, 42);
	test_fanout(&fanout_4, 16);
	test_fanout(&fanout_16, 8);
	test_fanout(&fanout_32, 8);
	test_altered(&fanout_3, &fanout_32, 14);
	test_altered(&fanout_32, &fanout_3, 18);
	return done();
}
