/* t_leaf.c -- packed pages: building, decoding, removing entries, resuming. */
#include "leaf_shapes.h"

/* Does the page hold exactly the stored entries whose keep flag is set? */
static bool
holds(int count, const bool *keep)
{
	Page		page = (Page) block.data;
	int			at = 0;

	for (int g = 0; g < lsm_leaf_group_count(page); g++)
	{
		LsmEntry	first;

		if (!lsm_leaf_decode_group(page, g, &group) || !lsm_leaf_first_of_group(page, g, &first))
			return false;
		if (first.keylen != group.entries[0].keylen ||
			memcmp(first.key, group.entries[0].key, first.keylen) != 0 ||
			first.tid != group.entries[0].tid)
			return false;
		for (int i = 0; i < group.count; i++)
		{
			LsmEntry   *e = &group.entries[i];

			while (at < count && keep != NULL && !keep[at])
				at++;
			if (at >= count || e->keylen != stored[at].keylen || e->tid != stored[at].tid ||
				memcmp(e->key, stored[at].key, e->keylen) != 0 ||
				e->restlen != stored[at].restlen ||
				(e->restlen > 0 && memcmp(e->rest, stored[at].rest, e->restlen) != 0))
				return false;
			at++;
		}
	}
	while (at < count && keep != NULL && !keep[at])
		at++;
	return at == count;
}

static void
test_round_trip(void)
{
	for (int s = 0; s < lengthof(shapes); s++)
	{
		bool		good = true;
		char		name[100];

		for (int round = 0; round < 30; round++)
		{
			int			n;

			make_all(MAX_ENTRIES, &shapes[s]);
			n = build(MAX_ENTRIES, &shapes[s]);
			good &= n > 10 && lsm_leaf_check((Page) block.data) == NULL && holds(n, NULL);
			for (int at = ((PageHeader) block.data)->pd_lower; at < ((PageHeader) block.data)->pd_upper; at++)
				good &= block.data[at] == 0;
		}
		snprintf(name, sizeof(name), "%s decode to the stored entries", shapes[s].name);
		ok(good, name);
	}
}

static void
test_delete(void)
{
	static bool keep[MAX_ENTRIES];
	static uint16 ordinals[MAX_ENTRIES];

	for (int s = 0; s < lengthof(shapes); s++)
	{
		bool		good = true;
		bool		shrinks = true;
		char		name[100];

		for (int round = 0; round < 60; round++)
		{
			int			n;
			int			dead = 0;
			int			percent = rnd(101);
			PageHeader	header = (PageHeader) block.data;
			int			used;

			make_all(MAX_ENTRIES, &shapes[s]);
			n = build(MAX_ENTRIES, &shapes[s]);
			used = header->pd_lower + (LSM_PAGE_SPECIAL - header->pd_upper);
			for (int i = 0; i < n; i++)
			{
				keep[i] = (int) rnd(100) >= percent;
				if (!keep[i])
					ordinals[dead++] = i;
			}
			good &= lsm_leaf_delete((Page) block.data, ordinals, dead, &group) &&
				lsm_leaf_check((Page) block.data) == NULL && holds(n, keep) &&
				lsm_page_opaque((Page) block.data)->crc == lsm_page_compute_crc((Page) block.data);
			shrinks &= header->pd_lower + (LSM_PAGE_SPECIAL - header->pd_upper) <= used;
		}
		snprintf(name, sizeof(name), "%s: a removal leaves the right entries", shapes[s].name);
		ok(good, name);
		snprintf(name, sizeof(name), "%s: a removal never makes the page larger (I6)", shapes[s].name);
		ok(shrinks, name);
	}
}

