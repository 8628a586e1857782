/*
 * check_manifest.c
 *	  Verifies the manifest: run records, reservations, and the directories, which name the
 *	  segments.
 *
 * Everything was copied at one instant.  The records are checked under the lock of the meta page,
 * before anything that the records name is read.  The directories are checked after the lock is
 * released.
 */
#include "postgres.h"

#include "inspect/inspect.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* An upper bound on the number of entries on `leaves` leaves. */
#define MOST_ENTRIES(leaves) ((uint64) (leaves) * LSM_MAX_PAGE_ENTRIES)

/* Report a record of the manifest. */
static void
record_report(LsmCheck *c, const LsmRunRecord *run, const char *what)
{
	lsm_check_report(c, LSM_BLOCK_META, "record of run " UINT64_FORMAT ": %s",
					 run->run_id, what);
}

static bool
manifest_knows_id(LsmCheck *c, uint64 id)
{
	return id >= LSM_FIRST_ID && id < c->instant->version.next_id;
}

/* Returns what is wrong with an extent, or NULL.  Its blocks must lie in one region. */
static const char *
manifest_extent_fault(LsmCheck *c, BlockNumber start, uint32 length)
{
	uint64		end = (uint64) start + length;

	if (end > c->instant->version.space.mapped_end)
		return "end lies beyond the space map";
	if (start < lsm_region_first(lsm_region_of(start)) ||
		lsm_region_of(start) != lsm_region_of((BlockNumber) (end - 1)))
		return "blocks do not lie within a region of the space map";
	return NULL;
}

/* Returns what is wrong with the record of a segment, or NULL. */
static const char *
manifest_segment_fault(LsmCheck *c, const LsmSegment *segment)
{
	if (!manifest_knows_id(c, segment->id))
		return "id has not been assigned yet";
	for (int i = 0; i < lengthof(segment->reserved); i++)
	{
		if (segment->reserved[i] != 0)
			return "a reserved field is in use";
	}
	if (segment->prefix_columns > 0 &&
		(segment->filter_blocks == 0 || segment->prefix_columns >= c->ks->nkeys))
		return "number of columns in the filter is invalid";
	if (segment->leaves == 0 || segment->height > LSM_MAX_HEIGHT)
		return "number of pages is invalid";
	if (segment->entries > MOST_ENTRIES(segment->leaves))
		return "more entries than its leaves can hold";
	if (segment->blocks == 0)
		return NULL;			/* the segment is gone and has no blocks */
	if (segment->blocks < (uint64) segment->leaves + segment->filter_blocks)
		return "number of blocks is invalid";
	if ((segment->height == 0) != (segment->blocks == 1) ||
		(segment->height == 0) != (segment->leaves == 1))
		return "height does not fit the number of blocks";
	return manifest_extent_fault(c, segment->start, segment->blocks);
}

/* --- records ---------------------------------------------------------------- */

/* Check a run that is one buffer page. */
static void
record_check_buffer(LsmCheck *c, const LsmRunRecord *run)
{
	if (run->segments != 1 || run->dir_height != 0 || run->leaves != 1 || run->blocks != 1 ||
		run->height != 0 || run->level != 0)
		record_report(c, run, "buffer page is not a single block of level 0");
	if (run->state == LSM_RUN_OPEN && run->job_id != 0)
		record_report(c, run, "an open run is the input of a job");
}

/* Check that the record fits a run with no segments, one segment, or a directory. */
static void
record_check_shape(LsmCheck *c, const LsmRunRecord *run)
{
	LsmSegment	segment;
	const char *wrong = NULL;

	if (run->dir_height > 0)
	{
		/* The number of segments may be 0: VACUUM drops empty segments of a run in no job. */
		if (run->dir_height > LSM_MAX_HEIGHT || run->height != 0 ||
			run->leaves < run->segments ||
			run->blocks < (uint64) run->leaves + run->filter_blocks ||
			run->prefix_columns != 0)
			record_report(c, run, "number of segments is invalid");
		wrong = manifest_extent_fault(c, run->start, 1);
	}
	else if (run->segments == 1)
	{
		lsm_run_segment(run, &segment);
		wrong = segment.blocks == 0 ? "number of blocks is invalid" :
			manifest_segment_fault(c, &segment);
	}
	else if (run->segments > 1 || run->blocks > 0 || run->leaves > 0 || run->entries > 0)
		wrong = "several segments have no directory";
	else if (!(run->flags & LSM_RUN_MERGING))
		wrong = "run has no segments and is not the output of a job";
	if (wrong != NULL)
		record_report(c, run, wrong);
}

