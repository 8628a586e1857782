/*
 * directory_page.h
 *	  Directory pages: the segments of a run, in the order of their keys.
 *
 * A directory is a tree whose lowest pages (level 1) hold an item for each
 * segment: its record, and the first and the last entry that it was written
 * with.  Pages of higher levels hold an item for each child: its block, and the
 * first entry below it.  Items are only ever added behind the last one, so the
 * tree grows at its right edge; what changes in place is an item's record.
 *
 * Layout: LsmDirectoryHeader, items upward, each MAXALIGNed, and from the
 * special area downward a uint16 for each, its offset.
 */
#ifndef LSM_DIRECTORY_PAGE_H
#define LSM_DIRECTORY_PAGE_H

#include "format/segment_record.h"

typedef struct LsmDirectoryHeader
{
	uint16		count;
	uint16		level;
	uint32		reserved;
} LsmDirectoryHeader;

/* The first and the last key follow. */
typedef struct LsmDirectoryItem
{
	LsmSegment	segment;		/* higher levels: start is the child, all else 0 */
	uint64		low_tid;
	uint64		high_tid;
	uint16		low_keylen;
	uint16		high_keylen;	/* higher levels: 0 */
	uint32		reserved;
} LsmDirectoryItem;

StaticAssertDecl(sizeof(LsmDirectoryItem) == 72, "LsmDirectoryItem is part of the on-disk format");

/* An item, and its keys as entries; they point into a page or private memory. */
typedef struct LsmDirectoryEntry
{
	LsmSegment	segment;
	LsmEntry	low;
	LsmEntry	high;
} LsmDirectoryEntry;

#define lsm_directory_header(page) \
	((LsmDirectoryHeader *) ((char *) (page) + LSM_PAGE_CONTENT))
#define LSM_DIRECTORY_DATA	(LSM_PAGE_CONTENT + sizeof(LsmDirectoryHeader))

/* The longest item. */
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