/* If a function compares the keys, a key can follow a longer key that begins with it. */
static void
test_pure_prefix_fits(void)
{
	static LsmLeafBuilder b;
	bool		good = true;

	for (int round = 0; round < 400; round++)
	{
		int			length = 1 + round % 40;
		Page		page = (Page) block.data;
		uint8		key[64];
		LsmEntry	e = {.key = key};

		LsmLeafMode mode = {.base_block = 0,.last_block = 0,.offset_bits = 9};

		mode.keylen = rnd(2) ? length + rnd(2) : 0;
		lsm_leaf_begin(&b, page, false, &mode, 1, 1);
		memset(key, 'k', sizeof(key));
		for (int i = 0;; i++)
		{
			e.keylen = i % 2 ? length : length + 1;
			e.tid = 1 + rnd(500);
			if (!lsm_leaf_add(&b, &e))
				break;
			good &= ((PageHeader) page)->pd_lower <= ((PageHeader) page)->pd_upper;
		}
		lsm_leaf_finish(&b);
		for (int g = 0; g < lsm_leaf_group_count(page); g++)
			good &= lsm_leaf_decode_group(page, g, &group);
	}
	ok(good, "keys that are pure prefixes of the one before do not overrun the page");
}

static void
test_resume(void)
{
	static LsmLeafBuilder b;
	bool		good = true;

	for (int round = 0; round < 50; round++)
	{
		int			n = 1 + rnd(200);
		int			total;

		make_all(400, &shapes[rnd(2) ? 0 : 8]);
		build(n, &shapes[rnd(2) ? 0 : 8]);
		good &= lsm_leaf_resume(&b, (Page) block.data, &group);
		for (total = n; total < 400; total++)
		{
			LsmEntry	e = as_entry(&stored[total]);

			if (!lsm_leaf_add(&b, &e))
				break;
		}
		lsm_leaf_finish(&b);
		good &= holds(total, NULL);
	}
	ok(good, "a resumed page continues as if it had never been closed");
}

/*
 * Merges append to copies of leaves, whatever the leaf's mode. The next entries may not fit that
 * mode.
 */
static void
test_resume_leaf(const Shape *shape)
{
	static LsmLeafBuilder b;
	static LsmLeafBuilder resumed;
	static PGAlignedBlock whole;
	Page		page = (Page) block.data;
	LsmLeafMode mode;
	char		name[100];
	int			n;
	bool		good = true;
	uint32		unused = LSM_LEAF_CAPACITY;

	make_entries(MAX_ENTRIES, shape, 1000);
	mode = mode_of(shape);
	lsm_leaf_begin(&b, page, shape->rest, &mode, 77, 5);
	good &= lsm_leaf_unused(page) == LSM_LEAF_CAPACITY;
	for (n = 0; n < MAX_ENTRIES - 1; n++)
	{
		LsmEntry	e = as_entry(&stored[n]);

		if (n == 10)
		{
			unused = lsm_leaf_builder_unused(&b);
			lsm_leaf_finish(&b);
			good &= lsm_leaf_unused(page) == unused;
			memcpy(whole.data, page, BLCKSZ);
			good &= lsm_leaf_resume(&b, page, &group);
			good &= lsm_leaf_resume(&resumed, (Page) whole.data, &group);
		}
		if (!lsm_leaf_add(&b, &e))
			break;
		good &= n < 10 || lsm_leaf_add(&resumed, &e);
		/* An entry of a framed group may take less than a byte. */
		good &= lsm_leaf_builder_unused(&b) < unused ||
			(lsm_leaf_builder_unused(&b) == unused && mode.keylen > 0);
		unused = lsm_leaf_builder_unused(&b);
	}
	lsm_leaf_finish(&b);
	lsm_leaf_finish(&resumed);
	snprintf(name, sizeof(name), "%s: a resumed leaf ends up the same", shape->name);
	ok(good && n > 10 && holds(n, NULL) && memcmp(whole.data, page, BLCKSZ) == 0, name);

	/* After half of the entries, add one outside the page's range. */
	good = lsm_leaf_unused(page) < 700;
	for (int side = 0; side < 3; side++)
	{
		LsmEntry	e;

		build(n / 2, shape);
		good &= lsm_leaf_resume(&resumed, page, &group);
		memcpy(whole.data, page, BLCKSZ);
		e = as_entry(&stored[n / 2]);
		e.tid = side == 0 ? (((uint64) mode.base_block - 1) << 16 | 1) :
			side == 1 ? (UINT64CONST(0xFFFFFFFEFFFF)) :
			((uint64) mode.base_block << 16 | 1 << mode.offset_bits);
		if (side == 0 || mode.offset_bits < 16)
			good &= !lsm_leaf_add(&resumed, &e) && memcmp(whole.data, page, BLCKSZ) == 0;
	}
	snprintf(name, sizeof(name), "%s: a resumed leaf takes no TID outside its range", shape->name);
	ok(good, name);

	build(MAX_ENTRIES, shape);
	unused = lsm_leaf_unused(page);
	lsm_page_entries = 2 * n;
	good = lsm_leaf_unused(page) == unused;
	lsm_page_entries = n + 1;
	good &= lsm_leaf_unused(page) <= LSM_LEAF_CAPACITY / (n + 1);
	lsm_page_entries = n;
	good &= lsm_leaf_unused(page) == 0;
	lsm_page_entries = 0;
	ok(good, "under a limit on entries, unused space is what further entries may use");
}

