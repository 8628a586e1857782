/*
 * open_pages.c
 *	  One entry into the write buffer: which page it goes to, and when pages
 *	  are opened and sealed.
 *
 * Usually one page is open.  A writer that finds it locked tries the others, if
 * there are any, and waits when all are.  Who had to wait too often opens one
 * more (I7).  When a page is full and nobody has waited lately, it is sealed
 * and no other is opened in its place, down to one.
 *
 * Which pages are open is remembered in the handle, so that an insert need not
 * lock the meta page.  It may be out of date: a page knows itself whether it is
 * open (I7).
 */
#include "postgres.h"

#include "base/compat.h"
#include "base/index_slots.h"
#include "base/limits.h"
#include "ingest/ingest.h"
#include "miscadmin.h"
#include "schedule/schedule.h"
#include "storage/buffers.h"
#include "utils/timestamp.h"

/* Seals after a wait that keep the number of open pages as it is. */
#define RESTLESS_SEALS 4

/* What a wait adds to the pressure, against 1 for each insert without, and what opens a page. */
#define PRESSURE_OF_WAIT 16
#define PRESSURE_TO_OPEN 64

/* Ask the manifest, and remember. */
static void
ask_manifest(LsmIndex *index, LsmOpenPages *open)
{
	lsm_manifest_open_pages(index, open);
	index->open = *open;
	/* Of no meaning but that PostgreSQL resets it when the file is cut. */
	RelationSetTargetBlock(index->rel, LSM_BLOCK_META);
}

/*
 * The pages that are remembered, none after VACUUM has cut the file: what it had
 * freed may lie beyond its end.
 */
static void
remember_pages(LsmIndex *index, LsmOpenPages *open)
{
	if (RelationGetTargetBlock(index->rel) == InvalidBlockNumber)
		index->open.count = 0;
	*open = index->open;
}

/*
 * Seal the page of a run, and open another unless `pages` others are open.
 * Makes room for that first, if need be.  True when it was sealed: somebody
 * else may have been faster.
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
 * Open one page more, unless `pages` are open, and read *open anew.  False when
 * the manifest has no room for more than those that there are.
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
		/* An idle index is to be left with one, even if no page gets full any more. */
		if (result == LSM_SEALED && slot != NULL)
		{
			pg_atomic_write_u64(&slot->last_write, (uint64) GetCurrentTimestamp());
			lsm_request_note(index, true);
		}
	}
	ask_manifest(index, open);
	return true;
}

/* All pages were locked by others.  Is it time for one more? */
static bool
note_wait(LsmIndex *index)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);

	if (slot != NULL && pg_atomic_read_u32(&slot->restless) != RESTLESS_SEALS)
		pg_atomic_write_u32(&slot->restless, RESTLESS_SEALS);
	index->pressure += PRESSURE_OF_WAIT;
	if (index->pressure < PRESSURE_TO_OPEN)
		return false;
	index->pressure /= 2;
	return true;
}

/* A page is full.  How many are to be open then? */
static uint32
pages_to_keep(LsmIndex *index, uint32 count)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);
	uint32		restless = slot != NULL ? pg_atomic_read_u32(&slot->restless) : 0;

	if (restless > 0)
		pg_atomic_write_u32(&slot->restless, restless - 1);
	else
		count = 1;
	return Max(count, (uint32) lsm_open_pages);
}

/*
 * Insert into the first page that nobody has locked, beginning with this
 * backend's own.  *at is that page, or the backend's own when all are locked.
 */
static LsmInsertResult
try_insert(LsmIndex *index, LsmKeySpace *ks, const LsmOpenPages *open, const LsmEntry *entry,
		   const LsmOpenPage **at)
{
	uint32		own = lsm_open_pages > 1 ? index->turn++ : lsm_backend_number();
	LsmInsertResult result = LSM_INSERT_BUSY;

	for (uint32 i = 0; i < open->count && result == LSM_INSERT_BUSY; i++)
	{
		*at = &open->pages[(own + i) % open->count];
		result = lsm_write_buffer_insert(index->rel, ks, *at, entry, false);
	}
	if (result == LSM_INSERT_BUSY)
		*at = &open->pages[own % open->count];
	else if (index->pressure > 0)
		index->pressure--;
	return result;
}

/* A page was sealed by somebody else.  Then the manifest does not name it any more (I7). */
static void
ask_again(LsmIndex *index, LsmOpenPages *open, const LsmOpenPage *closed)
{
	LsmOpenPage page = *closed;

	ask_manifest(index, open);
	for (uint32 i = 0; i < open->count; i++)
	{
		if (open->pages[i].run_id == page.run_id && open->pages[i].block == page.block)
			lsm_report_corruption(index->rel, page.block, "page of the open run is not open");
	}
}

/*
 * Insert an entry.  Returns true when a page was sealed on the way: then the
 * caller is to call lsm_schedule_after_seal with *seals, after it has noted that
 * the entry is in.
 */
bool
lsm_insert_entry(LsmIndex *index, Relation heap, LsmKeySpace *ks, const LsmEntry *entry,
				 uint64 *seals)
{
	LsmOpenPages open;
	bool		sealed = false;

	remember_pages(index, &open);
	if (open.count == 0)
		ask_manifest(index, &open);
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
		result = try_insert(index, ks, &open, entry, &at);
		if (unlikely(result == LSM_INSERT_BUSY))
		{
			if (note_wait(index) && open.count < LSM_MAX_OPEN_RUNS &&
				open_another(index, heap, open.count + 1, &open))
				continue;
			result = lsm_write_buffer_insert(index->rel, ks, at, entry, true);
		}
		if (likely(result == LSM_INSERTED))
			break;
		if (result == LSM_INSERT_FULL)
		{
			sealed |= seal_page(index, heap, at->run_id, pages_to_keep(index, open.count), seals);
			ask_manifest(index, &open);
		}
		else
			ask_again(index, &open, at);
		CHECK_FOR_INTERRUPTS();
	}
	return sealed;
}
