/*
 * dead_tids.c
 *	  TIDs whose rows a scan found dead after the index had moved on.
 *
 * If the row of the TID that an index returned last is dead to everybody, core's scan reports this
 * to the index, and later scans skip the TID. Without such reports, scans of the oldest rows of a
 * queue would get slower and slower. A scan that takes TIDs in advance cannot report a dead row at
 * once, because the index would apply the report to a later TID. So the scan keeps the dead TIDs.
 * If there are many, the scan ends with a second scan of the index, which visits only the table
 * pages of these TIDs.
 *
 * In this second scan, core looks the rows up again. VACUUM may have run since the first scan, and
 * a TID may now belong to another row.
 */
#include "postgres.h"

#include "access/genam.h"
#include "exec/dead_tids.h"
#include "lib/qunique.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/*
 * A second scan pays only if at least LEAST_DEAD TIDs are dead, and at least 1/LEAST_SHARE of the
 * TIDs that were looked up.
 */
#define LEAST_DEAD 16
#define LEAST_SHARE 8

/*
 * Keep at most this many dead TIDs, since each costs another visit to a table page. The next scan
 * finds the others.
 */
#define MOST_DEAD 1024

void
lsm_dead_init(LsmDeadTids *dead)
{
	memset(dead, 0, sizeof(LsmDeadTids));
	dead->context = CurrentMemoryContext;
}

void
lsm_dead_reset(LsmDeadTids *dead)
{
	dead->count = 0;
	dead->found = dead->looked_up = 0;
}

void
lsm_dead_note(LsmDeadTids *dead, ItemPointer tid)
{
	dead->found++;
	if (dead->count == MOST_DEAD)
		return;
	if (dead->count == dead->capacity)
	{
		dead->capacity = dead->capacity == 0 ? LEAST_DEAD : dead->capacity * 2;
		if (dead->tids == NULL)
			dead->tids = MemoryContextAlloc(dead->context,
											dead->capacity * sizeof(ItemPointerData));
		else
			dead->tids = repalloc(dead->tids, dead->capacity * sizeof(ItemPointerData));
	}
	dead->tids[dead->count++] = *tid;
}

bool
lsm_dead_are_many(const LsmDeadTids *dead)
{
	return dead->found >= LEAST_DEAD && dead->found * LEAST_SHARE >= dead->looked_up;
}

static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

/*
 * Tell the index which of the TIDs are still dead. The caller has restarted the index scan. In the
 * first scan, the dead TIDs were among the first `most` TIDs. Since then, other processes may have
 * added or removed entries, so this function may not find all of them. Leaves the slot empty.
 */
void
lsm_dead_report(LsmDeadTids *dead, IndexScanDesc index, ScanDirection direction,
				TupleTableSlot *slot, uint64 most)
{
	int			left;
	ItemPointer tid;

	qsort(dead->tids, dead->count, sizeof(ItemPointerData), compare_tids);
	dead->count = left = qunique(dead->tids, dead->count, sizeof(ItemPointerData), compare_tids);
	/* The index learns that a TID is dead when we ask for the next TID, so ask before stopping. */
	while ((tid = index_getnext_tid(index, direction)) != NULL && left > 0 && most-- > 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (bsearch(tid, dead->tids, dead->count, sizeof(ItemPointerData), compare_tids) == NULL)
			continue;
		(void) index_fetch_heap(index, slot);
		left--;
	}
	ExecClearTuple(slot);
}
