/*
 * dead_tids.c
 *	  TIDs that were found dead when their index had moved on.
 *
 * When a scan finds that the row of the TID that an index returned last is dead to
 * everybody, the index is told, and the next scan does not see that TID again.
 * Without this the head of a queue would get slower and slower.  A scan that takes
 * TIDs ahead cannot tell: the index means the last one.  So such TIDs are kept, and
 * if they are many, the index is scanned again when the rows have been read: no
 * page of the table, but those of these TIDs.
 *
 * Those are looked up once more, by core, in the way that core does it.  That they
 * were dead is not enough: VACUUM may have come by, and the TID may be another
 * row's.
 */
#include "postgres.h"

#include "access/genam.h"
#include "exec/dead_tids.h"
#include "lib/qunique.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Fewer, or fewer of those that were looked up, are not worth it. */
#define LEAST_DEAD 16
#define LEAST_SHARE 8

/* More are left to the next scan: each costs a page of the table that is looked at again. */
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
 * Tell the index, whose scan begins anew, of those that are still dead.  They are among
 * the first `most` TIDs that it gives, unless others have told it of some already.  The
 * slot is left empty.
 */
void
lsm_dead_tell(LsmDeadTids *dead, IndexScanDesc index, ScanDirection direction,
			  TupleTableSlot *slot, uint64 most)
{
	int			left;
	ItemPointer tid;

	qsort(dead->tids, dead->count, sizeof(ItemPointerData), compare_tids);
	dead->count = left = qunique(dead->tids, dead->count, sizeof(ItemPointerData), compare_tids);
	/* What is said of a TID is heard when the next one is asked for. */
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
