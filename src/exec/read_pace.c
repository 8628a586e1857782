/*
 * read_pace.c
 *	  Sets the depth of a prefetching scan: how many pages it looks ahead.
 *
 * Prefetching starts after several slow reads, and ends when pages are found in memory. The scan
 * looks `depth` pages ahead. The depth doubles after each page ahead that must be read, and
 * decreases by one after each page that is in shared buffers. Only a timed read shows whether a
 * page was in the kernel's cache. So from time to time, the scan reads and times a page that it did
 * not prefetch.
 *
 * If a scan takes its pages from a stream, the stream chooses the distance and combines reads. In
 * that case, the depth matters only if it is 0.
 */
#include "postgres.h"

#include "base/limits.h"
#include "exec/read_pace.h"

/* Prefetching starts after this many slow reads ... */
#define MISSES_TO_START 4
/* ... with this depth. */
#define START_DEPTH 4

/*
 * The share of pages that follow the previous page, averaged over about FOLLOWING_PAGES pages.
 * FOLLOWING_ONE means all. If the share is at least one half, we leave reading ahead to the kernel.
 */
#define FOLLOWING_ONE 65536
#define FOLLOWING_PAGES 128

/* While prefetching, one page in this many is timed. */
#define PROBE_INTERVAL 1024

void
lsm_pace_init(LsmReadPace *pace, int limit, bool forced)
{
	memset(pace, 0, sizeof(LsmReadPace));
	pace->limit = limit;
	pace->forced = forced;
	lsm_pace_start_over(pace);
}

/* Called when the scan of the index starts over. */
void
lsm_pace_start_over(LsmReadPace *pace)
{
	/* A scan that has prefetched before starts prefetching earlier. */
	pace->misses = pace->has_read_ahead ? MISSES_TO_START - 1 : 0;
	pace->depth = pace->forced ? pace->limit : 0;
	pace->probe = pace->last_ahead = InvalidBlockNumber;
	pace->following = 0;
}

/* Returns whether to prefetch this page, the next one ahead. */
bool
lsm_pace_wants_prefetch(LsmReadPace *pace, BlockNumber block)
{
	bool		follows = pace->last_ahead != InvalidBlockNumber && block == pace->last_ahead + 1;

	/*
	 * Where pages follow each other, the kernel reads larger pieces, and our requests would only
	 * break them up.
	 */
	pace->last_ahead = block;
	pace->following += ((follows ? FOLLOWING_ONE : 0) - pace->following) / FOLLOWING_PAGES;
	if (pace->following >= FOLLOWING_ONE / 2)
		return false;
	if (!pace->forced && ++pace->since_probe >= PROBE_INTERVAL)
	{
		pace->since_probe = 0;
		pace->probe = block;
		return false;
	}
	return true;
}

/* Adjust the depth: the next page ahead must be read (is_missing), or is in shared buffers. */
void
lsm_pace_note_ahead(LsmReadPace *pace, bool is_missing)
{
	if (is_missing)
	{
		pace->depth = Min(pace->depth * 2, pace->limit);
		pace->missing++;
	}
	else if (!pace->forced)
		pace->depth--;
}

/*
 * Adjust the depth after a page was timed. The page had to be read (missed), or was in shared
 * buffers.
 */
void
lsm_pace_note_time(LsmReadPace *pace, const LsmReadWatch *watch, bool missed)
{
	bool		was_slow = INSTR_TIME_GET_MICROSEC(watch->time) >= LSM_SLOW_READ_US;

	if (pace->depth > 0)
	{
		pace->probe = InvalidBlockNumber;
		if (missed && !was_slow)
			pace->depth = 0;
	}
	else if (missed && was_slow && ++pace->misses >= MISSES_TO_START)
	{
		pace->depth = Min(START_DEPTH, pace->limit);
		pace->misses = 0;
		pace->has_read_ahead = true;
	}
}
