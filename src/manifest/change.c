/*
 * change.c
 *	  Edits of the manifest: lock the pages, change copies, log and apply them.
 *
 * Lock order: the meta page, then the other pages in the order in which they join the change.
 * This cannot deadlock: the meta page is locked exclusively, and a process that does not hold
 * it locks one page at a time.  Redo also locks these pages one at a time.
 */
#include "postgres.h"

#include "manifest/change.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "storage/emit.h"
#include "utils/memutils.h"

/*
 * Lock the meta page exclusively, and begin an empty edit.  End it with lsm_change_commit or
 * lsm_change_cancel.
 */
LsmChange *
lsm_change_begin(LsmIndex *index)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm change",
												  ALLOCSET_DEFAULT_SIZES);
	LsmChange  *change = MemoryContextAlloc(context, sizeof(LsmChange));

	change->index = index;
	change->context = context;
	change->page_count = 0;
	change->meta_buffer = lsm_meta_lock(index->rel, BUFFER_LOCK_EXCLUSIVE);
	change->meta = lsm_meta(BufferGetPage(change->meta_buffer));
	change->stamp = change->meta->edits + 1;
	lsm_edit_init(&change->edit, change->meta);
	return change;
}

/* Returns a page of the change, or NULL if the block is not part of the change. */
LsmChangedPage *
lsm_change_find(LsmChange *change, BlockNumber block)
{
	for (int i = 0; i < change->page_count; i++)
	{
		if (change->pages[i].block == block)
			return &change->pages[i];
	}
	return NULL;
}

/*
 * Raise an error if the change has this block locked already.  This happens if a damaged page names
 * a block that is in use.  Locking the block again would wait forever.
 */
static void
require_unlocked(LsmChange *change, BlockNumber block)
{
	if (block == LSM_BLOCK_META || lsm_change_find(change, block) != NULL)
		lsm_report_corruption(change->index->rel, block, "block is in use twice");
}

static LsmChangedPage *
add_changed_page(LsmChange *change, BlockNumber block, Buffer buffer)
{
	LsmChangedPage *page;

	if (change->page_count == LSM_WAL_PAGES)
		elog(ERROR, "pg_lsm: an edit of index \"%s\" has too many pages",
			 RelationGetRelationName(change->index->rel));
	page = &change->pages[change->page_count++];
	memset(page, 0, sizeof(LsmChangedPage));
	page->block = block;
	page->buffer = buffer;
	page->copy = MemoryContextAlloc(change->context, BLCKSZ);
	return page;
}

static inline bool
is_page_of(Page page, uint16 kind, uint64 owner)
{
	return lsm_page_opaque(page)->kind == kind &&
		(owner == 0 || lsm_page_opaque(page)->owner == owner);
}

/*
 * Returns a page of the change.  If the page is not part of the change yet, locks and copies it,
 * and raises an error unless it has this kind and owner.
 */
LsmChangedPage *
lsm_change_page(LsmChange *change, BlockNumber block, uint16 kind, uint64 owner)
{
	LsmChangedPage *page = lsm_change_find(change, block);

	if (page != NULL && is_page_of(page->copy, kind, owner))
		return page;
	require_unlocked(change, block);
	page = add_changed_page(change, block,
							lsm_buffer_read(change->index->rel, block, LSM_KIND(kind), owner,
									BUFFER_LOCK_EXCLUSIVE, NULL));
	memcpy(page->copy, BufferGetPage(page->buffer), BLCKSZ);
	return page;
}

/* Add a page whose old content does not matter.  The first operation must initialize the page. */
LsmChangedPage *
lsm_change_new_page(LsmChange *change, BlockNumber block)
{
	LsmChangedPage *page;

	require_unlocked(change, block);
	page = add_changed_page(change, block,
							ReadBufferExtended(change->index->rel, MAIN_FORKNUM, block,
											   RBM_ZERO_AND_LOCK, NULL));
	page->init = true;
	memset(page->copy, 0, BLCKSZ);
	return page;
}

