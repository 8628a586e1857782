/*
 * f_directory.c
 *	  Fuzzes directory pages: their items, and changes of items.
 *
 *	  uint16	number of the item to change
 *	  uint16	lengths of the keys of an item to append, and 16 bits of its fields
 *	  uint16
 *	  uint16
 *	  page
 */
#include "fuzz.h"

#include "backend.h"
#include "format/directory_page.h"

static Page page;

static bool
is_on_page(const LsmEntry *entry)
{
	const uint8 *content = (const uint8 *) page + LSM_DIRECTORY_DATA;
	const uint8 *end = (const uint8 *) page + ((PageHeader) page)->pd_lower;

	return entry->key >= content && entry->key <= end && entry->keylen <= end - entry->key;
}

static bool
same_key(const LsmEntry *a, const LsmEntry *b)
{
	return a->keylen == b->keylen && a->tid == b->tid && memcmp(a->key, b->key, a->keylen) == 0;
}

/* Returns how many items can be read. */
static int
read_items(void)
{
	int			count = 0;

	for (int i = -1; i <= lsm_directory_page_count(page); i++)
	{
		LsmDirectoryEntry item;
		LsmEntry	end;
		bool		found = lsm_directory_page_get(page, i, &item);

		expect(lsm_directory_page_get_end(page, i, false, &end) == found);
		expect(!found || same_key(&end, &item.low));
		expect(lsm_directory_page_get_end(page, i, true, &end) == found);
		expect(!found || same_key(&end, &item.high));
		expect(!found || (is_on_page(&item.low) && is_on_page(&item.high)));
		count += found;
	}
	return count;
}

static void
append(uint32 low, uint32 high, uint16 bits)
{
	char		bytes[LSM_MAX_DIRECTORY_ITEM];
	uint8		key[LSM_MAX_ENTRY_SIZE];
	LsmDirectoryEntry entry;
	LsmDirectoryEntry got;
	uint32		size;
	int			count = lsm_directory_page_count(page);
	bool		fits;

	memset(&entry, 0, sizeof(entry));
	memset(key, bits & 0xFF, sizeof(key));
	entry.low.key = entry.high.key = key;
	entry.low.keylen = Min(low, LSM_MAX_ENTRY_SIZE);
	entry.high.keylen = Min(high, LSM_MAX_ENTRY_SIZE);
	entry.low.tid = entry.high.tid = entry.segment.id = bits;
	size = lsm_directory_item_encode(bytes, &entry);
	fits = lsm_directory_page_fits(page, size);
	expect(lsm_directory_page_append(page, bytes, size) == fits);
	if (!fits)
		return;
	expect(lsm_directory_page_get(page, count, &got));
	expect(same_key(&got.low, &entry.low) && same_key(&got.high, &entry.high));
	expect(got.segment.id == bits);
}

void
fuzz_target(Input *in)
{
	int			ordinal = take16(in);
	uint32		low = take16(in);
	uint32		high = take16(in);
	uint16		bits = take16(in);
	LsmSegment	segment;
	bool		sound;

	if (page == NULL)
		page = (Page) backend_guarded_page();
	fuzz_read_page(in, page, LSM_PAGE_DIRECTORY, 5);
	if (lsm_page_check_header(page, 5) != NULL)
		return;
	sound = lsm_directory_page_check(page) == NULL;
	expect(read_items() == lsm_directory_page_count(page) || !sound);

	memset(&segment, bits, sizeof(segment));
	expect(lsm_directory_page_set(page, ordinal, &segment) == (ordinal < lsm_directory_page_count(page)) ||
		   !sound);
	if (sound)
		append(low, high, bits);
	expect(!sound || lsm_directory_page_check(page) == NULL);
	expect(lsm_page_check_header(page, 5) == NULL);
	read_items();
}
