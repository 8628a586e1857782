/*
 * leaf_coding.h
 *	  The variable coding of entries on packed pages, for writing (leaf_build.c) and
 *	  reading (leaf_read.c).
 *
 * The first entry of a group shares no bytes.  The others are differences from the previous
 * entry:
 *
 *		head		one byte: number of bytes shared with the previous key (high nibble),
 *					and of further bytes of the key (low nibble); 15: a varint follows with the
 *					number, first for the high nibble; 0xF0 alone: the previous key
 *		suffix		the further bytes of the key
 *		rest		varint length, and bytes; only on pages with LSM_PAGE_HAS_REST
 *		tid			varint of the TID's code (leaf.h); after 0xF0, the difference from
 *					the previous code
 *
 * On a leaf whose header has a key length, the group begins with the byte 0x80.
 */
#ifndef LSM_LEAF_CODING_H
#define LSM_LEAF_CODING_H

#include "base/coding.h"
#include "format/leaf.h"

#define SAME_KEY	0xF0		/* head: the previous entry's key */
#define NIBBLE_MORE 15			/* nibble of the head: a varint follows */

/*
 * If the page's header gives a key length, groups with keys of this length are framed
 * (see frame.h).  A group that begins with a key of another length begins with this byte,
 * and its entries follow in the variable coding.
 */
#define NO_FRAME	0x80
#define FRAME_HEAD	4			/* bytes before the first key of a frame */

#define MAX_TID_BYTES	6
#define CACHE_LINE		64		/* bytes; other sizes only cost time */

/* An entry as written in the variable coding. */
typedef struct LsmCodedEntry
{
	bool		same_key;		/* same key as the previous entry; the TID is a difference */
	uint32		shared;			/* bytes shared with the previous key */
	uint32		unshared;		/* bytes of the suffix */
	const uint8 *suffix;
	const uint8 *rest;
	uint32		restlen;
	uint64		tid_code;
} LsmCodedEntry;

static inline LsmLeafCoding
lsm_leaf_coding(Page page)
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

/* Returns the code of a TID.  Codes sort like their TIDs. */
static inline uint64
lsm_code_tid(uint64 tid, const LsmLeafCoding *c)
{
	tid -= c->base_tid;
	return ((tid >> 16) << c->offset_bits) | (tid & 0xFFFF);
}

static inline uint64
lsm_decode_tid(uint64 code, const LsmLeafCoding *c)
{
	return (((code >> c->offset_bits) << 16) | (code & ((UINT64CONST(1) << c->offset_bits) - 1))) +
		c->base_tid;
}

/*
 * Sets *key to the first key of a group.  Returns its length, or 0 if the head does not
 * hold the length or the key is empty; *key is not the key then.  Even on a damaged page, eight
 * bytes can be read at *key.
 *
 * REQUIRES: lsm_leaf_check has found nothing.
 */
static inline uint32
lsm_leaf_first_key(const LsmLeafCoding *c, Page page, int group, const uint8 **key)
{
	const uint8 *p = (const uint8 *) page + lsm_leaf_group_offset(page, group);

	if (c->keylen > 0 && *p != NO_FRAME)
	{
		*key = p + FRAME_HEAD;
		return c->keylen;
	}
	p += c->keylen > 0;
	*key = p + 1;
	return *p < NIBBLE_MORE ? *p : 0;
}

/*
 * Find the beginning and the end of a group, and prefetch the group.  Returns false if the page is
 * damaged.
 *
 * The processor cannot load entries ahead by itself, because the place of an entry depends on the
 * entries before it.
 */
static inline bool
lsm_leaf_find_group(Page page, int group, const uint8 **begin, const uint8 **end)
{
	int			groups = lsm_leaf_group_count(page);

	*begin = (const uint8 *) page + lsm_leaf_group_offset(page, group);
	*end = (const uint8 *) page +
		(group + 1 < groups ? lsm_leaf_group_offset(page, group + 1) : ((PageHeader) page)->pd_lower);
	for (const uint8 *line = *begin; line < *end; line += CACHE_LINE)
		__builtin_prefetch(line);
	return *begin < *end;
}

/* Decode a rest.  Returns its end, or NULL if the page is damaged. */
static inline const uint8 *
lsm_get_rest(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, LsmEntry *out)
{
	uint64		restlen;

	out->rest = NULL;
	out->restlen = 0;
	if (!c->has_rest)
		return p;
	if ((p = lsm_get_varint(p, end, &restlen)) == NULL ||
		restlen > (uint64) (end - p) || restlen > LSM_MAX_ENTRY_SIZE)
		return NULL;
	out->rest = p;
	out->restlen = (uint32) restlen;
	return p + restlen;
}

/*
 * Read the entry at p, in the variable coding.  is_first: the entry is the first of a
 * group.  Returns the end of the entry, or NULL if the page is damaged.
 *
 * REQUIRES: lsm_leaf_check has found nothing.
 */
static inline const uint8 *
lsm_leaf_read_coded(const uint8 *p, const uint8 *end, const LsmLeafCoding *c, bool is_first,
					LsmCodedEntry *out)
{
	uint64		shared;
	uint64		unshared;
	LsmEntry	rest;
	uint8		head;

	if (p >= end)
		return NULL;
	head = *p++;
	out->same_key = head == SAME_KEY && !is_first;
	out->shared = 0;
	out->unshared = 0;
	if (!out->same_key)
	{
		shared = head >> 4;
		unshared = head & 0x0F;
		if (shared == NIBBLE_MORE && (p = lsm_get_varint(p, end, &shared)) == NULL)
			return NULL;
		if (unshared == NIBBLE_MORE && (p = lsm_get_varint(p, end, &unshared)) == NULL)
			return NULL;
		if (unshared > (uint64) (end - p) || shared > LSM_MAX_ENTRY_SIZE || (is_first && shared > 0))
			return NULL;
		out->shared = (uint32) shared;
		out->unshared = (uint32) unshared;
	}
	out->suffix = p;
	if ((p = lsm_get_rest(p + out->unshared, end, c, &rest)) == NULL ||
		(p = lsm_get_varint(p, end, &out->tid_code)) == NULL)
		return NULL;
	out->rest = rest.rest;
	out->restlen = rest.restlen;
	return p;
}

#endif							/* LSM_LEAF_CODING_H */
