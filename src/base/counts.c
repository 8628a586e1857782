/*
 * counts.c
 *	  The counters in shared memory.
 */
#include "postgres.h"

#include "base/counts.h"
#include "base/index_slots.h"
#include "utils/timestamp.h"

/* Add n to a counter of an index.  This is cheap, but must not be called in a critical section. */
void
lsm_stats_add(Relation index, LsmCounter counter, uint64 n)
{
	LsmIndexSlot *slot = lsm_slot_get(index);

	if (slot != NULL)
		pg_atomic_fetch_add_u64(&slot->counters[counter], n);
}

/* Reset all counters of an index. */
void
lsm_stats_reset(LsmIndexSlot *slot)
{
	for (int i = 0; i < LSM_COUNTERS; i++)
		pg_atomic_write_u64(&slot->counters[i], 0);
	pg_atomic_write_u64(&slot->reset_time, (uint64) GetCurrentTimestamp());
}
