/*
 * buffer_page.h
 *	  Buffer pages: the pages of the write buffer, and the sealed one-page runs of level 0.
 *
 * A buffer page is a slotted page.  Slots are in (key, TID) order.  The caller finds the
 * position of an entry, because only the caller can compare keys.
 *
 *		24			slots, up to pd_lower: uint16, offset of an item in the page
 *		pd_upper	items, unaligned, in any order, up to 8160:
 *						0	2	keylen
 *						2	2	restlen
 *						4	2	TID: offset number
 *						6	4	TID: block
 *						10		key, then rest
 *
 * While the page has the flag LSM_PAGE_OPEN, it accepts entries and has no checksum
 * (I7).  Sealing the page clears the flag and sets the checksum.
 */
#ifndef LSM_BUFFER_PAGE_H
#define LSM_BUFFER_PAGE_H

#include "format/leaf.h"
#include "format/page.h"

#define LSM_ITEM_HEADER 10

static inline int
lsm_buffer_page_count(Page page)
{
	return (((PageHeader) page)->pd_lower - LSM_PAGE_CONTENT) / sizeof(uint16);
}

static inline uint32
lsm_item_size(const LsmEntry *entry)
{
	return LSM_ITEM_HEADER + entry->keylen + entry->restlen;
}

extern uint32 lsm_item_encode(uint8 *p, const LsmEntry *entry);
extern bool lsm_item_decode(const uint8 *p, const uint8 *end, LsmEntry *entry);
extern bool lsm_buffer_page_fits(Page page, uint32 item_size);
extern void lsm_buffer_page_insert(Page page, int pos, const uint8 *item, uint32 size);
extern bool lsm_buffer_page_get(Page page, int pos, LsmEntry *entry);
extern int	lsm_buffer_page_find_gap(Page page, Page before, int pos);
extern void lsm_buffer_page_delete(Page page, const uint16 *ordinals, int count);
extern const char *lsm_buffer_page_check(Page page);
extern const char *lsm_buffer_page_check_tids(Page page);

#endif							/* LSM_BUFFER_PAGE_H */
