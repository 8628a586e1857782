/*
 * kill_dead.c
 *	  Removes entries whose rows scans have found dead.
 *
 * The executor says (kill_prior_tuple) that a row is dead to every snapshot.  A B-tree marks the
 * entry, and removes it when an insert needs room on the page.  Nobody inserts into our leaves.  So
 * a scan removes the entries itself when it has found enough of them on a page.  The next scan then
 * passes a stretch of deleted rows, such as the head of a queue, without visiting the table.
 *
 * At the time of removal, the TID must not belong to another row.  VACUUM frees a TID only after it
 * has removed the entries with that TID.  So it is enough that nobody has removed entries from the
 * page since the scan read the page.  The page's stamp shows such a removal.  (After our own
 * removal the other TIDs read from a leaf are still valid, since a leaf never gains entries.  Those
 * read from a page of the write buffer are no longer valid.)  If a merge has moved the entry, its
 * old page may now belong to another segment.  In that case, we skip the page.  Otherwise changing
 * the old page is harmless, since we remove only dead entries.
 *
 * Queries on a standby may still need the entries.  So the WAL record contains the conflict
 * horizon, which we compute from the table's pages, as B-trees do.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "base/coding.h"
#include "base/compat.h"
#include "base/limits.h"
#include "base/preload.h"
#include "catalog/catalog.h"
#include "format/leaf_read.h"
#include "miscadmin.h"
#include "scan/kill_dead.h"
#include "storage/buffers.h"
#include "storage/remove.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* The least number of entries to remove from a page, and the greatest to keep in memory. */
#define LEAST_KILLED	16
#define MOST_KILLED		4096

/* Returns LEAST_KILLED, or less if a test keeps pages small. */
static int
least_killed(void)
{
	return lsm_page_entries > 0 ? Min(Max(lsm_page_entries / 4, 1), LEAST_KILLED) : LEAST_KILLED;
}

/* Is it time for a flush? */
bool
lsm_kill_is_full(const LsmKills *kills)
{
	return kills->count >= (lsm_page_entries > 0 ? 4 * least_killed() : MOST_KILLED);
}

/* Note an entry whose row is dead. */
void
lsm_kill_note(LsmKills *kills, const LsmReader *reader, const LsmEntry *entry, Relation heap)
{
	LsmKilled  *killed;

	/* advance_by_row knows the pages of heap tables only. */
	if (!lsm_preloaded || heap->rd_tableam != GetHeapamTableAmRoutine())
		return;
	if (kills->count == kills->room)
	{
		kills->room = Max(64, 2 * kills->room);
		kills->killed = kills->killed ?
			repalloc(kills->killed, kills->room * sizeof(LsmKilled)) :
			palloc(kills->room * sizeof(LsmKilled));
	}
	killed = &kills->killed[kills->count];
	if (!lsm_reader_page_of(reader, entry, &killed->page))
		return;
	killed->tid = entry->tid;
	kills->count++;
}

