/*
 * vacuum_edit.c
 *	  VACUUM's edits: they note removed entries, drop empty segments and runs, and truncate
 *	  free space at the end of the file.
 *
 * A job may move a segment to another run while VACUUM reads the segment.  So VACUUM looks for the
 * run that has the segment now.  The search takes no lock, because all writers need the meta page.
 * The edit finds out whether the segment is still in that run.  If not, VACUUM searches again.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "base/limits.h"
#include "base/stop_point.h"
#include "catalog/storage.h"
#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/*
 * The most searches for one segment.  A search is repeated only if a job has moved the segment or
 * the directory has changed.
 */
#define MOST_SEARCHES 100

/* Where a segment is. */
typedef struct SegmentPlace
{
	uint64		run_id;
	bool		single;			/* the segment is the only one of that run */
	LsmFoundSegment found;		/* unless single */
	LsmDirectoryPath path;		/* height 0: not known */
} SegmentPlace;

/* Note in a run's record that entries were removed from the run's only segment. */
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

/* Note that entries were removed from a segment that a directory names. */
static void
note_in_directory(LsmChange *change, const LsmRunRecord *run, const SegmentPlace *place,
				  const LsmRemoved *removed)
{
	const LsmFoundSegment *found = &place->found;
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
	lsm_directory_prune(change, run, &place->path);
	/* The totals of a run that is in no job cover only its remaining segments. */
	less.segments--;
	less.blocks -= found->segment.blocks;
	less.leaves -= found->segment.leaves;
	less.filter_blocks -= found->segment.filter_blocks;
	less.entries -= Min(less.entries, found->segment.entries);
	less.removed -= Min(less.removed, found->segment.removed);
	lsm_edit_put(&change->edit, &less);
}

/* Does the run have the segment, which begins after `low`?  Fills in *place if so. */
static LsmFindResult
find_in_run(LsmIndex *index, LsmKeySpace *ks, const LsmVersion *version, const LsmRunRecord *run,
			uint64 segment_id, const LsmBound *low, bool with_path, SegmentPlace *place)
{
	LsmFindResult result;

	place->run_id = run->run_id;
	place->single = lsm_run_is_single(run);
	place->path.height = 0;
	if (!lsm_run_is_read(run))
		return LSM_FOUND_NONE;
	if (place->single)
		return run->run_id == segment_id ? LSM_FOUND : LSM_FOUND_NONE;
	if (low->key == NULL)
		return LSM_FOUND_NONE;
	result = lsm_directory_find(index, ks, run, version->edits, low, ForwardScanDirection,
								&place->found);
	if (result != LSM_FOUND)
		return result;
	if (place->found.segment.id != segment_id)
		return LSM_FOUND_NONE;
	if (with_path)
		result = lsm_directory_path(index, ks, run, version->edits, &place->found, &place->path);
	if (result == LSM_FOUND_STALE)
		return LSM_FOUND_STALE;
	if (result == LSM_FOUND_NONE)
		place->path.height = 0;
	return LSM_FOUND;
}

/* Find the run that has the segment: this one, or one that a job has moved it to. */
static LsmFindResult
find_segment(LsmIndex *index, LsmKeySpace *ks, LsmVersion *version, uint64 run_id,
			 uint64 segment_id, const LsmBound *low, bool with_path, SegmentPlace *place)
{
	const LsmRunRecord *run = lsm_version_find(version, run_id);
	LsmFindResult result = LSM_FOUND_NONE;

	if (run != NULL)
		result = find_in_run(index, ks, version, run, segment_id, low, with_path, place);
	for (uint32 i = 0; i < version->run_count && result == LSM_FOUND_NONE; i++)
	{
		run = &version->runs[i];
		if (run->run_id != run_id && !lsm_run_is_single(run))
			result = find_in_run(index, ks, version, run, segment_id, low, with_path, place);
	}
	return result;
}

/* Is the segment still in its place?  If a directory names it, updates place->found.segment. */
static bool
place_holds(LsmChange *change, const LsmRunRecord *run, SegmentPlace *place)
{
	LsmFoundSegment *found = &place->found;
	LsmDirectoryEntry item;
	LsmChangedPage *page;

	if (run == NULL || !lsm_run_is_read(run) || lsm_run_is_single(run) != place->single)
		return false;
	if (place->single)
		return true;
	if (place->path.height > 0 && !lsm_directory_path_holds(change, run, &place->path))
		return false;
	page = lsm_change_page(change, found->page, LSM_PAGE_DIRECTORY, run->run_id);
	if (!lsm_directory_page_get(page->copy, found->ordinal, &item) ||
		item.segment.id != found->segment.id || item.segment.blocks == 0)
		return false;
	found->segment = item.segment;
	return true;
}

