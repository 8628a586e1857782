/*
 * search.c
 *	  Binary search in packed pages.
 *
 * First among the groups, whose first entries are whole and in place, then in
 * the one group that is decoded.
 */
#include "postgres.h"

#include "format/leaf_coding.h"
#include "segment/segment.h"

/*
 * Where is a group's first entry relative to the bound, by the first eight bytes of
 * its key?  0: they do not tell.  Eight bytes can be read anywhere on the page.
 */
static inline int
compare_start(const LsmLeafCoding *coding, Page page, int group, uint64 prefix, uint32 keylen)
{
	const uint8 *key;
	uint32		length = lsm_leaf_first_key(coding, page, group, &key);
	uint64		theirs = lsm_key_prefix_padded(key);

	length = Min(length, keylen);
	if (length < 8)
	{
		int			shift = 64 - 8 * length;

		if (length == 0)
			return 0;
		theirs >>= shift;
		prefix >>= shift;
	}
	return theirs < prefix ? -1 : theirs > prefix;
}

/*
 * Number of groups whose first entry is before the bound, or -1 if the page is
 * damaged.
 */
static int
groups_before(LsmKeySpace *ks, Page page, const LsmBound *bound)
{
	int			low = 0;
	int			high = lsm_leaf_group_count(page);
	LsmLeafCoding coding = lsm_leaf_coding(page);
	uint64		prefix = ks->encoded ? lsm_key_prefix(bound->key, bound->keylen) : 0;

	while (low < high)
	{
		int			middle = (low + high) / 2;
		int			c = 0;
		LsmEntry	first;

		if (ks->encoded)
			c = compare_start(&coding, page, middle, prefix, bound->keylen);
		if (c == 0)
		{
			if (!lsm_leaf_first_of_group(page, middle, &first))
				return -1;
			c = lsm_bound_compare(ks, bound, &first);
		}
		if (c < 0)
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
