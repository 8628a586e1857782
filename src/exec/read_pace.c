/*
 * read_pace.c
 *	  How far a prefetching scan looks ahead: the depth, which follows from how pages
 *	  are read.
 *
 * Reading ahead begins when some pages had to be read and took their time, and
 * ends when they are found in memory: `depth` pages ahead, doubled with each page
 * that had to be read, one less with each that was in shared buffers.  Whether it
 * was in the kernel's cache shows only when it is read, so once in a while a page
 * is not prefetched, but read and timed.
 *
 * A scan that takes its pages from a stream leaves it to the stream how far to look
 * ahead, and whether to read pages together.  It heeds only whether the depth is 0.
 */
#include "postgres.h"

#include "base/limits.h"
#include "exec/read_pace.h"

/* So many slow reads, one by one, let us read ahead... */
#define MISSES_TO_START 4
/* ... of so many pages. */
#define START_DEPTH 4

/* Where half of about so many pages follow each other, the kernel reads ahead. */
#define FOLLOWING_ONE 65536
#define FOLLOWING_PAGES 128

/* One of so many pages is timed while we read ahead. */
#define PROBE_INTERVAL 1024

void
lsm_pace_init(LsmReadPace *pace, int limit, bool forced)
{
	memset(pace, 0, sizeof(LsmReadPace));
	pace->limit = limit;
	pace->forced = forced;
	lsm_pace_start_over(pace);
}

/* The index is scanned anew. */
void
lsm_pace_start_over(LsmReadPace *pace)
{
	/* Who has read ahead once need not wait as long the next time. */
	pace->misses = pace->has_read_ahead ? MISSES_TO_START - 1 : 0;
	pace->depth = pace->forced ? pace->limit : 0;
	pace->probe = pace->last_ahead = InvalidBlockNumber;
	pace->following = 0;
}

/* Should this page, the next one ahead, be prefetched? */
bool
lsm_pace_wants_prefetch(LsmReadPace *pace, BlockNumber block)
{
	bool		follows = pace->last_ahead != InvalidBlockNumber && block == pace->last_ahead + 1;

	/* In larger pieces than ours, whose requests would only break them up. */
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

/* The next page ahead has to be read, or is in shared buffers. */
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

/* A page was timed, and had to be read, or was there. */
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