/* Read in the map pages that the edit may need. */
static void
touch_map(LsmIndex *index, LsmVersion *version, const SegmentPlace *place)
{
	if (place->single)
		lsm_space_touch(index, lsm_version_find(version, place->run_id)->start);
	else
		lsm_space_touch(index, place->found.segment.start);
	for (int level = 1; level < place->path.height; level++)
		lsm_space_touch(index, place->path.blocks[level]);
}

/*
 * Note that VACUUM has removed entries from a segment that begins after `low` and was in this run.
 * If no entries are left, drop the segment, unless it is a buffer page, or its run is a job's input
 * without a directory.
 */
void
lsm_manifest_note_removed(LsmIndex *index, LsmKeySpace *ks, uint64 run_id, uint64 segment_id,
						  const LsmBound *low, const LsmRemoved *removed)
{
	SegmentPlace *place = palloc0(sizeof(SegmentPlace));
	LsmVersion *version = lsm_version_read(index);

	for (int i = 0; i < MOST_SEARCHES; i++)
	{
		LsmFindResult result = find_segment(index, ks, version, run_id, segment_id, low,
											removed->empty, place);

		if (result == LSM_FOUND_NONE)
			break;
		if (result == LSM_FOUND)
		{
			LsmChange  *change;
			LsmRunRecord *run;

			touch_map(index, version, place);
			/* Holds the same locks as at vacuum-page.  A job may move the segment now. */
			LSM_STOP_POINT("vacuum-found");
			change = lsm_change_begin(index);
			run = lsm_meta_find(change->meta, place->run_id);
			if (place_holds(change, run, place))
			{
				if (place->single)
					note_in_single_run(change, run, removed);
				else
					note_in_directory(change, run, place, removed);
				lsm_change_commit(change);
				break;
			}
			lsm_change_cancel(change);
		}
		CHECK_FOR_INTERRUPTS();
		lsm_version_update(index, version, NULL);
	}
	pfree(version);
	lsm_found_free_keys(&place->found);
	pfree(place);
}

/*
 * Remove runs whose directories name no segment any more.  A directory that is empty while no job
 * uses its run stays empty, so there is no need to search it again under the lock.
 */
void
lsm_manifest_drop_empty(LsmIndex *index)
{
	LsmKeySpace *ks = lsm_index_keyspace(index);
	LsmFoundSegment *found = palloc0(sizeof(LsmFoundSegment));
	LsmVersion *version = lsm_version_read(index);
	uint64		empty[LSM_MAX_JOB_INPUTS];
	int			count = 0;
	LsmBound	start = {0};

	lsm_bound_init(&start, 1);
	for (uint32 i = 0; i < version->run_count && count < LSM_MAX_JOB_INPUTS; i++)
	{
		const LsmRunRecord *run = &version->runs[i];

		if (lsm_run_is_free(run) && !lsm_run_is_single(run) &&
			lsm_directory_find(index, ks, run, version->edits, &start, ForwardScanDirection,
							   found) == LSM_FOUND_NONE)
			empty[count++] = run->run_id;
	}
	if (count > 0)
	{
		LsmChange  *change = lsm_change_begin(index);

		for (int i = 0; i < count; i++)
		{
			LsmRunRecord *run = lsm_meta_find(change->meta, empty[i]);
			LsmRunRecord spent;

			if (run == NULL || !lsm_run_is_free(run))
				continue;
			spent = *run;
			spent.state = LSM_RUN_SPENT;
			lsm_edit_put(&change->edit, &spent);
		}
		if (change->edit.count > 0)
			lsm_change_commit(change);
		else
			lsm_change_cancel(change);
		lsm_manifest_reap(index);
	}
	pfree(version);
	lsm_found_free_keys(found);
	pfree(found);
}

/* Returns the block after the last one in use. */
BlockNumber
lsm_manifest_used_end(LsmIndex *index)
{
	LsmChange  *change;
	BlockNumber end;

	lsm_space_touch_end(index);
	change = lsm_change_begin(index);
	end = lsm_space_used_end(change);
	lsm_change_cancel(change);
	return end;
}

/*
 * Truncate the free end of the file if it has at least `least` blocks.
 *
 * REQUIRES: AccessExclusiveLock on the index, so that nobody reads the index, here or on a standby,
 * where the lock is replayed.  The lock is not needed while the index is being built, since
 * nobody can read the index yet.
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
	/* Holds AccessExclusiveLock on the index.  mapped_end is before the end of the file. */
	LSM_STOP_POINT("truncate-cut");
	/*
	 * After a crash, the manifest must not name blocks that were cut off.  So flush the edit's
	 * record first.  Core flushes WAL too, but in early minor versions only if the index has other
	 * forks.
	 */
	if (RelationNeedsWAL(index->rel))
		XLogFlush(XactLastRecEnd);
	RelationTruncate(index->rel, end);
}
