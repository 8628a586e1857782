/*
 * change.c
 *	  Edits of the manifest: locking, copying, logging, applying.
 *
 * Lock order: the meta page, then whatever takes part, in the order in which it
 * comes; all that is locked under the meta page's exclusive lock, and by others
 * one at a time at most.  Redo locks in the same order.
 */
#include "postgres.h"

#include "manifest/change.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "storage/emit.h"
#include "utils/memutils.h"

/* Lock the meta page, and begin an edit that changes nothing yet. */
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

/* A page that takes part already; NULL: it does not. */
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

/* A page that takes part: it is locked, and copied as it is. */
LsmChangedPage *
lsm_change_page(LsmChange *change, BlockNumber block, uint16 kind, uint64 owner)
{
	LsmChangedPage *page = lsm_change_find(change, block);

	if (page != NULL)
		return page;
	page = add_changed_page(change, block,
							lsm_buffer_read(change->index->rel, block, LSM_KIND(kind), owner,
									BUFFER_LOCK_EXCLUSIVE, NULL));
	memcpy(page->copy, BufferGetPage(page->buffer), BLCKSZ);
	return page;
}

/* A page whose old content does not count: the first operation makes it anew. */
LsmChangedPage *
lsm_change_new_page(LsmChange *change, BlockNumber block)
{
	Buffer		buffer = ReadBufferExtended(change->index->rel, MAIN_FORKNUM, block,
											RBM_ZERO_AND_LOCK, NULL);
	LsmChangedPage *page = add_changed_page(change, block, buffer);

	page->init = true;
	memset(page->copy, 0, BLCKSZ);
	return page;
}

/* A new page with this content, which is logged whole. */
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
	memcpy(page->data + page->size, data, size);
	page->size += size;
}

/* Change a page that takes part.  Errors when the operation does not fit it. */
void
lsm_change_op(LsmChange *change, LsmChangedPage *page, LsmPageOpKind kind,
			  const void *data, uint32 size)
{
	LsmPageOp	op;

	op.kind = kind;
	op.size = size;
	if (!lsm_page_apply_op(page->copy, kind, data, size))
		lsm_report_corruption(change->index->rel, page->block,
							  "a change does not fit what is on the page");
	if (page->size == 0)
		append_change_data(change, page, &change->stamp, sizeof(change->stamp));
	append_change_data(change, page, &op, sizeof(op));
	append_change_data(change, page, data, size);
	page->changed = true;
}

/* Would the edit fit the manifest?  Checked before anything is changed. */
static void
check_edit_fits(LsmChange *change)
{
	int			count = change->meta->run_count;

	for (uint32 i = 0; i < change->edit.count; i++)
	{
		const LsmEditOp *op = &change->edit.ops[i];
		bool		found;

		if (op->kind == LSM_EDIT_RESERVE || op->kind == LSM_EDIT_RELEASE)
			continue;
		found = lsm_meta_find(change->meta, op->u.run.run_id) != NULL;
		if (op->kind == LSM_EDIT_PUT && !found)
			count++;
		if (op->kind == LSM_EDIT_REMOVE)
			count--;
		if (count > LSM_MAX_RUNS ||
			(!found && (op->kind == LSM_EDIT_REMOVE || op->kind == LSM_EDIT_SET_JOB ||
						op->kind == LSM_EDIT_TAKE)))
			elog(ERROR, "edit does not fit the manifest of index \"%s\"",
				 RelationGetRelationName(change->index->rel));
	}
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

/* Apply and log everything as one, and unlock. */
void
lsm_change_commit(LsmChange *change)
{
	bool		logged = RelationNeedsWAL(change->index->rel);

	check_edit_fits(change);
	for (int i = 0; i < change->page_count; i++)
	{
		if (change->pages[i].changed && !change->pages[i].image)
			lsm_page_end_change(change->pages[i].copy, change->stamp);
	}
	if (logged)
		lsm_wal_prepare_edit(change->page_count);

	START_CRIT_SECTION();
	if (!lsm_meta_apply(BufferGetPage(change->meta_buffer), &change->edit))
		elog(PANIC, "pg_lsm: edit was checked but did not fit");
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

/* Unlock everything.  What was not committed has not happened. */
void
lsm_change_cancel(LsmChange *change)
{
	for (int i = change->page_count - 1; i >= 0; i--)
		UnlockReleaseBuffer(change->pages[i].buffer);
	UnlockReleaseBuffer(change->meta_buffer);
	MemoryContextDelete(change->context);
}
