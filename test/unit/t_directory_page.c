/* t_directory_page.c -- pages of a directory: items, their records, damage. */
#include "tap.h"

#include "backend.h"
#include "base/limits.h"
#include "format/directory_page.h"

#define MAX_ITEMS 200

/* The expected items of the page. */
typedef struct Stored
{
	LsmSegment	segment;
	uint8		low[LSM_MAX_ENTRY_SIZE];
	uint8		high[LSM_MAX_ENTRY_SIZE];
	uint32		low_keylen;
	uint32		high_keylen;
	uint64		low_tid;
	uint64		high_tid;
} Stored;

static Page page;				/* between bytes that nobody may touch */
static Stored model[MAX_ITEMS];
static int	count;

static void
start(int level)
{
	lsm_directory_page_init(page, 77, 5, level);
	lsm_page_set_crc(page);
	count = 0;
}

static void
random_bytes(void *to, Size size)
{
	for (Size i = 0; i < size; i++)
		((uint8 *) to)[i] = rnd(256);
}

static LsmDirectoryEntry
random_entry(Stored *s, uint32 longest)
{
	LsmDirectoryEntry entry;

	memset(s, 0, sizeof(Stored));
	random_bytes(&s->segment, sizeof(LsmSegment));
	s->low_keylen = rnd(longest + 1);
	s->high_keylen = rnd(longest + 1);
	random_bytes(s->low, s->low_keylen);
	random_bytes(s->high, s->high_keylen);
	random_bytes(&s->low_tid, sizeof(uint64));
	random_bytes(&s->high_tid, sizeof(uint64));

	memset(&entry, 0, sizeof(entry));
	entry.segment = s->segment;
	entry.low.key = s->low;
	entry.low.keylen = s->low_keylen;
	entry.low.tid = s->low_tid;
	entry.high.key = s->high;
	entry.high.keylen = s->high_keylen;
	entry.high.tid = s->high_tid;
	return entry;
}

/* Append an item. Returns false if the page reports that it has no room. */
static bool
append(uint32 longest, bool *good)
{
	char		item[LSM_MAX_DIRECTORY_ITEM];
	Stored		s;
	LsmDirectoryEntry entry = random_entry(&s, longest);
	uint32		size = lsm_directory_item_encode(item, &entry);
	char		before[BLCKSZ];

	memcpy(before, page, BLCKSZ);
	*good &= size == MAXALIGN(sizeof(LsmDirectoryItem) + s.low_keylen + s.high_keylen);
	if (!lsm_directory_page_fits(page, size))
	{
		/* Then appending the item, as a damaged record might, changes nothing. */
		if (lsm_page_entries == 0)
			*good &= !lsm_directory_page_append(page, item, size) &&
				memcmp(before, page, BLCKSZ) == 0;
		return false;
	}
	*good &= lsm_directory_page_append(page, item, size);
	model[count++] = s;
	return true;
}

static bool
matches(void)
{
	LsmDirectoryEntry e;

	if (lsm_directory_page_count(page) != count || lsm_directory_page_check(page) != NULL ||
		lsm_page_check_header(page, 5) != NULL)
		return false;
	for (int i = 0; i < count; i++)
	{
		const Stored *s = &model[i];

		if (!lsm_directory_page_get(page, i, &e) ||
			memcmp(&e.segment, &s->segment, sizeof(LsmSegment)) != 0 ||
			e.low.keylen != s->low_keylen || e.high.keylen != s->high_keylen ||
			e.low.tid != s->low_tid || e.high.tid != s->high_tid ||
			e.low.restlen != 0 || e.high.restlen != 0 ||
			memcmp(e.low.key, s->low, s->low_keylen) != 0 ||
			memcmp(e.high.key, s->high, s->high_keylen) != 0)
			return false;
	}
	return !lsm_directory_page_get(page, count, &e) && !lsm_directory_page_get(page, -1, &e);
}

static void
test_model(void)
{
	static const uint32 lengths[] = {0, 1, 8, 16, 100, 500, LSM_MAX_ENTRY_SIZE};
	bool		good = true;
	bool		set = true;

	for (int round = 0; round < 700; round++)
	{
		uint32		longest = lengths[round % lengthof(lengths)];

		start(1 + rnd(3));
		good &= matches();
		while (append(longest, &good))
			;
		good &= count >= (longest > 500 ? 1 : 2) && matches();
		for (int i = 0; i < 20; i++)
		{
			int			at = rnd(count);

			random_bytes(&model[at].segment, sizeof(LsmSegment));
			set &= lsm_directory_page_set(page, at, &model[at].segment);
		}
		set &= matches() && !lsm_directory_page_set(page, count, &model[0].segment) &&
			!lsm_directory_page_set(page, -1, &model[0].segment) && matches();
	}
	ok(good, "items with any keys can be read back, until the page is full");
	ok(set, "a change of a record in place changes nothing else");
}

