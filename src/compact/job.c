/*
 * job.c
 *	  Compaction jobs: begin, step, install, recover.
 *
 * A job is wholly described by the manifest: its output is the run under
 * construction, its inputs are the runs with that job_id, and its position is
 * the last entry of the output.  So any process can make the next step, under
 * the compaction lock.  What a crash or an error leaves is in src/README.md,
 * "WAL and what a crash leaves".
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/compat.h"
#include "compact/compact.h"
#include "manifest/manifest.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "read/read.h"
#include "run/run.h"
#include "storage/proc.h"
#include "storage/space.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Free what the manifest does not know. */
void
lsm_space_reclaim(Relation rel, Relation heap)
{
	LsmVersion *version = lsm_version_read(rel, NULL);
	uint64	   *known = palloc(Max(1, version->run_count) * sizeof(uint64));

	for (uint32 i = 0; i < version->run_count; i++)
		known[i] = version->runs[i].run_id;
	lsm_space_reap(rel, heap, known, version->run_count, version->next_run_id);
	pfree(known);
	pfree(version);
}

/* Change the record of a run. */
void
lsm_job_put_run(Relation rel, const LsmRunRecord *run)
{
	LsmEdit    *edit = palloc(sizeof(LsmEdit));

	lsm_edit_init(edit);
	lsm_edit_put(edit, run);
	lsm_manifest_edit(rel, edit);
	pfree(edit);
}

/*
 * What was freed waits for the next transaction id to be given out and done
 * with.  When nobody writes nobody else would take it.  Not in VACUUM: other
 * snapshots do not look at its id.
 */
static void
let_xids_pass(void)
{
	if (!IsInParallelMode() && !(MyProc->statusFlags & PROC_IN_VACUUM))
		(void) GetCurrentTransactionId();
}

/*
 * The run goes on from where it was saved, in new extents: the step that failed
 * may have been the last one and have given back what was left of the old one.
 * All that is not needed to go on is freed, or steps that fail again and again
 * would take ever more.
 */
static void
retry(Relation rel, Relation heap, const LsmRunRecord *run, const LsmRunRecord *part)
{
	LsmRunRecord record = *run;
	LsmBlockList needed = {0};

	lsm_run_list_blocks(rel, run, part, &needed);
	lsm_space_keep_only(rel, heap, run->run_id, needed.blocks, needed.count);
	pfree(needed.blocks);
	let_xids_pass();
	record.next_block = InvalidBlockNumber;
	record.extent_end = InvalidBlockNumber;
	record.flags = (run->flags & LSM_RUN_PARTED) | LSM_RUN_RETRIED | LSM_RUN_RECOVERED;
	lsm_job_put_run(rel, &record);
}

/*
 * See to runs under construction whose last step failed, by an error or a
 * crash.  What was saved before is intact, so the step is taken again.  If it
 * fails once more, or was the first, the run is removed, and the inputs are free
 * again.  Not if it has a part: then nobody else has what is in that, and the
 * step is taken for ever.
 *
 * REQUIRES: the compaction lock.
 */
void
lsm_job_recover_failed(Relation rel, Relation heap)
{
	LsmVersion *version = lsm_version_read(rel, NULL);

	for (uint32 i = 0; i < version->run_count; i++)
	{
		LsmRunRecord *run = &version->runs[i];
		const LsmRunRecord *part = lsm_version_part(version, run->run_id);
		LsmEdit    *edit;

		if (run->state != LSM_RUN_BUILDING || !(run->flags & LSM_RUN_STEPPING))
			continue;
		if ((run->leaves > 0 && !(run->flags & LSM_RUN_RETRIED)) || part != NULL)
		{
			retry(rel, heap, run, part);
			continue;
		}
		edit = palloc(sizeof(LsmEdit));
		lsm_edit_init(edit);
		lsm_edit_remove(edit, run->run_id);
		for (uint32 j = 0; j < version->run_count; j++)
		{
			if (version->runs[j].job_id == run->run_id)
				lsm_edit_set_job(edit, version->runs[j].run_id, 0);
		}
		lsm_manifest_edit(rel, edit);
		pfree(edit);
	}
	pfree(version);
}

/* Start a job: its record goes into the manifest before it gets any block. */
static void
begin(Relation rel, LsmJob *job, LsmRunRecord *run)
{
	memset(run, 0, sizeof(LsmRunRecord));
	run->state = LSM_RUN_BUILDING;
	run->flags = LSM_RUN_STEPPING;
	run->level = Min(job->level + 1, LSM_MAX_LEVEL - 1);
	run->root = run->first_leaf = run->last_leaf = InvalidBlockNumber;
	run->next_block = run->extent_end = InvalidBlockNumber;
	lsm_manifest_begin_run(rel, run, job->inputs, job->count);
	job->run_id = run->run_id;
}

