/*
 * meta.c
 *	  Changes and reads the meta page and its run records, and applies edits.
 */
#include "postgres.h"

#include "format/leaf_mode.h"
#include "format/map_page.h"
#include "format/meta.h"

/* Add to the number of entries that VACUUM has removed from a run. */
static uint32
add_removed(uint32 removed, uint64 more)
{
	return (uint32) Min(removed + more, PG_UINT32_MAX);
}

static void
set_lower(Page page)
{
	((PageHeader) page)->pd_lower =
		(char *) &lsm_meta(page)->runs[lsm_meta(page)->run_count] - (char *) page;
}

void
lsm_meta_init(Page page, const LsmKeyCoding *coding)
{
	LsmMeta    *meta = lsm_meta(page);

	lsm_page_init(page, LSM_PAGE_META, 0, LSM_BLOCK_META);
	memset(meta, 0, offsetof(LsmMeta, runs));
	meta->magic = LSM_META_MAGIC;
	meta->version = LSM_FORMAT_VERSION;
	meta->next_id = LSM_FIRST_ID;
	meta->space.mapped_end = LSM_FIXED_BLOCKS;
	meta->space.search_small = meta->space.search_large = LSM_FIXED_BLOCKS;
	meta->coding = *coding;
	set_lower(page);
	lsm_page_set_crc(page);
}

static const char *
check_run(const LsmMeta *meta, const LsmRunRecord *run)
{
	if (run->run_id < LSM_FIRST_ID || run->run_id >= meta->next_id)
		return "id of a run was never assigned";
	if (run->state < LSM_RUN_OPEN || run->state > LSM_RUN_SPENT)
		return "run has no valid state";
	if (run->dir_height > LSM_MAX_HEIGHT)
		return "directory of a run has too many levels";
	return NULL;
}

/* Returns what is wrong, or NULL.  The caller checks the format version itself. */
const char *
lsm_meta_check(Page page)
{
	LsmMeta    *meta = lsm_meta(page);

	if (lsm_page_opaque(page)->kind != LSM_PAGE_META || meta->magic != LSM_META_MAGIC)
		return "page is not a meta page";
	if (meta->run_count > LSM_MAX_RUNS ||
		((PageHeader) page)->pd_lower != (char *) &meta->runs[meta->run_count] - (char *) page)
		return "number of runs does not fit the page";
	if (meta->edits == 0 && meta->run_count > 0)
		return "runs were added by no edit";	/* no version would ever be current */
	for (uint32 i = 0; i < meta->run_count; i++)
	{
		const char *wrong = check_run(meta, &meta->runs[i]);

		if (wrong != NULL)
			return wrong;
	}
	if (meta->space.mapped_end < LSM_FIXED_BLOCKS)
		return "space map ends before the fixed pages";
	return NULL;
}

LsmRunRecord *
lsm_meta_find(LsmMeta *meta, uint64 run_id)
{
	for (uint32 i = 0; i < meta->run_count; i++)
	{
		if (meta->runs[i].run_id == run_id)
			return &meta->runs[i];
	}
	return NULL;
}

static bool
put_run(LsmMeta *meta, LsmRunRecord *run, const LsmRunRecord *record)
{
	if (run == NULL)
	{
		if (meta->run_count >= LSM_MAX_RUNS)
			return false;
		run = &meta->runs[meta->run_count++];
	}
	*run = *record;
	return true;
}

static bool
remove_run(LsmMeta *meta, LsmRunRecord *run)
{
	if (run == NULL)
		return false;
	meta->run_count--;
	memmove(run, run + 1, (char *) &meta->runs[meta->run_count] - (char *) run);
	memset(&meta->runs[meta->run_count], 0, sizeof(LsmRunRecord));
	return true;
}

/* Add a reservation, or drop the reservation of the given segment.  Length 0: a free slot. */
static bool
set_reservation(LsmMeta *meta, const LsmReservation *reservation, bool add)
{
	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
	{
		LsmReservation *r = &meta->reservations[i];

		if (add ? r->length != 0 :
			r->length == 0 || r->segment_id != reservation->segment_id)
			continue;
		if (add)
			*r = *reservation;
		else
			memset(r, 0, sizeof(LsmReservation));
		return true;
	}
	return false;
}

/*
 * Apply an edit.  Returns false, with the page in an unspecified state, if the edit does not
 * fit the manifest.  Normal operation applies the edit to a copy first.
 *
 * Records stay in the order in which their runs were added.
 */
bool
lsm_meta_apply(Page page, const LsmEdit *edit)
{
	LsmMeta    *meta = lsm_meta(page);
	bool		ok = true;

	for (uint32 i = 0; i < edit->count && ok; i++)
	{
		const LsmEditOp *op = &edit->ops[i];
		LsmRunRecord *run = lsm_meta_find(meta, op->u.run.run_id);

		switch ((LsmEditKind) op->kind)
		{
			case LSM_EDIT_PUT:
				ok = put_run(meta, run, &op->u.run);
				break;
			case LSM_EDIT_REMOVE:
				ok = remove_run(meta, run);
				break;
			case LSM_EDIT_SET_JOB:
				ok = run != NULL;
				if (ok)
					run->job_id = op->u.run.job_id;
				break;
			case LSM_EDIT_DEDUCT:
				/* If the run has been merged since, the job's output counts the entries. */
				if (run != NULL)
				{
					run->removed = add_removed(run->removed, op->u.run.removed);
					run->entries -= Min(run->entries, op->u.run.removed);
				}
				break;
			case LSM_EDIT_TAKE:
				ok = run != NULL;
				if (ok)
					run->entries -= Min(run->entries, op->u.run.entries);
				break;
			case LSM_EDIT_RESERVE:
				ok = set_reservation(meta, &op->u.reservation, true);
				break;
			case LSM_EDIT_RELEASE:
				ok = set_reservation(meta, &op->u.reservation, false);
				break;
			default:
				ok = false;
		}
	}
	meta->edits++;
	meta->seals += edit->seals;
	meta->next_id = edit->next_id;
	meta->space = edit->space;
	set_lower(page);
	lsm_page_set_crc(page);
	return ok && lsm_meta_check(page) == NULL;
}

