/*
 * policy.c
 *	  When to merge: called by inserters.
 *
 * Jobs are left to background workers (request.c), as long as they keep up.  Small
 * jobs are done at once where workers do not keep up, or where none is there now:
 * one is not started for them.  Where none can be, larger jobs take a step every so
 * many sealed pages.  A job at level L has to write at most one page for each page
 * sealed, so a step of S blocks every S/2 seals keeps up with twice the pace; levels
 * are staggered so that steps do not fall on the same seal.
 */
#include "postgres.h"

#include "base/limits.h"
#include "base/options.h"
#include "miscadmin.h"
#include "schedule/schedule.h"

/* Runs that a batch adds, and others meanwhile. */
#define EXPECTED_RUNS 4

/* Blocks that a writer's step writes. */
static uint32
step_blocks(void)
{
	return lsm_segment_blocks > 0 ? Min(lsm_segment_blocks, LSM_MIN_SEGMENT_BLOCKS) :
		LSM_MIN_SEGMENT_BLOCKS;
}

/* How many runs of a level make a job now? */
static int
trigger_of(LsmIndex *index, const LsmVersion *version, int level)
{
	return lsm_pick_trigger(level, lsm_effective_fanout(version->runs, version->run_count,
														lsm_fanout(index->rel)));
}

/*
 * How many steps is this level to take, now that some pages have come in?  A
 * batch brings several at once.
 */
static uint32
count_turns(LsmIndex *index, const LsmVersion *version, int level, uint64 seals_before,
			uint64 seals)
{
	uint64		every = Max(1, step_blocks() / 2);
	uint64		shift = level * 7;
	uint32		turns = (seals + shift) / every - (seals_before + shift) / every;

	/* Behind: merges were missed because others were at it. */
	if (lsm_pick_count_free(version->runs, version->run_count, level - 1) >=
		2 * trigger_of(index, version, level - 1) ||
		version->run_count + 2 * LSM_RUNS_RESERVE > LSM_MAX_RUNS)
		turns = Max(turns, 1);
	return turns;
}

/* Steps of a large job that are this writer's share. */
static void
take_turns(LsmIndex *index, Relation heap, LsmJob *job, uint32 turns)
{
	while (turns-- > 0 && lsm_request_step(index, heap, job) == LSM_STEP_MORE)
		CHECK_FOR_INTERRUPTS();
}

/*
 * May this small job wait for a worker?  Until half as many runs as it needs have
 * come in besides: the worker looks for new jobs between any two segments that it
 * writes, so it has taken this one by then, unless it is late.
 */
static bool
can_wait(const LsmVersion *version, const LsmHelp *help, int level, int trigger)
{
	return help->at_hand && help->pressure == 0 &&
		lsm_pick_count_free(version->runs, version->run_count, level) < trigger + trigger / 2 &&
		lsm_pool_has_worker(MyDatabaseId);
}

/*
 * Do what is due.  False if somebody else was at all of it.  A finished small job
 * may have filled the next level: then that is looked at, too.
 */
static bool
merge_due(LsmIndex *index, Relation heap, LsmVersion *version, const LsmHelp *help,
		  uint64 seals_before, uint64 seals)
{
	LsmPickPlace place = {0};
	LsmJob		job;
	bool		any = false;

	while (lsm_pick_job(version->runs, version->run_count, lsm_fanout(index->rel), &place, &job))
	{
		int			trigger = trigger_of(index, version, place.level);
		bool		small = lsm_pick_is_small(&job, trigger, lsm_foreground_blocks);
		uint32		turns = 0;

		if (small && can_wait(version, help, place.level, trigger))
		{
			any = true;
			continue;
		}
		if (small)
		{
			LsmStepResult result;

			do
				result = lsm_job_step(index, heap, &job, 0, false);
			while (result == LSM_STEP_MORE);
			any |= result == LSM_STEP_DONE;
			lsm_version_update(index, version, NULL);
			/* Runs have moved: go on with the next level, from its beginning. */
			place.level++;
			place.run = 0;
			continue;
		}
		if (!help->at_hand)
			turns = count_turns(index, version, job.level, seals_before, seals);
		else if (lsm_request_is_turn(help, job.level, seals))
			turns = 1;
		if (turns == 0)
			any = true;
		else
		{
			any |= lsm_request_step(index, heap, &job) != LSM_STEP_BUSY;
			take_turns(index, heap, &job, turns - 1);
		}
		CHECK_FOR_INTERRUPTS();
	}
	return any;
}

/*
 * Pages have come in: the index has taken `seals` of them so far, and had taken
 * seals_before.  Merge what is due, unless other processes are at it already.
 */
void
lsm_schedule_after_seal(LsmIndex *index, Relation heap, uint64 seals_before, uint64 seals)
{
	LsmVersion *version = lsm_version_read(index);
	LsmPickPlace place = {0};
	LsmJob		job;
	LsmHelp		help;

	lsm_request_help(index, heap, version, seals - seals_before, &help);
	if (lsm_pick_job(version->runs, version->run_count, lsm_fanout(index->rel), &place, &job) &&
		!merge_due(index, heap, version, &help, seals_before, seals))
		lsm_request_delay(index, &help);
	pfree(version);
}

/*
 * The manifest is full.  Merge until there is room again, and wait for others who
 * do.
 */
void
lsm_schedule_make_room(LsmIndex *index, Relation heap)
{
	LsmVersion *version = lsm_version_read(index);
	instr_time	start;
	LsmJob		job;

	INSTR_TIME_SET_CURRENT(start);
	/* What a crash, or somebody else, has left to be freed takes records, too. */
	lsm_manifest_reap(index);
	lsm_version_update(index, version, NULL);
	while (version->run_count + 2 * LSM_RUNS_RESERVE >= LSM_MAX_RUNS &&
		   lsm_pick_any(version->runs, version->run_count, lsm_fanout(index->rel), &job))
	{
		lsm_job_step(index, heap, &job, 0, true);
		CHECK_FOR_INTERRUPTS();
		lsm_version_update(index, version, NULL);
	}
	pfree(version);
	lsm_request_count_time(index, start);
}

/*
 * Make room before it is needed: for who will hold a lock then that others wait for.
 */
void
lsm_schedule_expect_room(LsmIndex *index, Relation heap)
{
	LsmVersion *version = lsm_version_read(index);
	bool		is_scarce = version->run_count + LSM_RUNS_RESERVE + EXPECTED_RUNS >= LSM_MAX_RUNS;

	pfree(version);
	if (is_scarce)
		lsm_schedule_make_room(index, heap);
}
