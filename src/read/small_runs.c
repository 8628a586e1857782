/*
 * small_runs.c
 *	  Looks for the keys of a batch in all small runs at once.
 *
 * During heavy inserts, most runs are small: batches, and the first merges of batches.  Asking each
 * small run about all keys would cost more than asking the large runs, and small runs contain
 * hardly any of the keys.  So the joint filter, in private memory, knows the keys of all small
 * runs.  The batch looks run by run only for keys that the joint filter lets through.
 *
 * A run joins the filter after enough lookups to make reading the run pay.  The batch skips a run
 * that has nothing between the batch's first and last key, so such a run need not join.  While keys
 * ascend, most runs are of this kind.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "read/run_lookup.h"
#include "read/run_probe.h"
#include "read/small_runs.h"

/* Keys that are looked for together, run by run. */
#define LEFT_PER_ROUND	64

/* May the run join the joint filter? */
bool
lsm_run_is_small(LsmCursor *cursor)
{
	return ((LsmRunCursor *) cursor)->filter != NULL;
}

/*
 * Let a run join, unless keys now have other hashes than filters expect.  Returns false if the
 * cursor is stale.
 */
static bool
join_filter(LsmRunCursor *c)
{
	LsmJointMember *member = &c->filter->member;
	LsmKeyHashes keys;

	if (!lsm_run_read_keys(c, &keys, &member->low, &member->high))
		return false;
	if (lsm_hashing_holds(&c->cx->ks->hashing))
		lsm_joint_filter_add(lsm_joint_filter(c->cx->filters), member, keys.hashes, keys.count);
	pfree(keys.hashes);
	return true;
}

/*
 * Does a run need the joint filter for these keys?  A run does not if it has nothing between the
 * first and the last key.  If the run is not due to join, looks for the keys in the run itself, and
 * returns false.
 */
static bool
needs_joint_filter(LsmRunCursor *c, LsmProbe *probes, Size count, LsmBound *low, LsmBound *high)
{
	LsmJointMember *member = &c->filter->member;

	if (lsm_joint_filter_has_member(lsm_joint_filter(c->cx->filters), member))
		return lsm_joint_member_overlaps(member, probes[0].prefix, probes[count - 1].prefix);
	if (lsm_joint_member_is_due(member, count, c->run.entries))
		return lsm_run_enter_single(c, probes, count, low);
	(void) lsm_run_probe(&c->base, probes, count, low, high);
	return false;
}

/*
 * Move the runs that need the joint filter to the beginning of the array, and let them join.  The
 * other runs are done.  Returns the number of runs moved, which is meaningless if a cursor is
 * stale.
 */
static int
choose_members(LsmReadContext *cx, LsmCursor **cursors, int cursor_count, LsmProbe *probes,
			   Size count, LsmBound *low, LsmBound *high)
{
	LsmJointFilter *joint = lsm_joint_filter(cx->filters);
	uint64		more = 0;
	uint64		all = 0;
	int			n = 0;
	int			joined = 0;

	for (int i = 0; i < cursor_count && !cx->stale; i++)
	{
		LsmRunCursor *c = (LsmRunCursor *) cursors[i];
		uint64		room;

		if (!needs_joint_filter(c, probes, count, low, high))
			continue;
		room = lsm_joint_member_room(&c->filter->member, c->run.entries);
		all += room;
		if (!lsm_joint_filter_has_member(joint, &c->filter->member))
			more += room;
		cursors[n++] = cursors[i];
	}
	if (n == 0 || cx->stale)
		return 0;
	lsm_joint_filter_reserve(joint, more, all);
	for (int i = 0; i < n; i++)
	{
		LsmRunCursor *c = (LsmRunCursor *) cursors[i];

		if (!lsm_joint_filter_has_member(joint, &c->filter->member) && !join_filter(c))
			return 0;
		if (lsm_joint_filter_has_member(joint, &c->filter->member))
			cursors[joined++] = cursors[i];
		else
			(void) lsm_run_probe(cursors[i], probes, count, low, high);
	}
	return cx->stale ? 0 : joined;
}

/* Look for the probes at the places `at` of the array, in each of the runs. */
static void
look_run_by_run(LsmReadContext *cx, LsmCursor **cursors, int cursor_count, LsmProbe *probes,
				const Size *at, int count, LsmBound *low, LsmBound *high)
{
	LsmProbe	left[LEFT_PER_ROUND];

	for (int i = 0; i < count; i++)
		left[i] = probes[at[i]];
	for (int i = 0; i < cursor_count && count > 0 && !cx->stale; i++)
		(void) lsm_run_probe(cursors[i], left, count, low, high);
	for (int i = 0; i < count; i++)
		probes[at[i]].found = left[i].found;
}

/*
 * Look for keys, in their order, in small runs of a reader's version, as lsm_run_probe does in one
 * run.  Returns false if the version is stale.  Overwrites the array of cursors.
 */
bool
lsm_small_runs_probe(LsmCursor **cursors, int cursor_count, LsmProbe *probes, Size count,
					 LsmBound *low, LsmBound *high)
{
	LsmReadContext *cx = ((LsmRunCursor *) cursors[0])->cx;
	const LsmJointFilter *joint = lsm_joint_filter(cx->filters);
	int			n = choose_members(cx, cursors, cursor_count, probes, count, low, high);
	Size		at[LEFT_PER_ROUND];
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
		if (left < LEFT_PER_ROUND)
			continue;
		look_run_by_run(cx, cursors, n, probes, at, left, low, high);
		left = 0;
		CHECK_FOR_INTERRUPTS();
	}
	if (!cx->stale)
		look_run_by_run(cx, cursors, n, probes, at, left, low, high);
	return !cx->stale;
}
