/* t_buffer_page.c -- the write buffer's page, against a model of it. */
#include "tap.h"

#include "format/buffer_page.h"
#include "format/page_change.h"

#define MAX_ENTRIES 2000

/* The expected entries of the page, in order. */
typedef struct Stored
{
	uint8		key[40];
	uint32		keylen;
	uint8		rest[10];
	uint32		restlen;
	uint64		tid;
} Stored;

static PGAlignedBlock block;
static Page page = (Page) block.data;
static Stored model[MAX_ENTRIES];
static int	count;

static void
start(void)
{
	lsm_page_init(page, LSM_PAGE_BUFFER, 9, 4);
	lsm_page_opaque(page)->flags = LSM_PAGE_OPEN | LSM_PAGE_HAS_REST;
	count = 0;
}

/* Insert something at a position.  Returns false if the page has no room. */
static bool
insert(int pos, uint32 longest)
{
	uint8		item[100];
	Stored		s;
	LsmEntry	e = {.key = s.key,.rest = s.rest};
	uint32		size;

	memset(&s, 0, sizeof(s));
	e.keylen = s.keylen = rnd(longest + 1);
	e.restlen = s.restlen = rnd(sizeof(s.rest) + 1);
	e.tid = s.tid = ((uint64) rnd(PG_INT32_MAX) << 16) | (1 + rnd(0xFFFF));
	for (uint32 i = 0; i < s.keylen; i++)
		s.key[i] = rnd(256);
	for (uint32 i = 0; i < s.restlen; i++)
		s.rest[i] = rnd(256);
	size = lsm_item_encode(item, &e);
	if (size != lsm_item_size(&e) || !lsm_buffer_page_fits(page, size))
		return false;
	lsm_buffer_page_insert(page, pos, item, size);
	memmove(&model[pos + 1], &model[pos], (count - pos) * sizeof(Stored));
	model[pos] = s;
	count++;
	return true;
}

static bool
matches(void)
{
	uint32		size = 0;

	if (lsm_buffer_page_count(page) != count || lsm_buffer_page_check(page) != NULL)
		return false;
	for (int i = 0; i < count; i++)
	{
		LsmEntry	e;

		if (!lsm_buffer_page_get(page, i, &e) || e.keylen != model[i].keylen ||
			e.restlen != model[i].restlen || e.tid != model[i].tid ||
			memcmp(e.key, model[i].key, e.keylen) != 0 ||
			memcmp(e.rest, model[i].rest, e.restlen) != 0)
			return false;
		size += lsm_item_size(&e);
	}
	/* Items lie without gaps, so freed space can be used. */
	return size == LSM_PAGE_SPECIAL - ((PageHeader) page)->pd_upper;
}

/* Remove each entry with some probability. */
static void
remove_some(int percent)
{
	uint16		dead[MAX_ENTRIES];
	int			dead_count = 0;
	int			kept = 0;

	for (int i = 0; i < count; i++)
	{
		if ((int) rnd(100) < percent)
			dead[dead_count++] = i;
		else
			model[kept++] = model[i];
	}
	count = kept;
	lsm_buffer_page_delete(page, dead, dead_count);
}

static void
test_model(void)
{
	bool		filled = true;
	bool		trimmed = true;
	bool		reused = true;

	for (int round = 0; round < 200; round++)
	{
		start();
		while (insert(rnd(count + 1), 40))
			;
		filled &= count > 50 && matches();
		remove_some(rnd(101));
		trimmed &= matches();
		for (int i = 0; i < 20 && insert(rnd(count + 1), 40); i++)
			;
		reused &= matches();
	}
	ok(filled, "a page takes entries at any position until it is full");
	ok(trimmed, "it keeps the others when some are removed");
	ok(reused, "it reuses the space of the removed ones");
}

