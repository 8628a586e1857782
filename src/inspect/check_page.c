/*
 * check_page.c
 *	  Common parts of the verifier: reports faults, checks copies of pages, reads pages of
 *	  segments, compares and saves entries.
 *
 * The verifier trusts no page, even if this server has checked the page before.
 */
#include "postgres.h"

#include "inspect/inspect.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Report a fault in a block.  Does not return. */
void
lsm_check_report(LsmCheck *c, BlockNumber block, const char *format,...)
{
	StringInfoData what;

	initStringInfo(&what);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, format);
		needed = appendStringInfoVA(&what, format, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&what, needed);
	}
	lsm_report_corruption(c->rel, block, what.data);
}

/*
 * Report an item of a block, such as "entry", that is out of order.  Does not return.  The page
 * may be undamaged: if functions compare the keys, the order of keys can change after the page
 * was written.  If `ordinal` is negative, `item` alone names the item.
 */
void
lsm_check_report_order(LsmCheck *c, BlockNumber block, const char *item, int ordinal,
					   const char *what)
{
	char	   *place = ordinal < 0 ? pstrdup(item) : psprintf("%s %d", item, ordinal);

	if (c->ks->encoded)
		lsm_check_report(c, block, "%s %s", place, what);
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is corrupted at block %u: %s %s",
					RelationGetRelationName(c->rel), block, place, what),
			 errdetail("Its keys are compared by functions.  A collation or a comparison function may have changed since the index was built."),
			 errhint("Please REINDEX it.")));
}

/* Compare two entries.  Comparison functions allocate memory in the scratch context. */
int
lsm_check_compare(LsmCheck *c, const LsmEntry *a, const LsmEntry *b)
{
	MemoryContext old_context = MemoryContextSwitchTo(c->scratch);
	int			result = lsm_key_compare(c->ks, a, b);

	MemoryContextSwitchTo(old_context);
	return result;
}

void
lsm_check_saved_init(LsmSavedEntry *saved)
{
	saved->valid = false;
	saved->key = palloc(MAXALIGN(LSM_MAX_ENTRY_SIZE) + LSM_KEY_PAD);
}

/* Save an entry with a copy of its key, but not of the rest. */
void
lsm_check_saved_set(LsmSavedEntry *saved, const LsmEntry *entry)
{
	memcpy(saved->key, entry->key, entry->keylen);
	memset(saved->key + entry->keylen, 0, LSM_KEY_PAD);
	saved->entry = *entry;
	saved->entry.key = saved->key;
	saved->entry.rest = NULL;
	saved->entry.restlen = 0;
	saved->entry.aligned = true;
	saved->valid = true;
}

/* Returns what is wrong if a header field is set that the page's kind does not use, or NULL. */
static const char *
foreign_field_fault(Page page)
{
	LsmPageOpaque *opaque = lsm_page_opaque(page);
	uint16		flags = 0;

	switch (opaque->kind)
	{
		case LSM_PAGE_GATE:
			flags = LSM_PAGE_CLOSED;
			break;
		case LSM_PAGE_BUFFER:
			flags = LSM_PAGE_OPEN | LSM_PAGE_HAS_REST;
			break;
		case LSM_PAGE_LEAF:
		case LSM_PAGE_FENCE:
			flags = LSM_PAGE_HAS_REST;
			break;
	}
	if ((opaque->flags & ~flags) != 0)
		return "page has flags that do not belong to its kind";
	if (opaque->stamp != 0 && opaque->kind != LSM_PAGE_MAP && opaque->kind != LSM_PAGE_DIRECTORY &&
		opaque->kind != LSM_PAGE_LEAF && opaque->kind != LSM_PAGE_BUFFER)
		return "page has a stamp, but its kind has none";
	if (PageGetPageLayoutVersion(page) != PG_PAGE_LAYOUT_VERSION ||
		((PageHeader) page)->pd_prune_xid != InvalidTransactionId)
		return "page header is damaged";
	return NULL;
}

