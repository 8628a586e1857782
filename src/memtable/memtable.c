/*
 * memtable.c
 *	  The write buffer: one open page that takes entries in sorted order.
 *
 * Full pages are not this file's business: it says so, and the manifest
 * decides to seal.
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "format/buffer_page.h"
#include "format/wal.h"
#include "memtable/memtable.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/* Slot before which the entry goes.  The page is locked and checked. */
static int
find_slot(Relation rel, LsmKeySpace *ks, Page page, const LsmEntry *entry)
{
	int			low = 0;
	int			high = lsm_buffer_page_count(page);

	while (low < high)
	{
		int			middle = (low + high) / 2;
		LsmEntry	at;

		if (!lsm_buffer_page_get(page, middle, &at))
			lsm_report_corruption(rel, lsm_page_opaque(page)->self, "item is out of bounds");
		if (lsm_key_compare(ks, &at, entry) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Insert into the open page at `block`, which the manifest said belongs to
 * run_id.  That may have changed since, so the page's word counts.
 */
LsmInsertResult
lsm_memtable_insert(Relation rel, LsmKeySpace *ks, BlockNumber block,
					uint64 run_id, const LsmEntry *entry)
{
	uint8		item[LSM_ITEM_HEADER + 2 * LSM_MAX_ENTRY_SIZE];
	uint32		size;
	Buffer		buffer;
	Page		page;
	LsmPageOpaque *opaque;
	bool		missed = lsm_buffer_read_counted(rel, block, NULL, &buffer);
	const char *wrong;
	int			pos;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	page = BufferGetPage(buffer);
	wrong = lsm_buffer_verify(rel, buffer, missed);
	if (unlikely(wrong != NULL))
		lsm_report_corruption(rel, block, wrong);
	opaque = lsm_page_opaque(page);
	if (opaque->kind != LSM_PAGE_BUFFER || opaque->run_id != run_id ||
		!(opaque->flags & LSM_PAGE_OPEN))
	{
		UnlockReleaseBuffer(buffer);
		return LSM_INSERT_CLOSED;
	}
	size = lsm_item_encode(item, entry);
	if (!lsm_buffer_page_fits(page, size))
	{
		UnlockReleaseBuffer(buffer);
		return LSM_INSERT_FULL;
	}
	pos = find_slot(rel, ks, page, entry);

	START_CRIT_SECTION();
	lsm_buffer_page_insert(page, pos, item, size);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
	{
		xl_lsm_insert xlrec;
		XLogRecPtr	lsn;

		xlrec.pos = pos;
		XLogBeginInsert();
		XLogRegisterData((char *) &xlrec, sizeof(xlrec));
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		XLogRegisterBufData(0, (char *) item, size);
		lsn = XLogInsert(LSM_RMGR_ID, XLOG_LSM_INSERT);
		PageSetLSN(page, lsn);
	}
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
	return LSM_INSERTED;
}