/* Finding a place again after others have inserted. */
static void
test_gap(void)
{
	bool		found = true;
	bool		missed = true;
	bool		removed = true;

	for (int round = 0; round < 2000; round++)
	{
		PGAlignedBlock before;
		int			pos;
		int			expected;
		bool		is_taken = false;

		start();
		for (int i = rnd(20); i > 0; i--)
			insert(rnd(count + 1), 40);
		memcpy(before.data, page, BLCKSZ);
		expected = pos = rnd(count + 1);
		for (int i = rnd(8); i > 0; i--)
		{
			int			at = rnd(count + 1);

			is_taken |= at == expected;
			expected += at < expected;
			insert(at, 40);
		}
		if (is_taken)
			missed &= lsm_buffer_page_find_gap(page, (Page) before.data, pos) == -1;
		else
			found &= lsm_buffer_page_find_gap(page, (Page) before.data, pos) == expected;
		remove_some(50);
		removed &= lsm_buffer_page_find_gap(page, (Page) before.data, pos) == -1;
	}
	ok(found, "a place is found again after inserts elsewhere");
	ok(missed, "it is not found if something was inserted there");
	ok(removed, "nor if entries were removed");
}

static void
test_small_entries(void)
{
	start();
	while (insert(count, 0))
		;
	ok(matches(), "it takes entries without keys");
	start();
	lsm_buffer_entries = 7;
	while (insert(count, 4))
		;
	lsm_buffer_entries = 0;
	ok(count == 7, "the setting makes it full earlier");
}

static void
test_seal(void)
{
	start();
	for (int i = 0; i < 100; i++)
		insert(0, 10);
	/* As LSM_OP_SEAL does. */
	lsm_page_opaque(page)->flags &= ~LSM_PAGE_OPEN;
	lsm_page_end_change(page, 0);
	ok(!(lsm_page_opaque(page)->flags & LSM_PAGE_OPEN) &&
	   lsm_page_opaque(page)->crc == lsm_page_compute_crc(page), "a sealed page has a checksum");
	remove_some(50);
	ok(matches() && lsm_page_opaque(page)->crc == lsm_page_compute_crc(page),
	   "the checksum stays valid when entries are removed");
	remove_some(100);
	ok(matches() && count == 0, "even if none is left");
}

/* Overlapping items may be more than a page can hold once each is written separately. */
static bool
items_fit(void)
{
	uint32		size = 0;
	LsmEntry	e;

	for (int i = 0; i < lsm_buffer_page_count(page); i++)
		size += lsm_buffer_page_get(page, i, &e) ? lsm_item_size(&e) + sizeof(uint16) : 0;
	return size <= LSM_PAGE_SPECIAL - LSM_PAGE_CONTENT;
}

/*
 * Run under the sanitizers: damage may give any answer, but code touches nothing outside the page.
 */
static void
test_damage(void)
{
	int			read = 0;
	int			sound = 0;

	for (int round = 0; round < 20000; round++)
	{
		LsmEntry	e;

		if (round % 20 == 0)
		{
			start();
			while (insert(rnd(count + 1), 40))
				;
		}
		block.data[offsetof(PageHeaderData, pd_lower) +
				   rnd(LSM_PAGE_SPECIAL - offsetof(PageHeaderData, pd_lower))] ^= 1 << rnd(8);
		if (lsm_page_check_header(page, 4) != NULL)
			continue;
		for (int i = 0; i < lsm_buffer_page_count(page); i++)
			read += lsm_buffer_page_get(page, i, &e);
		if (lsm_buffer_page_check(page) != NULL)
			continue;
		sound++;
		/*
		 * Redo may do this without checking the checksum. The test continues with the remaining
		 * entries.
		 */
		if (rnd(2) == 0 && items_fit())
			remove_some(rnd(50));
	}
	ok(read > 1000 && sound > 100, "reading and trimming a damaged page touches nothing outside it");
}

/* No row has an offset of 0. */
static void
test_tids(void)
{
	LsmEntry	e;
	bool		valid;

	start();
	while (insert(rnd(count + 1), 40))
		;
	valid = lsm_buffer_page_check_tids(page) == NULL;
	lsm_buffer_page_get(page, count / 2, &e);
	memset((uint8 *) e.key - LSM_ITEM_HEADER + 2 * sizeof(uint16), 0, sizeof(uint16));
	ok(valid && lsm_buffer_page_check_tids(page) != NULL, "an item with the offset 0 is noticed");
}

int
main(void)
{
	test_model();
	test_gap();
	test_small_entries();
	test_seal();
	test_damage();
	test_tids();
	return done();
}
