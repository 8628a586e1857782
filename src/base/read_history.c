/*
 * read_history.c
 *	  Samples of how often an index was read.
 *
 * Each class keeps two samples.  The newer one becomes the older one when it is
 * as old as the class wants.  So the older one is between one and two of the
 * class's periods old, if the index is looked at often enough, and the age of a
 * run is known to within a factor of three.
 */
#include "postgres.h"

#include "base/read_history.h"

/*
 * The index was read that often so far, and the next run will have that id.
 *
 * REQUIRES: reads is not less than at the last call.  An id that is out of date
 * does no harm: fewer runs were there for certain.
 */
void
lsm_read_history_note(LsmReadHistory *history, uint64 reads, uint64 next_id)
{
	const LsmReadSample now = {reads, next_id};

	for (int i = 0; i < LSM_READ_CLASSES; i++)
	{
		uint64		period = (uint64) LSM_READ_FIRST << i;

		if (history->newer[i].next_id != 0 && reads - history->newer[i].reads < period)
			continue;
		history->older[i] = history->newer[i];
		history->newer[i] = now;
	}
}

/*
 * Reads since a run was written, now that there were `reads` of them in all: at
 * least so many.
 */
uint64
lsm_read_history_since(const LsmReadHistory *history, uint64 run_id, uint64 reads)
{
	uint64		first = reads;	/* of the samples that have the run */

	for (int i = 0; i < LSM_READ_CLASSES; i++)
	{
		if (run_id < history->newer[i].next_id)
			first = Min(first, history->newer[i].reads);
		if (run_id < history->older[i].next_id)
			first = Min(first, history->older[i].reads);
	}
	return reads - first;
}
