/*
 * small_runs.c
 *	  Looking for the keys of a batch in all small runs at once.
 *
 * While rows pour in, most runs are small: batches, and the first merges of them.  To
 * ask each for all keys would cost more than the large ones do, and hardly any key is in
 * one of them.  So a single filter in private memory, the joint one, has the keys of all
 * small runs, and only keys that it may have are looked for run by run.
 *
 * A run joins when it has been looked into so often that reading it pays.  One with
 * nothing between the first and the last key of a batch is passed over, and need not
 * join: as it is while keys ascend.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "read/run_cursor.h"
#include "utils/memutils.h"

/* Keys that are looked for run by run together. */
#define LEFT_A_ROUND	64

/* Is it a run that a joint filter may have? */
bool
lsm_run_cursor_is_small(LsmCursor *cursor)
{
	return ((RunCursor *) cursor)->filter != NULL;
}

/* Can a run that has joined have any of the keys? */
static bool
overlaps(const LsmRunFilter *filter, const LsmProbe *probes, Size count)
{
	return probes[count - 1].prefix >= filter->low && probes[0].prefix <= filter->high;
}

/* Let a run join.  False if the cursor is stale. */
static bool
join(RunCursor *c)
{
	LsmKeyHashes keys;

	if (!lsm_run_read_keys(c, &keys, &c->filter->low, &c->filter->high))
		return false;
	lsm_joint_filter_add(c->cx->filters, c->filter, keys.hashes, keys.count);
	pfree(keys.hashes);
	return true;
}

/*
 * Put the runs that the joint filter is to be asked for at the beginning of the array,
 * and make it have them.  The others are done.  Returns their number; if a cursor is
 * stale it does not count.
 */
static int
choose(LsmReadContext *cx, LsmCursor **cursors, int cursor_count, LsmProbe *probes, Size count,
	   LsmBound *low, LsmBound *high)
{
	const LsmJointFilter *joint = lsm_joint_filter(cx->filters);
	uint64		round = joint->round;
	uint64		more = 0;
	uint64		all = 0;
	int			n = 0;

	for (int i = 0; i < cursor_count && !cx->stale; i++)
	{
		RunCursor  *c = (RunCursor *) cursors[i];

		if (c->filter->joined != round || round == 0)
		{
			c->filter->keys += count;
			if (c->filter->keys * LSM_ENTRIES_A_LOOKUP < c->run.entries)
			{
				(void) lsm_run_cursor_probe(cursors[i], probes, count, low, high);
				continue;
			}
			if (!lsm_run_enter_single(c, probes, count, low))
				continue;
			more += Max(c->run.entries, c->filter->joined_keys);
		}
		else if (!overlaps(c->filter, probes, count))
			continue;
		all += Max(c->run.entries, c->filter->joined_keys);
		cursors[n++] = cursors[i];
	}
	if (n == 0 || cx->stale)
		return 0;
	lsm_joint_filter_reserve(cx->filters, more, all);
	for (int i = 0; i < n && !cx->stale; i++)
	{
		RunCursor  *c = (RunCursor *) cursors[i];

		if (c->filter->joined != joint->round && !join(c))
			return 0;
	}
	return n;
}

/* Look for some of the probes, at these places in the array, in each of the runs. */
static void
look_run_by_run(LsmReadContext *cx, LsmCursor **cursors, int cursor_count, LsmProbe *probes,
				const Size *at, int count, LsmBound *low, LsmBound *high)
{
	LsmProbe	left[LEFT_A_ROUND];

	for (int i = 0; i < count; i++)
		left[i] = probes[at[i]];
	for (int i = 0; i < cursor_count && count > 0 && !cx->stale; i++)
		(void) lsm_run_cursor_probe(cursors[i], left, count, low, high);
	for (int i = 0; i < count; i++)
		probes[at[i]].found = left[i].found;
}

/*
 * Look for keys, which are in order, in these small runs of a reader's version: the same
 * as lsm_run_cursor_probe for each of them.  False if the version is old.  The array of
 * cursors is used up.
 */
bool
lsm_small_runs_probe(LsmCursor **cursors, int cursor_count, LsmProbe *probes, Size count,
					 LsmBound *low, LsmBound *high)
{
	LsmReadContext *cx = ((RunCursor *) cursors[0])->cx;
	const LsmJointFilter *joint = lsm_joint_filter(cx->filters);
	int			n = choose(cx, cursors, cursor_count, probes, count, low, high);
	Size		at[LEFT_A_ROUND];
	int			left = 0;

	for (Size i = 0; i < count && n > 0 && !cx->stale; i++)
	{
		if (probes[i].found || probes[i].repeats)
			continue;
		cx->counters.filter_checks++;
		if (!lsm_joint_filter_has(joint, probes[i].hash))
		{
			cx->counters.filter_skips++;
			continue;
		}
		at[left++] = i;
		if (left < LEFT_A_ROUND)
			continue;
		look_run_by_run(cx, cursors, n, probes, at, left, low, high);
		left = 0;
		CHECK_FOR_INTERRUPTS();
	}
	if (!cx->stale)
		look_run_by_run(cx, cursors, n, probes, at, left, low, high);
	return !cx->stale;
}
