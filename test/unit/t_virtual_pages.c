/*
 * t_virtual_pages.c
 *	  The pages of a range cover every key in the range, and keys far apart share no pages.
 */
#include "backend.h"
#include "key/encode.h"
#include "key/order_code.h"
#include "key/virtual_pages.h"
#include "props.h"
#include "tap.h"
#include "utils/builtins.h"

enum
{
	COVERED, SAME_KEY, LOOKUPS_APART, RANGES_APART, FEW
};

static const char *const names[] = {
	"a key between two bounds is on one of their pages",
	"entries of the same key are on the same pages",
	"a lookup of a key shares no page with another key",
	"a short range shares no page with a key far outside it",
	"keys and ranges are on a limited number of pages",
};

static TestIndex the_index;
static TestRow rows[40];
static int	row_count;

static bool
share_page(const BlockNumber *a, int a_count, const BlockNumber *b, int b_count)
{
	for (int i = 0; i < a_count; i++)
	{
		for (int j = 0; j < b_count; j++)
		{
			if (a[i] == b[j])
				return true;
		}
	}
	return false;
}

/* Make a bound of some columns of a row. */
static void
make_bound(LsmBound *bound, const TestRow *row, int columns, int tie)
{
	lsm_bound_init(bound, tie);
	for (int i = 0; i < columns; i++)
		lsm_bound_add(the_index.ks, bound, row->values[i], row->isnull[i], NULL);
}

static void
check_range(void)
{
	LsmBound	low = {0};
	LsmBound	high = {0};
	BlockNumber pages[LSM_RANGE_PAGES];
	BlockNumber of_key[LSM_KEY_PAGES];
	int			columns = pick(the_index.nkeys + 1);
	int			shared = chance(2) ? pick(row_count) : -1;
	int			count;

	make_bound(&low, &rows[shared >= 0 ? shared : (int) pick(row_count)], columns, chance(2) ? 1 : -1);
	make_bound(&high, &rows[shared >= 0 ? shared : (int) pick(row_count)],
			   chance(2) ? columns : (int) pick(the_index.nkeys + 1), chance(2) ? 1 : -1);
	count = lsm_pages_of_range(the_index.ks, &low, &high, pages);
	props_expect(FEW, count >= -1 && count <= LSM_RANGE_PAGES, "%d pages", count);
	for (int i = 0; i < row_count && count >= 0; i++)
	{
		int			n = lsm_pages_of_key(the_index.ks, &rows[i].entry, of_key);

		props_expect(FEW, n > 0 && n <= LSM_KEY_PAGES, "%d pages", n);
		if (lsm_bound_compare(the_index.ks, &low, &rows[i].entry) > 0 &&
			lsm_bound_compare(the_index.ks, &high, &rows[i].entry) < 0)
			props_expect(COVERED, share_page(pages, count, of_key, n), "row %d, %s", i,
						 rows_describe(&the_index));
	}
}

static bool
all_are_hashed(void)
{
	for (int i = 0; i < the_index.nkeys && !the_index.ks->encoded; i++)
	{
		if (the_index.ks->columns[i].hash_kind == LSM_HASH_NONE)
			return false;
	}
	return true;
}

/* Check the pages of a lookup of a row's key. */
static void
check_lookup(void)
{
	LsmBound	bounds[2] = {0};
	BlockNumber page[LSM_RANGE_PAGES];
	BlockNumber of_key[LSM_KEY_PAGES];
	const TestRow *row = &rows[pick(row_count)];

	make_bound(&bounds[0], row, the_index.nkeys, 1);
	make_bound(&bounds[1], row, the_index.nkeys, -1);
	props_expect(SAME_KEY, lsm_pages_of_range(the_index.ks, &bounds[0], &bounds[1], page) == 1,
				 "%s", rows_describe(&the_index));
	for (int i = 0; i < row_count; i++)
	{
		int			n = lsm_pages_of_key(the_index.ks, &rows[i].entry, of_key);
		bool		same = rows_compare_columns(&the_index, &rows[i], row, the_index.nkeys) == 0;

		if (same || all_are_hashed())
			props_expect(same ? SAME_KEY : LOOKUPS_APART, share_page(page, 1, of_key, n) == same,
						 "row %d, %s", i, rows_describe(&the_index));
	}
}

