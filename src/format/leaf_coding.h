/*
 * leaf_coding.h
 *	  What writing (leaf.c) and reading (leaf_read.c) packed pages share: the
 *	  bytes of an entry.  See "On-disk format" in src/README.md.
 */
#ifndef LSM_LEAF_CODING_H
#define LSM_LEAF_CODING_H

#include "base/coding.h"
#include "format/leaf.h"

/* Variable coding, see "On-disk format" in src/README.md. */
#define SAME_KEY	0xF0		/* head: key of the entry before */
#define NIBBLE_MORE 15			/* nibble of the head: a varint follows */

/* Fixed coding: the high nibble of the head is a shared length, or one of these. */
#define FIXED_MOST_SHARED	13
#define FIXED_ANY_LENGTH	14	/* shared and unshared length follow, as varints */
#define FIXED_SAME_KEY		15
/* From here on the lengths are written for a key of the usual length, too. */
#define FIXED_LONG_SHARED	16

#define HEAD_TID_BITS		4	/* of a TID in the head, in the fixed coding */
#define MAX_TID_BYTES		6

static inline LsmLeafCoding
page_coding(Page page)
{
	LsmLeafHeader *leaf = lsm_leaf_header(page);
	LsmLeafCoding coding;

	coding.base_tid = (uint64) leaf->base_block << 16;
	coding.offset_bits = leaf->offset_bits;
	coding.keylen = leaf->keylen;
	coding.tid_bytes = leaf->tid_bytes;
	coding.has_rest = (lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST) != 0;
	return coding;
}

/* A TID in few bits.  The order is kept. */
static inline uint64
code_tid(uint64 tid, const LsmLeafCoding *c)
{
	tid -= c->base_tid;
	return ((tid >> 16) << c->offset_bits) | (tid & 0xFFFF);
}

static inline uint64
decode_tid(uint64 code, const LsmLeafCoding *c)
{
	return (((code >> c->offset_bits) << 16) | (code & ((UINT64CONST(1) << c->offset_bits) - 1))) +
		c->base_tid;
}

#endif							/* LSM_LEAF_CODING_H */