/* Compare by page, then by TID. */
static int
compare_killed(const void *a, const void *b)
{
	const LsmKilled *x = a;
	const LsmKilled *y = b;

	if (x->page.block != y->page.block)
		return x->page.block < y->page.block ? -1 : 1;
	if (x->page.owner != y->page.owner)
		return x->page.owner < y->page.owner ? -1 : 1;
	if (x->page.stamp != y->page.stamp)
		return x->page.stamp < y->page.stamp ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* The dead entries of one page, in the order of their TIDs. */
typedef struct PageKills
{
	const LsmKilled *first;
	int			count;
} PageKills;

static bool
is_killed(void *arg, uint64 tid)
{
	const PageKills *kills = arg;
	int			low = 0;
	int			high = kills->count;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (kills->first[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < kills->count && kills->first[low].tid == tid;
}

/*
 * Advance the horizon so that no snapshot later than the horizon sees a version of this row.  The
 * page is locked.
 */
static void
advance_by_row(Page page, OffsetNumber offset, TransactionId *horizon)
{
	TransactionId last = InvalidTransactionId;

	while (offset >= FirstOffsetNumber && offset <= PageGetMaxOffsetNumber(page))
	{
		ItemId		item = PageGetItemId(page, offset);
		HeapTupleHeader tuple;

		if (ItemIdIsRedirected(item))
		{
			offset = ItemIdGetRedirect(item);
			continue;
		}
		/* The version was pruned, and the WAL record of the pruning had its horizon. */
		if (!ItemIdIsNormal(item))
			return;
		tuple = (HeapTupleHeader) PageGetItem(page, item);
		if (TransactionIdIsValid(last) &&
			!TransactionIdEquals(HeapTupleHeaderGetXmin(tuple), last))
			return;
		lsm_advance_horizon(tuple, horizon);
		if (!HeapTupleHeaderIsHotUpdated(tuple))
			return;
		offset = ItemPointerGetOffsetNumber(&tuple->t_ctid);
		last = HeapTupleHeaderGetUpdateXid(tuple);
	}
}

/*
 * Returns the conflict horizon of the rows.  B-trees use heap_index_delete_tuples, but that
 * function needs TIDs that are in use.  Here VACUUM may have freed the TIDs since they were noted.
 */
static TransactionId
find_horizon(Relation heap, const PageKills *kills)
{
	TransactionId horizon = InvalidTransactionId;
	Buffer		buffer = InvalidBuffer;

	for (int i = 0; i < kills->count; i++)
	{
		ItemPointerData tid;
		BlockNumber block;

		/* An entry of a damaged page may have the offset 0. */
		lsm_int_to_tid(kills->first[i].tid, &tid);
		block = ItemPointerGetBlockNumberNoCheck(&tid);
		if (!BufferIsValid(buffer) || BufferGetBlockNumber(buffer) != block)
		{
			if (BufferIsValid(buffer))
				UnlockReleaseBuffer(buffer);
			CHECK_FOR_INTERRUPTS();
			/*
			 * The scan has visited the block, and nobody can have truncated the table since then.
			 */
			buffer = ReadBuffer(heap, block);
			LockBuffer(buffer, BUFFER_LOCK_SHARE);
		}
		advance_by_row(BufferGetPage(buffer), ItemPointerGetOffsetNumberNoCheck(&tid), &horizon);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	return horizon;
}

/* Remove the dead entries of a page.  We hold no lock while we read the table for the horizon. */
static void
remove_from_page(LsmReader *reader, Relation heap, PageKills *kills, LsmGroup *scratch,
				 uint16 *ordinals)
{
	LsmIndex   *index = reader->cx.index;
	const LsmPageRef *page = &kills->first->page;
	TransactionId horizon = InvalidTransactionId;
	uint64		missed = lsm_blocks_missed;
	Buffer		buffer;
	int			count;
	int			total;

	if (RelationNeedsWAL(index->rel))
		horizon = find_horizon(heap, kills);
	/*
	 * If these rows are not dead to everybody, the TIDs now belong to other rows.  In that case,
	 * the noted page is no longer part of the index, although it may look unchanged.
	 */
	if (TransactionIdIsValid(horizon) && !GlobalVisCheckRemovableXid(heap, horizon))
		return;
	buffer = lsm_buffer_read_owned(index->rel, page->block, page->kind, page->owner,
								   BUFFER_LOCK_EXCLUSIVE, NULL);
	lsm_reader_count_missed(reader, missed);
	if (!BufferIsValid(buffer))
		return;
	if (lsm_page_opaque(BufferGetPage(buffer))->stamp == page->stamp)
	{
		count = lsm_remove_find(index->rel, buffer, is_killed, kills, scratch, ordinals, &total);
		if (count > 0)
		{
			lsm_remove(index->rel, buffer, ordinals, count, horizon,
					   RelationIsAccessibleInLogicalDecoding(heap), scratch);
			reader->cx.counters.removed += count;
			lsm_reader_page_changed(reader, page, lsm_page_opaque(BufferGetPage(buffer))->stamp);
		}
	}
	UnlockReleaseBuffer(buffer);
}

/* Remove the noted entries of pages that have enough of them, and forget the other entries. */
void
lsm_kill_flush(LsmKills *kills, LsmReader *reader, Relation heap)
{
	LsmGroup   *scratch = NULL;
	uint16	   *ordinals = NULL;
	PageKills	page;
	int			least = least_killed();

	if (kills->count >= least)
		qsort(kills->killed, kills->count, sizeof(LsmKilled), compare_killed);
	for (int i = 0; i + least <= kills->count; i += page.count)
	{
		page.first = &kills->killed[i];
		for (page.count = 1; i + page.count < kills->count; page.count++)
		{
			if (!lsm_page_ref_equal(&page.first->page, &page.first[page.count].page))
				break;
		}
		if (page.count < least)
			continue;
		if (scratch == NULL)
		{
			scratch = palloc(sizeof(LsmGroup));
			lsm_group_init(scratch, LSM_MAX_ENTRY_SIZE);
			ordinals = palloc(LSM_MAX_PAGE_ENTRIES * sizeof(uint16));
		}
		remove_from_page(reader, heap, &page, scratch, ordinals);
		CHECK_FOR_INTERRUPTS();
	}
	if (scratch != NULL)
	{
		lsm_group_free(scratch);
		pfree(scratch);
		pfree(ordinals);
	}
	kills->count = 0;
}
