/*
 * append.c
 *	  Merges that append to a run, rather than write a new one.
 *
 * Where keys arrive in order, as sequences and times do, whatever comes in sorts
 * after all that is there.  Then a small job's output goes to the end of a run
 * of a higher level, once, instead of being merged again on each level.
 *
 * A job that gives a few leaves only is merged, since the last one would not be
 * full, and stay so.  Nor is a run appended to for ever of which VACUUM leaves
 * little: another one is begun, and the old one goes when it is empty, or is
 * merged.
 *
 * It is a single step.  New leaves and a new right edge of fence pages are
 * written to blocks that no version knows; then one edit changes the run's
 * record and removes the inputs.  Scans with older versions stop at the last
 * leaf that their record names.  What an interrupted step leaves are blocks of
 * the run that are not part of it (LSM_RUN_PARTED).
 */
#include "postgres.h"

#include "base/options.h"
#include "compact/compact.h"
#include "read/read.h"
#include "run/run.h"
#include "storage/space.h"

/*
 * The run to append to: the newest one of the higher levels.  If keys come in
 * order it has the highest ones.
 */
static LsmRunRecord *
find_target(LsmVersion *version, const LsmJob *job)
{
	for (int i = (int) version->run_count - 1; i >= 0; i--)
	{
		LsmRunRecord *run = &version->runs[i];

		if (run->state == LSM_RUN_PACKED && run->job_id == 0 && run->level > job->level)
			return run->height > 0 ? run : NULL;
	}
	return NULL;
}

/* Leaves that a job must fill: the last one is half empty, about. */
#define LEAST_LEAVES	5

/*
 * Are leaves at the run's end like those that it has elsewhere, and would the
 * job fill some of them?  What a leaf holds is asked of the latest two, since
 * the last one need not be full.
 */
static bool
is_worth_it(Relation rel, const LsmVersion *version, const LsmJob *job, const LsmRunRecord *run)
{
	uint32		per_leaf = lsm_run_last_count(rel, run);
	uint64		entries = 0;

	for (int i = 0; i < job->count; i++)
		entries += lsm_version_find(version, job->inputs[i])->entries;
	return entries >= LEAST_LEAVES * (uint64) per_leaf &&
		run->entries >= run->leaves * (uint64) per_leaf / 2;
}

/* Stand on the first entry of the source.  Does it come after `end`? */
static bool
begins_after(LsmCursor *source, LsmKeySpace *ks, const LsmBound *end)
{
	LsmBound	start = {0};

	lsm_bound_init(&start, 1);
	lsm_cursor_seek(source, &start, NULL, ForwardScanDirection);
	return source->valid && lsm_bound_compare(ks, end, source->entry) > 0;
}

/*
 * The inputs of a job, as one cursor that stands on the first entry, if all of
 * them come after the run.  One of them is asked first: at random keys that is
 * all it costs.
 */
static LsmCursor *
open_source(Relation rel, LsmKeySpace *ks, const LsmVersion *version, const LsmJob *job,
			const LsmRunRecord *run)
{
	LsmBound	end = {0};
	LsmCursor  *source;

	if (!lsm_run_read_end(rel, ks, run, &end))
		return NULL;
	source = lsm_read_inputs(rel, ks, version, job->inputs, 1, NULL);
	if (begins_after(source, ks, &end))
	{
		lsm_cursor_close(source);
		source = lsm_read_inputs(rel, ks, version, job->inputs, job->count, NULL);
		if (begins_after(source, ks, &end))
			return source;
	}
	lsm_cursor_close(source);
	return NULL;
}

/* From now on the run may own blocks that are no part of it. */
static void
set_flag(Relation rel, LsmRunRecord *run)
{
	if (run->flags & LSM_RUN_PARTED)
		return;
	run->flags |= LSM_RUN_PARTED;
	lsm_job_put_run(rel, run);
}

/*
 * Do a job that is not under way by appending, if that is possible.  Returns
 * the number of blocks written, or 0: then it is to be merged.
 *
 * REQUIRES: the compaction lock.
 */
uint32
lsm_job_append(Relation rel, Relation heap, LsmKeySpace *ks, const LsmJob *job)
{
	LsmVersion *version = lsm_version_read(rel, NULL);
	LsmRunRecord *run = find_target(version, job);
	LsmCursor  *source;
	LsmRunWriter *writer;
	LsmOwnerContext saved;
	LsmLeafMode mode;
	uint32		blocks;

	if (run == NULL || !is_worth_it(rel, version, job, run))
		return 0;
	lsm_owner_enter(heap, ks, &saved);
	source = open_source(rel, ks, version, job, run);
	if (source != NULL)
	{
		set_flag(rel, run);
		lsm_space_ensure(rel);
		blocks = run->blocks;
		lsm_read_inputs_mode(rel, version, job->inputs, job->count, NULL, &mode);
		writer = lsm_run_writer_append(rel, heap, ks, run, job->blocks + 1, &mode);
		while (source->valid)
			lsm_job_take(writer, source);
		lsm_cursor_close(source);
		lsm_stats_add(rel, LSM_COUNT_PAGES_COPIED, lsm_run_writer_pages_copied(writer, true));
		lsm_run_writer_finish(writer, run);
		run->level = Max(run->level, lsm_level_for(run->blocks, lsm_fanout(rel)));
		lsm_fail_point("install");
		lsm_job_install(rel, job, run);
		lsm_space_reclaim(rel, heap);
		blocks = Max(run->blocks - blocks, 1);
	}
	else
		blocks = 0;
	lsm_owner_leave(&saved);
	return blocks;
}
