/*
 * version.c
 *	  Copies the manifest into versions.
 *
 * A version is a copy of the manifest, made under the share lock of the meta page.  The cost of
 * the copy does not depend on the size of the index.  One look at the meta page, without a
 * lock, tells whether a version is still current.
 */
#include "postgres.h"

#include "key/comparing.h"
#include "manifest/manifest.h"
#include "storage/buffers.h"

/*
 * Raise an error if the file ends before blocks that the runs need.  Segments that directories
 * name are checked when they are read.
 */
static void
check_file_length(Relation rel, const LsmVersion *version)
{
	uint64		end = 0;

	for (uint32 i = 0; i < version->run_count; i++)
	{
		const LsmRunRecord *run = &version->runs[i];

		if (run->segments > 0)
			end = Max(end, (uint64) run->start + (lsm_run_is_single(run) ? run->blocks : 1));
	}
	if (end > 0 && RelationGetNumberOfBlocks(rel) < end)
		lsm_report_corruption(rel, (BlockNumber) (end - 1), "the file ends before this block");
}

/* Copy the manifest.  Caller holds the meta page. */
void
lsm_version_copy(LsmVersion *version, const LsmMeta *meta)
{
	version->edits = meta->edits;
	version->next_id = meta->next_id;
	version->seals = meta->seals;
	version->gate_epoch = meta->gate_epoch;
	version->run_count = meta->run_count;
	version->space = meta->space;
	memcpy(version->reservations, meta->reservations, sizeof(meta->reservations));
	memcpy(version->runs, meta->runs, meta->run_count * sizeof(LsmRunRecord));
}

/*
 * Is the version still current?  The inner side of a nested loop asks this for each outer row,
 * and the answer is nearly always yes.  So this function takes no lock, and tries the buffers
 * that held the pages before.  Also returns false if those buffers now hold other pages.  If
 * the version is current and `gate` is given, also pins the gate.
 *
 * The two numbers are read one after the other, possibly while an edit changes the page.  If
 * both are still those of the version, the version was current a moment ago.  No entry that
 * the caller must see can have been published since: the caller knows of such an entry through
 * a lock or a snapshot, and taking either is a barrier.  (Two processes that publish and then
 * look for each other, as with exclusion constraints, have a barrier in between, so at least
 * one sees the other.)
 *
 * The gate is pinned before its epoch is read.  A process that flips the gate changes the epoch
 * before its drain looks for pins.  So if we still see the old epoch, that process sees our pin.
 */
bool
lsm_version_is_current(LsmIndex *index, const LsmVersion *version, Buffer *gate)
{
	Buffer		gate_buffer = InvalidBuffer;
	bool		current;

	if (version->edits == 0)
		return false;
	lsm_compare_check(index->rel);
	if (gate != NULL)
	{
		gate_buffer = index->gate_buffers[version->gate_epoch % 2];
		if (!lsm_buffer_pin_checked(index->rel, LSM_BLOCK_GATE + version->gate_epoch % 2,
									gate_buffer))
			return false;
	}
	/* Order the reads after the pin, and after whatever the caller has published. */
	pg_memory_barrier();
	current = lsm_buffer_pin_checked(index->rel, LSM_BLOCK_META, index->meta_buffer);
	if (current)
	{
		const volatile LsmMeta *meta = lsm_meta(BufferGetPage(index->meta_buffer));

		current = meta->gate_epoch == version->gate_epoch && meta->edits == version->edits;
		ReleaseBuffer(index->meta_buffer);
	}
	if (gate != NULL && current)
		*gate = gate_buffer;
	else if (gate != NULL)
		ReleaseBuffer(gate_buffer);
	return current;
}

/*
 * Update a version to the current one.  With `gate`, also pin the current gate under the same
 * lock, so that the pin belongs to the version (I10).  Returns false if the version was
 * current already.
 */
bool
lsm_version_update(LsmIndex *index, LsmVersion *version, Buffer *gate)
{
	Buffer		buffer = lsm_meta_lock(index->rel, BUFFER_LOCK_SHARE);
	LsmMeta    *meta = lsm_meta(BufferGetPage(buffer));
	bool		changed = version->edits != meta->edits || meta->edits == 0;

	version->gate_epoch = meta->gate_epoch;
	version->lsn = PageGetLSN(BufferGetPage(buffer));
	if (changed)
		lsm_version_copy(version, meta);
	if (gate != NULL)
	{
		*gate = lsm_buffer_read(index->rel, LSM_BLOCK_GATE + meta->gate_epoch % 2,
								LSM_KIND(LSM_PAGE_GATE), 0, BUFFER_LOCK_SHARE, NULL);
		LockBuffer(*gate, BUFFER_LOCK_UNLOCK);
		index->gate_buffers[meta->gate_epoch % 2] = *gate;
	}
	index->meta_buffer = buffer;
	UnlockReleaseBuffer(buffer);
	if (changed)
		check_file_length(index->rel, version);
	return changed;
}

