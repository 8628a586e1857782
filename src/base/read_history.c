/*
 * read_history.c
 *	  Samples of how often an index was read.
 *
 * Each class keeps two samples.  When the newer sample is one period old, it becomes the older
 * sample, and a new sample takes its place.  If samples are taken often enough, the older sample is
 * one to two periods old.  So the age of a run is known to within a factor of three.
 */
#include "postgres.h"

#include "base/read_history.h"

/*
 * Note that the index has been read `reads` times so far, and that the next run gets the id
 * next_id.  An outdated next_id is harmless, because the sample just covers fewer runs.
 *
 * REQUIRES: reads is not less than in the last call.
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
 * Returns a lower bound on the reads since a run was written.  `reads` is the number of reads of
 * the index so far.
 */
uint64
lsm_read_history_since(const LsmReadHistory *history, uint64 run_id, uint64 reads)
{
	uint64		first = reads;	/* reads at the first sample that covers the run */

	for (int i = 0; i < LSM_READ_CLASSES; i++)
	{
		if (run_id < history->newer[i].next_id)
			first = Min(first, history->newer[i].reads);
		if (run_id < history->older[i].next_id)
			first = Min(first, history->older[i].reads);
	}
	return reads - first;
}
