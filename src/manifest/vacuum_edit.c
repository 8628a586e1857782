/*
 * vacuum_edit.c
 *	  Edits of VACUUM: entries are removed, empty segments and runs are dropped, and the
 *	  free end of the file is cut off.
 *
 * A job may move a segment to another run while VACUUM reads it.  So an edit looks for the
 * run that has the segment now.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "base/limits.h"
#include "base/stop_point.h"
#include "catalog/storage.h"
#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/* Entries were removed from the only segment of a run. */
static void
note_in_single_run(LsmChange *change, const LsmRunRecord *run, const LsmRemoved *removed)
{
	if (removed->empty && lsm_run_is_free(run) && run->state == LSM_RUN_PACKED)
	{
		lsm_space_give(change, run->start, run->blocks);
		lsm_edit_remove(&change->edit, run->run_id);
	}
	else
		lsm_edit_deduct(&change->edit, run->run_id, removed->counted);
}

/* Entries were removed from a segment that a directory names. */
static void
note_in_directory(LsmChange *change, LsmKeySpace *ks, const LsmRunRecord *run,
				  const LsmFoundSegment *found, const LsmRemoved *removed)
{
	LsmSegment	segment = found->segment;
	LsmRunRecord less = *run;

	segment.entries -= Min(segment.entries, removed->all);
	segment.removed += removed->all;
	if (removed->empty)
	{
		lsm_space_give(change, segment.start, segment.blocks);
		segment.blocks = 0;
	}
	lsm_directory_set(change, run, found->page, found->ordinal, &segment);
	if (!removed->empty || !lsm_run_is_free(run))
	{
		lsm_edit_deduct(&change->edit, run->run_id, removed->counted);
		return;
	}
	lsm_directory_prune(change, ks, run, found);
	/* The sums of a run outside of any job are those of its remaining segments. */
	less.segments--;
	less.blocks -= found->segment.blocks;
	less.leaves -= found->segment.leaves;
	less.filter_blocks -= found->segment.filter_blocks;
	less.entries -= Min(less.entries, found->segment.entries);
	less.removed -= Min(less.removed, found->segment.removed);
	lsm_edit_put(&change->edit, &less);
}

/*
 * Does the run have the segment, which begins after `low`?  If the run has a directory,
 * *found becomes the item of the segment.
 */
static bool
run_has_segment(LsmIndex *index, LsmKeySpace *ks, const LsmRunRecord *run, uint64 segment_id,
			const LsmBound *low, LsmFoundSegment *found)
{
	if (!lsm_run_is_read(run))
		return false;
	if (lsm_run_is_single(run))
		return run->run_id == segment_id;
	return low->key != NULL &&
		lsm_directory_find(index, ks, run, LSM_ANY_EDIT, low, ForwardScanDirection,
						   found) == LSM_FOUND &&
		found->segment.id == segment_id;
}

/* The run that has the segment: this one, or one that a job has moved it to; or NULL. */
static LsmRunRecord *
find_segment_owner(LsmChange *change, LsmKeySpace *ks, uint64 run_id, uint64 segment_id,
		   const LsmBound *low, LsmFoundSegment *found)
{
	LsmRunRecord *run = lsm_meta_find(change->meta, run_id);

	if (run != NULL && run_has_segment(change->index, ks, run, segment_id, low, found))
		return run;
	for (uint32 i = 0; i < change->meta->run_count; i++)
	{
		run = &change->meta->runs[i];
		if (!lsm_run_is_single(run) &&
			run_has_segment(change->index, ks, run, segment_id, low, found))
			return run;
	}
	return NULL;
}

/*
 * VACUUM has removed entries from a segment, which begins after `low` and was in this run.
 * If no entries are left, drop the segment, unless it is all of a job's input.
 */
void
lsm_manifest_note_removed(LsmIndex *index, LsmKeySpace *ks, uint64 run_id, uint64 segment_id,
						  const LsmBound *low, const LsmRemoved *removed)
{
	LsmFoundSegment *found = palloc0(sizeof(LsmFoundSegment));
	LsmChange  *change = lsm_change_begin(index);
	LsmRunRecord *run = find_segment_owner(change, ks, run_id, segment_id, low, found);

	if (run != NULL)
	{
		if (lsm_run_is_single(run))
			note_in_single_run(change, run, removed);
		else
			note_in_directory(change, ks, run, found, removed);
		lsm_change_commit(change);
	}
	else
		lsm_change_cancel(change);
	pfree(found);
}

/* Remove runs whose directories name no segment any more. */
void
lsm_manifest_drop_empty(LsmIndex *index)
{
	LsmKeySpace *ks = lsm_index_keyspace(index);
	LsmFoundSegment *found = palloc0(sizeof(LsmFoundSegment));
	LsmChange  *change = lsm_change_begin(index);
	LsmBound	start = {0};
	bool		any = false;

	lsm_bound_init(&start, 1);
	for (uint32 i = 0; i < change->meta->run_count; i++)
	{
		LsmRunRecord run = change->meta->runs[i];

		if (!lsm_run_is_free(&run) || lsm_run_is_single(&run) ||
			lsm_directory_find(index, ks, &run, LSM_ANY_EDIT, &start, ForwardScanDirection,
							   found) != LSM_FOUND_NONE)
			continue;
		run.state = LSM_RUN_SPENT;
		lsm_edit_put(&change->edit, &run);
		any = true;
		if (change->edit.count >= LSM_MAX_JOB_INPUTS)
			break;
	}
	if (any)
		lsm_change_commit(change);
	else
		lsm_change_cancel(change);
	pfree(found);
	if (any)
		lsm_manifest_reap(index);
}

/* The number of blocks up to the last one that is in use. */
BlockNumber
lsm_manifest_used_end(LsmIndex *index)
{
	LsmChange  *change = lsm_change_begin(index);
	BlockNumber end = lsm_space_used_end(change);

	lsm_change_cancel(change);
	return end;
}

/*
 * Give the free end of the file back to the operating system, if it has at least `least`
 * blocks.
 *
 * REQUIRES: AccessExclusiveLock on the index, so that nobody reads it, here or on a
 * standby, where the lock is replayed.  Or the index is being built, and nobody can read
 * it yet.
 */
void
lsm_manifest_truncate(LsmIndex *index, BlockNumber least)
{
	LsmChange  *change = lsm_change_begin(index);
	BlockNumber end = lsm_space_used_end(change);

	if (RelationGetNumberOfBlocks(index->rel) < end + least)
	{
		lsm_change_cancel(change);
		return;
	}
	lsm_space_cut(change, end);
	lsm_change_commit(change);
	/* AccessExclusiveLock on the index.  The manifest ends before the file does. */
	LSM_STOP_POINT("truncate-cut");
	/*
	 * After a crash, the manifest must not name blocks that were cut off.  Core ensures
	 * that, but early minor versions only do so for relations with further forks.
	 */
	if (RelationNeedsWAL(index->rel))
		XLogFlush(XactLastRecEnd);
	RelationTruncate(index->rel, end);
}