/* VACUUM may run between two steps. The builder continues with the remaining entries. */
static void
test_resume_after_delete(void)
{
	static LsmLeafBuilder b;
	static bool keep[MAX_ENTRIES];
	bool		good = true;

	for (int round = 0; round < 200; round++)
	{
		int			s = rnd(lengthof(shapes));
		int			total;
		int			n;
		uint16		ordinals[MAX_ENTRIES];
		int			dead = 0;

		make_all(1000, &shapes[s]);
		n = build(1 + rnd(300), &shapes[s]);
		for (int i = 0; i < 1000; i++)
			keep[i] = true;
		for (int i = 1; i < n; i++)
		{
			if (rnd(2) == 0)
			{
				keep[i] = false;
				ordinals[dead++] = i;
			}
		}
		good &= lsm_leaf_delete((Page) block.data, ordinals, dead, &group) &&
			lsm_leaf_resume(&b, (Page) block.data, &group);
		for (total = n; total < 1000; total++)
		{
			LsmEntry	e = as_entry(&stored[total]);

			if (!lsm_leaf_add(&b, &e))
				break;
		}
		lsm_leaf_finish(&b);
		good &= lsm_leaf_check((Page) block.data) == NULL && holds(total, keep);
	}
	ok(good, "a page that lost entries is resumed after its last remaining entry");
}

/* A fence page has room for at least two children, even with the largest entries. */
static void
test_largest_entries(void)
{
	static LsmLeafBuilder b;
	Page		page = (Page) block.data;
	uint8		key[LSM_MAX_ENTRY_SIZE];
	uint32		child = 7;
	LsmEntry	e = {.key = key,.keylen = LSM_MAX_ENTRY_SIZE,.rest = (uint8 *) &child,.restlen = sizeof(child)};
	bool		good = true;

	lsm_fence_begin(&b, page, true, 1, 1);
	for (int i = 0; i < 2; i++)
	{
		memset(key, 'a' + i, sizeof(key));
		e.tid = UINT64CONST(0xFFFFFFFEFFFF);
		good &= lsm_leaf_add(&b, &e);
	}
	ok(good, "two separators of the largest size fit a fence page");
	good = lsm_leaf_check(page) == NULL && lsm_leaf_decode_group(page, 0, &group) &&
		group.count == 2 && group.entries[1].keylen == LSM_MAX_ENTRY_SIZE &&
		group.entries[1].key[LSM_MAX_ENTRY_SIZE - 1] == 'b' && group.entries[1].tid == e.tid &&
		lsm_fence_child(group.entries[1].rest, group.entries[1].restlen) == child;
	ok(good, "separators of the largest size decode to the stored ones");
}

