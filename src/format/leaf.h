/*
 * leaf.h
 *	  Packed pages: the leaves and fence pages of a segment.
 *
 *		24		16	LsmLeafHeader
 *		40			entries in groups, from low to high, up to pd_lower
 *		pd_upper	offsets of the groups in the page, uint16 each, in reverse order
 *
 * The first key of a group is whole.  So a search compares first keys, and then
 * decodes one group.  There are two kinds of groups:
 * - framed groups (frame.h), of up to 32 entries whose keys have the length that
 *   the header gives: integers, timestamps, uuid, and combinations of them;
 * - groups in the variable coding (leaf_coding.h), of up to 16 entries.  Fence
 *   pages, and leaves whose header has no key length, such as leaves with tuple keys,
 *   have only such groups.  Other leaves use them for keys of other lengths, such as
 *   nulls.
 *
 * On a fence page, key and TID are a separator, and the rest is the number of the
 * child in the segment, a uint32.  Encoded separators are cut as short as possible.
 * Key and rest together have up to LSM_MAX_ENTRY_SIZE bytes (2674), so that at least
 * two entries fit on a page and fence pages branch.
 *
 * The *code* of a TID is (block - base_block) << offset_bits | offset.  On leaves
 * with framed groups, codes fit in tid_bytes bytes.  On fence pages, base_block is 0,
 * and offset_bits is 9, or 16 if a separator has an offset that needs more than 9.
 *
 * When entries are removed, the other entries of their group are coded again.  The group never gets
 * larger (I6): see lsm_frame_measure and lsm_leaf_delete.
 *
 * All functions that read a page check bounds.  On a damaged page they return an
 * error, and never access memory beyond the page.
 */
#ifndef LSM_LEAF_H
#define LSM_LEAF_H

#include "base/limits.h"
#include "format/page.h"

/* A decoded entry.  Pointers point into a page or a scratch area. */
typedef struct LsmEntry
{
	const uint8 *key;
	const uint8 *rest;
	uint32		keylen;
	uint32		restlen;
	uint64		tid;			/* see lsm_tid_to_int */
	bool		aligned;		/* key is MAXALIGNed, 8 zero bytes follow it */
	uint32		page;			/* for readers: the page the entry was read from, see LsmPageRef */
} LsmEntry;

/* A page that was read, and its stamp, which shows whether entries have been removed since. */
typedef struct LsmPageRef
{
	BlockNumber block;
	uint16		kind;
	uint64		owner;
	uint64		stamp;
} LsmPageRef;

/* Is this the same page, with no entries removed in between? */
static inline bool
lsm_page_ref_equal(const LsmPageRef *a, const LsmPageRef *b)
{
	return a->block == b->block && a->owner == b->owner && a->stamp == b->stamp;
}

typedef struct LsmLeafHeader
{
	uint16		entry_count;	/* 0  */
	uint16		group_count;	/* 2  */
	BlockNumber base_block;		/* 4   leaf: TIDs are coded relative to it; fence: 0 */
	BlockNumber last_block;		/* 8   leaf: highest heap block expected in its segment */
	uint16		keylen;			/* 12  leaf: of keys in framed groups; 0: no such groups */
	uint8		offset_bits;	/* 14  of a coded TID; its other bits are the block */
	uint8		tid_bytes;		/* 15  of a coded TID, if keylen is not 0 */
} LsmLeafHeader;

StaticAssertDecl(sizeof(LsmLeafHeader) == 16, "LsmLeafHeader is part of the on-disk format");

/*
 * What is known about the entries of a segment when the segment is begun.  The more
 * exact the mode, the less space entries take.  A batch and CREATE INDEX know the mode
 * exactly.  A merge joins the modes of its inputs.  Records of segments and runs store the mode.
 *
 * A mode only widens.  An entry whose TID does not fit the leaf's coding begins a new leaf,
 * and the mode of this leaf and all later ones covers the TID.  If more than half of
 * a leaf's keys lack the mode's length and differ from the previous key, all later leaves of
 * the segment use the variable coding.
 */
