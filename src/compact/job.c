/*
 * job.c
 *	  Takes a step of a job: writes a segment of the output and installs it.
 *
 * The manifest describes a job completely.  The output is a run that is complete up to its last
 * entry, the frontier.  The inputs are the runs with that job_id.  The next step continues after
 * the frontier, so any process that holds the job lock can take it.  Several jobs of an index can
 * be under way at the same time.  A step that fails, by an error or a crash, leaves only reserved
 * blocks behind.  The next step of the job gives these blocks back.
 *
 * See docs/design/compaction.md.
 */
#include "postgres.h"

#include "base/claims.h"
#include "base/compat.h"
#include "base/counts.h"
#include "base/index_slots.h"
#include "base/options.h"
#include "base/stop_point.h"
#include "compact/compact.h"
#include "format/leaf_mode.h"
#include "miscadmin.h"
#include "read/reader.h"
#include "storage/buffers.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* A step moves at most this many segments by reference. */
#define MOST_MOVES 64

/* A step under way. */
typedef struct Step
{
	LsmIndex   *index;
	LsmJob	   *job;
	LsmReader  *reader;
	MemoryContextCallback on_delete;	/* of the step's memory context */
	LsmKeySpace *ks;
	BufferAccessStrategy strategy;	/* for reading the inputs, or NULL */
	BufferAccessStrategy write_strategy;
	uint32		segment_blocks;
	uint32		copied;			/* pages */
	LsmBound	from;			/* the frontier before the step, if there was one */
	bool		goes_on;		/* this process has trimmed the inputs up to the frontier */
	LsmTaken	taken[LSM_MAX_RUNS];	/* taken from each input, as noted so far */
	int			taken_count;
} Step;

/* Segments of at least this many blocks are moved instead of merged. */
static uint32
least_move(const Step *step)
{
	return Max(step->segment_blocks / 16, 1);
}

/* Returns the mode that fits the entries of all inputs. */
static void
join_modes(Step *step, LsmLeafMode *mode)
{
	LsmVersion *version = &step->reader->version;

	lsm_mode_init(mode);
	for (uint32 i = 0; i < version->run_count; i++)
	{
		LsmLeafMode of_run;

		if (version->runs[i].job_id != step->job->job_id)
			continue;
		lsm_run_mode(&version->runs[i], &of_run);
		lsm_mode_join(mode, &of_run);
	}
	if (mode->base_block > mode->last_block)
		mode->base_block = mode->last_block;
}

/* Seek the inputs to the frontier, or to their start if the output has no entries. */
static void
seek_start(Step *step)
{
	const LsmBound *frontier = lsm_reader_frontier(step->reader, step->job->job_id);
	LsmBound	start = {0};

	lsm_bound_init(&start, 1);
	lsm_reader_seek(step->reader, frontier != NULL ? frontier : &start, NULL,
					ForwardScanDirection);
}

/* Is the reader at the start of a segment that can be moved by reference? */
static bool
is_at_segment(Step *step, LsmWholeSegment *whole)
{
	LsmCursor  *source = step->reader->cursor;

	return source->valid && source->at_page &&
		lsm_cursor_segment(source, least_move(step), whole);
}

/*
 * Move the next segments by reference while they overlap no other input. Each move costs an edit,
 * but no copy. Returns false if there may be more segments to move.
 */