/* Every inner page has room for several children, whatever the keys are. */
static void
test_longest(void)
{
	static const int keys[] = {1, 2};

	for (int k = 0; k < lengthof(keys); k++)
	{
		char		item[LSM_MAX_DIRECTORY_ITEM];
		bool		good = true;

		start(keys[k] == 2 ? 1 : 2);
		for (int i = 0; i < (keys[k] == 2 ? 1 : 2); i++)
		{
			Stored	   *s = &model[count++];
			LsmDirectoryEntry entry = random_entry(s, 0);
			uint32		size;

			random_bytes(s->low, LSM_MAX_ENTRY_SIZE);
			random_bytes(s->high, LSM_MAX_ENTRY_SIZE);
			entry.low.keylen = s->low_keylen = LSM_MAX_ENTRY_SIZE;
			if (keys[k] == 2)
				entry.high.keylen = s->high_keylen = LSM_MAX_ENTRY_SIZE;
			size = lsm_directory_item_encode(item, &entry);
			good &= size <= LSM_MAX_DIRECTORY_ITEM && lsm_directory_page_fits(page, size) &&
				lsm_directory_page_append(page, item, size);
		}
		ok(good && matches(), keys[k] == 2 ? "a lowest-level page takes the longest item" :
		   "a page above it has room for two children with the longest keys");
	}
}

static void
test_settings(void)
{
	bool		good = true;

	lsm_page_entries = 7;
	start(1);
	while (append(4, &good))
		;
	ok(good && count == 7 && matches(), "the setting makes a page full earlier");
	lsm_page_entries = 1;
	start(2);
	while (append(4, &good))
		;
	ok(good && count == 2 && matches(), "but it still has room for two children");
	lsm_page_entries = 0;
}

/* Changes that a damaged record might ask redo to make. */
static void
test_refusals(void)
{
	static char item[PG_UINT16_MAX];
	bool		good = true;
	LsmDirectoryHeader *header = lsm_directory_header(page);

	start(1);
	for (int i = 0; i < 10; i++)
		append(20, &good);
	ok(!lsm_directory_page_append(page, item, 77) && matches(), "an item of an odd size is rejected");
	ok(!lsm_directory_page_append(page, item, BLCKSZ) &&
	   !lsm_directory_page_append(page, item, PG_UINT16_MAX - 7) && matches(),
	   "so is one larger than a page");
	header->level = 0;
	ok(lsm_directory_page_check(page) != NULL, "a level of 0 is rejected");
	header->level = LSM_MAX_HEIGHT + 1;
	ok(lsm_directory_page_check(page) != NULL, "so is a level that is too high");
	header->level = 1;
	header->count++;
	ok(lsm_directory_page_check(page) != NULL, "items outside the page's bounds are noticed");
	header->count -= 2;
	ok(lsm_directory_page_check(page) != NULL, "so are missing ones");
	header->count++;
	((PageHeader) page)->pd_lower += 8;
	ok(lsm_directory_page_check(page) != NULL, "and a gap between items and bounds");
	((PageHeader) page)->pd_lower -= 8;
	ok(matches(), "a sound page passes the check");
}

/* Flip bits. Flip half of them where they change the meaning of many others. */
static void
damage_page(void)
{
	for (int flips = 1 + rnd(4); flips > 0; flips--)
	{
		int			from = offsetof(PageHeaderData, pd_lower);
		int			at = rnd(LSM_PAGE_SPECIAL - from);

		if (rnd(3) == 0)
			at = rnd(50);
		else if (rnd(3) == 0)
			at = LSM_PAGE_SPECIAL - 1 - from - rnd(2 * (count + 1));
		((char *) page)[from + at] ^= 1 << rnd(8);
	}
}

/*
 * The number of items for which a page has slots. A larger count is damage.
 * lsm_directory_page_check finds it, and every reader of a page has called that function.
 */
#define MOST_SLOTS ((int) ((LSM_PAGE_SPECIAL - LSM_DIRECTORY_DATA) / sizeof(uint16)))

static int
items_to_try(void)
{
	return Min(lsm_directory_page_count(page), MOST_SLOTS);
}

/*
 * Run between guards and under the sanitizers. Damage may give any answer, but code touches nothing
 * beyond the page, even where only the header was checked, as in redo.
 */
static void
test_damage(void)
{
	int			read = 0;
	int			refused = 0;
	int			passed = 0;
	uint64		sum = 0;
	bool		good = true;

	for (int round = 0; round < 100000; round++)
	{
		LsmDirectoryEntry e;

		if (round % 5 == 0)
		{
			uint32		longest = 1 << rnd(11);

			start(1 + rnd(2));
			while (append(longest, &good))
				;
		}
		damage_page();
		if (lsm_page_check_header(page, 5) != NULL)
			continue;
		for (int i = 0; i < 40; i++)
		{
			int			at = i < 20 ? i : (int) rnd(items_to_try() + 1);

			if (!lsm_directory_page_get(page, at, &e))
			{
				refused++;
				continue;
			}
			read++;
			for (uint32 k = 0; k < e.low.keylen; k++)
				sum += e.low.key[k];
			for (uint32 k = 0; k < e.high.keylen; k++)
				sum += e.high.key[k];
		}
		passed += lsm_directory_page_check(page) == NULL;
		if (rnd(4) == 0)
			lsm_directory_page_set(page, rnd(items_to_try() + 1), &model[0].segment);
		if (rnd(4) == 0)
			append(100, &good);
	}
	printf("# %d items read, %d refused, %d pages passed the check (%d)\n", read, refused, passed,
		   (int) (sum % 10));
	ok(read > 10000 && refused > 1000 && passed > 1000,
	   "reading and changing damaged pages touches nothing outside them");
}

int
main(void)
{
	page = (Page) backend_guarded_page();
	test_model();
	test_longest();
	test_settings();
	test_refusals();
	test_damage();
	return done();
}