/* Returns a palloc'd copy of the current version. */
LsmVersion *
lsm_version_read(LsmIndex *index)
{
	LsmVersion *version = palloc(sizeof(LsmVersion));

	version->edits = 0;
	lsm_version_update(index, version, NULL);
	return version;
}

LsmRunRecord *
lsm_version_find(LsmVersion *version, uint64 run_id)
{
	for (uint32 i = 0; i < version->run_count; i++)
	{
		if (version->runs[i].run_id == run_id)
			return &version->runs[i];
	}
	return NULL;
}

/* Do scans read this run? */
bool
lsm_run_is_read(const LsmRunRecord *run)
{
	return run->state != LSM_RUN_SPENT && run->segments > 0;
}

/* Returns the height of a run.  Below a directory, assumes a segment with one fence level. */
static int
run_height(const LsmRunRecord *run)
{
	return lsm_run_is_single(run) ? run->height : run->dir_height + 1;
}

static void
find_shape(const LsmMeta *meta, LsmShape *shape)
{
	const LsmRunRecord *largest = NULL;
	double		blocks = 0;

	memset(shape, 0, sizeof(LsmShape));
	shape->edits = meta->edits;
	for (uint32 i = 0; i < meta->run_count; i++)
	{
		const LsmRunRecord *run = &meta->runs[i];

		if (!lsm_run_is_read(run))
			continue;
		shape->height = Max(shape->height, run_height(run));
		shape->further_pages += run_height(run) + 1;
		blocks += run->blocks;
		shape->pages += run->blocks - run->filter_blocks;
		if (largest == NULL || run->blocks > largest->blocks)
			largest = run;
	}
	if (largest != NULL)
	{
		shape->further_pages -= run_height(largest) + 1;
		shape->further_share = blocks > 0 ? 1 - largest->blocks / blocks : 0;
	}
}

/* Is this the number of the last edit?  Also returns false if only a lock could tell. */
static bool
is_last_edit(LsmIndex *index, uint64 edits)
{
	bool		is_last;

	lsm_compare_check(index->rel);
	if (edits == 0 || !lsm_buffer_pin_checked(index->rel, LSM_BLOCK_META, index->meta_buffer))
		return false;
	is_last = ((const volatile LsmMeta *) lsm_meta(BufferGetPage(index->meta_buffer)))->edits == edits;
	ReleaseBuffer(index->meta_buffer);
	return is_last;
}

/*
 * Return the shape of the index, for the planner.  The planner asks for every index of every
 * query, so the handle keeps the answer until the next edit, and no version is copied.
 */
void
lsm_manifest_shape(LsmIndex *index, LsmShape *shape)
{
	if (!is_last_edit(index, index->shape.edits))
	{
		Buffer		buffer = lsm_meta_lock(index->rel, BUFFER_LOCK_SHARE);
		LsmMeta    *meta = lsm_meta(BufferGetPage(buffer));

		if (index->shape.edits != meta->edits || meta->edits == 0)
			find_shape(meta, &index->shape);
		index->meta_buffer = buffer;
		UnlockReleaseBuffer(buffer);
	}
	*shape = index->shape;
}

/* Return the open pages, which accept entries. */
void
lsm_manifest_open_pages(LsmIndex *index, LsmOpenPages *open)
{
	Buffer		buffer = lsm_meta_lock(index->rel, BUFFER_LOCK_SHARE);
	LsmMeta    *meta = lsm_meta(BufferGetPage(buffer));

	open->count = 0;
	for (uint32 i = 0; i < meta->run_count && open->count < LSM_MAX_OPEN_RUNS; i++)
	{
		if (meta->runs[i].state == LSM_RUN_OPEN)
		{
			open->pages[open->count].run_id = meta->runs[i].run_id;
			open->pages[open->count++].block = meta->runs[i].start;
		}
	}
	UnlockReleaseBuffer(buffer);
}
