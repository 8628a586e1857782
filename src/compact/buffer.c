/*
 * buffer.c
 *	  One entry into the write buffer: which page it goes to, and when pages
 *	  are opened and sealed.
 *
 * Usually one page is open.  A writer that finds it locked tries the others, if
 * there are any, and waits when all are.  Who had to wait too often opens one
 * more (I7).  When a page is full and nobody has waited lately, it is sealed
 * and no other is opened in its place, down to one.
 *
 * Which pages are open is remembered in the relcache entry, so that an insert
 * need not lock the meta page.
 */
#include "postgres.h"

#include "base/compat.h"
#include "base/limits.h"
#include "compact/compact.h"
#include "manifest/manifest.h"
#include "memtable/memtable.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Seals after a wait that keep the number of open pages as it is. */
#define RESTLESS_SEALS 4

/* What a wait adds to the pressure, against 1 for each insert without, and what opens a page. */
#define PRESSURE_OF_WAIT 16
#define PRESSURE_TO_OPEN 64

/*
 * What a backend remembers of an index, in rd_amcache.  It may be out of date:
 * a page knows itself whether it is open (I7).  It is gone with any rebuilding
 * of the relcache entry, which any look at the catalogs may bring about.
 */
typedef struct BufferMemory
{
	LsmOpenPages open;
	int			pressure;		/* waits lately: note_wait */
	uint32		turn;			/* where pages are taken in turn */
} BufferMemory;

static BufferMemory *
memory_of(Relation rel)
{
	if (rel->rd_amcache == NULL)
		rel->rd_amcache = MemoryContextAllocZero(rel->rd_indexcxt, sizeof(BufferMemory));
	return rel->rd_amcache;
}

/* Ask the manifest, and remember. */
static void
ask(Relation rel, LsmOpenPages *open)
{
	lsm_manifest_open_pages(rel, open);
	memory_of(rel)->open = *open;
}

/*
 * Forget which pages are open.  For who empties the file without a new one: its
 * blocks are gone before the relcache entry is rebuilt.
 */
void
lsm_compact_forget(Relation rel)
{
	if (rel->rd_amcache != NULL)
		memory_of(rel)->open.count = 0;
}

/*
 * Seal the page of a run, and open another unless `pages` others are open.
 * Makes room for that first, if need be.  True when it was sealed: somebody
 * else may have been faster.
 */
