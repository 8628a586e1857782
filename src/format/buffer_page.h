/*
 * buffer_page.h
 *	  Buffer pages: the write buffer and, sealed, one-page runs of level 0.
 *
 * A slotted page: sorted uint16 slots upward, items downward.  An item is
 * { uint16 keylen, uint16 restlen, uint16 offset, uint32 block, key, rest },
 * unaligned.  Slots are in (key, TID) order; the caller finds the position,
 * since only it can compare keys.
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
extern bool lsm_buffer_page_fits(Page page, uint32 item_size);
extern void lsm_buffer_page_insert(Page page, int pos, const uint8 *item, uint32 size);
extern bool lsm_buffer_page_get(Page page, int pos, LsmEntry *entry);
extern void lsm_buffer_page_delete(Page page, const uint16 *ordinals, int count);
extern const char *lsm_buffer_page_check(Page page);

#endif							/* LSM_BUFFER_PAGE_H */
