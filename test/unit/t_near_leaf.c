/*
 * t_near_leaf.c -- a seek returns to the previous leaf only if its position is certainly on that
 * leaf.
 */
#include "leaf_shapes.h"

#include "key/keyspace.h"
#include "read/near_leaf.h"

#define ROUNDS	20
#define BOUNDS	100

#define SEGMENT	77
#define LEAF	3
#define USER	9

static LsmKeySpace keyspace = {.encoded = true};
static uint8 key[sizeof(stored[0].key) + LSM_KEY_PAD];

/* The key of an entry, or a similar key, perhaps only its beginning. */
static LsmBound
pick_bound(int count)
{
	const Stored *s = &stored[rnd(count)];
	LsmBound	bound = {.key = key,.keylen = s->keylen,.tie = rnd(2) ? 1 : -1};

	memset(key, 0, sizeof(key));
	memcpy(key, s->key, s->keylen);
	if (rnd(3) == 0)
		bound.keylen = rnd(s->keylen + 1);
	if (rnd(3) == 0 && bound.keylen > 0)
		key[rnd(bound.keylen)] += rnd(2) ? 1 : -1;
	memset(key + bound.keylen, 0, LSM_KEY_PAD);
	return bound;
}

/* Is the position after the first entry and before the last? */
static bool
is_between(const LsmBound *bound, int count)
{
	LsmEntry	first = as_entry(&stored[0]);
	LsmEntry	last = as_entry(&stored[count - 1]);

	return lsm_bound_compare(&keyspace, bound, &first) < 0 &&
		lsm_bound_compare(&keyspace, bound, &last) > 0;
}

/*
 * With keys of every shape, a leaf covers only positions between its entries. Returns how often it
 * covers one.
 */
static int
test_shape(const Shape *shape, bool *good)
{
	Page		page = (Page) block.data;
	int			covered = 0;

	for (int round = 0; round < ROUNDS; round++)
	{
		LsmNearLeaf near = {0};
		int			count;

		make_all(MAX_ENTRIES, shape);
		count = build(1 + rnd(MAX_ENTRIES), shape);
		lsm_near_leaf_note(&near, SEGMENT, LEAF, USER, true, page);
		lsm_near_leaf_note(&near, SEGMENT, LEAF, USER, true, page);
		for (int i = 0; i < BOUNDS; i++)
		{
			LsmBound	bound = pick_bound(count);

			if (!lsm_near_leaf_covers(&near, SEGMENT, USER, bound.key, bound.keylen))
				continue;
			*good &= is_between(&bound, count);
			covered++;
		}
	}
	return covered;
}

static bool
covers_middle(const LsmNearLeaf *near, uint64 segment, uint32 user, int count)
{
	return lsm_near_leaf_covers(near, segment, user, stored[count / 2].key,
								stored[count / 2].keylen);
}

static void
test_users(const Shape *shape)
{
	Page		page = (Page) block.data;
	LsmNearLeaf near = {0};
	int			count;

	make_all(MAX_ENTRIES, shape);
	count = build(MAX_ENTRIES, shape);
	lsm_near_leaf_note(&near, SEGMENT, LEAF, USER, true, page);
	ok(!covers_middle(&near, SEGMENT, USER, count), "a leaf that was entered once covers nothing");
	lsm_near_leaf_note(&near, SEGMENT, LEAF, USER + 1, true, page);
	ok(!covers_middle(&near, SEGMENT, USER + 1, count), "... nor if another user enters it");
	lsm_near_leaf_note(&near, SEGMENT, LEAF, USER + 1, true, page);
	ok(covers_middle(&near, SEGMENT, USER + 1, count), "a leaf that was entered twice covers its middle");
	ok(!covers_middle(&near, SEGMENT, USER, count), "... not for another user");
	ok(!covers_middle(&near, SEGMENT + 1, USER + 1, count), "... nor in another segment");
	lsm_near_leaf_note(&near, SEGMENT, LEAF + 1, USER + 1, true, page);
	ok(!covers_middle(&near, SEGMENT, USER + 1, count), "another leaf replaces it");
	lsm_near_leaf_note(&near, SEGMENT, LEAF + 1, USER + 1, false, page);
	ok(!covers_middle(&near, SEGMENT, USER + 1, count), "tuple keys are never covered");
	lsm_near_leaf_note(&near, SEGMENT, LEAF + 1, USER + 1, true, page);
	lsm_near_leaf_forget(&near);
	ok(!covers_middle(&near, SEGMENT, USER + 1, count), "a forgotten leaf covers nothing");
}

/* VACUUM may have removed all entries, or the page may be the wrong one. */
static void
test_bad_pages(void)
{
	Page		page = (Page) block.data;
	LsmNearLeaf near = {0};

	make_all(MAX_ENTRIES, &shapes[0]);
	build(0, &shapes[0]);
	lsm_near_leaf_note(&near, SEGMENT, LEAF, USER, true, page);
	lsm_near_leaf_note(&near, SEGMENT, LEAF, USER, true, page);
	ok(!near.has_keys, "an empty leaf has no keys");
}

int
main(void)
{
	bool		good = true;
	int			covered = 0;

	lsm_group_init(&group, sizeof(stored[0].key));
	for (int i = 0; i < (int) lengthof(shapes); i++)
		covered += test_shape(&shapes[i], &good);
	ok(good, "only positions between entries of the leaf are covered");
	ok(covered > 1000, "... and many of them are");
	for (int i = 0; i < (int) lengthof(shapes); i++)
	{
		if (strcmp(shapes[i].name, "integers") == 0)
			test_users(&shapes[i]);
	}
	test_bad_pages();
	lsm_group_free(&group);
	return done();
}
