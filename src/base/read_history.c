/*
 * read_history.c
 *	  Notes how often an index had been read when a worker first saw each of its runs.
 *
 * Workers look at the runs during merges, and about a thousand reads after each seal.  So few reads
 * pass before a worker first sees a run.
 */
#include "postgres.h"

#include "base/read_history.h"

/* Returns the place of a run, or -1.  Searches from `start` on, then from the beginning. */
static int
find_seen_run(const LsmReadHistory *history, uint64 run_id, int start)
{
	for (int i = 0; i < history->count; i++)
	{
		int			at = (start + i) % history->count;

		if (history->runs[at].run_id == run_id)
			return at;
	}
	return -1;
}

/*
 * Note that the index has been read `reads` times so far, and now has these runs.  Sets since[i] to
 * a lower bound on the reads since run i was written.  Forgets runs that are gone.
 *
 * REQUIRES: reads is not less than in the last call, and there are at most LSM_MAX_RUNS runs.
 */
void
lsm_read_history_note(LsmReadHistory *history, uint64 reads, const uint64 *ids, int count,
					  uint64 *since)
{
	LsmReadHistory old = *history;
	int			next = 0;		/* runs keep their order, so the next run is probably here */

	for (int i = 0; i < count; i++)
	{
		int			at = find_seen_run(&old, ids[i], next);
		uint64		first = at < 0 ? reads : old.runs[at].reads;

		if (at >= 0)
			next = at + 1;
		history->runs[i] = (LsmSeenRun) {ids[i], first};
		since[i] = reads - first;
	}
	history->count = count;
}
