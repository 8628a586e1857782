/*
 * policy.c
 *	  When to merge: called by inserters.
 *
 * Small jobs are done at once.  Larger ones are left to background workers
 * (request.c), as long as they keep up.  Where there are none, larger jobs take
 * a step every so many sealed pages.  A job at level L has to write at most one page for each page sealed,
 * so a step of S leaves every S/2 seals keeps up with twice the pace; levels
 * are staggered so that steps do not fall on the same seal.
 */
#include "postgres.h"

#include "base/limits.h"
#include "base/options.h"
#include "compact/compact.h"
#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/*
 * How many steps is this level to take, now that some pages have come in?  A
 * batch brings several at once.
 */
static uint32
count_turns(Relation rel, const LsmVersion *version, int level, uint64 seals_before,
			uint64 seals)
{
	uint64		every = Max(1, lsm_step_leaves / 2);
	uint64		shift = level * 7;
	uint32		turns = (seals + shift) / every - (seals_before + shift) / every;

	/* Behind: merges were missed because others held the lock. */
	if (lsm_pick_idle(version->runs, version->run_count, level) >=
		2 * lsm_pick_trigger(level, lsm_fanout(rel)) ||
		version->run_count + 2 * LSM_RUNS_RESERVE > LSM_MAX_RUNS)
		turns = Max(turns, 1);
	return turns;
}

/*
 * Pages have come in: the index has taken `seals` of them so far, and had taken
 * seals_before.  Merge what is due, unless another process is merging already.
 */
void
lsm_compact_after_seal(Relation rel, Relation heap, LsmKeySpace *ks,
					   uint64 seals_before, uint64 seals)
{
	LsmVersion *version;
	LsmJob		job;
	LsmHelp		help;
	int			level = 0;
	bool		found;

	version = lsm_version_read(rel, NULL);
	lsm_request_help(rel, heap, version, seals - seals_before, &help);
	found = lsm_pick_job(version->runs, version->run_count, lsm_fanout(rel), 0, &job);
	pfree(version);
	if (!found)
		return;
	if (!lsm_compaction_lock(rel, false))
	{
		lsm_request_delay(rel, &help);
		return;
	}
	lsm_job_recover_failed(rel, heap);

	for (;;)
	{
		bool		small;
		int			picked;
		uint32		turns;

		version = lsm_version_read(rel, NULL);
		if (!lsm_pick_job(version->runs, version->run_count, lsm_fanout(rel), level, &job))
		{
			pfree(version);
			break;
		}
		picked = job.level;
		small = job.blocks <= (uint32) lsm_foreground_blocks && job.run_id == 0;
		if (help.at_hand)
			turns = lsm_request_is_turn(&help, picked, seals) ? 1 : 0;
		else
			turns = count_turns(rel, version, picked, seals_before, seals);
		if (small)
			lsm_job_step(rel, heap, ks, &job, 0);
		else if (turns > 0)
			lsm_request_step(rel, heap, ks, &job, turns * lsm_step_leaves);
		pfree(version);
		/* A finished small job may have filled the next level. */
		level = picked + 1;
		CHECK_FOR_INTERRUPTS();
	}
	lsm_compaction_unlock(rel);
}

/*
 * The manifest is full.  Wait for the compaction lock and merge until there is
 * room again.
 */
void
lsm_compact_make_room(Relation rel, Relation heap, LsmKeySpace *ks)
{
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	lsm_compaction_lock(rel, true);
	lsm_job_recover_failed(rel, heap);
	for (;;)
	{
		LsmVersion *version = lsm_version_read(rel, NULL);
		uint32		count = version->run_count;
		LsmJob		job;
		bool		found = lsm_pick_any(version->runs, count, &job);

		pfree(version);
		if (!found || count + 2 * LSM_RUNS_RESERVE < LSM_MAX_RUNS)
			break;
		lsm_job_step(rel, heap, ks, &job, lsm_step_leaves);
		CHECK_FOR_INTERRUPTS();
	}
	lsm_compaction_unlock(rel);
	lsm_request_count_time(rel, start);
}
