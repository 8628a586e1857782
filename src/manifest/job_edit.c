/*
 * job_edit.c
 *	  Edits of merges: a job begins, a step reserves blocks and installs what it
 *	  has written, inputs are freed; and what VACUUM has to tell.
 *
 * A job is an output run (LSM_RUN_MERGING) and its inputs, whose job_id names
 * it.  What the output has, up to its last entry, the *frontier*, is not read
 * from the inputs any more.  So a step counts with the very edit that adds its
 * segment to the output, and an input's segments before the frontier are free
 * to go, at any later time (I8).
 *
 * Each function is one atomic change, or several of which any prefix is as good.
 */
#include "postgres.h"

#include "base/limits.h"
#include "catalog/storage.h"
#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/* Pages that an edit may have before it is time for the next one. */
#define MANY_PAGES (LSM_WAL_PAGES - 3)

static LsmRunRecord *
find_run(LsmChange *change, uint64 run_id)
{
	return lsm_meta_find(change->meta, run_id);
}

/*
 * Begin a job: its output, which is empty still, gets a record, and the inputs
 * name it.  False if one of them is not free any more, or the manifest has no
 * room.
 */
bool
lsm_manifest_begin_job(LsmIndex *index, const uint64 *inputs, int count, int level,
					   uint64 *job_id)
{
	LsmChange  *change = lsm_change_begin(index);
	LsmRunRecord output;
	bool		possible = change->meta->run_count < LSM_MAX_RUNS;

	for (int i = 0; i < count && possible; i++)
	{
		const LsmRunRecord *run = find_run(change, inputs[i]);

		possible = run != NULL && lsm_run_is_free(run);
	}
	if (!possible)
	{
		lsm_change_cancel(change);
		return false;
	}
	memset(&output, 0, sizeof(output));
	output.run_id = change->edit.next_id++;
	output.level = level;
	output.state = LSM_RUN_PACKED;
	output.flags = LSM_RUN_MERGING;
	lsm_edit_put(&change->edit, &output);
	for (int i = 0; i < count; i++)
		lsm_edit_set_job(&change->edit, inputs[i], output.run_id);
	*job_id = output.run_id;
	lsm_change_commit(change);
	return true;
}

/* Give back what steps of a job have reserved, but for the blocks that are used. */
static void
release_reservations(LsmChange *change, uint64 job_id, const LsmReservation *used_one,
					 uint32 used)
{
	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
	{
		const LsmReservation *r = &change->meta->reservations[i];
		uint32		keep = used_one != NULL && r->segment_id == used_one->segment_id ? used : 0;

		if (r->length == 0 || r->job_id != job_id)
			continue;
		lsm_space_give(change, r->start + keep, r->length - keep);
		lsm_edit_release(&change->edit, r->segment_id);
	}
}

/*
 * All reservations are taken.  Give back those of jobs that nobody is at: their
 * steps have failed.  True if there were any.
 */
static bool
release_failed(LsmIndex *index)
{
	LsmVersion *version = lsm_version_read(index);
	bool		any = false;

	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
	{
		uint64		job_id = version->reservations[i].job_id;
		LsmChange  *change;

		if (version->reservations[i].length == 0 || !lsm_job_lock(index->rel, job_id, false))
			continue;
		change = lsm_change_begin(index);
		release_reservations(change, job_id, NULL, 0);
		lsm_change_commit(change);
		lsm_job_unlock(index->rel, job_id);
		any = true;
	}
	pfree(version);
	return any;
}

/*
 * Reserve blocks for the next segment of a job's output.  What an earlier step
 * of the job has reserved and not installed is free again: it has failed.
 * False if too many steps are under way.
 *
 * REQUIRES: the job lock.
 */
bool
lsm_manifest_reserve(LsmIndex *index, uint64 job_id, uint32 want, uint32 least,
					 LsmReservation *reservation)
{
	LsmChange  *change;
	LsmRunRecord *output;
	bool		found = false;

	lsm_space_extend_ahead(index, want);
	change = lsm_change_begin(index);
	output = find_run(change, job_id);
	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
		found |= change->meta->reservations[i].length == 0 ||
			change->meta->reservations[i].job_id == job_id;
	if (!found || output == NULL)
	{
		lsm_change_cancel(change);
		return output != NULL && release_failed(index) &&
			lsm_manifest_reserve(index, job_id, want, least, reservation);
	}
	release_reservations(change, job_id, NULL, 0);
	memset(reservation, 0, sizeof(LsmReservation));
	reservation->length = lsm_space_take(change, want, Min(least, want), true,
										 &reservation->start);
	/* The only segment of a run has the run's id, which its record can tell. */
	reservation->segment_id = output->segments == 0 ? job_id : change->edit.next_id++;
	reservation->job_id = job_id;
	lsm_edit_reserve(&change->edit, reservation);
	lsm_change_commit(change);
	/* A power failure may have lost the latest extension, which is not logged. */
	lsm_relation_extend_to(index->rel, reservation->start + reservation->length);
	return true;
}