/* Decoded keys are aligned and followed by zero bytes, even if the scratch space is small. */
static void
test_small_scratch(void)
{
	LsmGroup	small;
	bool		good = true;
	bool		refused = true;

	for (int round = 0; round < 200; round++)
	{
		Shape		shape = {NULL, 256, 1 + rnd(12), 0, false, false, 100 * rnd(2)};
		int			n;

		lsm_group_init(&small, shape.length);
		make_all(500, &shape);
		n = build(500, &shape);
		for (int g = 0; g < lsm_leaf_group_count((Page) block.data); g++)
		{
			good &= lsm_leaf_decode_group((Page) block.data, g, &small);
			for (int i = 0; i < small.count; i++)
			{
				uint64		zeros = 1;

				memcpy(&zeros, small.entries[i].key + small.entries[i].keylen, sizeof(zeros));
				good &= zeros == 0 && small.entries[i].aligned &&
					(uintptr_t) small.entries[i].key % MAXIMUM_ALIGNOF == 0;
			}
		}
		good &= n > 0;

		/* A key too long for the scratch space means that the page is damaged. */
		shape.shared = shape.length;
		shape.length = 1;
		make_all(1, &shape);
		build(1, &shape);
		refused &= !lsm_leaf_decode_group((Page) block.data, 0, &small);
		lsm_group_free(&small);
	}
	ok(good, "decoded keys are aligned and padded");
	ok(refused, "a key longer than any in the index is rejected");
}

/* The purpose of framed groups: rows inserted together, integers as keys. */
static void
test_size(void)
{
	static const Shape integers = {NULL, 256, 4, 1, false, false, 100};
	Shape		varying = integers;
	int			fixed;
	int			variable;

	make_entries(2000, &integers, 8);
	fixed = build(2000, &integers);
	varying.fixed_percent = 0;
	variable = build(2000, &varying);
	printf("# %d integers on a page, %d without frames\n", fixed, variable);
	ok(fixed > variable * 6 / 5, "frames save a sixth of the space");
}

/* A leaf rejects TIDs for which its coding has no room. The next leaf accepts them. */
static void
test_modes(void)
{
	static LsmLeafBuilder b;
	bool		refused = true;
	bool		taken = true;
	bool		tight = true;

	for (int round = 0; round < 2000; round++)
	{
		PGAlignedBlock before;
		LsmLeafMode mode;
		LsmEntry	e = {.key = (uint8 *) "12345",.keylen = 5};
		int			bits = 1 + rnd(16);
		BlockNumber base = rnd(1 << 20);
		BlockNumber last = base + (1 << rnd(20)) - 1;
		int			tid_bytes;

		memset(&b, 0, sizeof(b));
		lsm_mode_init(&mode);
		lsm_mode_cover(&mode, ((uint64) base << 16) | 1);
		lsm_mode_cover(&mode, ((uint64) last << 16) | ((1 << bits) - 1));
		mode.keylen = 5;
		lsm_leaf_begin_next(&b, (Page) block.data, false, &mode, (uint64) last << 16, 1, 1);
		tid_bytes = lsm_leaf_header((Page) block.data)->tid_bytes;
		e.tid = ((uint64) last << 16) | ((1 << bits) - 1);
		taken &= lsm_leaf_add(&b, &e);

		switch (rnd(3))
		{
			case 0:
				e.tid = ((uint64) base << 16) - 1;
				break;
			case 1:
				e.tid = ((uint64) last << 16) | ((1 << bits) & 0xFFFF);
				if (bits == 16)
					continue;
				break;
			default:
				/* The first block that does not fit into this number of bytes. */
				e.tid = ((uint64) base + (UINT64CONST(1) << (8 * tid_bytes - bits))) << 16;
				tight &= bits > 8 * tid_bytes - 8 ||
					(uint64) (last - base) << bits >> (8 * tid_bytes - 8) != 0;
		}
		if (e.tid >> 48 != 0)
			continue;
		e.key = (uint8 *) "12346";
		before = block;
		refused &= !lsm_leaf_add(&b, &e) && memcmp(&before, &block, sizeof(block)) == 0;
		lsm_leaf_begin_next(&b, (Page) block.data, false, &mode, e.tid, 1, 1);
		taken &= lsm_leaf_add(&b, &e);
		lsm_leaf_finish(&b);
		taken &= lsm_leaf_decode_group((Page) block.data, 0, &group) &&
			group.entries[0].tid == e.tid;
	}
	ok(refused, "a TID that the coding has no room for is rejected, and nothing changes");
	ok(taken, "a leaf begun for that TID takes it");
	ok(tight, "the coding uses no more bytes than its TIDs need");
}

