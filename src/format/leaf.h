/*
 * leaf.h
 *	  Packed pages: the leaves and fence pages of a segment.
 *
 * Layout: LsmLeafHeader, entries upward, group offsets downward from the
 * special area.  See "On-disk format" in src/README.md for the entry coding.
 * Everything that reads checks bounds: a damaged page gives an error return,
 * never an access beyond the page.
 */
#ifndef LSM_LEAF_H
#define LSM_LEAF_H

#include "base/limits.h"
#include "format/page.h"

/* An entry, decoded.  Pointers go into a page or a scratch area. */
typedef struct LsmEntry
{
	const uint8 *key;
	const uint8 *rest;
	uint32		keylen;
	uint32		restlen;
	uint64		tid;			/* see lsm_tid_to_int */
	bool		aligned;		/* key is MAXALIGNed, 8 zero bytes follow it */
	uint32		page;			/* for readers: where it was read, see LsmPageRef */
} LsmEntry;

/* A page that was read, and what tells whether entries were removed from it since. */
typedef struct LsmPageRef
{
	BlockNumber block;
	uint16		kind;
	uint64		owner;
	uint64		stamp;
} LsmPageRef;

/* Is it the same page, with nothing removed in between? */
static inline bool
lsm_page_ref_equal(const LsmPageRef *a, const LsmPageRef *b)
{
	return a->block == b->block && a->owner == b->owner && a->stamp == b->stamp;
}

typedef struct LsmLeafHeader
{
	uint16		entry_count;
	uint16		group_count;
	BlockNumber base_block;		/* leaf: TIDs are coded relative to it */
	BlockNumber last_block;		/* leaf: highest heap block expected in its run */
	uint16		keylen;			/* leaf: of keys in framed groups; 0: there are none */
	uint8		offset_bits;	/* of a coded TID, the others are the block */
	uint8		tid_bytes;		/* of a coded TID, where there are framed groups */
} LsmLeafHeader;

StaticAssertDecl(sizeof(LsmLeafHeader) == 16, "LsmLeafHeader is part of the on-disk format");

/*
 * What is known of the entries of a run when it is begun.  Leaves are coded
 * after it: the better it is the shorter they get.  An entry that does not fit
 * it is not lost, but needs a new leaf.
 */
typedef struct LsmLeafMode
{
	BlockNumber base_block;		/* lowest heap block; invalid: no entries yet */
	BlockNumber last_block;		/* highest one */
	uint16		keylen;			/* of all keys, or LSM_KEYLEN_* */
	uint8		offset_bits;	/* that the offsets of TIDs take */
} LsmLeafMode;

/* Bits that offsets take on pages with up to 511 line pointers: nearly all. */
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
/* In framed groups of the same key TIDs that differ take five bits each, and groups a few bytes. */
#define LSM_MAX_PAGE_ENTRIES (2 * BLCKSZ)

#define LSM_LEAF_DATA (LSM_PAGE_CONTENT + sizeof(LsmLeafHeader))
#define LSM_LEAF_CAPACITY (LSM_PAGE_SPECIAL - LSM_LEAF_DATA)

/*
 * Neighbouring entries of a page, decoded: those of a group, or of several
 * groups.  Each key starts MAXALIGNed and is followed by at least eight zero
 * bytes, so that a key which is an index tuple without its padding can be used
 * as one.
 */
typedef struct LsmGroup
{
	int			count;
	uint32		page;			/* for the entries; set by who decodes */
	uint32		max_keylen;		/* longest key that is accepted */
	Size		used;			/* bytes of scratch */
	Size		size;
	uint8	   *scratch;		/* keys */
	LsmEntry	entries[LSM_DECODED_ENTRIES];
} LsmGroup;

/* A key that is sought, and how many entries are wanted from there on, or before it. */
typedef struct LsmPlaceOfKey
{
	const uint8 *key;			/* or the beginning of keys */
	uint32		keylen;
	int			side;			/* +1: before all that begin so; -1: behind them; 0: among them */
	bool		forward;
	int			most;
} LsmPlaceOfKey;

/* Zero bytes behind a decoded key. */
#define LSM_KEY_PAD 8