static bool
seal(Relation rel, Relation heap, LsmKeySpace *ks, uint64 run_id, uint32 pages, uint64 *seals)
{
	for (;;)
	{
		switch (lsm_manifest_seal(rel, heap, ks->has_rest, run_id, pages, seals))
		{
			case LSM_SEALED:
				return true;
			case LSM_SEAL_RACED:
				return false;
			case LSM_SEAL_NO_ROOM:
				lsm_compact_make_room(rel, heap, ks);
				break;
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/* Somebody seals this page by hand. */
bool
lsm_compact_seal(Relation rel, Relation heap, LsmKeySpace *ks, uint64 run_id)
{
	uint64		seals;

	if (!seal(rel, heap, ks, run_id, 1, &seals))
		return false;
	lsm_stats_add(rel, LSM_COUNT_FLUSHES, 1);
	return true;
}

/*
 * Seal all open pages but one, whatever they hold: a run without entries is
 * gone with the next merge.  *last is the one that is left, if there is any.
 */
void
lsm_compact_seal_spare(Relation rel, Relation heap, LsmKeySpace *ks, LsmOpenPages *last)
{
	lsm_manifest_open_pages(rel, last);
	while (last->count > 1)
		lsm_compact_seal(rel, heap, ks, last->pages[--last->count].run_id);
}

/*
 * Open one page more, unless `pages` are open, and read *open anew.  False when
 * the manifest has no room for more than those that there are.
 */
static bool
open_another(Relation rel, Relation heap, LsmKeySpace *ks, uint32 pages, LsmOpenPages *open)
{
	LsmIndexSlot *slot = lsm_slot_get(rel);
	uint64		seals;

	if (open->count == 0)
		seal(rel, heap, ks, 0, pages, &seals);
	else
	{
		LsmSealResult result = lsm_manifest_seal(rel, heap, ks->has_rest, 0, pages, &seals);

		if (result == LSM_SEAL_NO_ROOM)
			return false;
		/* An idle index is to be left with one, even if no page gets full any more. */
		if (result == LSM_SEALED && slot != NULL)
		{
			pg_atomic_write_u64(&slot->last_write, (uint64) GetCurrentTimestamp());
			lsm_request_note(rel);
		}
	}
	ask(rel, open);
	return true;
}

/* All pages were locked by others.  Is it time for one more? */
static bool
note_wait(Relation rel)
{
	LsmIndexSlot *slot = lsm_slot_get(rel);
	BufferMemory *memory = memory_of(rel);

	if (slot != NULL && pg_atomic_read_u32(&slot->restless) != RESTLESS_SEALS)
		pg_atomic_write_u32(&slot->restless, RESTLESS_SEALS);
	memory->pressure += PRESSURE_OF_WAIT;
	if (memory->pressure < PRESSURE_TO_OPEN)
		return false;
	memory->pressure /= 2;
	return true;
}

/* A page is full.  How many are to be open then? */
static uint32
pages_to_keep(Relation rel, uint32 count)
{
	LsmIndexSlot *slot = lsm_slot_get(rel);
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
try_insert(Relation rel, LsmKeySpace *ks, const LsmOpenPages *open, const LsmEntry *entry,
		   const LsmOpenPage **at)
{
	uint32		own = lsm_open_pages > 1 ? memory_of(rel)->turn++ : lsm_backend_number();
	LsmInsertResult result = LSM_INSERT_BUSY;

	for (uint32 i = 0; i < open->count && result == LSM_INSERT_BUSY; i++)
	{
		*at = &open->pages[(own + i) % open->count];
		result = lsm_memtable_insert(rel, ks, *at, entry, false);
	}
	if (result == LSM_INSERT_BUSY)
		*at = &open->pages[own % open->count];
	else if (memory_of(rel)->pressure > 0)
		memory_of(rel)->pressure--;
	return result;
}

/* A page was sealed by somebody else.  Then the manifest does not name it any more (I7). */
static void
ask_again(Relation rel, LsmOpenPages *open, const LsmOpenPage *closed)
{
	LsmOpenPage page = *closed;

	ask(rel, open);
	for (uint32 i = 0; i < open->count; i++)
	{
		if (open->pages[i].run_id == page.run_id && open->pages[i].block == page.block)
			lsm_report_corruption(rel, page.block, "page of the open run is not open");
	}
}

/*
 * Insert an entry.  Returns true when a page was sealed on the way: then the
 * caller is to call lsm_compact_after_seal with *seals, after it has noted that
 * the entry is in.
 */
bool
lsm_compact_insert(Relation rel, Relation heap, LsmKeySpace *ks, const LsmEntry *entry,
				   uint64 *seals)
{
	LsmOpenPages open = memory_of(rel)->open;
	bool		sealed = false;

	if (open.count == 0)
		ask(rel, &open);
	for (;;)
	{
		const LsmOpenPage *at;
		LsmInsertResult result;

		if (unlikely(open.count < (uint32) lsm_open_pages))
		{
			open_another(rel, heap, ks, lsm_open_pages, &open);
			if (open.count == 0)
				continue;
		}
		result = try_insert(rel, ks, &open, entry, &at);
		if (unlikely(result == LSM_INSERT_BUSY))
		{
			if (note_wait(rel) && open.count < LSM_MAX_OPEN_RUNS &&
				open_another(rel, heap, ks, open.count + 1, &open))
				continue;
			result = lsm_memtable_insert(rel, ks, at, entry, true);
		}
		if (likely(result == LSM_INSERTED))
			break;
		if (result == LSM_INSERT_FULL)
		{
			sealed |= seal(rel, heap, ks, at->run_id, pages_to_keep(rel, open.count), seals);
			ask(rel, &open);
		}
		else
			ask_again(rel, &open, at);
		CHECK_FOR_INTERRUPTS();
	}
	return sealed;
}