/* Inputs of a job have so many entries less that are not in the output. */
static void
take_from_inputs(LsmChange *change, uint64 job_id, const LsmTaken *taken, int count)
{
	for (int i = 0; i < count; i++)
	{
		const LsmRunRecord *input = find_run(change, taken[i].run_id);

		if (taken[i].entries > 0 && input != NULL && input->job_id == job_id)
			lsm_edit_take(&change->edit, taken[i].run_id, taken[i].entries);
	}
}

static void
spend_inputs(LsmChange *change, uint64 job_id)
{
	for (uint32 i = 0; i < change->meta->run_count; i++)
	{
		LsmRunRecord input = change->meta->runs[i];

		if (input.job_id != job_id)
			continue;
		input.state = LSM_RUN_SPENT;
		lsm_edit_put(&change->edit, &input);
	}
}

/*
 * Install what a step has written, `entry`, and taken from its inputs; or nothing
 * (NULL; then there may be no reservation, either).  With `finished` the inputs have nothing more: the
 * job is done, the output an ordinary run, and the inputs wait for being freed.
 *
 * REQUIRES: the job lock.
 */
void
lsm_manifest_install(LsmIndex *index, uint64 job_id, const LsmReservation *reservation,
					 const LsmDirectoryEntry *entry, const LsmTaken *taken, int taken_count,
					 bool finished)
{
	LsmChange  *change = lsm_change_begin(index);
	LsmRunRecord *output = find_run(change, job_id);
	LsmRunRecord run;
	uint32		used = entry != NULL ? entry->segment.blocks : 0;

	if (output == NULL)
		elog(ERROR, "output of a merge of index \"%s\" is gone", RelationGetRelationName(index->rel));
	run = *output;
	release_reservations(change, job_id, reservation, used);
	if (entry != NULL && finished && run.segments == 0)
		lsm_run_init_single(&run, &entry->segment, output->level, LSM_RUN_PACKED);
	else if (entry != NULL)
		lsm_directory_append(change, &run, entry);
	if (finished)
	{
		run.flags &= ~LSM_RUN_MERGING;
		spend_inputs(change, job_id);
	}
	else if (entry != NULL)
		take_from_inputs(change, job_id, taken, taken_count);
	Assert(run.run_id == job_id);
	if (run.segments > 0)
		lsm_edit_put(&change->edit, &run);
	else if (finished)
		lsm_edit_remove(&change->edit, job_id);
	lsm_change_commit(change);
}

/*
 * Is the segment still where it was found, under the lock of the meta page?
 * *segment becomes its record as it is now.
 */
static bool
is_there(LsmChange *change, const LsmRunRecord *input, const LsmWholeSegment *whole,
		 LsmSegment *segment)
{
	LsmDirectoryEntry item;
	LsmChangedPage *page;

	if (lsm_run_is_single(input))
	{
		lsm_run_segment(input, segment);
		return segment->id == whole->entry.segment.id;
	}
	page = lsm_change_page(change, whole->page, LSM_PAGE_DIRECTORY, input->run_id);
	if (!lsm_directory_page_get(page->copy, whole->ordinal, &item))
		return false;
	*segment = item.segment;
	return segment->id == whole->entry.segment.id && segment->blocks > 0;
}

/*
 * Move a segment of an input to the output of its job, by reference: it is not
 * written again.  False if it is not there any more: VACUUM has dropped it.
 *
 * REQUIRES: the job lock; all entries of the segment sort after the frontier, and
 * before what the other inputs have after it.
 */