/*
 * Check a copy of a page: its header, checksum, kind and owner.  Unlike
 * lsm_buffer_verify, this function does not rely on earlier checks.
 */
void
lsm_check_page(LsmCheck *c, BlockNumber block, uint16 kind, uint64 owner, Page copy)
{
	const char *wrong = lsm_page_check_header(copy, block);
	LsmPageOpaque *opaque;

	if (wrong != NULL)
		lsm_check_report(c, block, "%s", wrong);
	opaque = lsm_page_opaque(copy);
	if (opaque->kind != kind)
		lsm_check_report(c, block, "page is of kind 0x%04X, not 0x%04X", opaque->kind, kind);
	if (opaque->owner != owner)
		lsm_check_report(c, block,
						 "page belongs to segment " UINT64_FORMAT ", not " UINT64_FORMAT,
						 opaque->owner, owner);
	if (opaque->flags & LSM_PAGE_DAMAGED)
		lsm_check_report(c, block, "page was damaged before recovery changed it");
	wrong = foreign_field_fault(copy);
	if (wrong != NULL)
		lsm_check_report(c, block, "%s", wrong);
	if (!lsm_page_crc_matches(copy))
		lsm_check_report(c, block, "checksum does not match the content");
}

/*
 * Is the segment's item still in its place in the run's directory?  VACUUM frees directory pages
 * that name no segment.  If the directory still names a page that is not the run's, the next
 * round finds that fault when it reads the directory.
 */
static bool
directory_names_segment(LsmCheck *c, const LsmCheckSegment *segment)
{
	Buffer		buffer = lsm_buffer_read_owned(c->rel, segment->page, LSM_PAGE_DIRECTORY,
											   segment->run->run_id, BUFFER_LOCK_SHARE, NULL);
	LsmDirectoryEntry item;
	bool		result;

	if (!BufferIsValid(buffer))
		return false;
	result = lsm_directory_page_get(BufferGetPage(buffer), segment->ordinal, &item) &&
		item.segment.id == segment->segment.id && item.segment.blocks > 0;
	UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * Does the current version name the segment in the run that had it?  Items do not
 * move within a directory.  The next round finds a segment that a job has moved to
 * its output.
 */
static bool
version_names_segment(LsmCheck *c, const LsmCheckSegment *segment)
{
	Buffer		meta = lsm_meta_lock(c->rel, BUFFER_LOCK_SHARE);
	LsmRunRecord *run = lsm_meta_find(lsm_meta(BufferGetPage(meta)), segment->run->run_id);
	bool		result = run != NULL && run->state != LSM_RUN_SPENT;

	if (result && segment->has_item)
		result = directory_names_segment(c, segment);
	UnlockReleaseBuffer(meta);
	return result;
}

/*
 * Copy a page of a segment and check the copy.  Returns false if the page has been
 * reused because the segment is gone.
 */
bool
lsm_check_read(LsmCheck *c, const LsmCheckSegment *segment, uint32 number, uint16 kind, Page copy)
{
	BlockNumber block = segment->segment.start + number;
	uint64		owner = segment->segment.id;
	LsmPageOpaque *opaque = lsm_page_opaque(copy);
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	/* The file does not shrink while we hold a lock on the index. */
	if (block >= c->instant->file_blocks)
		lsm_check_report(c, block, "the file ends before this block");
	(void) lsm_block_range_read(&c->leaves, block, &buffer);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	/*
	 * A segment that leaves the manifest never comes back.  So if the manifest names
	 * the segment now, it also did when we read the page, and the page must be ours.
	 */
	if ((lsm_page_check_header(copy, block) != NULL || opaque->owner != owner ||
		 opaque->kind != kind) && !version_names_segment(c, segment))
		return false;
	lsm_check_page(c, block, kind, owner, copy);
	lsm_check_note_blocks(c, c->blocks_done + 1);
	return true;
}
