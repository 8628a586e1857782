/*
 * index_slots.h
 *	  Finds, assigns and frees the slots of indexes in shared memory, and keeps workers away from
 *	  indexes.
 */
#ifndef LSM_INDEX_SLOTS_H
#define LSM_INDEX_SLOTS_H

#include "base/shared.h"
#include "utils/relcache.h"

extern LsmIndexSlot *lsm_slot_get(Relation index);
extern LsmIndexSlot *lsm_slot_of(Oid index);
extern LsmIndexSlot *lsm_slot_find(Oid index);
extern int64 lsm_slot_late_us(LsmIndexSlot *slot, TimestampTz now);
extern int64 lsm_slot_add_late(LsmIndexSlot *slot, int64 us, TimestampTz now);
extern void lsm_slot_postpone(LsmIndexSlot *slot, int64 wait_ms);
extern void lsm_slots_postpone_database(Oid database, int64 wait_ms);
extern void lsm_slots_free_database(Oid database);
extern void lsm_slot_free(Oid index);

#endif							/* LSM_INDEX_SLOTS_H */