bool
lsm_manifest_move(LsmIndex *index, uint64 job_id, const LsmWholeSegment *whole)
{
	LsmChange  *change = lsm_change_begin(index);
	LsmDirectoryEntry entry = whole->entry;
	LsmRunRecord *output = find_run(change, job_id);
	LsmRunRecord *input = find_run(change, whole->run_id);
	LsmRunRecord run;

	if (output == NULL || input == NULL || input->job_id != job_id ||
		!is_there(change, input, whole, &entry.segment))
	{
		lsm_change_cancel(change);
		return false;
	}
	run = *output;
	lsm_directory_append(change, &run, &entry);
	lsm_edit_put(&change->edit, &run);
	if (lsm_run_is_single(input))
		lsm_edit_remove(&change->edit, whole->run_id);
	else
	{
		LsmSegment	gone = entry.segment;

		gone.blocks = 0;
		lsm_directory_set(change, input, whole->page, whole->ordinal, &gone);
		lsm_edit_take(&change->edit, whole->run_id, entry.segment.entries);
	}
	lsm_change_commit(change);
	return true;
}

/* Does a bound come after all entries that were in this segment? */
static bool
is_behind(LsmKeySpace *ks, const LsmBound *bound, const LsmFoundSegment *found)
{
	LsmEntry	last;

	memset(&last, 0, sizeof(last));
	last.key = found->high.key;
	last.keylen = found->high.keylen;
	last.tid = found->high.tid;
	last.aligned = true;
	return lsm_bound_compare(ks, bound, &last) < 0;
}

/* Free the segment of an item, unless that was done meanwhile. */
static void
free_item(LsmIndex *index, uint64 run_id, const LsmFoundSegment *found)
{
	LsmChange  *change = lsm_change_begin(index);
	LsmRunRecord *run = find_run(change, run_id);
	LsmDirectoryEntry item;

	if (run != NULL && !lsm_run_is_single(run) &&
		lsm_directory_page_get(lsm_change_page(change, found->page, LSM_PAGE_DIRECTORY,
											   run_id)->copy, found->ordinal, &item) &&
		item.segment.id == found->segment.id && item.segment.blocks > 0)
	{
		lsm_space_give(change, item.segment.start, item.segment.blocks);
		item.segment.blocks = 0;
		lsm_directory_set(change, run, found->page, found->ordinal, &item.segment);
		lsm_change_commit(change);
	}
	else
		lsm_change_cancel(change);
}

/*
 * Free the segments of an input that lie between two places as a whole: `from`,
 * or the beginning (NULL), and the frontier.
 */
void
lsm_manifest_trim(LsmIndex *index, LsmKeySpace *ks, uint64 input_id, const LsmBound *from,
				  const LsmBound *frontier)
{
	LsmFoundSegment *found = palloc0(sizeof(LsmFoundSegment));
	LsmVersion *version = lsm_version_read(index);
	LsmBound	start = {0};
	LsmFindResult result = LSM_FOUND_STALE;

	lsm_bound_init(&start, 1);
	do
	{
		LsmRunRecord *input;

		CHECK_FOR_INTERRUPTS();
		lsm_version_update(index, version, NULL);
		input = lsm_version_find(version, input_id);
		if (input == NULL || lsm_run_is_single(input) || input->segments == 0)
			break;
		/* Keys are compared without a lock; an item that was found stays where it is. */
		result = lsm_directory_find(index, ks, input, version->edits, from ? from : &start,
									ForwardScanDirection, found);
		if (result == LSM_FOUND && !is_behind(ks, frontier, found))
			break;
		if (result == LSM_FOUND)
			free_item(index, input_id, found);
	} while (result != LSM_FOUND_NONE);
	pfree(version);
	pfree(found);
}

/* Free runs of one segment that are spent, as many as an edit takes. */
static int
reap_singles(LsmChange *change)
{
	int			n = 0;

	for (uint32 i = 0; i < change->meta->run_count; i++)
	{
		const LsmRunRecord *run = &change->meta->runs[i];

		if (run->state != LSM_RUN_SPENT || !lsm_run_is_single(run))
			continue;
		if (change->page_count >= MANY_PAGES || n >= LSM_MAX_JOB_INPUTS)
			break;
		if (run->segments > 0)
			lsm_space_give(change, run->start, run->blocks);
		lsm_edit_remove(&change->edit, run->run_id);
		n++;
	}
	return n;
}