/* Check the role of a run in a job (I8). */
static void
record_check_job(LsmCheck *c, const LsmRunRecord *run)
{
	if ((run->flags & ~LSM_RUN_MERGING) != 0 ||
		(run->flags != 0 && run->state != LSM_RUN_PACKED))
		record_report(c, run, "flags do not fit the state");
	if (run->flags & LSM_RUN_MERGING)
	{
		if (run->job_id != 0)
			record_report(c, run, "output of a job is an input of a job");
		/* Until a job is complete, its segments are in a directory. */
		if (run->segments > 0 && run->dir_height == 0)
			record_report(c, run, "the output of a job has no directory");
	}
	/* The job of a spent run is complete, and its output may be gone. */
	if (run->job_id != 0 && run->state != LSM_RUN_SPENT)
	{
		LsmRunRecord *output = lsm_version_find(&c->instant->version, run->job_id);

		if (output == NULL || !(output->flags & LSM_RUN_MERGING))
			record_report(c, run, "its job is not under way (I8)");
	}
}

static void
record_check(LsmCheck *c, const LsmRunRecord *run)
{
	if (run->level >= LSM_MAX_LEVEL)
		record_report(c, run, "level is out of range");
	if (run->entries > MOST_ENTRIES(run->leaves))
		record_report(c, run, "more entries than its leaves can hold");
	switch ((LsmRunState) run->state)
	{
		case LSM_RUN_OPEN:
		case LSM_RUN_SEALED:
			record_check_buffer(c, run);
			break;
		case LSM_RUN_PACKED:
		case LSM_RUN_SPENT:
			break;
	}
	record_check_job(c, run);
	record_check_shape(c, run);
}

/* Check that each reservation belongs to a job under way (I3). */
static void
record_check_reservations(LsmCheck *c)
{
	static const LsmReservation unused = {0};
	LsmVersion *version = &c->instant->version;

	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
	{
		const LsmReservation *r = &version->reservations[i];
		LsmRunRecord *output;
		const char *wrong;

		if (r->length == 0)
		{
			if (memcmp(r, &unused, sizeof(unused)) != 0)
				lsm_check_report(c, LSM_BLOCK_META, "reservation %d is unused, but not empty", i);
			continue;
		}
		output = lsm_version_find(version, r->job_id);
		wrong = manifest_extent_fault(c, r->start, r->length);
		if (wrong == NULL && !manifest_knows_id(c, r->segment_id))
			wrong = "id has not been assigned yet";
		if (wrong == NULL && (output == NULL || !(output->flags & LSM_RUN_MERGING)))
			wrong = "its job is not under way (I3)";
		if (wrong != NULL)
			lsm_check_report(c, LSM_BLOCK_META, "reservation of %u blocks at %u: %s",
							 r->length, r->start, wrong);
	}
}

/*
 * Check each record of the manifest, and the records against each other (I7, I8).  Reads only
 * the version.
 */
void
lsm_check_records(LsmCheck *c)
{
	LsmVersion *version = &c->instant->version;
	int			open = 0;

	if (version->space.mapped_end < LSM_FIXED_BLOCKS ||
		version->space.free_blocks > version->space.mapped_end - LSM_FIXED_BLOCKS)
		lsm_check_report(c, LSM_BLOCK_META, "space counters are inconsistent");
	for (uint32 i = 0; i < version->run_count; i++)
	{
		const LsmRunRecord *run = &version->runs[i];

		/* Records are in the order in which the runs were added, so ids ascend. */
		if (i > 0 && run->run_id <= run[-1].run_id)
			record_report(c, run, "the id does not ascend");
		record_check(c, run);
		open += run->state == LSM_RUN_OPEN;
	}
	if (open > LSM_MAX_OPEN_RUNS)
		lsm_check_report(c, LSM_BLOCK_META, "%d runs are open (I7)", open);
	record_check_reservations(c);
}

/* --- directories ------------------------------------------------------------ */

/* The check of a run's directory, page by page in the order of a walk. */
typedef struct DirectoryCheck
{
	LsmCheck   *check;
	const LsmRunRecord *run;
	int			next;			/* number of the next page's copy */
	uint32		segments;		/* segments that exist, their leaves and blocks */
	uint64		leaves;
	uint64		blocks;
	uint32		gone;			/* segments that are gone but still have an item, their leaves */
	uint64		gone_leaves;
	bool		lost_pages;		/* pages with more such items were freed */
	LsmEntry	last;			/* high key of the last item; no key at first */
} DirectoryCheck;

