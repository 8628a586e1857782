/*
 * f_meta.c
 *	  Fuzzes the meta page: run records, and edits of the manifest.
 *
 *	  uint16	size of an edit
 *	  bytes		the edit; the number of its operations is set
 *	  page
 */
#include "fuzz.h"

#include "backend.h"
#include "format/leaf_mode.h"
#include "format/meta.h"

static Page page;

static void
read_records(LsmMeta *meta)
{
	LsmRunRecord sum;
	LsmLeafMode mode;

	memset(&sum, 0, sizeof(sum));
	for (uint32 i = 0; i < meta->run_count; i++)
	{
		const LsmRunRecord *run = &meta->runs[i];
		LsmRunRecord *found = lsm_meta_find(meta, run->run_id);
		LsmSegment	segment;

		expect(found != NULL && found <= run && found->run_id == run->run_id);
		lsm_run_mode(run, &mode);
		if (!lsm_run_is_single(run))
			continue;
		lsm_run_segment(run, &segment);
		expect(segment.id == run->run_id);
		lsm_run_add_segment(&sum, &segment);
	}
}

void
fuzz_target(Input *in)
{
	LsmEdit    *edit = palloc(sizeof(LsmEdit));
	LsmMeta    *meta;
	uint32		size = take16(in);
	uint8	   *bytes = take_copy(in, &size);
	uint64		edits;
	bool		applied;

	if (page == NULL)
		page = (Page) backend_guarded_page();
	fuzz_read_page(in, page, LSM_PAGE_META, LSM_BLOCK_META);
	if (lsm_page_check_header(page, LSM_BLOCK_META) != NULL || lsm_meta_check(page) != NULL)
		return;
	meta = lsm_meta(page);
	read_records(meta);

	memset(edit, 0, sizeof(LsmEdit));
	memcpy(edit, bytes, Min(size, sizeof(LsmEdit)));
	edit->count = (Max(Min(size, sizeof(LsmEdit)), offsetof(LsmEdit, ops)) - offsetof(LsmEdit, ops)) / sizeof(LsmEditOp);
	edits = meta->edits;
	applied = lsm_meta_apply(page, edit);
	expect(lsm_page_check_header(page, LSM_BLOCK_META) == NULL);
	expect(!applied || lsm_meta_check(page) == NULL);
	expect(lsm_page_opaque(page)->crc == lsm_page_compute_crc(page));
	expect(meta->edits == edits + 1);
	read_records(meta);
	lsm_meta_flip_gate(page);
	expect(lsm_page_opaque(page)->crc == lsm_page_compute_crc(page));
}
