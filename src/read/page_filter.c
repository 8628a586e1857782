/*
 * page_filter.c
 *	  Filters in private memory of pages of the write buffer: how they catch up.
 */
#include "postgres.h"

#include "key/hash.h"
#include "read/page_filter.h"

/*
 * A lookup that goes without a filter takes about as long as reading so many entries for one:
 * of encoded keys, and of others.  Tests should not need many lookups.
 */
#ifdef USE_ASSERT_CHECKING
#define ENTRIES_A_SEARCH		200
#define ENTRIES_A_SLOW_SEARCH	200
#else
#define ENTRIES_A_SEARCH		8
#define ENTRIES_A_SLOW_SEARCH	32
#endif

/* More credit than any page needs. */
#define MOST_CREDIT		BLCKSZ

/* Spare room, in entries, beyond those of a full page. */
#define SPARE_ROOM		16

/*
 * Look at a page, under its lock: which of its items are new to the filter?  Returns false if
 * there are more of them than `lookups` and earlier lookups pay for, or if the page is damaged.
 * Else lsm_page_filter_add follows, when the page is unlocked.
 */
bool
lsm_page_filter_read(const LsmKeySpace *ks, LsmPageFilter *f, Page page, uint32 lookups,
					 LsmPageNews *news)
{
	PageHeader	header = (PageHeader) page;
	uint32		each = ks->encoded ? ENTRIES_A_SEARCH : ENTRIES_A_SLOW_SEARCH;

	news->count = lsm_buffer_page_count(page);
	news->stamp = lsm_page_opaque(page)->stamp;
	news->upper = header->pd_upper;
	/* Removal moves items.  The filter may keep what it has of those that are gone. */
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

/* How many entries will the page have when it is full, if they go on as they are? */
static uint32
expected_count(const LsmPageNews *news)
{
	uint32		item = (LSM_PAGE_SPECIAL - news->upper) / Max(news->count, 1) + sizeof(uint16);

	return (LSM_PAGE_SPECIAL - LSM_PAGE_CONTENT) / item + SPARE_ROOM;
}

/*
 * Add the new items.  Returns false if they are damaged, or if keys have other hashes now than
 * filters expect: then there is no filter.
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
