/*
 * redo.c
 *	  Replay of pg_lsm's WAL records.
 *
 * Every change is made by the mutator of src/format that normal operation
 * used.  Redo changes only blocks that its record names, and takes content
 * locks in the order of normal operation, so that queries on a standby see
 * what queries on the primary do.
 */
#include "postgres.h"

#include "access/bufmask.h"
#include "access/xlogutils.h"
#include "format/buffer_page.h"
#include "format/wal.h"
#include "recovery/recovery.h"

static void
redo_damaged(const char *what, Buffer buffer)
{
	elog(PANIC, "pg_lsm: cannot replay %s on block %u", what,
		 BufferGetBlockNumber(buffer));
}

static void
finish(Buffer buffer, XLogReaderState *record)
{
	PageSetLSN(BufferGetPage(buffer), record->EndRecPtr);
	MarkBufferDirty(buffer);
}

static void
redo_insert(XLogReaderState *record)
{
	xl_lsm_insert *xlrec = (xl_lsm_insert *) XLogRecGetData(record);
	Buffer		buffer;

	if (XLogReadBufferForRedo(record, 0, &buffer) == BLK_NEEDS_REDO)
	{
		Size		size;
		char	   *item = XLogRecGetBlockData(record, 0, &size);
		Page		page = BufferGetPage(buffer);

		if (xlrec->pos > lsm_buffer_page_count(page) ||
			((PageHeader) page)->pd_lower + sizeof(uint16) + size > ((PageHeader) page)->pd_upper)
			redo_damaged("insert", buffer);
		lsm_buffer_page_insert(page, xlrec->pos, (uint8 *) item, size);
		finish(buffer, record);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/* Cancel standby queries that could still read what is about to be reused. */
static void
redo_conflict(xl_lsm_space *space)
{
	if (InHotStandby && FullTransactionIdIsValid(space->conflict))
		lsm_resolve_conflict(space->conflict, space->is_catalog, space->locator);
}

static void
redo_map_pages(XLogReaderState *record)
{
	Buffer		buffers[LSM_WAL_MAP_PAGES];
	int			n = 0;

	for (int i = 0; i < LSM_WAL_MAP_PAGES; i++)
	{
		uint8		block_id = LSM_WAL_MAP_BLOCK + i;
		XLogRedoAction action;
		Buffer		buffer;
		bool		init;

		if (!XLogRecHasBlockRef(record, block_id))
			continue;
		init = (XLogRecGetBlock(record, block_id)->flags & BKPBLOCK_WILL_INIT) != 0;
		if (init)
		{
			buffer = XLogInitBufferForRedo(record, block_id);
			action = BLK_NEEDS_REDO;
		}
		else
			action = XLogReadBufferForRedo(record, block_id, &buffer);
		if (action == BLK_NEEDS_REDO)
		{
			Size		size;
			char	   *data = XLogRecGetBlockData(record, block_id, &size);
			xl_lsm_map_page head;
			LsmMapChange *changes;

			memcpy(&head, data, sizeof(head));
			changes = palloc(Max(1, head.count) * sizeof(LsmMapChange));
			memcpy(changes, data + sizeof(head), head.count * sizeof(LsmMapChange));
			if (init)
				lsm_map_page_init(BufferGetPage(buffer), head.self);
			if (!lsm_map_page_apply(BufferGetPage(buffer), changes, head.count,
									head.mapped_end, head.next))
				redo_damaged("space map change", buffer);
			pfree(changes);
			finish(buffer, record);
		}
		buffers[n++] = buffer;
	}
	while (n > 0)
	{
		n--;
		if (BufferIsValid(buffers[n]))
			UnlockReleaseBuffer(buffers[n]);
	}
}

/* Replay an edit; returns the meta page locked, or InvalidBuffer. */
static Buffer
redo_edit_locked(XLogReaderState *record)
{
	Buffer		buffer;

	if (XLogReadBufferForRedo(record, 0, &buffer) == BLK_NEEDS_REDO)
	{
		Size		size;
		char	   *data = XLogRecGetBlockData(record, 0, &size);
		LsmEdit    *edit = palloc(sizeof(LsmEdit));

		if (size > sizeof(LsmEdit))
			redo_damaged("edit", buffer);
		memcpy(edit, data, size);
		if (!lsm_meta_apply(BufferGetPage(buffer), edit))
			redo_damaged("edit", buffer);
		pfree(edit);
		finish(buffer, record);
	}
	return buffer;
}

static void
redo_edit(XLogReaderState *record)
{
	Buffer		meta = redo_edit_locked(record);

	if (BufferIsValid(meta))
		UnlockReleaseBuffer(meta);
}

static void
redo_seal(XLogReaderState *record)
{
	xl_lsm_seal *xlrec = (xl_lsm_seal *) XLogRecGetData(record);
	Buffer		meta;
	Buffer		old = InvalidBuffer;
	Buffer		new = InvalidBuffer;

	redo_conflict(&xlrec->space);
	meta = redo_edit_locked(record);
	if (XLogRecHasBlockRef(record, 1) &&
		XLogReadBufferForRedo(record, 1, &old) == BLK_NEEDS_REDO)
	{
		lsm_buffer_page_seal(BufferGetPage(old));
		finish(old, record);
	}
	if (XLogRecHasBlockRef(record, 2))
	{
		new = XLogInitBufferForRedo(record, 2);
		lsm_page_init(BufferGetPage(new), LSM_PAGE_BUFFER, xlrec->run_id, xlrec->block);
		lsm_page_opaque(BufferGetPage(new))->flags = xlrec->page_flags;
		finish(new, record);
	}
	redo_map_pages(record);
	if (BufferIsValid(new))
		UnlockReleaseBuffer(new);
	if (BufferIsValid(old))
		UnlockReleaseBuffer(old);
	if (BufferIsValid(meta))
		UnlockReleaseBuffer(meta);
}

static void
redo_batch(XLogReaderState *record)
{
	Buffer		pages[LSM_IMAGE_PAGES];
	Buffer		meta;
	int			n = 0;

	redo_conflict((xl_lsm_space *) XLogRecGetData(record));
	meta = redo_edit_locked(record);
	while (n < LSM_IMAGE_PAGES && XLogRecHasBlockRef(record, LSM_WAL_IMAGE_BLOCK + n))
	{
		if (XLogReadBufferForRedo(record, LSM_WAL_IMAGE_BLOCK + n, &pages[n]) != BLK_RESTORED)
			elog(PANIC, "pg_lsm: page of a batch has no image");
		n++;
	}
	redo_map_pages(record);
	while (n > 0)
		UnlockReleaseBuffer(pages[--n]);
	if (BufferIsValid(meta))
		UnlockReleaseBuffer(meta);
}

static void
redo_space(XLogReaderState *record)
{
	redo_conflict((xl_lsm_space *) XLogRecGetData(record));
	redo_map_pages(record);
}

static void
redo_delete(XLogReaderState *record)
{
	xl_lsm_delete *xlrec = (xl_lsm_delete *) XLogRecGetData(record);
	Buffer		buffer;

	if (XLogReadBufferForRedo(record, 0, &buffer) == BLK_NEEDS_REDO)
	{
		Size		size;
		char	   *data = XLogRecGetBlockData(record, 0, &size);
		Page		page = BufferGetPage(buffer);
		uint16	   *ordinals = palloc(size);

		if (size != xlrec->count * sizeof(uint16))
			redo_damaged("deletion", buffer);
		memcpy(ordinals, data, size);
		if (lsm_page_opaque(page)->kind == LSM_PAGE_BUFFER)
			lsm_buffer_page_delete(page, ordinals, xlrec->count);
		else
		{
			LsmGroup	scratch;

			lsm_group_init(&scratch, LSM_MAX_ENTRY_SIZE);
			if (!lsm_leaf_delete(page, ordinals, xlrec->count, &scratch))
				redo_damaged("deletion", buffer);
			lsm_group_free(&scratch);
		}
		pfree(ordinals);
		finish(buffer, record);
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
		if (XLogReadBufferForRedo(record, i, &buffers[i]) == BLK_NEEDS_REDO)
		{
			Page		page = BufferGetPage(buffers[i]);

			if (i == 0)
				lsm_meta_flip_gate(page);
			else
				lsm_gate_set_closed(page, i == 1);
			finish(buffers[i], record);
		}
	}
	for (int i = 2; i >= 0; i--)
	{
		if (BufferIsValid(buffers[i]))
			UnlockReleaseBuffer(buffers[i]);
	}
}

static void
redo_gate_drain(XLogReaderState *record)
{
	Buffer		buffer;

	/*
	 * The cleanup lock is the point: index-only scans on the standby hold pins
	 * on the gate while they use TIDs that VACUUM is about to recycle.
	 */
	if (XLogReadBufferForRedoExtended(record, 0, RBM_NORMAL, true, &buffer) == BLK_NEEDS_REDO)
	{
		lsm_page_unmark(BufferGetPage(buffer));
		finish(buffer, record);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

void
lsm_rmgr_redo(XLogReaderState *record)
{
	uint8		info = XLogRecGetInfo(record) & ~XLR_INFO_MASK;

	switch (info)
	{
		case XLOG_LSM_INSERT:
			redo_insert(record);
			break;
		case XLOG_LSM_SEAL:
			redo_seal(record);
			break;
		case XLOG_LSM_BATCH:
			redo_batch(record);
			break;
		case XLOG_LSM_EDIT:
			redo_edit(record);
			break;
		case XLOG_LSM_SPACE:
			redo_space(record);
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

/* For wal_consistency_checking: hide what redo need not reproduce. */
void
lsm_rmgr_mask(char *pagedata, BlockNumber block)
{
	Page		page = (Page) pagedata;

	mask_page_lsn_and_checksum(page);
	mask_page_hint_bits(page);
	mask_unused_space(page);
	lsm_page_unmark(page);
}
