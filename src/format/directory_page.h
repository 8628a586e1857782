/*
 * directory_page.h
 *	  Directory pages: the segments of a run, in the order of their keys.
 *
 * A directory is a tree whose lowest pages (level 1) hold an item for each segment: its record, and
 * the first and last entries that it was written with.  Pages of higher levels hold an item for
 * each child: the child's block, and the first entry below the child.  Items are only ever added
 * after the last one, so the tree grows at its right edge.  Only an item's record changes in place.
 * Its counts change, and `blocks` becomes 0 when the segment or the child page is freed.
 *
 *		24		8	LsmDirectoryHeader
 *		32			items in key order, each MAXALIGNed, up to pd_lower:
 *						LsmDirectoryItem, 72 bytes
 *						key of the first entry, low_keylen bytes
 *						key of the last entry, high_keylen bytes
 *						zeros up to the next multiple of 8
 *		pd_upper	offsets of the items in the page, uint16 each, in reverse order
 *
 * TIDs are (block << 16 | offset).
 */
#ifndef LSM_DIRECTORY_PAGE_H
#define LSM_DIRECTORY_PAGE_H

#include "format/segment_record.h"

typedef struct LsmDirectoryHeader
{
	uint16		count;			/* 0   items */
	uint16		level;			/* 2   1: items are segments; higher: child pages */
	uint32		reserved;		/* 4   zero */
} LsmDirectoryHeader;

/* The first and the last key follow. */
typedef struct LsmDirectoryItem
{
	LsmSegment	segment;		/* 0   higher levels: start is the child, all else 0 */
	uint64		low_tid;		/* 48  TID of the first entry */
	uint64		high_tid;		/* 56  TID of the last entry; higher levels: 0 */
	uint16		low_keylen;		/* 64  bytes of the first entry's key */
	uint16		high_keylen;	/* 66  bytes of the last entry's key; higher levels: 0 */
	uint32		reserved;		/* 68  zero */
} LsmDirectoryItem;

StaticAssertDecl(sizeof(LsmDirectoryItem) == 72, "LsmDirectoryItem is part of the on-disk format");

/* An item, and its keys as entries.  The keys are in a page or in private memory. */
typedef struct LsmDirectoryEntry
{
	LsmSegment	segment;
	LsmEntry	low;
	LsmEntry	high;
} LsmDirectoryEntry;

#define lsm_directory_header(page) \
	((LsmDirectoryHeader *) ((char *) (page) + LSM_PAGE_CONTENT))
#define LSM_DIRECTORY_DATA	(LSM_PAGE_CONTENT + sizeof(LsmDirectoryHeader))

/* The size of the longest item. */
#define LSM_MAX_DIRECTORY_ITEM \
	(MAXALIGN(sizeof(LsmDirectoryItem) + 2 * LSM_MAX_ENTRY_SIZE))

extern void lsm_directory_page_init(Page page, uint64 run_id, BlockNumber self, int level);
extern uint32 lsm_directory_item_encode(char *to, const LsmDirectoryEntry *entry);
extern bool lsm_directory_page_fits(Page page, uint32 size);
extern bool lsm_directory_page_append(Page page, const char *item, uint32 size);
extern bool lsm_directory_page_get(Page page, int ordinal, LsmDirectoryEntry *entry);
extern bool lsm_directory_page_get_end(Page page, int ordinal, bool is_high, LsmEntry *entry);
extern bool lsm_directory_page_set(Page page, int ordinal, const LsmSegment *segment);
extern const char *lsm_directory_page_check(Page page);

static inline int
lsm_directory_page_count(Page page)
{
	return lsm_directory_header(page)->count;
}

#endif							/* LSM_DIRECTORY_PAGE_H */
