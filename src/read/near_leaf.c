/*
 * near_leaf.c
 *	  Reads the first keys of the leaf that a cursor entered last.
 */
#include "postgres.h"

#include "format/leaf_coding.h"
#include "read/near_leaf.h"

/* Get the prefix of a group's first key.  Returns false if the key's length takes several bytes. */
static bool
group_prefix(Page page, int group, uint64 *prefix)
{
	LsmLeafCoding coding = lsm_leaf_coding(page);
	const uint8 *key;
	uint32		length = lsm_leaf_first_key(&coding, page, group, &key);

	*prefix = lsm_key_prefix_padded(key) & lsm_high_bytes_mask(Min(length, 8));
	return length > 0;
}

/* Read the prefixes from the leaf. */
void
lsm_near_leaf_read_keys(LsmNearLeaf *near, Page page)
{
	int			groups = lsm_leaf_group_count(page);

	near->has_keys = groups > 0 && group_prefix(page, 0, &near->low) &&
		group_prefix(page, groups - 1, &near->high);
}