/* Room for the keys of one group, whatever they are. */
static inline Size
lsm_group_scratch_size(uint32 max_keylen)
{
	Size		unframed = LSM_UNFRAMED_ENTRIES * (MAXALIGN(max_keylen) + LSM_KEY_PAD);
	Size		framed = LSM_GROUP_ENTRIES *
		(MAXALIGN(Min(max_keylen, LSM_FRAMED_KEYLEN)) + LSM_KEY_PAD);

	return Max(unframed, framed);
}

/*
 * State of a page under construction.  The last group, if it is to be framed, is
 * not on the page yet.
 */
typedef struct LsmLeafBuilder
{
	Page		page;			/* in private memory */
	LsmLeafCoding coding;
	int			odd_keys;		/* keys of another length than the coding's */
	int			in_group;		/* entries in the last group, if that is not framed */
	int			framed;			/* entries that wait for their frame */
	uint32		most_frame;		/* bytes that a frame takes at most, without rests */
	uint64		lowest_tid;		/* of theirs, as a code */
	uint64		highest_tid;
	uint32		rest_used;		/* bytes of rests, with their lengths */
	LsmEntry	waiting[LSM_GROUP_ENTRIES];
	uint8		waiting_keys[LSM_GROUP_ENTRIES][LSM_FRAMED_KEYLEN + LSM_KEY_PAD];
	uint8		waiting_rests[BLCKSZ];
	uint32		last_keylen;
	uint64		last_tid;
	uint64		last_prefix;	/* see lsm_key_prefix */
	uint8		last_key[LSM_MAX_ENTRY_SIZE];
} LsmLeafBuilder;

extern void lsm_mode_init(LsmLeafMode *mode);
extern void lsm_mode_add(LsmLeafMode *mode, const LsmEntry *entry);
extern void lsm_mode_cover(LsmLeafMode *mode, uint64 tid);
extern void lsm_mode_join(LsmLeafMode *mode, const LsmLeafMode *other);
extern void lsm_mode_of_page(Page page, LsmLeafMode *mode);
extern void lsm_mode_settle(LsmLeafMode *mode, uint32 usual_keylen);
extern int	lsm_mode_tid_bytes(BlockNumber base_block, BlockNumber last_block, int offset_bits);

extern void lsm_leaf_begin(LsmLeafBuilder *b, Page page, bool has_rest, const LsmLeafMode *mode,
						   uint64 owner, BlockNumber self);
extern void lsm_leaf_begin_next(LsmLeafBuilder *b, Page page, bool has_rest, LsmLeafMode *mode,
								uint64 first_tid, uint64 owner, BlockNumber self);
extern void lsm_fence_begin(LsmLeafBuilder *b, Page page, bool wide, uint64 owner,
							BlockNumber self);
extern bool lsm_leaf_add(LsmLeafBuilder *b, const LsmEntry *entry);
extern void lsm_leaf_finish(LsmLeafBuilder *b);
extern uint32 lsm_leaf_builder_unused(const LsmLeafBuilder *b);
extern bool lsm_leaf_resume(LsmLeafBuilder *b, Page page, LsmGroup *scratch);
extern bool lsm_leaf_needs_wide(uint64 tid);
extern uint32 lsm_leaf_unused(Page page);

extern void lsm_group_init(LsmGroup *group, uint32 max_keylen);
extern void lsm_group_free(LsmGroup *group);
extern const char *lsm_leaf_check(Page page);
extern bool lsm_leaf_first_of_group(Page page, int group, LsmEntry *entry);
extern bool lsm_leaf_decode_group(Page page, int group, LsmGroup *out);
extern bool lsm_leaf_decode_around(Page page, int group, const LsmPlaceOfKey *sought,
								   int *from, int *to, LsmGroup *out);
extern int	lsm_leaf_decode_groups(Page page, int first, int last, LsmGroup *out);
extern int	lsm_leaf_decode_groups_before(Page page, int group, LsmGroup *out);
extern bool lsm_leaf_delete(Page page, const uint16 *ordinals, int count, LsmGroup *scratch);

static inline int
lsm_leaf_group_count(Page page)
{
	return lsm_leaf_header(page)->group_count;
}

/* Where in the page a group begins. */
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
 * The child that a separator leads to, as a page of the segment: 0 is its first leaf.  It
 * is the rest of an entry.
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
