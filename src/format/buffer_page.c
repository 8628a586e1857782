/*
 * buffer_page.c
 *	  Changes and reads buffer pages.
 *
 * Normal operation and redo call the same mutators.
 */
#include "postgres.h"

#include "base/coding.h"
#include "format/buffer_page.h"

#define slot_at(page, pos) \
	(((uint16 *) ((char *) (page) + LSM_PAGE_CONTENT)) + (pos))

/* Write an entry as an item at p, which has room for it.  Returns the item's size. */
uint32
lsm_item_encode(uint8 *p, const LsmEntry *entry)
{
	uint16		head[3] = {entry->keylen, entry->restlen, entry->tid & 0xFFFF};
	uint32		block = (uint32) (entry->tid >> 16);

	memcpy(p, head, sizeof(head));
	memcpy(p + sizeof(head), &block, sizeof(block));
	memcpy(p + LSM_ITEM_HEADER, entry->key, entry->keylen);
	if (entry->restlen > 0)
		memcpy(p + LSM_ITEM_HEADER + entry->keylen, entry->rest, entry->restlen);
	return lsm_item_size(entry);
}

bool
lsm_buffer_page_fits(Page page, uint32 item_size)
{
	PageHeader	header = (PageHeader) page;

	if (lsm_buffer_entries > 0 && lsm_buffer_page_count(page) >= lsm_buffer_entries)
		return false;
	return header->pd_lower + sizeof(uint16) + item_size <= header->pd_upper;
}

/*
 * Insert an item before slot pos.
 *
 * REQUIRES: the item fits; 0 <= pos <= count.
 */
void
lsm_buffer_page_insert(Page page, int pos, const uint8 *item, uint32 size)
{
	PageHeader	header = (PageHeader) page;
	int			count = lsm_buffer_page_count(page);
	uint16	   *slot = slot_at(page, pos);

	Assert(pos >= 0 && pos <= count);
	header->pd_upper -= size;
	memcpy((char *) page + header->pd_upper, item, size);
	memmove(slot + 1, slot, (count - pos) * sizeof(uint16));
	*slot = header->pd_upper;
	header->pd_lower += sizeof(uint16);
	/* Remove the mark here, since lsm_page_set_crc is not called for an open page. */
	lsm_page_unmark(page);
}

/* Sets *entry to the entry of the item at p, in place.  Returns false if the item is damaged. */
bool
lsm_item_decode(const uint8 *p, const uint8 *end, LsmEntry *entry)
{
	uint16		head[3];
	uint32		block;

	if (end - p < LSM_ITEM_HEADER)
		return false;
	memcpy(head, p, sizeof(head));
	memcpy(&block, p + sizeof(head), sizeof(block));
	if (LSM_ITEM_HEADER + head[0] + head[1] > end - p || head[0] + head[1] > LSM_MAX_ENTRY_SIZE)
		return false;
	entry->key = p + LSM_ITEM_HEADER;
	entry->aligned = false;
	entry->keylen = head[0];
	entry->rest = entry->key + head[0];
	entry->restlen = head[1];
	entry->tid = ((uint64) block << 16) | head[2];
	return true;
}

/* Sets *entry to the entry in slot pos, in place.  Returns false if the page is damaged. */
bool
lsm_buffer_page_get(Page page, int pos, LsmEntry *entry)
{
	uint16		offset = *slot_at(page, pos);

	return offset >= ((PageHeader) page)->pd_upper && offset <= LSM_PAGE_SPECIAL &&
		lsm_item_decode((const uint8 *) page + offset, (const uint8 *) page + LSM_PAGE_SPECIAL,
						entry);
}

/*
 * A new entry belongs in slot `pos` of `before`, an earlier copy of the open page.  Returns the
 * slot for the entry in the page as it is now, between the same two neighbors.  Returns -1 if an
 * entry was inserted between these neighbors, or if entries were removed since the copy.
 */
int
lsm_buffer_page_find_gap(Page page, Page before, int pos)
{
	int			old_count = lsm_buffer_page_count(before);
	int			count = lsm_buffer_page_count(page);

	if (lsm_page_opaque(page)->stamp != lsm_page_opaque(before)->stamp)
		return -1;
	/* Inserts do not move items, so an item's offset tells it from the others. */
	for (int i = pos; i <= pos + count - old_count; i++)
	{
		bool		follows = pos == 0 ? i == 0 :
			*slot_at(page, i - 1) == *slot_at(before, pos - 1);

		if (follows && (pos == old_count ? i == count :
						*slot_at(page, i) == *slot_at(before, pos)))
			return i;
	}
	return -1;
}

/*
 * Remove the entries at the given slots (ascending) and close the gaps.
 *
 * REQUIRES: lsm_buffer_page_check has found nothing, or redo calls this function.
 */
void
lsm_buffer_page_delete(Page page, const uint16 *ordinals, int count)
{
	PGAlignedBlock copy;
	PageHeader	header = (PageHeader) page;
	int			old_count = lsm_buffer_page_count(page);
	int			kept = 0;
	int			next = 0;

	memcpy(copy.data, page, BLCKSZ);
	header->pd_upper = LSM_PAGE_SPECIAL;
	for (int i = 0; i < old_count; i++)
	{
		LsmEntry	entry;
		uint32		size;

		if (next < count && ordinals[next] == i)
		{
			next++;
			continue;
		}
		if (!lsm_buffer_page_get((Page) copy.data, i, &entry))
			continue;
		size = lsm_item_size(&entry);
		/* Only overlapping items, on a damaged page, can need more room than they had. */
		if (header->pd_upper < LSM_PAGE_CONTENT + old_count * sizeof(uint16) + size)
			break;
		header->pd_upper -= size;
		memcpy((char *) page + header->pd_upper, entry.key - LSM_ITEM_HEADER, size);
		*slot_at(page, kept) = header->pd_upper;
		kept++;
	}
	header->pd_lower = LSM_PAGE_CONTENT + kept * sizeof(uint16);
	memset((char *) page + header->pd_lower, 0, header->pd_upper - header->pd_lower);
	lsm_page_opaque(page)->stamp++;
	if (lsm_page_opaque(page)->flags & LSM_PAGE_OPEN)
		lsm_page_unmark(page);
	else
		lsm_page_set_crc(page);
}

/* Returns what is wrong with the layout of a buffer page, or NULL. */
const char *
lsm_buffer_page_check(Page page)
{
	int			count = lsm_buffer_page_count(page);
	uint32		size = 0;
	LsmEntry	entry;

	for (int i = 0; i < count; i++)
	{
		if (!lsm_buffer_page_get(page, i, &entry))
			return "item is out of bounds";
		size += lsm_item_size(&entry);
	}
	/* Inserting and deleting leave no gaps, and items do not overlap. */
	if (size != LSM_PAGE_SPECIAL - ((PageHeader) page)->pd_upper)
		return "items do not fill their area";
	return NULL;
}

/* Returns what is wrong with the TIDs of a buffer page whose layout has been checked, or NULL. */
const char *
lsm_buffer_page_check_tids(Page page)
{
	int			count = lsm_buffer_page_count(page);
	LsmEntry	entry;

	for (int i = 0; i < count; i++)
	{
		if (lsm_buffer_page_get(page, i, &entry) && (entry.tid & 0xFFFF) == InvalidOffsetNumber)
			return "TID is invalid";
	}
	return NULL;
}