static bool
has_moved_all(Step *step)
{
	LsmWholeSegment whole;

	for (int i = 0; i < MOST_MOVES; i++)
	{
		if (!is_at_segment(step, &whole))
			return true;
		if (step->reader->cx.stale)
			return false;
		/* Holds merge lock (share) and job lock.  The segment still belongs to an input. */
		LSM_STOP_POINT("merge-move");
		if (!lsm_manifest_move(step->index, step->job->job_id, &whole))
			return false;
		lsm_reader_seek_past(step->reader, &whole.entry.high);
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/* Note what was taken from each input, before the cursors seek again or the step ends. */
static void
note_taken(Step *step)
{
	LsmReader  *reader = step->reader;

	for (int i = 0; i < reader->child_count; i++)
	{
		int			at = 0;

		while (at < step->taken_count && step->taken[at].run_id != reader->child_runs[i])
			at++;
		if (at == step->taken_count)
		{
			step->taken[at].run_id = reader->child_runs[i];
			step->taken[at].entries = 0;
			step->taken_count++;
		}
		step->taken[at].entries += reader->children[i]->taken;
		reader->children[i]->taken = 0;
	}
}

/* Called when the version is stale: continue after the last entry taken, or where the step began. */
static void
catch_up(Step *step, LsmBuilder *builder)
{
	LsmEntry	last;

	note_taken(step);
	if (lsm_builder_last(builder, &last))
		lsm_reader_seek_past(step->reader, &last);
	else
	{
		lsm_reader_refresh(step->reader);
		seek_start(step);
	}
}

/*
 * Fill a segment from the inputs until the segment is full, the inputs have no more entries, or
 * the reader reaches a segment that can be moved.  A page that overlaps no other input is copied
 * whole if fill.h allows it; otherwise entries are taken one by one.
 */
static void
fill_segment(Step *step, LsmBuilder *builder)
{
	LsmReader  *reader = step->reader;

	for (uint64 n = 0; reader->cursor->valid || reader->cx.stale; n++)
	{
		LsmCursor  *source = reader->cursor;
		const LsmEntry *last;
		LsmWholeSegment whole;
		Page		page = NULL;

		if (n % 1024 == 0 || source->at_page)
			CHECK_FOR_INTERRUPTS();
		if (unlikely(reader->cx.stale))
		{
			catch_up(step, builder);
			continue;
		}
		if (source->at_page)
		{
			if (!lsm_builder_is_empty(builder) && is_at_segment(step, &whole))
				return;
			page = lsm_cursor_page(source, &last);
		}
		if (page != NULL)
		{
			LsmPageResult result = lsm_builder_add_page(builder, page);

			if (result == LSM_PAGE_NO_ROOM)
				return;
			if (result == LSM_PAGE_TAKEN)
			{
				source->source->taken += lsm_leaf_header(page)->entry_count;
				lsm_cursor_skip_page(source);
				continue;
			}
		}
		if (!lsm_builder_add(builder, source->entry))
			return;
		source->source->taken++;
		lsm_cursor_next(source);
	}
}

/* Returns how many blocks the next segment may have. */
static uint32
wanted_blocks(Step *step, uint32 most_blocks)
{
	/* Fence pages, and a coding that must fit all inputs, may need more blocks than are left. */
	uint64		left = (uint64) step->job->blocks_left + step->job->blocks_left / 8 + 4;
	uint32		want = step->segment_blocks;
	bool		if_worth;
	int			prefixes = lsm_filter_prefix(step->index->rel, step->ks->nkeys, &if_worth);

	/* Most inputs of a small job have no filter. Prefixes may double the output's filter. */
	if (lsm_filter_bits(step->index->rel) > 0)
		left += prefixes > 0 ? left / 2 : left / 4;
	if (most_blocks > 0)
		want = Min(want, most_blocks);
	return (uint32) Min(Max(want, LSM_LEAST_EXTENT), Max(left, LSM_LEAST_EXTENT));
}

/*
 * Note that the inputs are trimmed up to the output's frontier. `output` is NULL if nothing is
 * known. The note is in the index's handle, because a job has the id of its output run, which is
 * unique only within the index.
 */
static void
note_trimmed(LsmIndex *index, const LsmRunRecord *output)
{
	index->trimmed_job = output ? output->run_id : 0;
	index->trimmed_segments = output ? output->segments : 0;
}

/*
 * Returns whether this process has trimmed the inputs up to the frontier. Since then, the output
 * must not have gained segments. If it has, another process has taken a step, and may have failed
 * to trim.
 */
static bool
is_trimmed(const LsmIndex *index, const LsmRunRecord *output)
{
	return index->trimmed_job == output->run_id && index->trimmed_segments == output->segments;
}

/* Free the segments that the output has passed, in inputs that have a directory. */
static void
trim_inputs(Step *step)
{
	LsmVersion *version = &step->reader->version;
	const LsmBound *frontier;

	note_trimmed(step->index, NULL);
	lsm_reader_refresh(step->reader);
	frontier = lsm_reader_frontier(step->reader, step->job->job_id);
	if (frontier == NULL)
		return;
	/* Holds merge lock (share) and job lock.  The step is done; the inputs still have their blocks. */
	LSM_STOP_POINT("merge-free");
	for (uint32 i = 0; i < version->run_count; i++)
	{
		const LsmRunRecord *run = &version->runs[i];

		if (run->job_id == step->job->job_id && !lsm_run_is_single(run))
			lsm_manifest_trim(step->index, step->ks, run->run_id,
							  step->goes_on ? &step->from : NULL, frontier);
	}
	note_trimmed(step->index, lsm_version_find(version, step->job->job_id));
}

/*
 * Raise an error if the segment does not lie entirely after the frontier.  If the index is not in
 * order, a search for the frontier can lead to entries that have already been merged.  The merge
 * would then write the same entries over and over.
 */
static void
check_progress(Step *step, const LsmDirectoryEntry *entry)
{
	if (!step->from.is_entry || (lsm_bound_compare(step->ks, &step->from, &entry->low) > 0 &&
								 lsm_bound_compare(step->ks, &step->from, &entry->high) > 0))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is not in order, and cannot be merged",
					RelationGetRelationName(step->index->rel)),
			 step->ks->encoded ? 0 :
			 errdetail("Its keys are compared by functions.  A collation or a comparison function may have changed since the index was built."),
			 errhint("Please REINDEX it.")));
}