static LsmCheckSegment *
directory_add_segment(LsmCheck *c, const LsmRunRecord *run)
{
	LsmInstant *in = c->instant;
	LsmCheckSegment *result;

	if (in->segment_count == in->segment_room)
	{
		in->segment_room = Max(128, 2 * in->segment_room);
		in->segments = in->segments ?
			repalloc_huge(in->segments, in->segment_room * sizeof(LsmCheckSegment)) :
			palloc(in->segment_room * sizeof(LsmCheckSegment));
	}
	result = &in->segments[in->segment_count++];
	memset(result, 0, sizeof(LsmCheckSegment));
	result->run = run;
	return result;
}

/* Does the record of the run cover the TIDs of the segment? */
static bool
directory_covers(const LsmRunRecord *run, const LsmSegment *segment)
{
	return run->heap_low <= segment->heap_low && run->heap_high >= segment->heap_high &&
		run->offset_bits >= segment->offset_bits;
}

/* Check an item of the lowest level: a segment, or a segment that is gone. */
static void
directory_check_item(DirectoryCheck *d, const LsmDirectoryCopy *copy, int ordinal,
					 const LsmDirectoryEntry *item)
{
	LsmCheck   *c = d->check;
	const LsmSegment *segment = &item->segment;
	const char *wrong = manifest_segment_fault(c, segment);
	LsmCheckSegment *result;

	if (wrong != NULL)
		lsm_check_report(c, copy->block, "item %d: %s", ordinal, wrong);
	lsm_check_key(c, &item->low, copy->block, ordinal);
	lsm_check_tid(c, &item->low, copy->block, ordinal);
	lsm_check_key(c, &item->high, copy->block, ordinal);
	lsm_check_tid(c, &item->high, copy->block, ordinal);
	if (lsm_check_compare(c, &item->low, &item->high) > 0)
		lsm_check_report_order(c, copy->block, "item", ordinal, "ends before it begins");
	if (d->last.key != NULL && lsm_check_compare(c, &d->last, &item->low) >= 0)
		lsm_check_report_order(c, copy->block, "item", ordinal,
							   "begins before the previous item ends (I5)");
	if (!directory_covers(d->run, segment))
		lsm_check_report(c, copy->block, "item %d has TIDs outside the range of its run", ordinal);
	/* The page's copy, and so the key, lives as long as the instant. */
	d->last = item->high;
	if (segment->blocks == 0)
	{
		d->gone++;
		d->gone_leaves += segment->leaves;
		return;
	}
	d->segments++;
	d->leaves += segment->leaves;
	d->blocks += segment->blocks;
	result = directory_add_segment(c, d->run);
	result->segment = *segment;
	result->has_item = true;
	result->low = item->low;
	result->high = item->high;
	result->page = copy->block;
	result->ordinal = ordinal;
}

static void directory_check_page(DirectoryCheck *d, int level, const LsmDirectoryEntry *parent);

/* Check an item of a higher level, and the page that it names. */
static void
directory_check_child(DirectoryCheck *d, const LsmDirectoryCopy *copy, int level, int ordinal,
					  const LsmDirectoryEntry *item)
{
	LsmCheck   *c = d->check;
	LsmSegment	plain;

	memset(&plain, 0, sizeof(plain));
	plain.start = item->segment.start;
	plain.blocks = item->segment.blocks;
	if (memcmp(&plain, &item->segment, sizeof(plain)) != 0 || plain.blocks > 1 ||
		item->high.keylen != 0 || item->high.tid != 0)
		lsm_check_report(c, copy->block, "item %d does not just name a page", ordinal);
	/* A spent run loses its directory page by page.  VACUUM frees pages that name no segment. */
	if (plain.blocks == 0)
		d->lost_pages = true;
	else
		directory_check_page(d, level - 1, item);
}

/*
 * Check a directory page and everything below it.  Its first key must equal the key of the item
 * that names the page.
 */
