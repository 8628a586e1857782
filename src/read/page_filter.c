/*
 * page_filter.c
 *	  Lets filters in private memory catch up with pages of the write buffer.
 */
#include "postgres.h"

#include "key/hash.h"
#include "read/page_filter.h"

/*
 * How many entries a filter can read in the time that a lookup without a filter takes: for encoded
 * keys, and for tuple keys.  With assertions, the number is large, so that tests need few lookups.
 */
#ifdef USE_ASSERT_CHECKING
#define ENTRIES_PER_SEARCH		200
#define ENTRIES_PER_SLOW_SEARCH	200
#else
#define ENTRIES_PER_SEARCH		8
#define ENTRIES_PER_SLOW_SEARCH	32
#endif

/* More credit than any page needs. */
#define MOST_CREDIT		BLCKSZ

/* Spare room, in entries, beyond those of a full page. */
#define SPARE_ROOM		16

/*
 * Copy the items that are new to the filter from a page.  Caller holds the page's lock.  Returns
 * false if the page is empty or damaged, or if `lookups` and earlier lookups together do not pay
 * for the items.  Otherwise the caller unlocks the page and calls lsm_page_filter_add.
 */
bool
lsm_page_filter_read(const LsmKeySpace *ks, LsmPageFilter *f, Page page, uint32 lookups,
					 LsmPageNews *news)
{
	PageHeader	header = (PageHeader) page;
	uint32		each = ks->encoded ? ENTRIES_PER_SEARCH : ENTRIES_PER_SLOW_SEARCH;

	news->count = lsm_buffer_page_count(page);
	news->stamp = lsm_page_opaque(page)->stamp;
	news->upper = header->pd_upper;
	/* Removing entries moves items and changes the stamp, so the filter must be rebuilt. */
	news->anew = f->room < news->count || f->stamp != news->stamp || f->upper < news->upper;
	news->end = news->anew ? LSM_PAGE_SPECIAL : f->upper;
	f->credit = Min(f->credit + (uint64) lookups * each, MOST_CREDIT);
	if (news->count == 0 || news->count - (news->anew ? 0 : f->count) > f->credit ||
		news->upper > news->end)
		return false;
	f->credit = 0;
	memcpy(news->items, (char *) page + news->upper, news->end - news->upper);
	return true;
}

/* How many entries will the full page have if their average size stays the same? */
static uint32
expected_count(const LsmPageNews *news)
{
	uint32		item = (LSM_PAGE_SPECIAL - news->upper) / Max(news->count, 1) + sizeof(uint16);

	return (LSM_PAGE_SPECIAL - LSM_PAGE_CONTENT) / item + SPARE_ROOM;
}

/*
 * Add the new items.  If the items are damaged, or if keys no longer have the hashes that filters
 * expect, drops the filter and returns false.
 */
bool
lsm_page_filter_add(LsmPageFilter *f, LsmKeySpace *ks, MemoryContext context, int bits_per_key,
					const LsmPageNews *news)
{
	const char *p = news->items;
	const char *end = p + (news->end - news->upper);
	bool		sound = true;

	if (news->anew)
	{
		f->room = 0;
		f->count = 0;
		lsm_memory_filter_make(&f->filter, context, bits_per_key,
							   Max(expected_count(news), news->count));
	}
	while (p < end && sound)
	{
		LsmEntry	entry;
		uint64		hash;

		sound = lsm_item_decode((const uint8 *) p, (const uint8 *) end, &entry);
		if (!sound)
			break;
		hash = lsm_hash_key(ks, &entry, ks->nkeys);
		lsm_memory_filter_add(&f->filter, &hash, 1);
		p += lsm_item_size(&entry);
	}
	if (!sound || !lsm_hashing_holds(&ks->hashing))
	{
		f->room = 0;
		return false;
	}
	if (news->anew)
		f->room = Max(expected_count(news), news->count);
	f->count = news->count;
	f->upper = news->upper;
	f->stamp = news->stamp;
	return true;
}
