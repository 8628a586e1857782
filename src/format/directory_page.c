/*
 * directory_page.c
 *	  Changes and reads directory pages.
 *
 * Normal operation and redo call the same mutators.  All functions that read a
 * page check bounds.
 */
#include "postgres.h"

#include "format/directory_page.h"

static inline uint16
item_offset(Page page, int ordinal)
{
	uint16		offset;

	memcpy(&offset, (char *) page + LSM_PAGE_SPECIAL - sizeof(uint16) * (ordinal + 1),
		   sizeof(uint16));
	return offset;
}

void
lsm_directory_page_init(Page page, uint64 run_id, BlockNumber self, int level)
{
	lsm_page_init(page, LSM_PAGE_DIRECTORY, run_id, self);
	memset(lsm_directory_header(page), 0, sizeof(LsmDirectoryHeader));
	lsm_directory_header(page)->level = level;
	((PageHeader) page)->pd_lower = LSM_DIRECTORY_DATA;
}

/* Write an entry as an item.  Returns the item's size.  REQUIRES: room for the longest item. */
uint32
lsm_directory_item_encode(char *to, const LsmDirectoryEntry *entry)
{
	LsmDirectoryItem item;
	uint32		size = sizeof(item) + entry->low.keylen + entry->high.keylen;

	memset(&item, 0, sizeof(item));
	item.segment = entry->segment;
	item.low_tid = entry->low.tid;
	item.high_tid = entry->high.tid;
	item.low_keylen = entry->low.keylen;
	item.high_keylen = entry->high.keylen;
	memcpy(to, &item, sizeof(item));
	memcpy(to + sizeof(item), entry->low.key, entry->low.keylen);
	if (entry->high.keylen > 0)
		memcpy(to + sizeof(item) + entry->low.keylen, entry->high.key, entry->high.keylen);
	memset(to + size, 0, MAXALIGN(size) - size);
	return MAXALIGN(size);
}

bool
lsm_directory_page_fits(Page page, uint32 size)
{
	PageHeader	header = (PageHeader) page;

	/* Tests may limit the entries of a page, but pages of higher levels must still branch. */
	if (lsm_page_entries > 0 && lsm_directory_page_count(page) >= Max(lsm_page_entries, 2))
		return false;
	return header->pd_lower + size + sizeof(uint16) <= header->pd_upper;
}

/* Is this an item of this size? */
static bool
is_item(const char *item, uint32 size)
{
	LsmDirectoryItem head;

	if (size < sizeof(head))
		return false;
	memcpy(&head, item, sizeof(head));
	return head.low_keylen <= LSM_MAX_ENTRY_SIZE && head.high_keylen <= LSM_MAX_ENTRY_SIZE &&
		size == MAXALIGN(sizeof(head) + head.low_keylen + head.high_keylen);
}

/* Add an item after the last one.  Returns false if the item is malformed or does not fit. */
bool
lsm_directory_page_append(Page page, const char *item, uint32 size)
{
	PageHeader	header = (PageHeader) page;
	uint16		offset = header->pd_lower;

	if (!is_item(item, size) || offset + size + sizeof(uint16) > header->pd_upper)
		return false;
	memcpy((char *) page + offset, item, size);
	header->pd_lower += size;
	header->pd_upper -= sizeof(uint16);
	memcpy((char *) page + header->pd_upper, &offset, sizeof(uint16));
	lsm_directory_header(page)->count++;
	return true;
}

/* Does the page have this item?  The count and the space for offsets must both allow the item. */
static inline bool
is_item_ordinal(Page page, int ordinal)
{
	PageHeader	header = (PageHeader) page;

	return ordinal >= 0 && ordinal < lsm_directory_page_count(page) &&
		header->pd_upper <= LSM_PAGE_SPECIAL &&
		ordinal < (int) ((LSM_PAGE_SPECIAL - header->pd_upper) / sizeof(uint16));
}