/* The commit point: the output replaces the inputs. */
void
lsm_job_install(Relation rel, const LsmJob *job, LsmRunRecord *run)
{
	LsmEdit    *edit = palloc(sizeof(LsmEdit));

	lsm_edit_init(edit);
	for (int i = 0; i < job->count; i++)
		lsm_edit_remove(edit, job->inputs[i]);
	if (job->part_id != 0)
		lsm_edit_remove(edit, job->part_id);
	if (run->leaves > 0)
	{
		run->state = LSM_RUN_PACKED;
		run->flags &= LSM_RUN_RECOVERED | LSM_RUN_PARTED;
		lsm_edit_put(edit, run);
	}
	else
		lsm_edit_remove(edit, run->run_id);
	lsm_manifest_edit(rel, edit);
	pfree(edit);
}

/* Would it pay to let scans read what is written, and free what that was made of? */
static bool
part_is_due(const LsmJob *job, const LsmRunRecord *part, uint32 blocks)
{
	uint32		size = Max((uint32) lsm_part_blocks, job->blocks / LSM_JOB_PARTS);

	return job->blocks / 2 >= size && blocks >= (part ? part->blocks : 0) + (uint64) size;
}

/*
 * Let scans read what a job has written instead of what the inputs have before
 * the frontier, with one edit; then free that.  `before` is the job's part
 * until now, or NULL.
 */
static void
move_frontier(Relation rel, Relation heap, LsmKeySpace *ks, LsmJob *job, LsmVersion *version,
			  const LsmRunRecord *run, LsmRunRecord *part, const LsmRunRecord *before)
{
	LsmEdit    *edit = palloc(sizeof(LsmEdit));
	LsmBlockList *cut = palloc0(job->count * sizeof(LsmBlockList));
	LsmBound   *from = NULL;
	LsmBound   *to = palloc0(sizeof(LsmBound));
	int64		moved = part->entries - (before ? before->entries : 0);

	if (before != NULL)
	{
		from = palloc0(sizeof(LsmBound));
		lsm_run_read_frontier(rel, before, from);
	}
	lsm_run_read_frontier(rel, part, to);
	lsm_edit_init(edit);
	lsm_edit_put(edit, run);
	for (int i = 0; i < job->count; i++)
	{
		LsmRunRecord *input = lsm_version_find(version, job->inputs[i]);

		if (input->state == LSM_RUN_PACKED)
			moved -= lsm_run_cut(rel, ks, input, from, to, &cut[i]);
		input->flags |= LSM_RUN_CUT;
	}
	/* The counts of the inputs are estimates, but for their sum. */
	for (int i = 0; i < job->count; i++)
	{
		LsmRunRecord *input = lsm_version_find(version, job->inputs[i]);
		int64		share = Min(moved, (int64) input->entries);

		input->entries -= share;
		moved -= share;
		lsm_edit_put(edit, input);
	}
	part->job_id = run->run_id;
	part->level = run->level;
	lsm_manifest_put_part(rel, edit, part);
	job->part_id = part->run_id;
	lsm_fail_point("free");
	for (int i = 0; i < job->count; i++)
		lsm_space_free(rel, heap, job->inputs[i], cut[i].blocks, cut[i].count);

	if (MyBgworkerEntry != NULL)
		let_xids_pass();
}

static LsmBound *
make_start(void)
{
	LsmBound   *bound = palloc0(sizeof(LsmBound));

	lsm_bound_init(bound, 1);
	return bound;
}

/*
 * The writer of the job's output; *position becomes where to go on in the
 * inputs.
 */
static LsmRunWriter *
get_writer(Relation rel, Relation heap, LsmKeySpace *ks, const LsmJob *job,
		   const LsmVersion *version, const LsmRunRecord *run, LsmBound *position,
		   BufferAccessStrategy strategy)
{
	const LsmRunRecord *part = lsm_version_part(version, job->run_id);
	bool		is_part = part != NULL && part->root == run->root;
	LsmRunWriter *writer;

	if (run->leaves == 0)
	{
		LsmLeafMode mode;

		lsm_read_inputs_mode(rel, version, job->inputs, job->count, strategy, &mode);
		return lsm_run_writer_begin(rel, heap, ks, run, job->blocks + 1, &mode);
	}
	writer = lsm_run_writer_resume(rel, heap, ks, run, is_part, job->blocks + 1, position);
	/* If VACUUM has emptied the last leaf, the position is before the frontier. */
	if (is_part)
		lsm_run_read_frontier(rel, part, position);
	return writer;
}

static void
count_work(Relation rel, LsmIndexSlot *slot, const LsmJob *job, uint32 written, bool installed)
{
	lsm_stats_add(rel, LSM_COUNT_BLOCKS_WRITTEN, written);
	if (!installed)
		return;
	lsm_stats_add(rel, LSM_COUNT_MERGES, 1);
	lsm_stats_add(rel, LSM_COUNT_BLOCKS_READ, job->blocks);
	if (slot != NULL)
		pg_atomic_write_u64(&slot->last_merge, (uint64) GetCurrentTimestamp());
}

