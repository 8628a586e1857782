/*
 * leaf.h
 *	  Packed pages: the leaves and fence pages of a run.
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
} LsmEntry;

typedef struct LsmLeafHeader
{
	uint16		entry_count;
	uint16		group_count;
	BlockNumber base_block;		/* leaf: TIDs are coded relative to it */
} LsmLeafHeader;

StaticAssertDecl(sizeof(LsmLeafHeader) == 8, "LsmLeafHeader is part of the on-disk format");

#define lsm_leaf_header(page) ((LsmLeafHeader *) ((char *) (page) + LSM_PAGE_CONTENT))
/* The shortest entry, the same key again, takes two bytes. */
#define LSM_MAX_PAGE_ENTRIES (BLCKSZ / 2)

#define LSM_LEAF_DATA (LSM_PAGE_CONTENT + sizeof(LsmLeafHeader))

/*
 * Keys of one group, decoded.  Each key starts MAXALIGNed and is followed by at
 * least eight zero bytes, so that a key which is an index tuple without its
 * padding can be used as one.
 */
typedef struct LsmGroup
{
	int			count;
	LsmEntry	entries[LSM_GROUP_ENTRIES];
	uint32		max_keylen;		/* longest key that scratch has room for */
	uint8	   *scratch;		/* lsm_group_scratch_size(max_keylen) bytes */
} LsmGroup;

/* Zero bytes behind a decoded key. */
#define LSM_KEY_PAD 8

static inline Size
lsm_group_scratch_size(uint32 max_keylen)
{
	return LSM_GROUP_ENTRIES * (MAXALIGN(max_keylen) + LSM_KEY_PAD);
}

/* State of a page under construction. */
typedef struct LsmLeafBuilder
{
	Page		page;			/* in private memory */
	bool		wide;			/* page codes wide TIDs */
	uint64		base_tid;		/* see LsmLeafHeader.base_block */
	bool		has_rest;
	int			in_group;		/* entries in the last group */
	uint32		last_keylen;
	uint64		last_tid;
	uint8		last_key[LSM_MAX_ENTRY_SIZE];
} LsmLeafBuilder;

extern void lsm_leaf_begin(LsmLeafBuilder *b, Page page, uint16 kind, bool has_rest,
						   bool wide, uint64 run_id, BlockNumber self);
extern void lsm_leaf_set_base(LsmLeafBuilder *b, BlockNumber base_block);
extern bool lsm_leaf_add(LsmLeafBuilder *b, const LsmEntry *entry);
extern bool lsm_leaf_resume(LsmLeafBuilder *b, Page page, LsmGroup *scratch);
extern bool lsm_leaf_needs_wide(uint64 tid);

extern void lsm_group_init(LsmGroup *group, uint32 max_keylen);
extern void lsm_group_free(LsmGroup *group);
extern const char *lsm_leaf_check(Page page);
extern bool lsm_leaf_first_of_group(Page page, int group, LsmEntry *entry);
extern bool lsm_leaf_decode_group(Page page, int group, LsmGroup *out);
extern bool lsm_leaf_delete(Page page, const uint16 *ordinals, int count, LsmGroup *scratch);

static inline int
lsm_leaf_group_count(Page page)
{
	return lsm_leaf_header(page)->group_count;
}

static inline BlockNumber
lsm_fence_child(const LsmEntry *entry)
{
	BlockNumber child;

	if (entry->restlen != sizeof(BlockNumber))
		return InvalidBlockNumber;
	memcpy(&child, entry->rest, sizeof(BlockNumber));
	return child;
}

#endif							/* LSM_LEAF_H */
