/*
 * emit.c
 *	  Emits WAL records.
 *
 * All functions but lsm_wal_prepare_edit are called in a critical section, with the pages locked
 * exclusively, changed and marked dirty.  They set the pages' LSN.  The caller has checked that the
 * change must be logged.
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "storage/bufmgr.h"
#include "storage/emit.h"

static void
set_lsn(Buffer buffer, XLogRecPtr lsn)
{
	PageSetLSN(BufferGetPage(buffer), lsn);
}

/*
 * Make room for a record with `pages` pages in addition to the meta page.  Call this before the
 * critical section.
 */
void
lsm_wal_prepare_edit(int pages)
{
	XLogEnsureRecordSpace(Max(pages, 4), 20 + pages);
}

/* FPI: core's record of a whole page. */
void
lsm_wal_new_page(Buffer buffer)
{
	log_newpage_buffer(buffer, true);
}

/* EDIT: the meta page, and the pages that change with it. */
void
lsm_wal_edit(Buffer meta, LsmEdit *edit, const LsmWalPage *pages, int count)
{
	XLogRecPtr	lsn;

	XLogBeginInsert();
	XLogRegisterBuffer(0, meta, REGBUF_STANDARD);
	XLogRegisterBufData(0, (char *) edit, lsm_edit_size(edit));
	for (int i = 0; i < count; i++)
	{
		XLogRegisterBuffer(i + 1, pages[i].buffer, REGBUF_STANDARD |
						   (pages[i].image ? REGBUF_FORCE_IMAGE : 0) |
						   (pages[i].init ? REGBUF_WILL_INIT : 0));
		if (!pages[i].image)
			XLogRegisterBufData(i + 1, pages[i].data, pages[i].size);
	}
	lsn = XLogInsert(LSM_RMGR_ID, XLOG_LSM_EDIT);
	set_lsn(meta, lsn);
	for (int i = 0; i < count; i++)
		set_lsn(pages[i].buffer, lsn);
}

/* INSERT: an item into an open page. */
void
lsm_wal_insert(Buffer buffer, uint16 pos, uint8 *item, uint32 size)
{
	xl_lsm_insert xlrec;

	xlrec.pos = pos;
	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, sizeof(xlrec));
	XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
	XLogRegisterBufData(0, (char *) item, size);
	set_lsn(buffer, XLogInsert(LSM_RMGR_ID, XLOG_LSM_INSERT));
}

/* DELETE: entries were removed from a page. */
void
lsm_wal_delete(Buffer buffer, uint16 *ordinals, int count, TransactionId horizon, bool is_catalog)
{
	xl_lsm_delete xlrec;

	memset(&xlrec, 0, sizeof(xlrec));
	xlrec.horizon = horizon;
	xlrec.count = count;
	xlrec.is_catalog = is_catalog;
	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, sizeof(xlrec));
	/* A page of 32 kB may have more entries than block data can list: log it as a whole. */
	if (count * sizeof(uint16) > PG_UINT16_MAX)
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD | REGBUF_FORCE_IMAGE);
	else
	{
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		XLogRegisterBufData(0, (char *) ordinals, count * sizeof(uint16));
	}
	set_lsn(buffer, XLogInsert(LSM_RMGR_ID, XLOG_LSM_DELETE));
}

/* GATE_FLIP: one gate closes, and the other opens. */
void
lsm_wal_gate_flip(Buffer meta, Buffer closed, Buffer opened)
{
	Buffer		buffers[] = {meta, closed, opened};
	XLogRecPtr	lsn;

	XLogBeginInsert();
	for (int i = 0; i < lengthof(buffers); i++)
		XLogRegisterBuffer(i, buffers[i], REGBUF_STANDARD);
	lsn = XLogInsert(LSM_RMGR_ID, XLOG_LSM_GATE_FLIP);
	for (int i = 0; i < lengthof(buffers); i++)
		set_lsn(buffers[i], lsn);
}

/* GATE_DRAIN: nobody uses this gate any more. */
void
lsm_wal_gate_drain(Buffer gate)
{
	XLogBeginInsert();
	XLogRegisterBuffer(0, gate, REGBUF_STANDARD);
	set_lsn(gate, XLogInsert(LSM_RMGR_ID, XLOG_LSM_GATE_DRAIN));
}
