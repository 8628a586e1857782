/*
 * split.c
 *	  Finds the positions at which a parallel scan divides its range among processes.
 *
 * A split is a position between entries, taken from the pages of the runs. Any position beyond the
 * previous split is correct: exactly one process reads the entries between two splits, whatever
 * versions the processes read. So nothing here depends on the version being current. A good split
 * has about the requested number of leaves before it.
 */
#include "postgres.h"

#include "read/reader.h"
#include "read/run_cursor.h"
#include "utils/memutils.h"

/* The number of attempts to find a split while versions become stale. */
#define PATIENCE 8

/*
 * Returns about how many leaves of one run correspond to `leaves` leaves of all runs. If the runs
 * cover the same range, this is the largest run's share. If they cover different ranges, the split
 * gets fewer leaves than requested.
 */
static uint32
leaves_of_a_run(const LsmReader *reader, uint32 leaves)
{
	uint64		total = 0;
	uint32		largest = 0;

	for (int i = 0; i < reader->child_count; i++)
	{
		total += reader->child_leaves[i];
		largest = Max(largest, reader->child_leaves[i]);
	}
	return total > 0 ? (uint32) Max((uint64) leaves * largest / total, 1) : 1;
}

/* Returns whether a position lies strictly between two others, in that direction. */
static bool
is_between(LsmKeySpace *ks, const LsmBound *from, const LsmBound *limit, const LsmBound *split,
		   ScanDirection direction)
{
	int			sign = ScanDirectionIsForward(direction) ? 1 : -1;

	return lsm_bound_order(ks, from, split) * sign > 0 &&
		lsm_bound_order(ks, limit, split) * sign < 0;
}

/* Ask all runs of the version for a split. Returns the nearest, or NULL if there is none. */
static LsmBound *
find_nearest_split(LsmReader *reader, const LsmBound *from, const LsmBound *limit,
				   ScanDirection direction, uint32 leaves, bool *stale)
{
	LsmBound   *candidate = &reader->split[0];
	LsmBound   *nearest = NULL;

	*stale = false;
	for (int i = 0; i < reader->child_count; i++)
	{
		const LsmBound *end = nearest != NULL ? nearest : limit;

		if (reader->child_leaves[i] <= leaves)
			continue;
		reader->cx.stale = false;
		if (lsm_run_cursor_split(reader->children[i], from, leaves, direction, candidate) &&
			is_between(reader->cx.ks, from, end, candidate, direction))
		{
			nearest = candidate;
			candidate = nearest == &reader->split[0] ? &reader->split[1] : &reader->split[0];
		}
		*stale |= reader->cx.stale;
	}
	reader->cx.stale = false;
	return nearest;
}

/*
 * Returns a position after `from` and before `limit` (backward: the other way round) with about
 * `leaves` leaves before it. Returns NULL if there are fewer, or if versions keep becoming stale.
 * The position is valid until the next call.
 *
 * REQUIRES: the reader was refreshed. It stands nowhere afterwards, so the caller must seek.
 */
const LsmBound *
lsm_reader_split(LsmReader *reader, const LsmBound *from, const LsmBound *limit,
				 ScanDirection direction, uint32 leaves)
{
	MemoryContext old = MemoryContextSwitchTo(reader->context);
	LsmBound   *split = NULL;
	bool		stale = true;
	uint64		missed;

	for (int i = 0; i < PATIENCE && split == NULL && stale; i++)
	{
		/* The version is stale, or the index is damaged.  The seek will find out. */
		if (i > 0)
			lsm_reader_refresh(reader);
		missed = lsm_blocks_missed;
		split = find_nearest_split(reader, from, limit, direction,
								   leaves_of_a_run(reader, leaves), &stale);
		lsm_reader_count_missed(reader, missed);
	}
	MemoryContextSwitchTo(old);
	return split;
}