/* Stop after a step.  The writer is freed. */
static void
save(Relation rel, Relation heap, LsmKeySpace *ks, LsmJob *job, LsmVersion *version,
	 LsmRunWriter *writer, LsmRunRecord *run)
{
	const LsmRunRecord *before = lsm_version_part(version, job->run_id);
	LsmRunRecord part;
	bool		due = part_is_due(job, before, lsm_run_writer_blocks(writer));

	if (before != NULL)
		part = *before;
	else
		memset(&part, 0, sizeof(part));
	if (due)
		lsm_run_writer_suspend_part(writer, run, &part);
	else
		lsm_run_writer_suspend(writer, run);
	lsm_fail_point("save");
	run->flags &= ~(LSM_RUN_STEPPING | LSM_RUN_RETRIED);
	if (due)
		move_frontier(rel, heap, ks, job, version, run, &part, before);
	else
		lsm_job_put_run(rel, run);
}

/* Append the job's inputs to a run, if they come after it. */
static bool
append(Relation rel, Relation heap, LsmKeySpace *ks, LsmIndexSlot *slot, const LsmJob *job)
{
	uint32		written = lsm_job_append(rel, heap, ks, job);

	if (written > 0)
		count_work(rel, slot, job, written, true);
	return written > 0;
}

/*
 * Add what the source stands on to the output, and move on: a whole page if
 * that is all alone at its place in the order and it pays to copy it, else an
 * entry.
 */
void
lsm_job_take(LsmRunWriter *writer, LsmCursor *source)
{
	const LsmEntry *last;
	Page		page = source->at_page ? lsm_cursor_page(source, &last) : NULL;

	if (page != NULL && lsm_run_writer_add_page(writer, page))
		lsm_cursor_skip_page(source);
	else
	{
		lsm_run_writer_add(writer, source->entry);
		lsm_cursor_next(source);
	}
}

/*
 * Do a step of a job: write at most max_leaves leaves (0: all), then save the
 * position, or install the output when the inputs are exhausted.
 *
 * REQUIRES: the compaction lock; failed jobs have been seen to.
 */
void
lsm_job_step(Relation rel, Relation heap, LsmKeySpace *ks, LsmJob *job, uint32 max_leaves)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm compaction",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	LsmVersion *version;
	LsmRunRecord run;
	LsmRunWriter *writer;
	LsmCursor  *source;
	LsmBound   *position = make_start();
	BufferAccessStrategy strategy = NULL;
	LsmOwnerContext saved;
	LsmIndexSlot *slot = lsm_slot_get(rel);
	uint32		blocks_before;
	bool		suspended = false;

	if (job->run_id == 0 && (max_leaves == 0 || job->blocks <= max_leaves) &&
		append(rel, heap, ks, slot, job))
	{
		MemoryContextSwitchTo(old_context);
		MemoryContextDelete(context);
		return;
	}
	if (job->run_id == 0)
		begin(rel, job, &run);
	else
	{
		version = lsm_version_read(rel, NULL);
		run = *lsm_version_find(version, job->run_id);
		run.flags |= LSM_RUN_STEPPING;
		lsm_job_put_run(rel, &run);
		lsm_space_ensure(rel);
	}
	version = lsm_version_read(rel, NULL);

	blocks_before = run.blocks;
	lsm_progress(slot, LSM_PHASE_MERGING, run.level, job->count, job->blocks, blocks_before);

	lsm_owner_enter(heap, ks, &saved);
	if (job->blocks > (uint32) NBuffers / 8)
		strategy = GetAccessStrategy(BAS_BULKREAD);
	writer = get_writer(rel, heap, ks, job, version, &run, position, strategy);
	source = lsm_read_inputs(rel, ks, version, job->inputs, job->count, strategy);

	lsm_cursor_seek(source, position, NULL, ForwardScanDirection);
	for (uint64 n = 0; source->valid; n++)
	{
		lsm_job_take(writer, source);
		if (max_leaves > 0 && lsm_run_writer_leaves(writer) >= max_leaves)
		{
			suspended = true;
			break;
		}
		if (n % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
	}
	lsm_cursor_close(source);
	lsm_stats_add(rel, LSM_COUNT_PAGES_COPIED, lsm_run_writer_pages_copied(writer, !suspended));

	if (suspended)
		save(rel, heap, ks, job, version, writer, &run);
	else
	{
		lsm_run_writer_finish(writer, &run);
		lsm_fail_point("install");
		lsm_job_install(rel, job, &run);
		lsm_space_reclaim(rel, heap);
	}
	count_work(rel, slot, job, run.blocks - blocks_before, !suspended);
	lsm_progress(slot, LSM_PHASE_WAITING, run.level, job->count, job->blocks, run.blocks);
	lsm_owner_leave(&saved);
	if (strategy)
		FreeAccessStrategy(strategy);
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
}
