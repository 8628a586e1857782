/*
 * scan_keys.c
 *	  Prepares the keys of a scan at the first fetch after a rescan.
 *
 * Like nbtree, we do not translate keys earlier, since some callers fill in the arguments of
 * scan->keyData after index_rescan.
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/ssi.h"
#include "scan/scan_state.h"
#include "utils/memutils.h"

/* A serializable transaction locks at most this many combinations of arrays one by one. */
#define MOST_COMBINATIONS_LOCKED 16

/* Translate the keys, and clear all positions. */
static void
translate_keys(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	MemoryContextReset(s->key_context);
	lsm_scankeys_prepare(&s->keys, s->ks, scan->keyData, scan->numberOfKeys);
	lsm_bound_clear(&s->mark);
	lsm_bound_clear(&s->here);
	lsm_bound_clear(&s->next);
	lsm_bound_clear(&s->until);
	lsm_bound_clear(&s->claim);
}

/*
 * Lock each combination.  Returns false if there are more than MOST_COMBINATIONS_LOCKED.
 *
 * REQUIRES: no column is skipped, so that each combination has a value for each column.
 */
static bool
lock_combinations(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	for (int i = 0; i < MOST_COMBINATIONS_LOCKED; i++)
	{
		lsm_combination_bound(&s->keys, &s->next, true);
		lsm_combination_bound(&s->keys, &s->until, false);
		lsm_ssi_lock_range(s->ks, scan->indexRelation, &s->next, &s->until, scan->xs_snapshot);
		if (lsm_combination_next(&s->keys, ForwardScanDirection) == LSM_PLACE_END)
			return true;
	}
	return false;
}

/* Take predicate locks on all ranges that the scan may read. */
static void
lock_predicates(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;

	lsm_combination_begin(&s->keys, ForwardScanDirection);
	if ((s->keys.are_keys || s->keys.are_prefixes) && lock_combinations(scan))
		return;
	lsm_ssi_lock_range(s->ks, scan->indexRelation, &s->keys.low, &s->keys.high,
					   scan->xs_snapshot);
}

/*
 * Prepare for the first fetch after a rescan.  Must come before the scan takes a version: a
 * serializable transaction locks before it reads (storage/ssi.c).
 */
void
lsm_scan_prepare(IndexScanDesc scan)
{
	LsmScan    *s = scan->opaque;
	MemoryContext old;

	if (likely(s->is_prepared))
		return;
	old = MemoryContextSwitchTo(s->key_context);
	translate_keys(scan);
	if (IsolationIsSerializable() && !s->keys.impossible)
		lock_predicates(scan);
	MemoryContextSwitchTo(old);
	s->is_prepared = true;
}
