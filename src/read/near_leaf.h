/*
 * near_leaf.h
 *	  Remembers the leaf that a cursor entered last, for seeks that end in the same leaf.
 *
 * A nested loop whose outer rows are sorted makes many such seeks.  A segment's
 * entries stay on their leaves, so the recorded keys stay valid.  If the block has been
 * reused, the page has another owner id.
 */
#ifndef LSM_NEAR_LEAF_H
#define LSM_NEAR_LEAF_H

#include "base/coding.h"
#include "format/leaf.h"
#include "storage/buf.h"

typedef struct LsmNearLeaf
{
	uint64		segment;		/* 0: no leaf is known */
	uint32		user;			/* number of the reader's user who entered the leaf */
	uint32		leaf;			/* number of the leaf in the segment */
	Buffer		buffer;			/* the buffer that held the leaf */
	bool		has_keys;		/* low and high are known */
	uint64		low;			/* lsm_key_prefix of the leaf's first key */
	uint64		high;			/* lsm_key_prefix of the last group's first key */
} LsmNearLeaf;

extern void lsm_near_leaf_read_keys(LsmNearLeaf *near, Page page);

static inline void
lsm_near_leaf_forget(LsmNearLeaf *near)
{
	near->segment = 0;
	near->has_keys = false;
}

/*
 * Record that a user has entered a leaf.  If keys are encoded, they are read when the same user
 * enters the leaf again: random seeks should not wait for more of the page than they need.
 */
static inline void
lsm_near_leaf_note(LsmNearLeaf *near, uint64 segment, uint32 leaf, uint32 user, bool encoded,
				   Page page)
{
	if (near->segment != segment || near->leaf != leaf || near->user != user)
	{
		near->segment = segment;
		near->leaf = leaf;
		near->user = user;
		near->has_keys = false;
	}
	else if (!near->has_keys && encoded)
		lsm_near_leaf_read_keys(near, page);
}

/*
 * Is this position certain to lie between two entries that the leaf had when it was written?  The
 * position is before or after all keys that begin with `key`, or next to an entry with this key.
 * Compares only the first eight bytes of keys.
 */
static inline bool
lsm_near_leaf_covers(const LsmNearLeaf *near, uint64 segment, uint32 user, const uint8 *key,
					 uint32 keylen)
{
	uint64		prefix;

	if (!near->has_keys || near->segment != segment || near->user != user)
		return false;
	prefix = lsm_key_prefix(key, keylen);
	return near->low < prefix &&
		(near->high & lsm_high_bytes_mask(Min(keylen, 8))) > prefix;
}

#endif							/* LSM_NEAR_LEAF_H */
