/*
 * write_buffer.c
 *	  The write buffer: inserts entries into the sorted slots of open pages.
 *
 * open_pages.c chooses the page, and decides what happens to a full one.
 */
#include "postgres.h"

#include "format/buffer_page.h"
#include "ingest/ingest.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "storage/emit.h"

/* Returns the slot before which the entry goes. Caller has checked the page. */
static int
find_insert_position(Relation rel, LsmKeySpace *ks, Page page, const LsmEntry *entry)
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

/* Returns whether this is the open page of that run. The block may have another use by now. */
static bool
is_open_page_of_run(Page page, uint64 run_id)
{
	LsmPageOpaque *opaque;

	if (PageIsNew(page) || ((PageHeader) page)->pd_special != LSM_PAGE_SPECIAL)
		return false;
	opaque = lsm_page_opaque(page);
	return opaque->kind == LSM_PAGE_BUFFER && opaque->owner == run_id &&
		(opaque->flags & LSM_PAGE_OPEN) != 0;
}

/*
 * Lock an open page that has room for an item of `size` bytes. Returns LSM_INSERTED if the page is
 * locked. Any other result says why not, and leaves the page unlocked.
 */
static LsmInsertResult
lock_open_page(Relation rel, Buffer buffer, bool missed, const LsmOpenPage *at, uint32 size, bool wait)
{
	Page		page = BufferGetPage(buffer);
	LsmInsertResult result = LSM_INSERTED;
	const char *wrong;

	if (wait)
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	else if (!ConditionalLockBuffer(buffer))
		return LSM_INSERT_BUSY;
	if (!is_open_page_of_run(page, at->run_id))
		result = LSM_INSERT_CLOSED;
	else
	{
		wrong = lsm_buffer_verify(rel, buffer, missed);
		if (unlikely(wrong != NULL))
			lsm_report_corruption(rel, at->block, wrong);
		if (!lsm_buffer_page_fits(page, size))
			result = LSM_INSERT_FULL;
	}
	if (result != LSM_INSERTED)
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return result;
}

/*
 * Find the slot for an entry in a copy of the page; see lsm_buffer_leave. If another process has
 * meanwhile added an entry in the same place, or removed entries, returns LSM_INSERT_BUSY, or with
 * `wait`, tries again.
 */
static LsmInsertResult
find_slot_in_copy(Relation rel, Buffer buffer, LsmKeySpace *ks, const LsmOpenPage *at,
				  const LsmEntry *entry, uint32 size, bool wait, int *pos)
{
	PGAlignedBlock copy;
	Page		page = BufferGetPage(buffer);
	LsmInsertResult result;

	do
	{
		memcpy(copy.data, page, BLCKSZ);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		CHECK_FOR_INTERRUPTS();
		*pos = find_insert_position(rel, ks, (Page) copy.data, entry);
		result = lock_open_page(rel, buffer, false, at, size, wait);
		if (result != LSM_INSERTED)
			return result;
		*pos = lsm_buffer_page_find_gap(page, (Page) copy.data, *pos);
		if (*pos >= 0)
			return LSM_INSERTED;
	} while (wait);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return LSM_INSERT_BUSY;
}

/*
 * Insert into a page that was open at some time, perhaps long ago. The page itself shows whether it
 * is still open (I7), because run ids are never reused.
 */
LsmInsertResult
lsm_write_buffer_insert(Relation rel, LsmKeySpace *ks, const LsmOpenPage *at,
					const LsmEntry *entry, bool wait)
{
	uint8		item[LSM_ITEM_HEADER + 2 * LSM_MAX_ENTRY_SIZE];
	uint32		size = lsm_item_encode(item, entry);
	Buffer		buffer;
	Page		page;
	bool		missed = lsm_buffer_find(rel, at->block, &buffer);
	LsmInsertResult result = lock_open_page(rel, buffer, missed, at, size, wait);
	int			pos = 0;

	if (result == LSM_INSERTED && ks->runs_user_code)
		result = find_slot_in_copy(rel, buffer, ks, at, entry, size, wait, &pos);
	if (result != LSM_INSERTED)
	{
		ReleaseBuffer(buffer);
		return result;
	}
	page = BufferGetPage(buffer);
	if (!ks->runs_user_code)
		pos = find_insert_position(rel, ks, page, entry);

	START_CRIT_SECTION();
	lsm_buffer_page_insert(page, pos, item, size);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
		lsm_wal_insert(buffer, pos, item, size);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
	return LSM_INSERTED;
}