typedef struct LsmLeafMode
{
	BlockNumber base_block;		/* lowest heap block; invalid: no entries yet */
	BlockNumber last_block;		/* highest one */
	uint16		keylen;			/* length of all keys, or LSM_KEYLEN_*; see lsm_mode_settle */
	uint8		offset_bits;	/* bits that the offsets of TIDs need */
} LsmLeafMode;

/* Bits for offsets up to 511.  Nearly all heap pages have fewer line pointers than that. */
#define LSM_NARROW_OFFSET_BITS	9

#define LSM_KEYLEN_MIXED	0
#define LSM_KEYLEN_NONE		0xFFFF	/* no entries yet */

/* How a page codes entries, from its header. */
typedef struct LsmLeafCoding
{
	uint64		base_tid;		/* not above any TID on the page */
	int			offset_bits;
	uint32		keylen;			/* 0: no groups are framed */
	int			tid_bytes;
	bool		has_rest;
} LsmLeafCoding;

#define lsm_leaf_header(page) ((LsmLeafHeader *) ((char *) (page) + LSM_PAGE_CONTENT))
/*
 * More entries than fit on a page.  Entries are smallest in frames with equal keys: their TIDs
 * differ and take five bits each, and the frame takes a few bytes more.
 */
#define LSM_MAX_PAGE_ENTRIES (2 * BLCKSZ)

#define LSM_LEAF_DATA (LSM_PAGE_CONTENT + sizeof(LsmLeafHeader))
#define LSM_LEAF_CAPACITY (LSM_PAGE_SPECIAL - LSM_LEAF_DATA)

/*
 * Decoded neighboring entries of a page, from one or more groups.  Each key
 * starts MAXALIGNed and is followed by at least eight zero bytes.  So a tuple key
 * can be used as an index tuple although its padding is not stored.
 */
typedef struct LsmGroup
{
	int			count;
	uint32		page;			/* for the entries; set by the caller of decoding functions */
	uint32		max_keylen;		/* length of the longest key accepted */
	Size		used;			/* bytes of scratch */
	Size		size;
	uint8	   *scratch;		/* keys */
	LsmEntry	entries[LSM_DECODED_ENTRIES];
} LsmGroup;

/* The key to seek, and how many entries the caller wants after it (backward: before it). */
typedef struct LsmPlaceOfKey
{
	const uint8 *key;			/* a whole key, or the beginning of keys */
	uint32		keylen;
	int			side;			/* +1: before all keys that begin with `key`; -1: after them;
								 * 0: among them */
	bool		forward;
	int			most;
} LsmPlaceOfKey;

/* Zero bytes after a decoded key. */
#define LSM_KEY_PAD 8

/* Returns the room that the keys of any group need. */
static inline Size
lsm_group_scratch_size(uint32 max_keylen)
{
	Size		unframed = LSM_UNFRAMED_ENTRIES * (MAXALIGN(max_keylen) + LSM_KEY_PAD);
	Size		framed = LSM_GROUP_ENTRIES *
		(MAXALIGN(Min(max_keylen, LSM_FRAMED_KEYLEN)) + LSM_KEY_PAD);

	return Max(unframed, framed);
}

static inline int
lsm_leaf_group_count(Page page)
{
	return lsm_leaf_header(page)->group_count;
}

/* Returns the offset of a group in the page. */
static inline uint16
lsm_leaf_group_offset(Page page, int group)
{
	uint16		offset;

	memcpy(&offset, (char *) page + LSM_PAGE_SPECIAL - sizeof(uint16) * (group + 1),
		   sizeof(uint16));
	return offset;
}

/* No page of a segment has that number. */
#define LSM_NO_CHILD	PG_UINT32_MAX

/*
 * Returns the child that a separator leads to, as a page number in the segment, where 0 is the
 * first leaf.  The number is the rest of the separator's entry.
 */
static inline uint32
lsm_fence_child(const uint8 *rest, uint32 restlen)
{
	uint32		child;

	if (restlen != sizeof(uint32))
		return LSM_NO_CHILD;
	memcpy(&child, rest, sizeof(uint32));
	return child;
}

#endif							/* LSM_LEAF_H */
