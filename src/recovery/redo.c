/*
 * redo.c
 *	  Replays pg_lsm's WAL records.
 *
 * Redo uses the mutators in src/format, as normal operation does.  It changes only blocks that
 * the record names.  It takes content locks in the order of normal operation, but holds fewer
 * locks at once.
 */
#include "postgres.h"

#include "access/bufmask.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "base/compat.h"
#include "base/stop_point.h"
#include "format/buffer_page.h"
#include "format/leaf_build.h"
#include "format/leaf_read.h"
#include "format/wal.h"
#include "recovery/recovery.h"

/* How long replay waits for scans before core decides whether to cancel them. */
#define LONGEST_WAIT_MS 500

static void
redo_damaged(const char *what, Buffer buffer)
{
	elog(PANIC, "pg_lsm: cannot replay %s on block %u", what,
		 BufferGetBlockNumber(buffer));
}

/*
 * Returns the record's own data, of this size.  The checksum of a record only tells that the record
 * is as it was written.
 */
static void *
record_data(XLogReaderState *record, Size size)
{
	if (XLogRecGetDataLen(record) < size)
		elog(PANIC, "pg_lsm: WAL record is too short");
	return XLogRecGetData(record);
}

/*
 * Read a page that the record changes.  Nobody may have checked it since it came from disk.  If its
 * header is damaged, changing the page could damage other memory.  If its checksum is wrong, the
 * change may give it a right one, so mark the page as damaged.
 */
static XLogRedoAction
read_page_for_redo(XLogReaderState *record, uint8 block_id, bool cleanup_lock, const char *what,
				   Buffer *buffer)
{
	XLogRedoAction action = XLogReadBufferForRedoExtended(record, block_id, RBM_NORMAL,
														  cleanup_lock, buffer);

	if (action == BLK_NEEDS_REDO)
	{
		Page		page = BufferGetPage(*buffer);

		if (lsm_page_check_header(page, BufferGetBlockNumber(*buffer)) != NULL)
			redo_damaged(what, *buffer);
		if (!lsm_page_crc_matches(page))
			lsm_page_opaque(page)->flags |= LSM_PAGE_DAMAGED;
	}
	return action;
}

static void
finish_redo_page(Buffer buffer, XLogReaderState *record)
{
	PageSetLSN(BufferGetPage(buffer), record->EndRecPtr);
	MarkBufferDirty(buffer);
}

