/* t_filter.c -- filters pass every key that they were built from, and few others. */
#include "tap.h"

#include "format/filter_page.h"

#define MOST_PAGES 64

static PGAlignedBlock pages[MOST_PAGES];

static uint64
hash_of(uint64 key)
{
	return lsm_filter_hash((const uint8 *) &key, sizeof(key));
}

/* Build the filter of keys 0, 2, 4, ... Returns the number of pages. */
static uint32
make(uint64 keys, int bits)
{
	uint32		count = lsm_filter_pages(keys, bits);

	if (count > MOST_PAGES)
		abort();
	for (uint32 i = 0; i < count; i++)
		lsm_filter_page_init(pages[i].data, lsm_filter_probes(keys, count), count, 0);
	for (uint64 key = 0; key < keys; key++)
	{
		LsmFilterPlace place = lsm_filter_place(hash_of(2 * key), count);

		lsm_filter_page_add(pages[place.page].data, &place, hash_of(2 * key));
	}
	return count;
}

static bool
has(uint64 key, uint32 count)
{
	LsmFilterPlace place = lsm_filter_place(hash_of(key), count);

	return lsm_filter_page_has(pages[place.page].data, &place, hash_of(key));
}

/* Every key passes. Of 1000 other keys, at most `most` pass the filter. */
static void
test_answers(uint64 keys, int bits, double most)
{
	uint32		count = make(keys, bits);
	uint64		missed = 0;
	uint64		wrong = 0;
	uint32		good = 0;
	char		name[100];
	const uint64 asked = 200000;

	for (uint64 key = 0; key < keys; key++)
		missed += !has(2 * key, count);
	for (uint64 key = 0; key < asked; key++)
		wrong += has(2 * key + 1, count);
	snprintf(name, sizeof(name), "%d bits, %d keys: every key passes", bits, (int) keys);
	ok(missed == 0, name);
	snprintf(name, sizeof(name), "%d bits, %d keys: %.2f of 1000 other keys pass",
			 bits, (int) keys, wrong * 1000.0 / asked);
	ok(wrong * 1000.0 / asked <= most, name);
	for (uint32 i = 0; i < count; i++)
		good += lsm_filter_page_check(pages[i].data) == NULL;
	ok(good == count, "its pages pass the check");
}

/* A prefix passes neither as a key of the same bytes nor as a prefix of other columns. */
static void
test_prefixes(void)
{
	uint32		count = make(6000, 16);
	uint64		wrong = 0;

	for (uint64 key = 0; key < 6000; key++)
	{
		uint64		bytes = 2 * key;

		for (int columns = 1; columns <= 3; columns++)
		{
			uint64		hash = lsm_filter_prefix_hash((const uint8 *) &bytes, sizeof(bytes), columns);
			LsmFilterPlace place = lsm_filter_place(hash, count);

			wrong += lsm_filter_page_has(pages[place.page].data, &place, hash);
		}
	}
	ok(wrong <= 18000 * 16 / 10000, "prefixes and keys are distinguished");
}

static void
test_sizes(void)
{
	const uint32 bits = LSM_FILTER_PAGE_BLOCKS * LSM_FILTER_BLOCK_BITS;

	ok(lsm_filter_pages(1, 10) == 1, "a filter has at least one page");
	ok(lsm_filter_pages(bits / 10 * 5 / 4, 10) == 1, "a quarter of a page too many adds no page");
	ok(lsm_filter_pages(bits / 10 * 4 / 3, 10) == 2, "a third of a page does");
	ok(lsm_filter_pages(UINT64CONST(10000000000), 32) == 320000000000 / bits + 1,
	   "sizes do not overflow");
	ok(lsm_filter_probes(1, 1) == 8 && lsm_filter_probes(bits, 1) == 1, "1 to 8 bits are set");
}

static void
test_damage(void)
{
	make(1000, 10);
	lsm_filter_header(pages[0].data)->probes = LSM_FILTER_MOST_PROBES + 1;
	ok(lsm_filter_page_check(pages[0].data) != NULL, "too many probes are noticed");
	make(1000, 10);
	lsm_filter_header(pages[0].data)->pages = 0;
	ok(lsm_filter_page_check(pages[0].data) != NULL, "a filter of no pages is noticed");
	make(1000, 10);
	lsm_filter_header(pages[0].data)->prefix_columns = INDEX_MAX_KEYS;
	ok(lsm_filter_page_check(pages[0].data) != NULL, "prefixes of too many columns are noticed");
	make(1000, 10);
	((PageHeader) pages[0].data)->pd_lower -= LSM_FILTER_BLOCK_BYTES;
	ok(lsm_filter_page_check(pages[0].data) != NULL, "a missing block is noticed");
}

int
main(void)
{
	test_answers(100, 10, 13);
	test_answers(6000, 10, 13);
	test_answers(50000, 10, 13);
	test_answers(200000, 10, 13);
	test_answers(50000, 16, 1.6);
	test_answers(200000, 16, 1.6);
	test_answers(50000, 4, 200);
	/* 1, 3, 4, 5 and 7 bits are set. */
	test_answers(20000, 2, 450);
	test_answers(20000, 5, 130);
	test_answers(20000, 7, 60);
	test_answers(20000, 9, 25);
	test_answers(20000, 12, 7);
	test_prefixes();
	test_sizes();
	test_damage();
	return done();
}
