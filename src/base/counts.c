/*
 * counts.c
 *	  Counting in shared memory.
 */
#include "postgres.h"

#include "base/counts.h"
#include "base/index_slots.h"
#include "utils/timestamp.h"

/* Count something about an index.  Cheap; callable anywhere but in a critical section. */
void
lsm_stats_add(Relation index, LsmCounter counter, uint64 n)
{
	LsmIndexSlot *slot = lsm_slot_get(index);

	if (slot != NULL)
		pg_atomic_fetch_add_u64(&slot->counters[counter], n);
}

/* Set all counters of an index to zero. */
void
lsm_stats_reset(LsmIndexSlot *slot)
{
	for (int i = 0; i < LSM_COUNTERS; i++)
		pg_atomic_write_u64(&slot->counters[i], 0);
	pg_atomic_write_u64(&slot->reset_time, (uint64) GetCurrentTimestamp());
}
