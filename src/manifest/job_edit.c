/*
 * job_edit.c
 *	  Edits of merges: a job begins, a step reserves blocks and installs a segment or moves
 *	  one, and inputs are freed.
 *
 * A job is an output run (LSM_RUN_MERGING) and its inputs, whose job_id names the output.
 * The *frontier* is the last entry of the output.  Readers ignore entries of the inputs up to
 * the frontier.  So a step takes effect with the edit that adds its segment to the output.
 * After that, input segments before the frontier can be freed at any time (I8).
 *
 * Each function makes one atomic edit, or several.  The index is consistent after each edit.
 */
#include "postgres.h"

#include "base/limits.h"
#include "base/stop_point.h"
#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/* An edit that has this many pages frees no more runs. */
#define MANY_PAGES (LSM_WAL_PAGES - 3)

/*
 * Begin a job: add a record for its empty output, and note the job in its inputs.  Returns
 * false if an input is no longer free, or if the manifest is full.
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
		const LsmRunRecord *run = lsm_meta_find(change->meta, inputs[i]);

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

/* Give back the reservations of a job, except for the first `used` blocks of used_one. */
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
 * Called when all reservations are taken.  Give back the reservations of jobs that no process
 * works on: their steps have failed.  Returns whether there were any.
 */
static bool
release_failed_steps(LsmIndex *index)
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
 * Can a step of the job reserve blocks?  If the job already has a reservation, an earlier step has
 * failed, and the new reservation replaces the old one.
 */
static bool
has_free_reservation(const LsmMeta *meta, uint64 job_id)
{
	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
	{
		if (meta->reservations[i].length == 0 || meta->reservations[i].job_id == job_id)
			return true;
	}
	return false;
}

static void
reserve_blocks(LsmChange *change, const LsmRunRecord *output, uint32 want, uint32 least,
			   LsmReservation *reservation)
{
	release_reservations(change, output->run_id, NULL, 0);
	memset(reservation, 0, sizeof(LsmReservation));
	reservation->length = lsm_space_take(change, want, Min(least, want), true,
										 &reservation->start);
	/* The first segment gets the run's id: if it stays the only one, the record has no other id. */
	reservation->segment_id = output->segments == 0 ? output->run_id : change->edit.next_id++;
	reservation->job_id = output->run_id;
	lsm_edit_reserve(&change->edit, reservation);
}

/*
 * Reserve blocks for the next segment of a job's output.  If an earlier step has reserved
 * blocks without installing a segment, that step has failed, and its blocks are freed.  Returns
 * false if the job is gone, or too many steps are under way.
 *
 * REQUIRES: the job lock, unless the index is being built.
 */
