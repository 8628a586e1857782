/* t_leaf.c -- packed pages: building, decoding, trimming, damage. */
#include "tap.h"

#include "base/coding.h"
#include "format/leaf.h"

#define MAX_ENTRIES 5000

typedef struct Stored
{
	uint8		key[300];
	uint32		keylen;
	uint8		rest[20];
	uint32		restlen;
	uint64		tid;
} Stored;

static Stored stored[MAX_ENTRIES];
static PGAlignedBlock block;
static LsmGroup group;

static int
compare(const void *a, const void *b)
{
	const Stored *x = a;
	const Stored *y = b;
	int			c = memcmp(x->key, y->key, Min(x->keylen, y->keylen));

	if (c == 0)
		c = (int) x->keylen - (int) y->keylen;
	if (c == 0)
		c = x->tid < y->tid ? -1 : x->tid > y->tid;
	return c;
}

static LsmEntry
as_entry(const Stored *s)
{
	LsmEntry	e = {.key = s->key,.keylen = s->keylen,.rest = s->rest,.restlen = s->restlen,.tid = s->tid};

	return e;
}

/* Keys of some shape: how many distinct bytes, how long, how alike. */
static void
make_entries(int count, int alphabet, int length, int shared, bool wide, bool rest)
{
	for (int i = 0; i < count; i++)
	{
		Stored	   *s = &stored[i];

		s->keylen = shared + 1 + rnd(length);
		memset(s->key, 'p', shared);
		for (uint32 j = shared; j < s->keylen; j++)
			s->key[j] = rnd(alphabet);
		s->restlen = rest ? rnd(sizeof(s->rest)) : 0;
		for (uint32 j = 0; j < s->restlen; j++)
			s->rest[j] = rnd(256);
		s->tid = ((uint64) rnd(1 << 20) << 16) | (1 + rnd(wide ? 60000 : 511));
	}
	qsort(stored, count, sizeof(Stored), compare);
}

/* As many entries as fit; returns their number. */
static int
build(int count, bool wide, bool rest)
{
	static LsmLeafBuilder b;
	int			n = 0;

	lsm_leaf_begin(&b, (Page) block.data, LSM_PAGE_LEAF, rest, wide, 77, 5);
	while (n < count)
	{
		LsmEntry	e = as_entry(&stored[n]);

		if (!lsm_leaf_add(&b, &e))
			break;
		n++;
	}
	lsm_page_set_crc((Page) block.data);
	return n;
}

/* Does the page hold just the stored entries whose keep flag is set? */
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

static const struct
{
	const char *name;
	int			alphabet;
	int			length;
	int			shared;
	bool		wide;
	bool		rest;
}			shapes[] = {
	{"short random keys", 256, 4, 0, false, false},
	{"equal keys", 1, 1, 3, false, false},
	{"keys that are prefixes of others", 1, 40, 0, false, false},
	{"long shared prefixes", 4, 30, 200, false, false},
	{"wide TIDs", 256, 6, 2, true, false},
	{"rests", 3, 5, 1, false, true},
	{"rests and wide TIDs", 200, 90, 100, true, true},
};

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

			make_entries(MAX_ENTRIES, shapes[s].alphabet, shapes[s].length, shapes[s].shared,
						 shapes[s].wide, shapes[s].rest);
			n = build(MAX_ENTRIES, shapes[s].wide, shapes[s].rest);
			good &= n > 10 && lsm_leaf_check((Page) block.data) == NULL && holds(n, NULL);
		}
		snprintf(name, sizeof(name), "%s come back", shapes[s].name);
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

			make_entries(MAX_ENTRIES, shapes[s].alphabet, shapes[s].length, shapes[s].shared,
						 shapes[s].wide, shapes[s].rest);
			n = build(MAX_ENTRIES, shapes[s].wide, shapes[s].rest);
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
		snprintf(name, sizeof(name), "%s: what is left after a removal is right", shapes[s].name);
		ok(good, name);
		snprintf(name, sizeof(name), "%s: a removal never makes the page larger (I6)", shapes[s].name);
		ok(shrinks, name);
	}
}

/* Not in byte order, as keys compared by a function may be: 256 before 0. */
static void
test_pure_prefix_fits(void)
{
	static LsmLeafBuilder b;
	bool		good = true;

	for (int length = 1; length < 40; length++)
	{
		Page		page = (Page) block.data;
		uint8		key[64];
		LsmEntry	e = {.key = key};

		lsm_leaf_begin(&b, page, LSM_PAGE_LEAF, false, false, 1, 1);
		memset(key, 'k', sizeof(key));
		for (int i = 0;; i++)
		{
			e.keylen = i % 2 ? length : length + 1;
			e.tid = 1 + rnd(500);
			if (!lsm_leaf_add(&b, &e))
				break;
			good &= ((PageHeader) page)->pd_lower <= ((PageHeader) page)->pd_upper;
		}
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

		make_entries(400, 256, 5, 2, false, false);
		build(n, false, false);
		good &= lsm_leaf_resume(&b, (Page) block.data, &group);
		for (total = n; total < 400; total++)
		{
			LsmEntry	e = as_entry(&stored[total]);

			if (!lsm_leaf_add(&b, &e))
				break;
		}
		good &= holds(total, NULL);
	}
	ok(good, "a page that is resumed goes on as if it had not been left");
}

