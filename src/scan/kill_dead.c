/*
 * kill_dead.c
 *	  Entries that scans find dead: the executor tells (kill_prior_tuple) when a
 *	  row that it was led to is dead to every snapshot.
 *
 * A B-tree marks such entries, and removes them when it needs room.  Here they are
 * removed at once, when a scan has found enough of them on a page: a page that
 * nobody inserts into gets no second chance.  So the next scan passes a stretch
 * of deleted rows, such as the head of a queue, without looking at the table.
 *
 * A TID must not have been given to another row meanwhile.  VACUUM gives it free
 * only when its entries are gone, so it is enough that nobody has removed any from
 * the page since it was read: its stamp tells.  (When we have done so ourselves,
 * what else was read from a leaf still holds, since a leaf never gains entries.
 * Of a page that may, we forget the rest.)  If the entry has moved on
 * with a merge, the page is another's, or nobody's, and it does no harm to change
 * that: only what is dead goes.
 *
 * A standby's queries may still need such entries: the record has the horizon,
 * which the table's own pages give, as for B-trees.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "scan/kill_dead.h"
#include "storage/remove.h"
#include "base/compat.h"
#include "base/coding.h"
#include "base/limits.h"
#include "base/preload.h"
#include "catalog/catalog.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Fewer on a page are not worth a record; more are not kept in memory. */
#define LEAST_KILLED	16
#define MOST_KILLED		4096

/* The same where pages are kept small, for tests. */
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

/* A scan moves on from an entry whose row is dead. */
void
lsm_kill_note(LsmKills *kills, const LsmReader *reader, const LsmEntry *entry, Relation heap)
{
	LsmKilled  *killed;

	/* Of other tables we do not know what their rows look like. */
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

/* By page, and by TID on it. */
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

/* Entries of one page, in the order of their TIDs. */
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

/* Let no older snapshot need a version of this row.  Its page is locked. */
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
		/* Who has pruned the others has told standbys of it. */
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
 * The last transaction whose end some snapshot must have seen so that none of the
 * rows is visible to it.  heap_index_delete_tuples, which B-trees use, wants TIDs
 * that are in use for sure: here the entries may have been removed, and the TIDs
 * given to other rows, since they were noted.
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

		lsm_int_to_tid(kills->first[i].tid, &tid);
		block = ItemPointerGetBlockNumber(&tid);
		if (!BufferIsValid(buffer) || BufferGetBlockNumber(buffer) != block)
		{
			if (BufferIsValid(buffer))
				UnlockReleaseBuffer(buffer);
			/* Scans have been there, and nobody can have cut the table since. */
			buffer = ReadBuffer(heap, block);
			LockBuffer(buffer, BUFFER_LOCK_SHARE);
		}
		advance_by_row(BufferGetPage(buffer), ItemPointerGetOffsetNumber(&tid), &horizon);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	return horizon;
}

/*
 * Remove them.  The horizon comes first: no lock of ours is held while the table
 * is read.
 */
static void
remove_from_page(LsmReader *reader, Relation heap, PageKills *kills, LsmGroup *scratch,
				 uint16 *ordinals)
{
	LsmIndex   *index = reader->cx.index;
	const LsmPageRef *page = &kills->first->page;
	TransactionId horizon = InvalidTransactionId;
	Buffer		buffer;
	int			count;
	int			total;

	if (RelationNeedsWAL(index->rel))
		horizon = find_horizon(heap, kills);
	/*
	 * The rows that were noted are dead to everybody.  If these are not, they are others,
	 * and the page, which may look as it did, is nobody's any more.
	 */
	if (TransactionIdIsValid(horizon) && !GlobalVisCheckRemovableXid(heap, horizon))
		return;
	buffer = lsm_buffer_read_owned(index->rel, page->block, page->kind, page->owner,
								   BUFFER_LOCK_EXCLUSIVE, NULL);
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

/* The scan is over, or has noted as much as there is room for. */
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