/* If fewer than half of a leaf's keys have the expected length, later leaves use no frames. */
static void
test_odd_keys(void)
{
	static LsmLeafBuilder b;
	LsmLeafMode nulls;
	bool		good = true;

	for (int odd_percent = 0; odd_percent <= 100; odd_percent += 10)
	{
		Shape		shape = {NULL, 256, 4, 1, false, false, 100};
		LsmLeafMode mode;
		int			odd = 0;

		make_all(1000, &shape);
		mode = mode_of(&shape);
		mode.keylen = 5;
		memset(&b, 0, sizeof(b));
		lsm_leaf_begin_next(&b, (Page) block.data, false, &mode, stored[0].tid, 1, 1);
		for (int i = 0; i < 500; i++)
		{
			LsmEntry	e = as_entry(&stored[i]);

			if ((int) rnd(100) < odd_percent)
			{
				e.keylen = 4;
				odd++;
			}
			good &= lsm_leaf_add(&b, &e);
		}
		lsm_leaf_begin_next(&b, (Page) block.data, false, &mode, stored[0].tid, 1, 1);
		good &= lsm_leaf_header((Page) block.data)->keylen == (odd > 250 ? 0 : 5);
	}
	ok(good, "frames are abandoned when they do not pay");

	/* Nulls sort first or last, so a leaf may contain only null keys, which are short. */
	memset(&b, 0, sizeof(b));
	lsm_mode_init(&nulls);
	nulls.keylen = 5;
	lsm_mode_cover(&nulls, UINT64CONST(500) << 16 | 1);
	lsm_leaf_begin_next(&b, (Page) block.data, false, &nulls, 1, 1, 1);
	good = true;
	for (int i = 0; i < 500; i++)
		good &= lsm_leaf_add(&b, &(LsmEntry) {.key = (const uint8 *) "\0",.keylen = 1,
							 .tid = ((uint64) i << 16) | 1});
	lsm_leaf_begin_next(&b, (Page) block.data, false, &nulls, 1, 1, 1);
	ok(good && lsm_leaf_header((Page) block.data)->keylen == 5, "frames are kept despite nulls");
}

static void
test_join(void)
{
	LsmLeafMode a;
	LsmLeafMode b;
	LsmLeafMode none;
	bool		good;

	/* Modes are compared as bytes, and end with padding. */
	memset(&none, 0, sizeof(none));
	memset(&a, 0, sizeof(a));
	lsm_mode_init(&none);
	lsm_mode_init(&a);
	lsm_mode_init(&b);
	lsm_mode_add(&a, &(LsmEntry) {.keylen = 5,.tid = (UINT64CONST(100) << 16) | 7});
	lsm_mode_add(&b, &(LsmEntry) {.keylen = 5,.tid = (UINT64CONST(50) << 16) | 8});
	lsm_mode_join(&a, &b);
	lsm_mode_join(&a, &none);
	lsm_mode_join(&none, &a);
	good = memcmp(&a, &none, sizeof(a)) == 0 && a.base_block == 50 && a.last_block == 100 &&
		a.keylen == 5 && a.offset_bits == 4;
	lsm_mode_settle(&a, 9);
	good &= a.keylen == 5;
	b.keylen = 6;
	lsm_mode_join(&a, &b);
	good &= a.keylen == LSM_KEYLEN_MIXED;
	lsm_mode_settle(&a, 9);
	good &= a.keylen == 9;
	ok(good, "modes are joined");
}

int
main(void)
{
	lsm_group_init(&group, LSM_MAX_ENTRY_SIZE);
	test_round_trip();
	test_delete();
	test_pure_prefix_fits();
	test_resume();
	for (int s = 0; s < lengthof(shapes); s++)
		test_resume_leaf(&shapes[s]);
	test_resume_after_delete();
	test_largest_entries();
	test_small_scratch();
	test_size();
	test_modes();
	test_odd_keys();
	test_join();
	lsm_group_free(&group);
	return done();
}