/* Returns the item, or NULL if there is no such item or the page is damaged. */
static inline const LsmDirectoryItem *
find_item(Page page, int ordinal)
{
	const LsmDirectoryItem *item;
	uint16		offset;

	if (!is_item_ordinal(page, ordinal))
		return NULL;
	offset = item_offset(page, ordinal);
	if (offset < LSM_DIRECTORY_DATA || offset != MAXALIGN(offset) ||
		offset + sizeof(LsmDirectoryItem) > ((PageHeader) page)->pd_lower)
		return NULL;
	item = (const LsmDirectoryItem *) ((const char *) page + offset);
	if (item->low_keylen > LSM_MAX_ENTRY_SIZE || item->high_keylen > LSM_MAX_ENTRY_SIZE ||
		offset + sizeof(LsmDirectoryItem) + item->low_keylen + item->high_keylen >
		((PageHeader) page)->pd_lower)
		return NULL;
	return item;
}

static inline void
set_low(const LsmDirectoryItem *item, LsmEntry *entry)
{
	memset(entry, 0, sizeof(LsmEntry));
	entry->key = (const uint8 *) (item + 1);
	entry->keylen = item->low_keylen;
	entry->tid = item->low_tid;
}

static inline void
set_high(const LsmDirectoryItem *item, LsmEntry *entry)
{
	memset(entry, 0, sizeof(LsmEntry));
	entry->key = (const uint8 *) (item + 1) + item->low_keylen;
	entry->keylen = item->high_keylen;
	entry->tid = item->high_tid;
}

/*
 * Sets *entry to an item, with its keys in place.  Returns false if there is no such item or the
 * page is damaged.
 */
bool
lsm_directory_page_get(Page page, int ordinal, LsmDirectoryEntry *entry)
{
	const LsmDirectoryItem *item = find_item(page, ordinal);

	if (item == NULL)
		return false;
	entry->segment = item->segment;
	set_low(item, &entry->low);
	set_high(item, &entry->high);
	return true;
}

/* Like lsm_directory_page_get, for only the first or (is_high) the last entry of an item. */
bool
lsm_directory_page_get_end(Page page, int ordinal, bool is_high, LsmEntry *entry)
{
	const LsmDirectoryItem *item = find_item(page, ordinal);

	if (item == NULL)
		return false;
	if (is_high)
		set_high(item, entry);
	else
		set_low(item, entry);
	return true;
}

/*
 * Change the record of an item, but not its keys.  Returns false if there is no such item or the
 * page is damaged.
 */
bool
lsm_directory_page_set(Page page, int ordinal, const LsmSegment *segment)
{
	uint16		offset;

	if (!is_item_ordinal(page, ordinal))
		return false;
	offset = item_offset(page, ordinal);
	if (offset < LSM_DIRECTORY_DATA ||
		offset + sizeof(LsmDirectoryItem) > ((PageHeader) page)->pd_lower)
		return false;
	memcpy((char *) page + offset, segment, sizeof(LsmSegment));
	return true;
}

/* Returns what is wrong with the layout of a directory page, or NULL. */
const char *
lsm_directory_page_check(Page page)
{
	PageHeader	header = (PageHeader) page;
	int			count = lsm_directory_page_count(page);
	uint16		expected = LSM_DIRECTORY_DATA;
	LsmDirectoryEntry entry;

	if (header->pd_upper + count * sizeof(uint16) != LSM_PAGE_SPECIAL ||
		header->pd_lower < LSM_DIRECTORY_DATA ||
		lsm_directory_header(page)->level < 1 ||
		lsm_directory_header(page)->level > LSM_MAX_HEIGHT)
		return "item count does not fit the page";
	for (int i = 0; i < count; i++)
	{
		if (item_offset(page, i) != expected || !lsm_directory_page_get(page, i, &entry))
			return "item is out of bounds";
		expected += MAXALIGN(sizeof(LsmDirectoryItem) + entry.low.keylen + entry.high.keylen);
	}
	return expected == header->pd_lower ? NULL : "items do not fill their area";
}
