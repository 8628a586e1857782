/*
 * t_page_filter.c
 *	  Properties of filters of pages of the write buffer: they have the keys on the page.
 */
#include "backend.h"
#include "props.h"
#include "tap.h"

#include "format/buffer_page.h"
#include "key/hash.h"
#include "read/page_filter.h"

enum
{
	KNOWN, PAID, TURNED_AWAY
};

static const char *const names[] = {
	"a filter that has caught up has all keys of the page, whatever was added and removed",
	"it catches up as soon as lookups have paid for the new items",
	"it rejects most other keys",
};

static TestIndex the_index;
static TestRow rows[300];
static PGAlignedBlock page;
static LsmPageFilter filter;

/* Insert a row in order. Returns false if the page is full. */
static bool
insert_row(const TestRow *row)
{
	uint8		item[LSM_ITEM_HEADER + 2 * LSM_MAX_ENTRY_SIZE];
	uint32		size = lsm_item_encode(item, &row->entry);
	int			pos = 0;

	if (!lsm_buffer_page_fits(page.data, size))
		return false;
	for (; pos < lsm_buffer_page_count(page.data); pos++)
	{
		LsmEntry	at;

		lsm_buffer_page_get(page.data, pos, &at);
		if (lsm_key_compare(the_index.ks, &at, &row->entry) > 0)
			break;
	}
	lsm_buffer_page_insert(page.data, pos, item, size);
	return true;
}

static void
remove_some(void)
{
	uint16		ordinals[300];
	int			count = 0;

	for (int i = 0; i < lsm_buffer_page_count(page.data); i++)
	{
		if (chance(4))
			ordinals[count++] = i;
	}
	lsm_buffer_page_delete(page.data, ordinals, count);
}

static void
check_all_known(void)
{
	int			admitted = 0;

	for (int i = 0; i < lsm_buffer_page_count(page.data); i++)
	{
		LsmEntry	entry;

		lsm_buffer_page_get(page.data, i, &entry);
		props_expect(KNOWN, lsm_page_filter_has(&filter, lsm_hash_key(the_index.ks, &entry, the_index.nkeys)),
					 "%s", rows_describe(&the_index));
	}
	for (int i = 0; i < 50; i++)
		admitted += lsm_page_filter_has(&filter, pick_bits());
	props_expect(TURNED_AWAY, admitted <= 10, "%d of 50", admitted);
}

/* Catch up, while more rows may come in. */
static void
catch_up(void)
{
	static LsmPageNews news;
	int			count = lsm_buffer_page_count(page.data);
	uint32		credit = filter.credit;
	bool		paid = lsm_page_filter_read(the_index.ks, &filter, page.data, chance(3) ? 0 : 1 + pick(3),
											&news);

	if (!paid)
	{
		props_expect(PAID, count == 0 || filter.credit >= credit, "unpaid, %d entries", count);
		return;
	}
	props_expect(PAID, filter.credit == 0 && news.count == count, "%d entries", count);
	if (!lsm_page_filter_add(&filter, the_index.ks, NULL, 16, &news))
		return;
	check_all_known();
}

static void
round_of_pages(void)
{
	int			next = 0;

	do
		rows_index(&the_index, 3);
	while (the_index.ks->hashing.least_columns == 0);
	rows_make(&the_index, rows, lengthof(rows));
	memset(&filter, 0, sizeof(filter));
	lsm_page_init(page.data, LSM_PAGE_BUFFER, 17, 40);
	((PageHeader) page.data)->pd_lower = LSM_PAGE_CONTENT;
	lsm_page_opaque(page.data)->flags |= LSM_PAGE_OPEN;
	while (next < lengthof(rows) && insert_row(&rows[next]))
	{
		next++;
		if (chance(30))
			remove_some();
		if (chance(5))
			catch_up();
	}
	catch_up();
	/* One lookup for each entry pays for any filter. */
	for (int i = 0; i < 300 && filter.count < (uint32) lsm_buffer_page_count(page.data); i++)
		catch_up();
	props_expect(PAID, filter.room > 0 || lsm_buffer_page_count(page.data) == 0, "%d entries, count %u, %s", lsm_buffer_page_count(page.data), filter.count, rows_describe(&the_index));
}

int
main(void)
{
	return props_run(150, round_of_pages, names, lengthof(names));
}