/* VACUUM may come between two steps; the builder goes on from what is left. */
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

		make_entries(1000, shapes[s].alphabet, shapes[s].length, shapes[s].shared,
					 shapes[s].wide, shapes[s].rest);
		n = build(1 + rnd(300), shapes[s].wide, shapes[s].rest);
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
		good &= lsm_leaf_check((Page) block.data) == NULL && holds(total, keep);
	}
	ok(good, "a page that lost entries is resumed after the last one left");
}

/* Fence pages must branch, whatever the entries are. */
static void
test_largest_entries(void)
{
	static LsmLeafBuilder b;
	Page		page = (Page) block.data;
	uint8		key[LSM_MAX_ENTRY_SIZE];
	uint32		child = 7;
	LsmEntry	e = {.key = key,.keylen = LSM_MAX_ENTRY_SIZE,.rest = (uint8 *) &child,.restlen = sizeof(child)};
	bool		good = true;

	lsm_leaf_begin(&b, page, LSM_PAGE_FENCE, true, true, 1, 1);
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
		lsm_fence_child(&group.entries[1]) == child;
	ok(good, "and come back");
}

/* Decoded keys are aligned and have zero bytes behind them, in little room too. */
static void
test_small_scratch(void)
{
	LsmGroup	small;
	bool		good = true;
	bool		refused = true;

	lsm_group_init(&small, 12);
	for (int round = 0; round < 100; round++)
	{
		int			n;

		make_entries(500, 256, 12, 0, false, false);
		n = build(500, false, false);
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

		/* A longer key than there is room for is damage. */
		make_entries(1, 256, 1, 12, false, false);
		build(1, false, false);
		refused &= !lsm_leaf_decode_group((Page) block.data, 0, &small);
	}
	lsm_group_free(&small);
	ok(good, "decoded keys are aligned and padded");
	ok(refused, "a key that is longer than the index has is refused");
}

static void
damage_page(void)
{
	for (int flips = 1 + rnd(4); flips > 0; flips--)
	{
		/* Half of them where they change the meaning of many others. */
		int			at = rnd(2) ? rnd(LSM_PAGE_SPECIAL - LSM_PAGE_CONTENT) : rnd(200);

		block.data[LSM_PAGE_CONTENT + at] ^= 1 << rnd(8);
	}
}

static bool
seems_sound(void)
{
	return lsm_page_check_header((Page) block.data, 5) == NULL &&
		lsm_leaf_check((Page) block.data) == NULL;
}

/* Under the sanitizers: damage may give any answer, but touches nothing else. */
static void
test_damage(void)
{
	int			read = 0;

	for (int round = 0; round < 20000; round++)
	{
		Page		page = (Page) block.data;
		int			s = rnd(lengthof(shapes));

		if (round % 20 == 0)
		{
			make_entries(1500, shapes[s].alphabet, shapes[s].length, shapes[s].shared,
						 shapes[s].wide, shapes[s].rest);
			build(1500, shapes[s].wide, shapes[s].rest);
		}
		damage_page();
		if (!seems_sound())
			continue;
		for (int g = 0; g < lsm_leaf_group_count(page); g++)
		{
			LsmEntry	first;

			lsm_leaf_first_of_group(page, g, &first);
			lsm_leaf_decode_group(page, g, &group);
		}
		read++;
	}
	ok(read > 1000, "damaged pages are read without going astray");
}

/* Redo removes entries from pages whose checksum nobody has looked at. */
static void
test_damage_and_delete(void)
{
	int			deleted = 0;
	bool		unchanged = true;

	for (int round = 0; round < 20000; round++)
	{
		int			s = rnd(lengthof(shapes));
		uint16		ordinals[400];
		int			dead = 0;
		PGAlignedBlock before;

		if (round % 10 == 0)
		{
			make_entries(1500, shapes[s].alphabet, shapes[s].length, shapes[s].shared,
						 shapes[s].wide, shapes[s].rest);
			build(1500, shapes[s].wide, shapes[s].rest);
		}
		damage_page();
		if (!seems_sound())
			continue;
		for (int i = rnd(10); dead < lengthof(ordinals) && i < 1500; i += 1 + rnd(10))
			ordinals[dead++] = i;
		before = block;
		if (lsm_leaf_delete((Page) block.data, ordinals, dead, &group))
			deleted++;
		else
			unchanged &= memcmp(&before, &block, sizeof(block)) == 0;
	}
	ok(deleted > 100, "entries are removed from damaged pages without going astray");
	ok(unchanged, "or nothing is done to them");
}

int
main(void)
{
	lsm_group_init(&group, LSM_MAX_ENTRY_SIZE);
	test_round_trip();
	test_delete();
	test_pure_prefix_fits();
	test_resume();
	test_resume_after_delete();
	test_largest_entries();
	test_small_scratch();
	test_damage();
	test_damage_and_delete();
	lsm_group_free(&group);
	return done();
}
