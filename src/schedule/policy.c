/*
 * policy.c
 *	  Decides what a writer merges itself after it has sealed pages.
 *
 * Writers leave jobs to the background workers as long as the workers keep up.  If the workers fall
 * behind, or if there are none, a writer does a small job at once.  No worker is started for a
 * small job.  If workers cannot help at all, writers also take steps of larger jobs, at intervals
 * of sealed pages (rules.c).
 */
#include "postgres.h"

#include "base/limits.h"
#include "base/options.h"
#include "miscadmin.h"
#include "schedule/rules.h"
#include "schedule/schedule.h"

/* Runs that a batch and concurrent writers are expected to add. */
#define EXPECTED_RUNS 4

/* Returns how many blocks a writer's step writes. */
static uint32
writer_step_blocks(void)
{
	return lsm_segment_blocks > 0 ? Min(lsm_segment_blocks, LSM_MIN_SEGMENT_BLOCKS) :
		LSM_MIN_SEGMENT_BLOCKS;
}

/* Returns how many runs of a level currently make a job due. */
static int
trigger_of(LsmIndex *index, const LsmVersion *version, int level)
{
	return lsm_pick_trigger(level, lsm_effective_fanout(version->runs, version->run_count,
														lsm_fanout(index->rel)));
}

/*
 * Returns how many steps of a job at this level this writer must take.  There may be several, since
 * a batch adds several pages at once.
 */
static uint32
count_turns(LsmIndex *index, const LsmVersion *version, int level, uint64 seals_before,
			uint64 seals)
{
	uint32		turns = lsm_rule_turns(level, writer_step_blocks(), seals_before, seals);

	/* If the level is behind, writers missed their turns because others held the job. */
	if (lsm_pick_count_free(version->runs, version->run_count, level - 1) >=
		2 * trigger_of(index, version, level - 1) ||
		version->run_count + 2 * LSM_RUNS_RESERVE > LSM_MAX_RUNS)
		turns = Max(turns, 1);
	return turns;
}

/* Take this writer's steps of a large job. */
static void
take_turns(LsmIndex *index, Relation heap, LsmJob *job, uint32 turns)
{
	while (turns-- > 0 && lsm_request_step(index, heap, job) == LSM_STEP_MORE)
		CHECK_FOR_INTERRUPTS();
}

/*
 * May this small job wait for a worker?  Yes, until the level has 1.5 times as many runs as the
 * trigger.  A worker looks for new jobs after each segment that it writes.  So by then, a worker
 * that keeps up has taken this job.
 */
static bool
can_wait_for_worker(const LsmVersion *version, const LsmHelp *help, int level, int trigger)
{
	return help->at_hand && help->pressure == 0 &&
		lsm_pick_count_free(version->runs, version->run_count, level) < trigger + trigger / 2 &&
		lsm_pool_has_worker(MyDatabaseId);
}

/*
 * Merge what is due.  Returns false if other processes were working on all due jobs.  A small job
 * may fill the next level, so we look at that level afterwards.
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

		if (small && can_wait_for_worker(version, help, place.level, trigger))
		{
			any = true;
			continue;
		}
		if (small)
		{
			LsmStepResult result;

			while ((result = lsm_job_step(index, heap, &job, 0, false)) == LSM_STEP_MORE)
				CHECK_FOR_INTERRUPTS();
			any |= result == LSM_STEP_DONE;
			lsm_version_update(index, version, NULL);
			/* The list of runs has changed.  Start the next level from its beginning. */
			place.level++;
			place.run = 0;
			continue;
		}
		if (!help->at_hand)
			turns = count_turns(index, version, job.level, seals_before, seals);
		else if (lsm_rule_is_turn(help->pressure, job.level, help->sealed, seals))
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
 * Called after pages have been sealed, which raised the index's number of seals from seals_before
 * to `seals`.  Merges what is due, unless other processes are merging it.
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
 * Called when the manifest is full.  Merges until there is room, and waits for other processes that
 * merge.
 */
void
lsm_schedule_make_room(LsmIndex *index, Relation heap)
{
	LsmVersion *version = lsm_version_read(index);
	instr_time	start;
	LsmJob		job;

	INSTR_TIME_SET_CURRENT(start);
	/* Free spent runs that a crash or another process has left, since they take up records. */
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

/* Make room in advance, for a caller that is about to take a lock that others wait for. */
void
lsm_schedule_expect_room(LsmIndex *index, Relation heap)
{
	LsmVersion *version = lsm_version_read(index);
	bool		is_scarce = version->run_count + LSM_RUNS_RESERVE + EXPECTED_RUNS >= LSM_MAX_RUNS;

	pfree(version);
	if (is_scarce)
		lsm_schedule_make_room(index, heap);
}
