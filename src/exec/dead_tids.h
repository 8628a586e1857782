/*
 * dead_tids.h
 *	  TIDs whose rows a scan found dead after the index had moved on.
 */
#ifndef LSM_DEAD_TIDS_H
#define LSM_DEAD_TIDS_H

#include "postgres.h"

#include "access/relscan.h"
#include "access/sdir.h"
#include "executor/tuptable.h"
#include "storage/itemptr.h"

typedef struct LsmDeadTids
{
	MemoryContext context;		/* of the TIDs */
	ItemPointerData *tids;		/* NULL: none yet */
	int			count;
	int			capacity;
	uint64		found;			/* dead TIDs, kept or not */
	uint64		looked_up;		/* TIDs, dead or not */
} LsmDeadTids;

extern void lsm_dead_init(LsmDeadTids *dead);
extern void lsm_dead_reset(LsmDeadTids *dead);
extern void lsm_dead_note(LsmDeadTids *dead, ItemPointer tid);
extern bool lsm_dead_are_many(const LsmDeadTids *dead);
extern void lsm_dead_report(LsmDeadTids *dead, IndexScanDesc index, ScanDirection direction,
							TupleTableSlot *slot, uint64 most);

#endif							/* LSM_DEAD_TIDS_H */