/* Make the other gate the current one. */
void
lsm_meta_flip_gate(Page page)
{
	lsm_meta(page)->gate_epoch++;
	lsm_page_set_crc(page);
}

/* Begin an edit that changes nothing yet. */
void
lsm_edit_init(LsmEdit *edit, const LsmMeta *meta)
{
	edit->count = 0;
	edit->seals = 0;
	edit->next_id = meta->next_id;
	edit->space = meta->space;
}

static LsmEditOp *
add_op(LsmEdit *edit, LsmEditKind kind)
{
	LsmEditOp  *op = &edit->ops[edit->count++];

	if (edit->count > LSM_MAX_EDIT_OPS)
		elog(ERROR, "pg_lsm: too many operations in an edit");
	memset(op, 0, sizeof(LsmEditOp));
	op->kind = kind;
	return op;
}

void
lsm_edit_put(LsmEdit *edit, const LsmRunRecord *run)
{
	add_op(edit, LSM_EDIT_PUT)->u.run = *run;
}

void
lsm_edit_remove(LsmEdit *edit, uint64 run_id)
{
	add_op(edit, LSM_EDIT_REMOVE)->u.run.run_id = run_id;
}

void
lsm_edit_set_job(LsmEdit *edit, uint64 run_id, uint64 job_id)
{
	LsmEditOp  *op = add_op(edit, LSM_EDIT_SET_JOB);

	op->u.run.run_id = run_id;
	op->u.run.job_id = job_id;
}

void
lsm_edit_deduct(LsmEdit *edit, uint64 run_id, uint64 removed)
{
	LsmEditOp  *op = add_op(edit, LSM_EDIT_DEDUCT);

	op->u.run.run_id = run_id;
	op->u.run.removed = removed;
}

void
lsm_edit_take(LsmEdit *edit, uint64 run_id, uint64 entries)
{
	LsmEditOp  *op = add_op(edit, LSM_EDIT_TAKE);

	op->u.run.run_id = run_id;
	op->u.run.entries = entries;
}

void
lsm_edit_reserve(LsmEdit *edit, const LsmReservation *reservation)
{
	add_op(edit, LSM_EDIT_RESERVE)->u.reservation = *reservation;
}

void
lsm_edit_release(LsmEdit *edit, uint64 segment_id)
{
	add_op(edit, LSM_EDIT_RELEASE)->u.reservation.segment_id = segment_id;
}

/* Sets *segment to the segment that a run's record describes. */
void
lsm_run_segment(const LsmRunRecord *run, LsmSegment *segment)
{
	Assert(lsm_run_is_single(run));
	memset(segment, 0, sizeof(LsmSegment));
	segment->id = run->run_id;
	segment->entries = (uint32) run->entries;
	segment->removed = run->removed;
	segment->start = run->start;
	segment->blocks = run->blocks;
	segment->leaves = run->leaves;
	segment->heap_low = run->heap_low;
	segment->heap_high = run->heap_high;
	segment->keylen = run->keylen;
	segment->offset_bits = run->offset_bits;
	segment->height = run->height;
	segment->filter_blocks = run->filter_blocks;
	segment->prefix_columns = run->prefix_columns;
}

/* Initialize the record of a run with one segment.  The run's id is that of the segment. */
void
lsm_run_init_single(LsmRunRecord *run, const LsmSegment *segment, int level, LsmRunState state)
{
	memset(run, 0, sizeof(LsmRunRecord));
	run->run_id = segment->id;
	run->level = level;
	run->state = state;
	lsm_run_add_segment(run, segment);
	run->start = segment->start;
	run->height = segment->height;
	run->prefix_columns = segment->prefix_columns;
}

/* Add a segment to the totals of a run. */
void
lsm_run_add_segment(LsmRunRecord *run, const LsmSegment *segment)
{
	LsmLeafMode mode;
	LsmLeafMode other;

	lsm_run_mode(run, &mode);
	lsm_segment_mode(segment, &other);
	lsm_mode_join(&mode, &other);
	run->heap_low = mode.base_block;
	run->heap_high = mode.last_block;
	run->keylen = mode.keylen;
	run->offset_bits = mode.offset_bits;
	run->entries += segment->entries;
	run->removed = add_removed(run->removed, segment->removed);
	run->blocks += segment->blocks;
	run->filter_blocks += segment->filter_blocks;
	run->leaves += segment->leaves;
	run->segments++;
}

/* Sets *mode to what is known about the entries of a run, for coding the output of a merge. */
void
lsm_run_mode(const LsmRunRecord *run, LsmLeafMode *mode)
{
	lsm_mode_init(mode);
	if (run->segments == 0)
		return;
	mode->base_block = run->heap_low;
	mode->last_block = run->heap_high;
	mode->keylen = run->keylen;
	mode->offset_bits = run->offset_bits;
}