/* An index on an int4, whose keys are a marker and four bytes. */
static void
check_ranges_apart(void)
{
	static const LsmColumn column = {.encoding = LSM_ENC_INT32, .typlen = 4, .typbyval = true};
	static union
	{
		LsmKeySpace ks;
		char		room[sizeof(LsmKeySpace) + sizeof(LsmColumn)];
	}			u;
	int32		start = 1000 + pick(1000000);
	int32		far = start + 100000 + pick(1000000);
	LsmBound	low = {0};
	LsmBound	high = {0};
	BlockNumber pages[LSM_RANGE_PAGES];
	BlockNumber of_key[LSM_KEY_PAGES];
	uint8		key[8];
	LsmEntry	entry = {.key = key, .keylen = 5};
	int			count;

	u.ks.encoded = true;
	u.ks.nkeys = 1;
	u.ks.max_keylen = 5;
	memcpy(u.ks.columns, &column, sizeof(column));
	lsm_bound_init(&low, 1);
	lsm_bound_add(&u.ks, &low, Int32GetDatum(start), false, NULL);
	lsm_bound_init(&high, -1);
	lsm_bound_add(&u.ks, &high, Int32GetDatum(start + 1 + pick(100)), false, NULL);
	count = lsm_pages_of_range(&u.ks, &low, &high, pages);
	lsm_encode_column(&u.ks.columns[0], Int32GetDatum(far), false, key);
	props_expect(RANGES_APART, count > 0 &&
				 !share_page(pages, count, of_key, lsm_pages_of_key(&u.ks, &entry, of_key)),
				 "from %d, key %d, %d pages", start, far, count);
}

/* The same for texts that a function compares, with order codes: "caseless" in types.c. */
static void
check_texts_apart(void)
{
	TestIndex	index;
	LsmBound	low = {0};
	LsmBound	high = {0};
	BlockNumber pages[LSM_RANGE_PAGES];
	BlockNumber of_key[LSM_KEY_PAGES];
	LsmEntry	entry;
	ItemPointerData tid = {{0, 1}, 1};
	bool		isnull = false;
	Datum		key = PointerGetDatum(cstring_to_text("Order-7301"));
	int			count;

	do
		rows_index(&index, 1);
	while (index.ks->encoded || !lsm_has_order_codes(index.ks) || index.ks->columns[0].encoding != LSM_ENC_NONE || index.natts > 1);
	lsm_bound_init(&low, 1);
	lsm_bound_add(index.ks, &low, PointerGetDatum(cstring_to_text("ORDER-12")), false, NULL);
	lsm_bound_init(&high, -1);
	lsm_bound_add(index.ks, &high, PointerGetDatum(cstring_to_text("order-13")), false, NULL);
	if (index.ks->columns[0].desc)
	{
		LsmBound	swap = low;

		low = high;
		high = swap;
		low.tie = 1;
		high.tie = -1;
	}
	count = lsm_pages_of_range(index.ks, &low, &high, pages);
	lsm_keyspace_form(index.ks, &key, &isnull, &tid, &entry);
	props_expect(RANGES_APART, count > 0 &&
				 !share_page(pages, count, of_key, lsm_pages_of_key(index.ks, &entry, of_key)),
				 "%d pages, %s", count, rows_describe(&index));
}

static void
round_of_pages(void)
{
	rows_index(&the_index, 4);
	rows_make(&the_index, rows, lengthof(rows));
	row_count = rows_sort(&the_index, rows, lengthof(rows));
	for (int i = 0; i < 5; i++)
	{
		check_range();
		check_lookup();
		check_ranges_apart();
	}
	check_texts_apart();
}

int
main(void)
{
	return props_run(600, round_of_pages, names, lengthof(names));
}