/* Add a new page with this content, logged as a full image. */
void
lsm_change_image(LsmChange *change, BlockNumber block, Page content)
{
	LsmChangedPage *page = lsm_change_new_page(change, block);

	page->image = true;
	page->changed = true;
	page->init = false;
	memcpy(page->copy, content, BLCKSZ);
}

static void
append_change_data(LsmChange *change, LsmChangedPage *page, const void *data, Size size)
{
	if (page->size + size > page->room)
	{
		page->room = Max(128, 2 * (page->size + size));
		page->data = page->data ? repalloc(page->data, page->room) :
			MemoryContextAlloc(change->context, page->room);
	}
	if (size > 0)				/* otherwise data may be NULL */
		memcpy(page->data + page->size, data, size);
	page->size += size;
}

/*
 * Apply an operation to the copy of a page, and add the operation to the data to log.  Raises
 * an error if the operation does not fit the page.
 */
void
lsm_change_op(LsmChange *change, LsmChangedPage *page, LsmPageOpKind kind,
			  const void *data, uint32 size)
{
	LsmPageOp	op;

	op.kind = kind;
	op.size = size;
	if (!lsm_page_apply_op(page->copy, kind, data, size))
		lsm_report_corruption(change->index->rel, page->block,
							  "change does not fit the page");
	if (page->size == 0)
		append_change_data(change, page, &change->stamp, sizeof(change->stamp));
	append_change_data(change, page, &op, sizeof(op));
	append_change_data(change, page, data, size);
	page->changed = true;
}

static void
log_change(LsmChange *change)
{
	LsmWalPage	pages[LSM_WAL_PAGES];
	int			n = 0;

	for (int i = 0; i < change->page_count; i++)
	{
		const LsmChangedPage *page = &change->pages[i];

		if (!page->changed)
			continue;
		pages[n].buffer = page->buffer;
		pages[n].init = page->init;
		pages[n].image = page->image;
		pages[n].data = page->data;
		pages[n++].size = page->size;
	}
	lsm_wal_edit(change->meta_buffer, &change->edit, pages, n);
}

/*
 * Apply the edit and all page changes, write one WAL record, and unlock.  If the edit does
 * not fit the manifest, raises an error before anything has changed.
 */
void
lsm_change_commit(LsmChange *change)
{
	bool		logged = RelationNeedsWAL(change->index->rel);
	PGAlignedBlock meta;

	memcpy(meta.data, BufferGetPage(change->meta_buffer), BLCKSZ);
	if (!lsm_meta_apply((Page) meta.data, &change->edit))
		elog(ERROR, "edit does not fit the manifest of index \"%s\"",
			 RelationGetRelationName(change->index->rel));
	for (int i = 0; i < change->page_count; i++)
	{
		if (change->pages[i].changed && !change->pages[i].image)
			lsm_page_end_change(change->pages[i].copy, change->stamp);
	}
	if (logged)
		lsm_wal_prepare_edit(change->page_count);

	START_CRIT_SECTION();
	memcpy(BufferGetPage(change->meta_buffer), meta.data, BLCKSZ);
	MarkBufferDirty(change->meta_buffer);
	for (int i = 0; i < change->page_count; i++)
	{
		LsmChangedPage *page = &change->pages[i];

		if (!page->changed)
			continue;
		memcpy(BufferGetPage(page->buffer), page->copy, BLCKSZ);
		MarkBufferDirty(page->buffer);
	}
	if (logged)
		log_change(change);
	END_CRIT_SECTION();
	lsm_change_cancel(change);
}

/* Unlock and forget everything.  Without a commit, nothing has changed. */
void
lsm_change_cancel(LsmChange *change)
{
	for (int i = change->page_count - 1; i >= 0; i--)
		UnlockReleaseBuffer(change->pages[i].buffer);
	UnlockReleaseBuffer(change->meta_buffer);
	MemoryContextDelete(change->context);
}