/* Write a segment and install it. Returns true if that completes the job. */
static bool
write_segment(Step *step, const LsmReservation *reservation)
{
	LsmLeafMode mode;
	LsmBuilder *builder;
	LsmDirectoryEntry entry;
	bool		finished;
	bool		empty;

	join_modes(step, &mode);
	builder = lsm_builder_create(step->index->rel, step->ks, reservation->segment_id,
								 reservation->start, reservation->length, &mode,
								 step->write_strategy);
	lsm_builder_want_filter(builder);
	fill_segment(step, builder);
	note_taken(step);
	/* Holds merge lock (share) and job lock.  The leaves are written; the segment is incomplete. */
	LSM_STOP_POINT("merge-save");
	finished = !step->reader->cursor->valid;
	empty = lsm_builder_is_empty(builder);
	lsm_builder_finish(builder);
	if (!empty)
	{
		lsm_builder_describe(builder, &entry);
		check_progress(step, &entry);
	}
	/* Holds the same locks.  The segment is complete but not yet installed. */
	LSM_STOP_POINT("merge-install");
	lsm_manifest_install(step->index, step->job->job_id, reservation, empty ? NULL : &entry,
						 step->taken, step->taken_count, finished);
	lsm_stats_add(step->index->rel, LSM_COUNT_PAGES_COPIED, lsm_builder_pages_copied(builder));
	lsm_stats_add(step->index->rel, LSM_COUNT_BLOCKS_WRITTEN, empty ? 0 : entry.segment.blocks);
	lsm_builder_free(builder);
	return finished;
}

static void
note_job_done(Step *step)
{
	lsm_stats_add(step->index->rel, LSM_COUNT_MERGES, 1);
	lsm_stats_add(step->index->rel, LSM_COUNT_BLOCKS_READ, step->job->blocks);
	lsm_stats_note_merge(step->index->rel);
}

