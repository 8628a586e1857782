/*
 * search.c
 *	  Binary search in packed pages.
 *
 * First among the groups, whose first entries are whole and in place, then in
 * the one group that is decoded.
 */
#include "postgres.h"

#include "segment/segment.h"

/*
 * Number of groups whose first entry is before the bound, or -1 if the page is
 * damaged.
 */
static int
groups_before(LsmKeySpace *ks, Page page, const LsmBound *bound)
{
	int			low = 0;
	int			high = lsm_leaf_group_count(page);

	while (low < high)
	{
		int			middle = (low + high) / 2;
		LsmEntry	first;

		if (!lsm_leaf_first_of_group(page, middle, &first))
			return -1;
		if (lsm_bound_compare(ks, bound, &first) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Find the first entry after the bound.  Its group is decoded; if no entry of
 * the page is after the bound, the last group is, and pos is its count (the
 * caller sees group_count 0 for an empty page).  False if the page is damaged.
 */
bool
lsm_leaf_search(LsmKeySpace *ks, Page page, const LsmBound *bound,
				int *group, int *pos, LsmGroup *decoded)
{
	int			count = lsm_leaf_group_count(page);
	int			before = groups_before(ks, page, bound);
	int			low = 0;
	int			high;

	if (before < 0)
		return false;
	*group = Max(before - 1, 0);
	*pos = 0;
	decoded->count = 0;
	if (count == 0)
		return true;
	if (!lsm_leaf_decode_group(page, *group, decoded))
		return false;
	if (before == 0)
		return true;			/* even the first entry is after the bound */
	high = decoded->count;
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (lsm_bound_compare(ks, bound, &decoded->entries[middle]) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*pos = low;
	return true;
}

/*
 * Find the child that may hold the entries next to the bound: the last one
 * whose separator is before it, or the first one.  False if damaged.
 */
bool
lsm_fence_search(LsmKeySpace *ks, Page page, const LsmBound *bound,
				 LsmGroup *decoded, uint32 *child)
{
	int			group;
	int			pos;

	if (!lsm_leaf_search(ks, page, bound, &group, &pos, decoded) || decoded->count == 0)
		return false;
	*child = lsm_fence_child(&decoded->entries[Max(pos - 1, 0)]);
	return *child != LSM_NO_CHILD;
}
