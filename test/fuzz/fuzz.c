/*
 * fuzz.c
 *	  Runs a target on an input, and reads pages from inputs.
 */
#include "fuzz.h"

#include "backend.h"
#include "format/directory_page.h"
#include "format/filter_page.h"
#include "format/leaf.h"
#include "format/meta.h"

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	sigjmp_buf	here;
	Input		in = {data, data + size};

	backend_catch = &here;
	if (sigsetjmp(here, 0) == 0)
		fuzz_target(&in);
	backend_catch = NULL;
	backend_free_all();
	return 0;
}

/* Make the numbers of entries fit the page. */
static void
repair_counts(Page page)
{
	PageHeader	header = (PageHeader) page;
	uint32		offsets = (LSM_PAGE_SPECIAL - header->pd_upper) / sizeof(uint16);
	LsmLeafHeader *leaf = lsm_leaf_header(page);
	LsmMeta    *meta = lsm_meta(page);

	switch (lsm_page_opaque(page)->kind)
	{
		case LSM_PAGE_LEAF:
		case LSM_PAGE_FENCE:
			leaf->group_count = offsets;
			leaf->entry_count = Min(Max(leaf->entry_count, offsets), offsets * LSM_GROUP_ENTRIES);
			leaf->last_block = Max(leaf->last_block, leaf->base_block);
			break;
		case LSM_PAGE_DIRECTORY:
			lsm_directory_header(page)->count = offsets;
			break;
		case LSM_PAGE_META:
			meta->magic = LSM_META_MAGIC;
			meta->version = LSM_FORMAT_VERSION;
			meta->run_count = Min((Max(header->pd_lower, LSM_PAGE_CONTENT + offsetof(LsmMeta, runs)) -
								   LSM_PAGE_CONTENT - offsetof(LsmMeta, runs)) / sizeof(LsmRunRecord),
								  LSM_MAX_RUNS);
			header->pd_lower = (char *) &meta->runs[meta->run_count] - (char *) page;
			header->pd_upper = LSM_PAGE_SPECIAL;
			break;
	}
}

/* Read a page of this kind and block; see fuzz.h. */
void
fuzz_read_page(Input *in, Page page, uint16 kind, BlockNumber self)
{
	PageHeader	header = (PageHeader) page;
	uint8		raw = take8(in);
	uint8		flags = take8(in);
	uint32		lower = take16(in);
	uint32		upper = take16(in);

	lower = Min(lower, LSM_PAGE_SPECIAL - LSM_PAGE_CONTENT);
	upper = Min(upper, LSM_PAGE_SPECIAL - LSM_PAGE_CONTENT - lower);
	lsm_page_init(page, kind, FUZZ_OWNER, self + (raw & FUZZ_RAW_SELF));
	lsm_page_opaque(page)->flags = flags;
	lsm_page_opaque(page)->stamp = FUZZ_STAMP;
	header->pd_lower = LSM_PAGE_CONTENT + lower;
	header->pd_upper = LSM_PAGE_SPECIAL - upper;
	if (kind == LSM_PAGE_MAP)
		header->pd_lower = header->pd_upper = LSM_PAGE_SPECIAL;
	else if (kind == LSM_PAGE_FILTER)
		header->pd_lower = LSM_FILTER_DATA + LSM_FILTER_PAGE_BLOCKS * LSM_FILTER_BLOCK_BYTES;
	if (raw & FUZZ_RAW_BOUNDS)
	{
		header->pd_lower = take16(in);
		header->pd_upper = take16(in);
	}
	take_bytes(in, (char *) page + LSM_PAGE_CONTENT, lower);
	take_bytes(in, (char *) page + LSM_PAGE_SPECIAL - upper, upper);
	if (!(raw & FUZZ_RAW_COUNTS))
		repair_counts(page);
	if (lsm_page_check_header(page, lsm_page_opaque(page)->self) == NULL)
		lsm_page_set_crc(page);
}