/* Take the step. The caller holds the merge lock (share) and the job lock. */
static LsmStepResult
take_job_step(Step *step, uint32 most_blocks)
{
	LsmReservation reservation;
	const LsmBound *frontier;
	bool		finished;

	lsm_reader_hold(lsm_reader_acquire(step->index, step->job->job_id, NULL, false, step->strategy),
					&step->reader);
	step->ks = step->reader->cx.ks;
	lsm_reader_refresh(step->reader);
	frontier = lsm_reader_frontier(step->reader, step->job->job_id);
	if (frontier != NULL)
	{
		LsmEntry	at = {.key = frontier->key,.keylen = frontier->keylen,.tid = frontier->tid};

		lsm_bound_set_entry(&step->from, &at, -1);
		step->goes_on = is_trimmed(step->index, lsm_version_find(&step->reader->version,
																 step->job->job_id));
	}
	seek_start(step);
	if (!has_moved_all(step))
	{
		trim_inputs(step);
		return LSM_STEP_MORE;
	}
	if (!step->reader->cursor->valid)
	{
		lsm_manifest_install(step->index, step->job->job_id, NULL, NULL, NULL, 0, true);
		finished = true;
	}
	else
	{
		uint32		wanted = wanted_blocks(step, most_blocks);

		if (!lsm_manifest_reserve(step->index, step->job->job_id, wanted, wanted / 4 + 1,
								  &reservation))
			return LSM_STEP_BUSY;
		finished = write_segment(step, &reservation);
	}
	if (finished)
	{
		/* Holds merge lock (share) and job lock.  The job is done, and its inputs are spent. */
		LSM_STOP_POINT("merge-free");
		note_job_done(step);
		lsm_manifest_reap(step->index);
	}
	else
		trim_inputs(step);
	return finished ? LSM_STEP_DONE : LSM_STEP_MORE;
}

/* Take the step in its own memory context and as the table's owner. */
static LsmStepResult
take_job_step_as_owner(LsmIndex *index, Relation heap, LsmJob *job, uint32 most_blocks)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm compaction",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	LsmIndexSlot *slot = lsm_slot_get(index->rel);
	LsmOwnerContext saved;
	LsmStepResult result;
	Step	   *step = palloc0(sizeof(Step));

	lsm_reader_give_up_on_reset(&step->reader, &step->on_delete);
	step->index = index;
	step->job = job;
	step->segment_blocks = lsm_segment_size(job->blocks);
	lsm_progress(slot, LSM_PHASE_MERGING, job->level, job->count, job->blocks,
				 job->blocks - job->blocks_left);
	lsm_owner_enter(heap, index->ks, &saved);
	/* A large merge must not evict everything else, and should write its pages itself. */
	if (job->blocks > (uint32) NBuffers / 16)
	{
		step->strategy = lsm_ring(BAS_BULKREAD);
		step->write_strategy = lsm_ring(BAS_BULKWRITE);
	}
	result = take_job_step(step, most_blocks);
	lsm_reader_release(step->reader);
	lsm_owner_leave(&saved);
	lsm_progress(slot, LSM_PHASE_WAITING, job->level, job->count, job->blocks,
				 result == LSM_STEP_DONE ? job->blocks : job->blocks - job->blocks_left);
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	return result;
}

/*
 * Returns whether the job is still under way, and updates the job's figures. The caller holds the
 * job lock.
 */
static bool
is_under_way(LsmIndex *index, LsmJob *job)
{
	LsmVersion *version = lsm_version_read(index);
	bool		found = lsm_pick_under_way(version->runs, version->run_count, job->job_id, job);

	pfree(version);
	return found;
}

/*
 * Take a step of a job, and begin the job if it is not under way.  A step writes a segment of at
 * most most_blocks blocks (0: the usual size) and installs it, or moves segments by reference, or
 * completes the job.
 *
 * Without `wait`, returns LSM_STEP_BUSY instead of waiting for a lock.
 */
LsmStepResult
lsm_job_step(LsmIndex *index, Relation heap, LsmJob *job, uint32 most_blocks, bool wait)
{
	LsmStepResult result = LSM_STEP_BUSY;

	if (!lsm_merge_lock(index->rel, ShareLock, wait))
		return LSM_STEP_BUSY;
	if ((job->job_id != 0 ||
		 lsm_manifest_begin_job(index, job->inputs, job->count, job->level, &job->job_id)) &&
		lsm_job_lock(index->rel, job->job_id, wait))
	{
		/* Holds merge lock (share) and job lock.  The step has read nothing. */
		LSM_STOP_POINT("merge-begun");
		if (is_under_way(index, job))
			result = take_job_step_as_owner(index, heap, job, most_blocks);
		lsm_job_unlock(index->rel, job->job_id);
	}
	lsm_merge_unlock(index->rel, ShareLock);
	return result;
}