/* A segment, or a directory page, of a run that is spent. */
static int
reap_some(LsmChange *change)
{
	for (uint32 i = 0; i < change->meta->run_count; i++)
	{
		const LsmRunRecord *run = &change->meta->runs[i];

		if (run->state != LSM_RUN_SPENT || lsm_run_is_single(run))
			continue;
		if (!lsm_directory_free_some(change, run))
			lsm_edit_remove(&change->edit, run->run_id);
		return 1;
	}
	return 0;
}

/* Free the blocks of runs that are spent, and forget the runs. */
void
lsm_manifest_reap(LsmIndex *index)
{
	for (;;)
	{
		LsmChange  *change = lsm_change_begin(index);
		int			freed = reap_singles(change);

		if (freed == 0)
			freed = reap_some(change);
		if (freed == 0)
		{
			lsm_change_cancel(change);
			return;
		}
		lsm_change_commit(change);
		CHECK_FOR_INTERRUPTS();
	}
}

/* --- VACUUM ---------------------------------------------------------------------- */

static void
note_single(LsmChange *change, const LsmRunRecord *run, const LsmRemoved *removed)
{
	if (removed->empty && lsm_run_is_free(run) && run->state == LSM_RUN_PACKED)
	{
		lsm_space_give(change, run->start, run->blocks);
		lsm_edit_remove(&change->edit, run->run_id);
	}
	else
		lsm_edit_deduct(&change->edit, run->run_id, removed->counted);
}

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
	/* The sums of a run that takes part in no job are those of what is there. */
	less.segments--;
	less.blocks -= found->segment.blocks;
	less.leaves -= found->segment.leaves;
	less.filter_blocks -= found->segment.filter_blocks;
	less.entries -= Min(less.entries, found->segment.entries);
	less.removed -= Min(less.removed, found->segment.removed);
	lsm_edit_put(&change->edit, &less);
}

/* Is the segment, which begins after `low`, in this run?  If that has a directory, *found is its item. */
static bool
has_segment(LsmIndex *index, LsmKeySpace *ks, const LsmRunRecord *run, uint64 segment_id,
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

/* The run that has the segment: this one, or another that it has moved to; or NULL. */
static LsmRunRecord *
find_owner(LsmChange *change, LsmKeySpace *ks, uint64 run_id, uint64 segment_id,
		   const LsmBound *low, LsmFoundSegment *found)
{
	LsmRunRecord *run = find_run(change, run_id);

	if (run != NULL && has_segment(change->index, ks, run, segment_id, low, found))
		return run;
	for (uint32 i = 0; i < change->meta->run_count; i++)
	{
		run = &change->meta->runs[i];
		if (!lsm_run_is_single(run) &&
			has_segment(change->index, ks, run, segment_id, low, found))
			return run;
	}
	return NULL;
}

/*
 * VACUUM has removed so many entries from a segment, which begins after `low` and
 * was in that run.  If none are left the segment is dropped, unless it is all that
 * a job has for an input.
 */
void
lsm_manifest_note_removed(LsmIndex *index, LsmKeySpace *ks, uint64 run_id, uint64 segment_id,
						  const LsmBound *low, const LsmRemoved *removed)
{
	LsmFoundSegment *found = palloc0(sizeof(LsmFoundSegment));
	LsmChange  *change = lsm_change_begin(index);
	LsmRunRecord *run = find_owner(change, ks, run_id, segment_id, low, found);

	if (run != NULL)
	{
		if (lsm_run_is_single(run))
			note_single(change, run, removed);
		else
			note_in_directory(change, ks, run, found, removed);
		lsm_change_commit(change);
	}
	else
		lsm_change_cancel(change);
	pfree(found);
}

/* Forget runs of several segments of which nothing is left. */
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

/* The end of what is in use now, as a number of blocks. */
BlockNumber
lsm_manifest_used_end(LsmIndex *index)
{
	LsmChange  *change = lsm_change_begin(index);
	BlockNumber end = lsm_space_used_end(change);

	lsm_change_cancel(change);
	return end;
}

/*
 * Give the free end of the file back to the operating system, if it has at least
 * so many blocks.
 *
 * REQUIRES: AccessExclusiveLock on the index: nobody reads it, here or, since
 * that lock is replayed, on a standby.  Or the index is being built: nobody reads
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
	lsm_fail_point("cut");
	/*
	 * A manifest that names what was there must not be what a crash leaves.  Core sees to
	 * that, but in early minor versions only for relations with further forks.
	 */
	if (RelationNeedsWAL(index->rel))
		XLogFlush(XactLastRecEnd);
	RelationTruncate(index->rel, end);
}
