/*
 * page_filter.h
 *	  Keeps filters in private memory for pages of the write buffer.
 *
 * An open page of the write buffer keeps getting entries, so its filter has to catch up.  New items
 * lie before the older items on the page.  A lookup that the filter rejects compares no keys, which
 * saves the most with tuple keys and with many sealed pages.  Once the filter has all entries of a
 * sealed page, a rejected lookup does not even lock the page.
 */
#ifndef LSM_PAGE_FILTER_H
#define LSM_PAGE_FILTER_H

#include "format/buffer_page.h"
#include "key/keyspace.h"
#include "read/memory_filter.h"

typedef struct LsmPageFilter
{
	LsmMemoryFilter filter;
	uint32		room;			/* in entries; 0: there is no filter */
	uint32		count;			/* entries in the filter */
	uint16		upper;			/* pd_upper of the page at the last catch-up */
	uint64		stamp;			/* of the page at the last catch-up */
	uint32		credit;			/* entries that the filter may read; lookups that
								 * could not use the filter have paid for them */
	bool		is_final;		/* the filter has all entries of a sealed page */
} LsmPageFilter;

/* Items that a filter does not have yet; if `anew`, all items of the page. */
typedef struct LsmPageNews
{
	uint64		stamp;
	uint16		upper;			/* where the items begin on the page */
	uint16		end;
	uint32		count;			/* of all entries on the page */
	bool		anew;			/* the filter must be rebuilt */
	char		items[BLCKSZ];
} LsmPageNews;

extern bool lsm_page_filter_read(const LsmKeySpace *ks, LsmPageFilter *f, Page page, uint32 lookups,
								 LsmPageNews *news);
extern bool lsm_page_filter_add(LsmPageFilter *f, LsmKeySpace *ks, MemoryContext context,
								int bits_per_key, const LsmPageNews *news);

/* May the page have a key with this hash?  REQUIRES: the filter has caught up. */
static inline bool
lsm_page_filter_has(const LsmPageFilter *f, uint64 hash)
{
	return lsm_memory_filter_has(&f->filter, hash);
}

#endif							/* LSM_PAGE_FILTER_H */
