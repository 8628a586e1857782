/*
 * meta.c
 *	  The meta page and edits of the manifest.
 */
#include "postgres.h"

#include "format/map_page.h"
#include "format/meta.h"

static void
set_lower(Page page)
{
	((PageHeader) page)->pd_lower =
		(char *) &lsm_meta(page)->runs[lsm_meta(page)->run_count] - (char *) page;
}

void
lsm_meta_init(Page page)
{
	LsmMeta    *meta = lsm_meta(page);

	lsm_page_init(page, LSM_PAGE_META, LSM_OWNER_FREE, LSM_BLOCK_META);
	memset(meta, 0, offsetof(LsmMeta, runs));
	meta->magic = LSM_META_MAGIC;
	meta->version = LSM_FORMAT_VERSION;
	meta->next_run_id = LSM_FIRST_RUN_ID;
	set_lower(page);
	lsm_page_set_crc(page);
}

/* NULL, or what is wrong.  The caller tells a future version by itself. */
const char *
lsm_meta_check(Page page)
{
	LsmMeta    *meta = lsm_meta(page);

	if (lsm_page_opaque(page)->kind != LSM_PAGE_META || meta->magic != LSM_META_MAGIC)
		return "page is not a meta page";
	if (meta->run_count > LSM_MAX_RUNS ||
		((PageHeader) page)->pd_lower != (char *) &meta->runs[meta->run_count] - (char *) page)
		return "number of runs does not fit the page";
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

/*
 * Apply an edit.  False, with the page in an unspecified state, when it does
 * not fit the manifest: the caller checks that before (lsm_manifest_edit), so
 * only a damaged page or record can bring that about.
 *
 * Records stay in the order in which their runs were added: by age.
 */
bool
lsm_meta_apply(Page page, const LsmEdit *edit)
{
	LsmMeta    *meta = lsm_meta(page);

	for (uint32 i = 0; i < edit->count; i++)
	{
		const LsmEditOp *op = &edit->ops[i];
		LsmRunRecord *run = lsm_meta_find(meta, op->run.run_id);

		switch ((LsmEditKind) op->kind)
		{
			case LSM_EDIT_PUT:
				if (run == NULL)
				{
					if (meta->run_count >= LSM_MAX_RUNS)
						return false;
					run = &meta->runs[meta->run_count++];
				}
				*run = op->run;
				if (op->run.run_id >= meta->next_run_id)
					meta->next_run_id = op->run.run_id + 1;
				break;
			case LSM_EDIT_REMOVE:
				if (run == NULL)
					return false;
				meta->run_count--;
				memmove(run, run + 1,
						(char *) &meta->runs[meta->run_count] - (char *) run);
				memset(&meta->runs[meta->run_count], 0, sizeof(LsmRunRecord));
				break;
			case LSM_EDIT_SET_JOB:
				if (run == NULL)
					return false;
				run->job_id = op->run.job_id;
				break;
			case LSM_EDIT_DEDUCT:
				/* The run may have been merged since; then its output counts. */
				if (run != NULL)
					run->entries -= Min(run->entries, op->run.entries);
				break;
			default:
				return false;
		}
	}
	meta->edits++;
	meta->seals += edit->seals;
	set_lower(page);
	lsm_page_set_crc(page);
	return true;
}

/* Make the other gate the current one. */
void
lsm_meta_flip_gate(Page page)
{
	lsm_meta(page)->gate_epoch++;
	lsm_page_set_crc(page);
}

void
lsm_edit_init(LsmEdit *edit)
{
	edit->count = 0;
	edit->seals = 0;
}

static LsmEditOp *
add_op(LsmEdit *edit, LsmEditKind kind)
{
	LsmEditOp  *op = &edit->ops[edit->count++];

	Assert(edit->count <= LSM_MAX_EDIT_OPS);
	memset(op, 0, sizeof(LsmEditOp));
	op->kind = kind;
	return op;
}

void
lsm_edit_put(LsmEdit *edit, const LsmRunRecord *run)
{
	add_op(edit, LSM_EDIT_PUT)->run = *run;
}

void
lsm_edit_remove(LsmEdit *edit, uint64 run_id)
{
	add_op(edit, LSM_EDIT_REMOVE)->run.run_id = run_id;
}

void
lsm_edit_set_job(LsmEdit *edit, uint64 run_id, uint64 job_id)
{
	LsmEditOp  *op = add_op(edit, LSM_EDIT_SET_JOB);

	op->run.run_id = run_id;
	op->run.job_id = job_id;
}

void
lsm_edit_deduct(LsmEdit *edit, uint64 run_id, uint64 entries)
{
	LsmEditOp  *op = add_op(edit, LSM_EDIT_DEDUCT);

	op->run.run_id = run_id;
	op->run.entries = entries;
}
