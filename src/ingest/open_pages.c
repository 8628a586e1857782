/*
 * open_pages.c
 *	  Inserts one entry into the write buffer: finds a page for it, and opens and seals pages.
 *
 * Usually one page is open.  A writer that finds the page locked tries the other open pages, and
 * waits if all are locked.  A writer that waits too often opens one more page (I7).  When a page is
 * full, the writer seals it and opens another in its place.  But if nobody has waited lately and
 * another page is still open, the writer only seals the full page (page_choice.c).
 *
 * The handle remembers the open pages, so that an insert need not lock the meta page.  The handle
 * may be out of date, but the page itself shows whether it is open (I7).
 */
#include "postgres.h"

#include "base/compat.h"
#include "base/index_slots.h"
#include "base/limits.h"
#include "ingest/ingest.h"
#include "ingest/page_choice.h"
#include "miscadmin.h"
#include "schedule/schedule.h"
#include "storage/buffers.h"
#include "utils/timestamp.h"

/* Ask the manifest for the open pages, and remember them. */
static void
read_open_pages(LsmIndex *index, LsmOpenPages *open)
{
	lsm_manifest_open_pages(index, open);
	index->open = *open;
	/*
	 * Any block would do as the target block.  PostgreSQL resets the target block when the file is
	 * truncated, and recall_open_pages checks for that.
	 */
	RelationSetTargetBlock(index->rel, LSM_BLOCK_META);
}

/*
 * Get the open pages that the handle remembers.  If VACUUM has truncated the file, returns none,
 * because a remembered page may lie beyond the end of the file.
 */
static void
recall_open_pages(LsmIndex *index, LsmOpenPages *open)
{
	if (RelationGetTargetBlock(index->rel) == InvalidBlockNumber)
		index->open.count = 0;
	*open = index->open;
}

/*
 * Seal the page of a run, and open a new page unless `pages` other pages are open.  Makes room in
 * the manifest first if necessary.  Returns false if another process was faster.
 */
static bool
seal_page(LsmIndex *index, Relation heap, uint64 run_id, uint32 pages, uint64 *seals)
{
	for (;;)
	{
		switch (lsm_manifest_seal(index, run_id, pages, seals))
		{
			case LSM_SEALED:
				return true;
			case LSM_SEAL_RACED:
				return false;
			case LSM_SEAL_NO_ROOM:
				lsm_schedule_make_room(index, heap);
				break;
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Open a new page unless `pages` pages are open, and update *open.  Returns false if some page is
 * open and the manifest has no room for another run.
 */
static bool
open_another(LsmIndex *index, Relation heap, uint32 pages, LsmOpenPages *open)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);
	uint64		seals;

	if (open->count == 0)
		seal_page(index, heap, 0, pages, &seals);
	else
	{
		LsmSealResult result = lsm_manifest_seal(index, 0, pages, &seals);

		if (result == LSM_SEAL_NO_ROOM)
			return false;
		/* Even if no page fills up any more, a worker must seal the spare pages. */
		if (result == LSM_SEALED && slot != NULL)
		{
			pg_atomic_write_u64(&slot->last_write, (uint64) GetCurrentTimestamp());
			lsm_request_note(index, true);
		}
	}
	read_open_pages(index, open);
	return true;
}

/* Note that other processes had locked all pages.  Is it time to open one more? */
static bool
note_wait_for_page(LsmIndex *index)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);

	if (slot != NULL && pg_atomic_read_u32(&slot->restless) != LSM_RESTLESS_SEALS)
		pg_atomic_write_u32(&slot->restless, LSM_RESTLESS_SEALS);
	return lsm_choice_note_wait(&index->pressure);
}

/* Returns how many pages should be open after one of the `count` open pages is full and sealed. */
static uint32
count_pages_to_keep(LsmIndex *index, uint32 count)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);
	uint32		restless = slot != NULL ? pg_atomic_read_u32(&slot->restless) : 0;

	if (restless > 0)
		pg_atomic_write_u32(&slot->restless, lsm_choice_calm(restless));
	return lsm_choice_pages_to_keep(count, lsm_open_pages, restless);
}

/*
 * Insert into the first page that nobody has locked, starting with this backend's own page.  Sets
 * *at to the page chosen, or to the backend's own page if all pages are locked.
 */
static LsmInsertResult
insert_without_waiting(LsmIndex *index, LsmKeySpace *ks, const LsmOpenPages *open, const LsmEntry *entry,
		   const LsmOpenPage **at)
{
	uint32		own = lsm_open_pages > 1 ? index->turn++ : lsm_backend_number();
	LsmInsertResult result = LSM_INSERT_BUSY;

	for (uint32 i = 0; i < open->count && result == LSM_INSERT_BUSY; i++)
	{
		*at = &open->pages[lsm_choice_page(own, i, open->count)];
		result = lsm_write_buffer_insert(index->rel, ks, *at, entry, false);
	}
	if (result == LSM_INSERT_BUSY)
		*at = &open->pages[lsm_choice_page(own, 0, open->count)];
	else
		lsm_choice_note_insert(&index->pressure);
	return result;
}

/*
 * Called when another process has sealed a page.  Raises an error if the manifest still lists the
 * page as open (I7).
 */
static void
read_open_pages_again(LsmIndex *index, LsmOpenPages *open, const LsmOpenPage *closed)
{
	LsmOpenPage page = *closed;

	read_open_pages(index, open);
	for (uint32 i = 0; i < open->count; i++)
	{
		if (open->pages[i].run_id == page.run_id && open->pages[i].block == page.block)
			lsm_report_corruption(index->rel, page.block, "page of the open run is not open");
	}
}

/*
 * Insert an entry.  Returns true if the insert sealed a page.  In that case, the caller must note
 * that the entry is in the index, and then call lsm_schedule_after_seal with *seals.
 */
bool
lsm_insert_entry(LsmIndex *index, Relation heap, LsmKeySpace *ks, const LsmEntry *entry,
				 uint64 *seals)
{
	LsmOpenPages open;
	bool		sealed = false;

	recall_open_pages(index, &open);
	if (open.count == 0)
		read_open_pages(index, &open);
	for (;;)
	{
		const LsmOpenPage *at;
		LsmInsertResult result;

		if (unlikely(open.count < (uint32) lsm_open_pages))
		{
			open_another(index, heap, lsm_open_pages, &open);
			if (open.count == 0)
				continue;
		}
		result = insert_without_waiting(index, ks, &open, entry, &at);
		if (unlikely(result == LSM_INSERT_BUSY))
		{
			if (note_wait_for_page(index) && open.count < LSM_MAX_OPEN_RUNS &&
				open_another(index, heap, open.count + 1, &open))
				continue;
			result = lsm_write_buffer_insert(index->rel, ks, at, entry, true);
		}
		if (likely(result == LSM_INSERTED))
			break;
		if (result == LSM_INSERT_FULL)
		{
			sealed |= seal_page(index, heap, at->run_id, count_pages_to_keep(index, open.count),
								seals);
			read_open_pages(index, &open);
		}
		else
			read_open_pages_again(index, &open, at);
		CHECK_FOR_INTERRUPTS();
	}
	return sealed;
}
