/*
 * read_history.h
 *	  Notes how often an index had been read when a worker first saw each of its runs.
 *
 * Readers count the reads of the whole index (LsmIndexSlot.reads: seeks, averaged over its runs),
 * but not the reads of each run.  The increase of this count since a worker first saw a run is a
 * lower bound on the reads of the run.
 */
#ifndef LSM_READ_HISTORY_H
#define LSM_READ_HISTORY_H

#include "postgres.h"

#include "base/limits.h"

/* Readers wait for at least this many reads before they ask a worker to look again. */
#define LSM_READS_PER_LOOK 1024

/* A run, and the reads of the index when the run was first seen. */
typedef struct LsmSeenRun
{
	uint64		run_id;
	uint64		reads;
} LsmSeenRun;

/* Initially zeroed. */
typedef struct LsmReadHistory
{
	int			count;
	LsmSeenRun	runs[LSM_MAX_RUNS];
} LsmReadHistory;

extern void lsm_read_history_note(LsmReadHistory *history, uint64 reads, const uint64 *ids,
								  int count, uint64 *since);

#endif							/* LSM_READ_HISTORY_H */
