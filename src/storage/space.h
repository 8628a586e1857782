/*
 * space.h
 *	  Extents: allocation, trimming, freeing, recycling by horizon.
 *
 * See "Space" and invariants I2, I3, I9 in src/README.md.
 */
#ifndef LSM_SPACE_H
#define LSM_SPACE_H

#include "base/compat.h"
#include "format/map_page.h"
#include "format/wal.h"

/* Changes of one map page that are to be applied and logged. */
typedef struct LsmPlanPage
{
	Buffer		buffer;			/* locked exclusively */
	bool		init;			/* a new map page */
	BlockNumber mapped_end;		/* new value, or invalid */
	BlockNumber next;			/* new value, or invalid */
	int			count;
	int			room;
	LsmMapChange *changes;
} LsmPlanPage;

/*
 * A planned change of the space map.  Between planning and
 * lsm_space_plan_finish the map head is locked; nothing has changed yet.  The
 * caller of lsm_space_plan_apply is in a critical section and logs the change
 * with a record of its own (SEAL, BATCH) or lets lsm_space_alloc do it.
 */
typedef struct LsmSpacePlan
{
	BlockNumber start;			/* what was allocated */
	uint32		length;
	xl_lsm_space wal;
	int			page_count;
	LsmPlanPage pages[LSM_WAL_MAP_PAGES];
	xl_lsm_map_page heads[LSM_WAL_MAP_PAGES];
} LsmSpacePlan;

extern void lsm_space_plan_alloc(LsmSpacePlan *plan, Relation rel, Relation heap,
								 uint64 owner, uint32 want, uint32 least,
								 BlockNumber grow_at);
extern void lsm_space_plan_apply(LsmSpacePlan *plan);
extern void lsm_space_plan_register(LsmSpacePlan *plan);
extern void lsm_space_plan_finish(LsmSpacePlan *plan, XLogRecPtr lsn);

extern void lsm_space_alloc(Relation rel, Relation heap, uint64 owner, uint32 want,
							BlockNumber grow_at, BlockNumber *start, uint32 *length);
extern void lsm_space_trim(Relation rel, Relation heap, uint64 owner,
						   BlockNumber unused, BlockNumber end);
extern void lsm_space_free(Relation rel, Relation heap, uint64 owner,
						   BlockNumber *blocks, Size count);
extern void lsm_space_keep_only(Relation rel, Relation heap, uint64 owner,
								BlockNumber *blocks, Size count);
extern void lsm_space_reap(Relation rel, Relation heap, const uint64 *known,
						   int known_count, uint64 next_run_id);
extern void lsm_space_ensure(Relation rel);
extern LsmExtent *lsm_space_list(Relation rel, int *count, BlockNumber *mapped_end);
extern LsmExtent *lsm_space_list_locked(Relation rel, Buffer head, int *count,
										BlockNumber *mapped_end);

#endif							/* LSM_SPACE_H */