static void
redo_insert(XLogReaderState *record)
{
	xl_lsm_insert *xlrec = record_data(record, sizeof(xl_lsm_insert));
	Buffer		buffer;

	if (read_page_for_redo(record, 0, false, "insert", &buffer) == BLK_NEEDS_REDO)
	{
		Size		size;
		uint8	   *item = (uint8 *) XLogRecGetBlockData(record, 0, &size);
		Page		page = BufferGetPage(buffer);
		LsmEntry	entry;

		if (lsm_page_opaque(page)->kind != LSM_PAGE_BUFFER ||
			(lsm_page_opaque(page)->flags & LSM_PAGE_OPEN) == 0 ||
			xlrec->pos > lsm_buffer_page_count(page) ||
			((PageHeader) page)->pd_lower + sizeof(uint16) + size > ((PageHeader) page)->pd_upper ||
			item == NULL || !lsm_item_decode(item, item + size, &entry) || lsm_item_size(&entry) != size)
			redo_damaged("insert", buffer);
		lsm_buffer_page_insert(page, xlrec->pos, item, size);
		finish_redo_page(buffer, record);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/*
 * Replay an edit on the meta page.  Returns the page's buffer locked, or InvalidBuffer if the
 * page no longer exists.
 */
static Buffer
redo_meta(XLogReaderState *record)
{
	Buffer		buffer;

	if (read_page_for_redo(record, 0, false, "edit", &buffer) == BLK_NEEDS_REDO)
	{
		Size		size;
		char	   *data = XLogRecGetBlockData(record, 0, &size);
		LsmEdit    *edit = palloc0(sizeof(LsmEdit));
		Page		page = BufferGetPage(buffer);

		if (size < offsetof(LsmEdit, ops) || size > sizeof(LsmEdit))
			redo_damaged("edit", buffer);
		memcpy(edit, data, size);
		if (lsm_edit_size(edit) != size || lsm_meta_check(page) != NULL ||
			!lsm_meta_apply(page, edit))
			redo_damaged("edit", buffer);
		pfree(edit);
		finish_redo_page(buffer, record);
	}
	return buffer;
}

/*
 * Replay an edit on a page other than the meta page: a new page, a full image, or a change in
 * place.  Returns the page's buffer locked, or InvalidBuffer if the page no longer exists.
 */
static Buffer
redo_page(XLogReaderState *record, uint8 block_id)
{
	XLogRedoAction action = BLK_NEEDS_REDO;
	Buffer		buffer;
	Size		size = 0;
	char	   *data;

	if ((XLogRecGetBlock(record, block_id)->flags & BKPBLOCK_WILL_INIT) != 0)
		buffer = XLogInitBufferForRedo(record, block_id);
	else
		action = read_page_for_redo(record, block_id, false, "edit", &buffer);
	if (action == BLK_NEEDS_REDO)
	{
		data = XLogRecGetBlockData(record, block_id, &size);
		if (data == NULL || !lsm_page_apply(BufferGetPage(buffer), data, size))
			redo_damaged("edit", buffer);
		finish_redo_page(buffer, record);
	}
	return buffer;
}

/*
 * Replay an edit.  The meta page stays locked until the last page is done.  The other pages are
 * locked one at a time, so a server with the smallest shared_buffers can replay any edit.
 *
 * A query with an older version may meet a page that has already changed.  If the page has another
 * owner, or is a directory page with a later stamp, the query fetches the current version.  For
 * that it waits until the meta page is unlocked.  Otherwise the page was sealed and has the same
 * entries as before.
 */
static void
redo_edit(XLogReaderState *record)
{
	Buffer		meta = redo_meta(record);

	for (uint8 id = 1; id <= LSM_WAL_PAGES && XLogRecHasBlockRef(record, id); id++)
	{
		Buffer		buffer = redo_page(record, id);

		if (BufferIsValid(buffer))
			UnlockReleaseBuffer(buffer);
	}
	if (BufferIsValid(meta))
		UnlockReleaseBuffer(meta);
}

static void
redo_delete(XLogReaderState *record)
{
	xl_lsm_delete *xlrec = record_data(record, sizeof(xl_lsm_delete));
	Buffer		buffer;

	if (InHotStandby && TransactionIdIsValid(xlrec->horizon))
		lsm_resolve_conflict(record, xlrec->horizon, xlrec->is_catalog);

	if (read_page_for_redo(record, 0, false, "deletion", &buffer) == BLK_NEEDS_REDO)
	{
		Size		size;
		char	   *data = XLogRecGetBlockData(record, 0, &size);
		Page		page = BufferGetPage(buffer);
		uint16	   *ordinals = palloc(size);

		if (size == 0 || size != xlrec->count * sizeof(uint16))
			redo_damaged("deletion", buffer);
		memcpy(ordinals, data, size);
		if (lsm_page_opaque(page)->kind == LSM_PAGE_BUFFER)
			lsm_buffer_page_delete(page, ordinals, xlrec->count);
		else
		{
			LsmGroup	scratch;

			lsm_group_init(&scratch, LSM_MAX_ENTRY_SIZE);
			if (lsm_page_opaque(page)->kind != LSM_PAGE_LEAF ||
				!lsm_leaf_delete(page, ordinals, xlrec->count, &scratch))
				redo_damaged("deletion", buffer);
			lsm_group_free(&scratch);
		}
		pfree(ordinals);
		finish_redo_page(buffer, record);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

static void
redo_gate_flip(XLogReaderState *record)
{
	Buffer		buffers[3];

	for (int i = 0; i < 3; i++)
	{
		if (read_page_for_redo(record, i, false, "gate flip", &buffers[i]) == BLK_NEEDS_REDO)
		{
			Page		page = BufferGetPage(buffers[i]);

			if (i == 0)
				lsm_meta_flip_gate(page);
			else
				lsm_gate_set_closed(page, i == 1);
			finish_redo_page(buffers[i], record);
		}
	}
	for (int i = 2; i >= 0; i--)
	{
		if (BufferIsValid(buffers[i]))
			UnlockReleaseBuffer(buffers[i]);
	}
}

/*
 * On a hot standby, give index-only scans time to leave the gate, which they do at their next entry.
 * If replay is late, core would cancel their queries without waiting.
 */
static void
wait_for_scans(XLogReaderState *record)
{
	LsmLocator	locator;
	ForkNumber	fork;
	BlockNumber block;
	Buffer		buffer;
	bool		have_left = false;

	/* Before the standby is consistent, there are no scans, and pages may be torn. */
	if (!HotStandbyActive())
		return;
	XLogRecGetBlockTag(record, 0, &locator, &fork, &block);
	buffer = XLogReadBufferExtended(locator, fork, block, RBM_NORMAL_NO_LOG, InvalidBuffer);
	if (!BufferIsValid(buffer))
		return;
	for (int waited_ms = 0; waited_ms < LONGEST_WAIT_MS && !have_left; waited_ms++)
	{
		have_left = ConditionalLockBufferForCleanup(buffer);
		if (!have_left)
			pg_usleep(1000);
	}
	if (have_left)
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	ReleaseBuffer(buffer);
}

static void
redo_gate_drain(XLogReaderState *record)
{
	Buffer		buffer;

	wait_for_scans(record);
	/*
	 * This record exists for its cleanup lock.  Index-only scans on the standby pin the gate
	 * while they use TIDs that VACUUM is about to recycle (I9).
	 */
	if (read_page_for_redo(record, 0, true, "gate drain", &buffer) == BLK_NEEDS_REDO)
	{
		lsm_page_unmark(BufferGetPage(buffer));
		finish_redo_page(buffer, record);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/*
 * Refuse a record that names a block twice.  Redo locks several pages of a record at once, so it
 * would wait for its own lock.
 */
static void
check_blocks(XLogReaderState *record)
{
	BlockNumber blocks[XLR_MAX_BLOCK_ID + 1];
	int			count = 0;

	for (int id = 0; id <= XLogRecMaxBlockId(record); id++)
	{
		if (!XLogRecHasBlockRef(record, id))
			continue;
		XLogRecGetBlockTag(record, id, NULL, NULL, &blocks[count]);
		for (int i = 0; i < count; i++)
		{
			if (blocks[i] == blocks[count])
				elog(PANIC, "pg_lsm: WAL record is damaged: it names block %u twice", blocks[i]);
		}
		count++;
	}
}

void
lsm_rmgr_redo(XLogReaderState *record)
{
	uint8		info = XLogRecGetInfo(record) & ~XLR_INFO_MASK;

	check_blocks(record);
	LSM_STOP_POINT("redo");
	switch (info)
	{
		case XLOG_LSM_INSERT:
			redo_insert(record);
			break;
		case XLOG_LSM_EDIT:
			redo_edit(record);
			break;
		case XLOG_LSM_DELETE:
			redo_delete(record);
			break;
		case XLOG_LSM_GATE_FLIP:
			redo_gate_flip(record);
			break;
		case XLOG_LSM_GATE_DRAIN:
			redo_gate_drain(record);
			break;
		default:
			elog(PANIC, "pg_lsm: unknown WAL record type %u", info);
	}
}

/* For wal_consistency_checking: mask bytes that redo need not reproduce. */
void
lsm_rmgr_mask(char *pagedata, BlockNumber block)
{
	Page		page = (Page) pagedata;

	mask_page_lsn_and_checksum(page);
	mask_page_hint_bits(page);
	mask_unused_space(page);
	lsm_page_unmark(page);
}
