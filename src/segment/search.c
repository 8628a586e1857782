/*
 * search.c
 *	  Searches packed pages by bisection.
 *
 * A search first finds the group, by comparing the groups' first entries, which are stored
 * whole. Then it decodes that group, completely or in part, and searches it.
 */
#include "postgres.h"

#include "format/leaf_coding.h"
#include "format/leaf_read.h"
#include "segment/segment.h"

/*
 * Compare a group's first entry with the bound by the first eight bytes of the key. Returns 0
 * if these bytes do not decide. Reading eight bytes of a shorter key is safe.
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

/* Load the first key of a group into the processor's cache. */
static inline void
prefetch_group(Page page, int group)
{
	const char *first = (char *) page + lsm_leaf_group_offset(page, group);

	__builtin_prefetch(first);
	__builtin_prefetch(first + CACHE_LINE);
}

/*
 * Returns the number of groups whose first entry is before the bound, or -1 if the page is
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

		prefetch_group(page, (low + middle) / 2);
		prefetch_group(page, (middle + high) / 2);
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

/* Returns the first entry after the bound among entries low to high - 1, or `high`. */
static inline int
first_after(LsmKeySpace *ks, const LsmGroup *decoded, const LsmBound *bound, int low, int high)
{
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (lsm_bound_compare(ks, bound, &decoded->entries[middle]) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Find and decode the group around the bound, and set *pos to its first entry after the bound.
 * If all entries of the group are before the bound, *pos is the number of these entries, and the
 * next group, if there is one, begins after the bound. Decodes nothing if the page is empty.
 * Returns false if the page is damaged.
 */
bool
lsm_leaf_search(LsmKeySpace *ks, Page page, const LsmBound *bound,
				int *group, int *pos, LsmGroup *decoded)
{
	int			count = lsm_leaf_group_count(page);
	int			before = groups_before(ks, page, bound);

	if (before < 0)
		return false;
	*group = Max(before - 1, 0);
	*pos = 0;
	decoded->count = 0;
	if (count == 0)
		return true;
	if (!lsm_leaf_decode_group(page, *group, decoded))
		return false;
	if (before > 0)				/* else even the first entry is after the bound */
		*pos = first_after(ks, decoded, bound, 0, decoded->count);
	return true;
}

/*
 * Like lsm_leaf_search, for a caller that wants about `most` entries after the bound (backward:
 * before it). Decodes at least these entries of the group, and *pos counts decoded entries. If
 * the group has no such entries, there is no decoded entry at *pos (backward: before it).
 *
 * REQUIRES: encoded keys.
 */
bool
lsm_leaf_seek(LsmKeySpace *ks, Page page, const LsmBound *bound, int most, bool forward,
			  int *pos, LsmGroup *decoded)
{
	LsmPlaceOfKey sought = {bound->key, bound->keylen, bound->is_entry ? 0 : bound->tie, forward, most};
	int			before = groups_before(ks, page, bound);
	int			from;
	int			to;

	if (before < 0)
		return false;
	*pos = 0;
	decoded->count = 0;
	if (lsm_leaf_group_count(page) == 0)
		return true;
	if (!lsm_leaf_decode_around(page, Max(before - 1, 0), &sought, &from, &to, decoded))
		return false;
	if (before > 0)
		*pos = first_after(ks, decoded, bound, from, to);
	return true;
}

/* --- fences ------------------------------------------------------------------ */

/* The state of comparing the entries of a group with a bound, one after the other. */
typedef struct Comparison
{
	const LsmBound *bound;
	const LsmLeafCoding *coding;
	uint32		matched;		/* bytes that the last entry's key shares with the bound's key */
	uint32		keylen;			/* of the last entry's key */
	uint64		tid_code;
} Comparison;

/*
 * Compare the next entry of the group with the bound. A negative result means that the entry is
 * before the bound. If the next key shares more bytes with the previous key than the previous key
 * shares with the bound, the next key is before the bound as well. If it shares fewer, it is after
 * the bound, since it is greater than the previous key. Neither key has to be reconstructed.
 *
 * REQUIRES: the previous entry, if there is one, is before the bound.
 */
static int
compare_next(Comparison *at, const LsmCodedEntry *next)
{
	const LsmBound *bound = at->bound;
	uint32		compared;

	at->tid_code = next->tid_code + (next->same_key ? at->tid_code : 0);
	if (!next->same_key)
	{
		if (next->shared < at->matched)
			return 1;
		at->keylen = next->shared + next->unshared;
		if (next->shared > at->matched)
			return -1;
		compared = Min(next->unshared, bound->keylen - at->matched);
		compared = lsm_common_prefix(next->suffix, compared, bound->key + at->matched, compared);
		at->matched += compared;
		if (compared < next->unshared && at->matched < bound->keylen)
			return next->suffix[compared] < bound->key[at->matched] ? -1 : 1;
	}
	if (at->keylen < bound->keylen || at->matched < bound->keylen)
		return -1;
	if (bound->is_entry)
	{
		uint64		tid = lsm_decode_tid(at->tid_code, at->coding);

		if (at->keylen > bound->keylen)
			return 1;
		if (tid != bound->tid)
			return tid < bound->tid ? -1 : 1;
	}
	return bound->tie;
}

/*
 * lsm_fence_search within one group. The group's first separator is before the bound, unless the
 * group is the page's first.
 */
static bool
search_fence_group(Page page, int group, const LsmBound *bound, uint32 *child)
{
	LsmLeafCoding coding = lsm_leaf_coding(page);
	Comparison	at = {bound, &coding};
	LsmCodedEntry next;
	const uint8 *p;
	const uint8 *end;
	bool		is_first = true;

	if (!lsm_leaf_find_group(page, group, &p, &end) || coding.keylen > 0)
		return false;
	do
	{
		int			order;

		p = lsm_leaf_read_coded(p, end, &coding, is_first, &next);
		if (p == NULL)
			return false;
		order = compare_next(&at, &next);
		if (order > 0 && !is_first)
			break;
		*child = lsm_fence_child(next.rest, next.restlen);
		if (order > 0)
			break;
		is_first = false;
	} while (p < end);
	return *child != LSM_NO_CHILD;
}

/*
 * Find the child that may hold the entries next to the bound: the last child whose separator
 * is before the bound, or the first child. Returns false if the page is damaged.
 */
bool
lsm_fence_search(LsmKeySpace *ks, Page page, const LsmBound *bound,
				 LsmGroup *decoded, uint32 *child)
{
	const LsmEntry *separator;
	int			group;
	int			pos;

	if (ks->encoded)
	{
		int			before = groups_before(ks, page, bound);

		return before >= 0 && lsm_leaf_group_count(page) > 0 &&
			search_fence_group(page, Max(before - 1, 0), bound, child);
	}
	if (!lsm_leaf_search(ks, page, bound, &group, &pos, decoded) || decoded->count == 0)
		return false;
	separator = &decoded->entries[Max(pos - 1, 0)];
	*child = lsm_fence_child(separator->rest, separator->restlen);
	return *child != LSM_NO_CHILD;
}