bool
lsm_manifest_reserve(LsmIndex *index, uint64 job_id, uint32 want, uint32 least,
					 LsmReservation *reservation)
{
	for (;;)
	{
		LsmChange  *change;
		LsmRunRecord *output;

		lsm_space_prepare(index, want, true);
		change = lsm_change_begin(index);
		output = lsm_meta_find(change->meta, job_id);
		if (output != NULL && has_free_reservation(change->meta, job_id))
		{
			reserve_blocks(change, output, want, least, reservation);
			lsm_change_commit(change);
			/* A step holds merge lock (share) and job lock.  It will overwrite these blocks. */
			LSM_STOP_POINT("space-reserved");
			break;
		}
		lsm_change_cancel(change);
		if (output == NULL || !release_failed_steps(index))
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	/* A power failure may have lost the latest extension, which is not logged. */
	lsm_buffer_extend_file(index->rel, reservation->start + reservation->length, false);
	return true;
}

/* From the entry counts of the inputs, deduct the entries that the step has taken. */
static void
take_from_inputs(LsmChange *change, uint64 job_id, const LsmTaken *taken, int count)
{
	for (int i = 0; i < count; i++)
	{
		const LsmRunRecord *input = lsm_meta_find(change->meta, taken[i].run_id);

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
 * Read in what appending a segment to the output of a job may need: the right edge of the
 * output's directory, map pages, and the directory page of `whole`, the segment that moves (NULL:
 * none).
 */
static void
prepare_append(LsmIndex *index, uint64 job_id, const LsmWholeSegment *whole)
{
	LsmVersion *version = lsm_version_read(index);
	const LsmRunRecord *output = lsm_version_find(version, job_id);
	const LsmRunRecord *input = whole != NULL ? lsm_version_find(version, whole->run_id) : NULL;
	LsmBound	high = {0};

	if (input != NULL && !lsm_run_is_single(input))
		lsm_buffer_touch(index->rel, whole->page);
	if (output != NULL && !lsm_run_is_single(output))
		(void) lsm_directory_last(index, output, version->edits, &high);
	/* At worst, a new directory page for each level, and a new root. */
	lsm_space_prepare(index, output != NULL ? output->dir_height + 2 : 1, false);
	if (high.key != NULL)
		pfree(high.key);
	pfree(version);
}

/*
 * Install the segment that a step has written (entry), and note what the step has taken
 * from its inputs.  If nothing was written, entry is NULL, and reservation may be NULL.  If
 * `finished`, nothing is left in the inputs: the job is done, its output becomes an ordinary
 * run (or disappears if it has no segment), and the inputs wait to be freed.
 *
 * REQUIRES: the job lock, unless the index is being built.
 */
void
lsm_manifest_install(LsmIndex *index, uint64 job_id, const LsmReservation *reservation,
					 const LsmDirectoryEntry *entry, const LsmTaken *taken, int taken_count,
					 bool finished)
{
	LsmChange  *change;
	LsmRunRecord *output;
	LsmRunRecord run;
	uint32		used = entry != NULL ? entry->segment.blocks : 0;

	if (entry != NULL)
		prepare_append(index, job_id, NULL);
	if (reservation != NULL)
		lsm_space_touch(index, reservation->start);
	change = lsm_change_begin(index);
	output = lsm_meta_find(change->meta, job_id);
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
 * Is the segment still where it was found, now that the meta page is locked?  Sets *segment to the
 * segment's current record.
 */
static bool
is_segment_there(LsmChange *change, const LsmRunRecord *input, const LsmWholeSegment *whole,
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
 * Move a segment from an input to the output of the job by reference, without rewriting the
 * segment.  Returns false if VACUUM has dropped the segment.
 *
 * REQUIRES: the job lock.  All entries of the segment sort after the frontier, and before
 * all entries of the other inputs that are after the frontier.
 */
bool
lsm_manifest_move(LsmIndex *index, uint64 job_id, const LsmWholeSegment *whole)
{
	LsmChange  *change;
	LsmDirectoryEntry entry = whole->entry;
	LsmRunRecord *output;
	LsmRunRecord *input;
	LsmRunRecord run;

	prepare_append(index, job_id, whole);
	change = lsm_change_begin(index);
	output = lsm_meta_find(change->meta, job_id);
	input = lsm_meta_find(change->meta, whole->run_id);
	if (output == NULL || input == NULL || input->job_id != job_id ||
		!is_segment_there(change, input, whole, &entry.segment))
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

/* Does the bound come after all entries that the segment was written with? */
static bool
bound_is_behind_segment(LsmKeySpace *ks, const LsmBound *bound, const LsmFoundSegment *found)
{
	LsmEntry	last;

	memset(&last, 0, sizeof(last));
	last.key = found->high.key;
	last.keylen = found->high.keylen;
	last.tid = found->high.tid;
	last.aligned = true;
	return lsm_bound_compare(ks, bound, &last) < 0;
}

/* Free the segment of a directory item, unless another process has done so. */
static void
free_found_segment(LsmIndex *index, uint64 run_id, const LsmFoundSegment *found)
{
	LsmChange  *change;
	LsmRunRecord *run;
	LsmDirectoryEntry item;

	lsm_space_touch(index, found->segment.start);
	change = lsm_change_begin(index);
	run = lsm_meta_find(change->meta, run_id);

	if (run != NULL && !lsm_run_is_single(run) &&
		lsm_directory_page_get(lsm_change_page(change, found->page, LSM_PAGE_DIRECTORY,
											   run_id)->copy, found->ordinal, &item) &&
		item.segment.id == found->segment.id && item.segment.blocks > 0)
	{
		lsm_space_give(change, item.segment.start, item.segment.blocks);
		item.segment.blocks = 0;
		lsm_directory_set(change, run, found->page, found->ordinal, &item.segment);
		lsm_change_commit(change);
		/* Holds merge lock (share) and job lock.  Anybody may take the blocks. */
		LSM_STOP_POINT("space-freed");
	}
	else
		lsm_change_cancel(change);
}

/*
 * Free the segments of an input that end after `from` (NULL: all segments), but not after the
 * frontier.
 */
void
lsm_manifest_trim(LsmIndex *index, LsmKeySpace *ks, uint64 input_id, const LsmBound *from,
				  const LsmBound *frontier)
{
	LsmFoundSegment *found = palloc0(sizeof(LsmFoundSegment));
	LsmVersion *version = lsm_version_read(index);
	LsmBound	start = {0};
	LsmFindResult result = LSM_FOUND_NONE;

	lsm_bound_init(&start, 1);
	do
	{
		LsmRunRecord *input;
		uint64		edits = version->edits;

		CHECK_FOR_INTERRUPTS();
		lsm_version_update(index, version, NULL);
		input = lsm_version_find(version, input_id);
		if (input == NULL || lsm_run_is_single(input) || input->segments == 0)
			break;
		if (result == LSM_FOUND_STALE && version->edits == edits)
			lsm_report_corruption(index->rel, input->start, "directory has pages that are not its own");
		/* Compare keys without a lock.  An item keeps its place, so the edit will find it. */
		result = lsm_directory_find(index, ks, input, version->edits, from ? from : &start,
									ForwardScanDirection, found);
		if (result == LSM_FOUND && !bound_is_behind_segment(ks, frontier, found))
			break;
		if (result == LSM_FOUND)
			free_found_segment(index, input_id, found);
	} while (result != LSM_FOUND_NONE);
	pfree(version);
	lsm_found_free_keys(found);
	pfree(found);
}

/* Free as many spent runs without a directory as fit in an edit.  Returns how many it freed. */
static int
reap_single_runs(LsmChange *change)
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

/* Free one segment or directory page of a spent run.  Returns whether there was one. */
static bool
reap_from_directory(LsmChange *change)
{
	for (uint32 i = 0; i < change->meta->run_count; i++)
	{
		const LsmRunRecord *run = &change->meta->runs[i];

		if (run->state != LSM_RUN_SPENT || lsm_run_is_single(run))
			continue;
		if (!lsm_directory_free_some(change, run))
			lsm_edit_remove(&change->edit, run->run_id);
		return true;
	}
	return false;
}

/* Read in the map page that covers a directory page or a segment of a spent run. */
static void
touch_item(void *arg, BlockNumber block, Page page, int ordinal, const LsmDirectoryEntry *item)
{
	LsmIndex   *index = arg;

	if (item == NULL)
		lsm_space_touch(index, block);
	else if (item->segment.blocks > 0)
		lsm_space_touch(index, item->segment.start);
}

/* Read in the pages that reaping will need, before the meta page is locked. */
static void
touch_spent_runs(LsmIndex *index)
{
	LsmVersion *version = lsm_version_read(index);

	for (uint32 i = 0; i < version->run_count; i++)
	{
		const LsmRunRecord *run = &version->runs[i];

		if (run->state != LSM_RUN_SPENT)
			continue;
		if (lsm_run_is_single(run) && run->segments > 0)
			lsm_space_touch(index, run->start);
		else if (!lsm_run_is_single(run))
			(void) lsm_directory_walk(index, run, version->edits, touch_item, index);
	}
	pfree(version);
}

/* Free the blocks of spent runs, and remove the runs. */
void
lsm_manifest_reap(LsmIndex *index)
{
	touch_spent_runs(index);
	for (;;)
	{
		LsmChange  *change = lsm_change_begin(index);

		if (reap_single_runs(change) == 0 && !reap_from_directory(change))
		{
			lsm_change_cancel(change);
			return;
		}
		lsm_change_commit(change);
		/* May hold the locks of a step or a unique check.  Anybody may take the freed blocks. */
		LSM_STOP_POINT("space-freed");
		CHECK_FOR_INTERRUPTS();
	}
}
