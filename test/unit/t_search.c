/*
 * t_search.c -- searching packed pages: the search finds the right entry and decodes enough entries
 * around it.
 */
#include "leaf_shapes.h"

#include "segment/segment.h"

#define ROUNDS	15
#define BOUNDS	100

static LsmKeySpace keyspace = {.encoded = true};
static uint8 bound_key[sizeof(stored[0].key) + LSM_KEY_PAD];

/* A place near one of the entries, or among them: next to an entry, or to all with some beginning. */
static LsmBound
pick_bound(int count)
{
	const Stored *s = &stored[rnd(count)];
	LsmBound	bound = {.tie = rnd(2) ? 1 : -1,.key = bound_key,.keylen = s->keylen,.tid = s->tid};

	memset(bound_key, 0, sizeof(bound_key));
	memcpy(bound_key, s->key, s->keylen);
	if (rnd(3) == 0)
		bound.keylen = rnd(s->keylen + 1);
	if (rnd(3) == 0 && bound.keylen > 0)
		bound_key[rnd(bound.keylen)] += rnd(2) ? 1 : -1;
	memset(bound_key + bound.keylen, 0, LSM_KEY_PAD);
	bound.is_entry = rnd(2);
	if (rnd(3) == 0)
		bound.tid += rnd(3) - 1;
	return bound;
}

/* How many of the entries are before it? */
static int
count_before(const LsmBound *bound, int count)
{
	int			before = 0;

	while (before < count)
	{
		LsmEntry	e = as_entry(&stored[before]);

		if (lsm_bound_compare(&keyspace, bound, &e) > 0)
			break;
		before++;
	}
	return before;
}

static bool
is_stored(const LsmEntry *e, int at)
{
	return e->keylen == stored[at].keylen && e->tid == stored[at].tid &&
		memcmp(e->key, stored[at].key, e->keylen) == 0;
}

/*
 * `pos` is the position of the decoded entry. Is the position right, and are enough entries
 * decoded?
 */
static bool
found_right(int before, int group_begin, int group_end, int pos, int most, bool forward)
{
	int			first = before - pos;	/* which entry the first one decoded should be */
	int			wanted = forward ? Min(most, group_end - before) : Min(most, before - group_begin);
	int			got = forward ? group.count - pos : pos;

	if (wanted <= 0)
		return got <= 0;
	if (got < wanted || first < group_begin || first + group.count > group_end)
		return false;
	for (int i = 0; i < group.count; i++)
	{
		if (!is_stored(&group.entries[i], first + i))
			return false;
	}
	return true;
}

static void
test_leaf(const Shape *shape)
{
	Page		page = (Page) block.data;
	bool		whole = true;
	bool		forward = true;
	bool		backward = true;
	char		name[120];

	/* With no more room than keys of this length need. */
	lsm_group_free(&group);
	lsm_group_init(&group, shape->shared + shape->length);
	for (int round = 0; round < ROUNDS; round++)
	{
		int			count;

		make_all(MAX_ENTRIES, shape);
		count = build(1 + rnd(MAX_ENTRIES), shape);
		for (int i = 0; i < BOUNDS; i++)
		{
			LsmBound	bound = pick_bound(count);
			int			before = count_before(&bound, count);
			int			most = 1 + rnd(40);
			int			begin = 0;
			int			g;
			int			pos;
			int			end;

			whole &= lsm_leaf_search(&keyspace, page, &bound, &g, &pos, &group);
			for (int other = 0; other < g; other++)
			{
				LsmGroup	scratch;

				lsm_group_init(&scratch, sizeof(stored[0].key));
				whole &= lsm_leaf_decode_group(page, other, &scratch);
				begin += scratch.count;
				lsm_group_free(&scratch);
			}
			end = begin + group.count;
			whole &= begin + pos == before;
			forward &= lsm_leaf_seek(&keyspace, page, &bound, most, true, &pos, &group) &&
				found_right(before, begin, end, pos, most, true);
			backward &= lsm_leaf_seek(&keyspace, page, &bound, most, false, &pos, &group) &&
				found_right(before, begin, end, pos, most, false);
		}
	}
	snprintf(name, sizeof(name), "%s are found", shape->name);
	ok(whole, name);
	snprintf(name, sizeof(name), "%s are found, with the requested entries after them", shape->name);
	ok(forward, name);
	snprintf(name, sizeof(name), "%s are found, with the requested entries before them", shape->name);
	ok(backward, name);
}

/* Add as many separators as fit. The child of each is its number. Returns how many. */
static int
build_fence(int count)
{
	static LsmLeafBuilder b;
	int			n = 0;

	lsm_fence_begin(&b, (Page) block.data, true, 77, 5);
	while (n < count)
	{
		LsmEntry	e = as_entry(&stored[n]);
		uint32		child = n;

		e.rest = (const uint8 *) &child;
		e.restlen = sizeof(child);
		if (!lsm_leaf_add(&b, &e))
			break;
		n++;
	}
	lsm_leaf_finish(&b);
	lsm_page_set_crc((Page) block.data);
	return n;
}

static void
test_fence(const Shape *shape)
{
	bool		good = true;
	char		name[120];

	for (int round = 0; round < ROUNDS; round++)
	{
		int			count;

		make_all(MAX_ENTRIES, shape);
		/* Mostly separators have no TID. */
		for (int i = 0; i < made; i++)
			stored[i].tid = i % 3 == 0 ? stored[i].tid : 0;
		sort_stored(made);
		count = build_fence(1 + rnd(MAX_ENTRIES));
		for (int i = 0; i < BOUNDS; i++)
		{
			LsmBound	bound = pick_bound(count);
			uint32		child;

			good &= lsm_fence_search(&keyspace, (Page) block.data, &bound, &group, &child) &&
				child == Max(count_before(&bound, count) - 1, 0);
		}
	}
	snprintf(name, sizeof(name), "separators of %s lead to the right child", shape->name);
	ok(good, name);
}

/*
 * Run under the sanitizers: damage may give any answer, but code touches nothing outside the page.
 */
static void
test_damage(void)
{
	Page		page = (Page) block.data;
	int			answers = 0;

	for (int round = 0; round < 4000; round++)
	{
		const Shape *shape = &shapes[rnd(lengthof(shapes))];
		int			count;
		LsmBound	bound;
		uint32		child;
		int			pos;

		make_all(300, shape);
		count = rnd(2) ? build(300, shape) : build_fence(300);
		bound = pick_bound(count);
		for (int i = rnd(4); i >= 0; i--)
			block.data[LSM_LEAF_DATA + rnd(((PageHeader) page)->pd_lower - LSM_LEAF_DATA)] = rnd(256);
		if (lsm_leaf_check(page) != NULL)
			continue;
		answers += lsm_leaf_seek(&keyspace, page, &bound, 1 + rnd(32), rnd(2), &pos, &group);
		answers += lsm_fence_search(&keyspace, page, &bound, &group, &child);
	}
	ok(answers > 0, "damaged pages can be searched");
}

int
main(void)
{
	lsm_group_init(&group, LSM_MAX_ENTRY_SIZE);
	for (int s = 0; s < lengthof(shapes); s++)
	{
		test_leaf(&shapes[s]);
		test_fence(&shapes[s]);
	}
	lsm_group_free(&group);
	lsm_group_init(&group, LSM_MAX_ENTRY_SIZE);
	test_damage();
	lsm_group_free(&group);
	return done();
}