static void
directory_check_page(DirectoryCheck *d, int level, const LsmDirectoryEntry *parent)
{
	LsmCheck   *c = d->check;
	const LsmDirectoryCopy *copy = &c->instant->directories[d->next++];
	Page		page = copy->page;
	const char *wrong;

	check_stack_depth();
	Assert(d->next <= c->instant->directory_count && copy->run == d->run &&
		   copy->block == (parent ? parent->segment.start : d->run->start));
	lsm_check_page(c, copy->block, LSM_PAGE_DIRECTORY, d->run->run_id, page);
	wrong = lsm_directory_page_check(page);
	if (wrong != NULL)
		lsm_check_report(c, copy->block, "%s", wrong);
	if (lsm_page_opaque(page)->stamp > c->instant->version.edits)
		lsm_check_report(c, copy->block, "page has the stamp of a future edit");
	if (lsm_directory_header(page)->level != level)
		lsm_check_report(c, copy->block, "directory page has the wrong level");
	if (lsm_directory_header(page)->reserved != 0)
		lsm_check_report(c, copy->block, "a reserved field is in use");
	if (lsm_directory_page_count(page) == 0)
		lsm_check_report(c, copy->block, "directory page has no items");
	for (int i = 0; i < lsm_directory_page_count(page); i++)
	{
		LsmDirectoryEntry item;

		if (!lsm_directory_page_get(page, i, &item))
			lsm_check_report(c, copy->block, "item of a directory is out of bounds");
		if (i == 0 && parent != NULL &&
			(item.low.tid != parent->low.tid || item.low.keylen != parent->low.keylen ||
			 memcmp(item.low.key, parent->low.key, item.low.keylen) != 0))
			lsm_check_report(c, copy->block, "first key differs from the key in the parent page");
		if (level == 1)
			directory_check_item(d, copy, i, &item);
		else
			directory_check_child(d, copy, level, i, &item);
	}
	MemoryContextReset(c->scratch);
}

/*
 * Compare what a directory holds with the run's record.  The record counts all existing segments.
 * The record also counts segments that are gone, except those that the run lost while it was in
 * no job.  Directory pages may be gone together with their items.
 */
static void
directory_check_totals(DirectoryCheck *d)
{
	const LsmRunRecord *run = d->run;

	if (d->segments > run->segments ||
		(d->segments + d->gone < run->segments && !d->lost_pages && run->state != LSM_RUN_SPENT))
		lsm_check_report(d->check, run->start,
						 "run has %u segments and lost %u, but the manifest says %u",
						 d->segments, d->gone, run->segments);
	if (d->leaves > run->leaves ||
		(d->leaves + d->gone_leaves < run->leaves && !d->lost_pages && run->state != LSM_RUN_SPENT))
		lsm_check_report(d->check, run->start,
						 "run has " UINT64_FORMAT " leaves and lost " UINT64_FORMAT ", but the manifest says %u",
						 d->leaves, d->gone_leaves, run->leaves);
	if (d->blocks > run->blocks)
		lsm_check_report(d->check, run->start,
						 "run has " UINT64_FORMAT " blocks, but the manifest says %u",
						 d->blocks, run->blocks);
}

/*
 * Check the directories, and list all segments in the instant.  The list includes segments of
 * spent runs, since the blocks of spent runs are still in use.
 */
void
lsm_check_segments(LsmCheck *c)
{
	LsmInstant *in = c->instant;
	MemoryContext old_context = MemoryContextSwitchTo(in->context);
	int			next = 0;

	for (uint32 i = 0; i < in->version.run_count; i++)
	{
		const LsmRunRecord *run = &in->version.runs[i];
		DirectoryCheck d = {.check = c,.run = run,.next = next};

		CHECK_FOR_INTERRUPTS();
		if (!lsm_run_is_single(run))
		{
			directory_check_page(&d, run->dir_height, NULL);
			directory_check_totals(&d);
			if (run->flags & LSM_RUN_MERGING)
				in->frontiers[i] = d.last;
			next = d.next;
		}
		else if (run->segments > 0)
		{
			LsmCheckSegment *single = directory_add_segment(c, run);

			lsm_run_segment(run, &single->segment);
			single->open_page = in->open_pages[i];
		}
	}
	MemoryContextSwitchTo(old_context);
}

/* Returns the frontier of the run's job, or NULL: entries up to the frontier do not count (I8). */
const LsmEntry *
lsm_check_frontier(LsmCheck *c, const LsmRunRecord *run)
{
	LsmInstant *in = c->instant;
	LsmRunRecord *output = run->job_id == 0 ? NULL : lsm_version_find(&in->version, run->job_id);
	const LsmEntry *frontier;

	if (output == NULL)
		return NULL;
	frontier = &in->frontiers[output - in->version.runs];
	return frontier->key != NULL ? frontier : NULL;
}
