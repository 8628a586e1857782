/* t_leaf_damage.c -- packed pages: several groups decoded at once, headers, damage. */
#include "leaf_shapes.h"

/* Headers with impossible contents. */
static void
test_headers(void)
{
	static const Shape integers = {NULL, 256, 4, 1, false, false, 100};
	LsmLeafHeader *leaf = lsm_leaf_header((Page) block.data);
	LsmLeafHeader sound;
	bool		refused = true;

	make_all(100, &integers);
	build(100, &integers);
	sound = *leaf;
	leaf->offset_bits = 0;
	refused &= lsm_leaf_check((Page) block.data) != NULL;
	leaf->offset_bits = 17;
	refused &= lsm_leaf_check((Page) block.data) != NULL;
	*leaf = sound;
	leaf->tid_bytes = 7;
	refused &= lsm_leaf_check((Page) block.data) != NULL;
	*leaf = sound;
	leaf->base_block = leaf->last_block + 1;
	refused &= lsm_leaf_check((Page) block.data) != NULL;
	*leaf = sound;
	leaf->keylen = LSM_FRAMED_KEYLEN + 1;
	refused &= lsm_leaf_check((Page) block.data) != NULL;
	*leaf = sound;
	ok(refused && lsm_leaf_check((Page) block.data) == NULL, "an impossible coding is rejected");
}

static void
damage_page(void)
{
	for (int flips = 1 + rnd(4); flips > 0; flips--)
	{
		/* Flip half of the bits where they change the meaning of many others. */
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

/* Are the decoded entries those of the groups first to last, in order? */
static bool
same_as_groups(Page page, int first, int last, const LsmGroup *many)
{
	int			at = 0;

	for (int g = first; g <= last; g++)
	{
		if (!lsm_leaf_decode_group(page, g, &group))
			return false;
		for (int i = 0; i < group.count; i++, at++)
		{
			const LsmEntry *a = &group.entries[i];
			const LsmEntry *b = &many->entries[at];

			if (at >= many->count || a->keylen != b->keylen || a->tid != b->tid ||
				a->restlen != b->restlen || a->rest != b->rest || !b->aligned ||
				memcmp(a->key, b->key, a->keylen + LSM_KEY_PAD) != 0)
				return false;
		}
	}
	return at == many->count;
}

/*
 * Several groups decoded at once, forward and backward, equal the same groups decoded one by one.
 */
static void
test_many_groups(void)
{
	bool		forward = true;
	bool		backward = true;
	bool		several = true;

	for (int round = 0; round < 100; round++)
	{
		const Shape *shape = &shapes[round % lengthof(shapes)];
		Page		page = (Page) block.data;
		uint32		longest = shape->shared + shape->length + 1;
		LsmGroup	many;
		int			groups;

		make_all(2000, shape);
		build(2000, shape);
		groups = lsm_leaf_group_count(page);
		lsm_group_init(&many, rnd(2) ? longest : LSM_MAX_ENTRY_SIZE);
		for (int i = 0; i < 50; i++)
		{
			int			first = rnd(groups);
			int			last = first + rnd(groups - first);
			int			n = lsm_leaf_decode_groups(page, first, last, &many);

			forward &= n >= 1 && n <= last - first + 1 && many.count <= LSM_DECODED_ENTRIES &&
				same_as_groups(page, first, first + n - 1, &many);
			/* Enough room for the keys, or one byte too little. */
			if (longest <= 40)
				several &= n == last - first + 1 || many.count + LSM_GROUP_ENTRIES > LSM_DECODED_ENTRIES ||
					many.max_keylen > longest;
			n = lsm_leaf_decode_groups_before(page, last, &many);
			backward &= n >= 1 && n <= last + 1 && same_as_groups(page, last - n + 1, last, &many);
		}
		lsm_group_free(&many);
	}
	ok(forward, "decoding several groups at once gives the same as one by one");
	ok(backward, "backward, too");
	ok(several, "as many are decoded as there is room for");
}

/* Each page names the owner with which it was begun. */
static void
test_owner(void)
{
	static LsmLeafBuilder b;
	LsmLeafMode mode;

	make_all(10, &shapes[0]);
	build(10, &shapes[0]);
	ok(lsm_page_opaque((Page) block.data)->owner == 77 && lsm_page_opaque((Page) block.data)->self == 5 &&
	   lsm_page_opaque((Page) block.data)->kind == LSM_PAGE_LEAF &&
	   lsm_page_check_header((Page) block.data, 5) == NULL, "a leaf knows its segment and its block");
	lsm_mode_of_page((Page) block.data, &mode);
	memset(&b, 0, sizeof(b));
	lsm_leaf_begin_next(&b, (Page) block.data, true, &mode, stored[0].tid, 88, 6);
	ok(lsm_page_opaque((Page) block.data)->owner == 88 && lsm_page_opaque((Page) block.data)->self == 6 &&
	   (lsm_page_opaque((Page) block.data)->flags & LSM_PAGE_HAS_REST), "so does the next one");
	lsm_fence_begin(&b, (Page) block.data, false, 99, 7);
	ok(lsm_page_opaque((Page) block.data)->owner == 99 && lsm_page_opaque((Page) block.data)->self == 7 &&
	   lsm_page_opaque((Page) block.data)->kind == LSM_PAGE_FENCE, "and a fence page");
	ok(lsm_fence_child((const uint8 *) "\7\0\0\0", 3) == LSM_NO_CHILD,
	   "a rest that is not a page number leads nowhere");
}

/*
 * Run under the sanitizers: damage may give any answer, but code touches nothing outside the page.
 */
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
			make_all(1500, &shapes[s]);
			build(1500, &shapes[s]);
		}
		damage_page();
		if (!seems_sound())
			continue;
		for (int g = 0; g < lsm_leaf_group_count(page); g++)
		{
			LsmEntry	first;

			lsm_leaf_first_of_group(page, g, &first);
			lsm_leaf_decode_group(page, g, &group);
			if (rnd(20) > 0)
				continue;
			lsm_leaf_decode_groups(page, g, lsm_leaf_group_count(page) - 1, &group);
			lsm_leaf_decode_groups_before(page, g, &group);
		}
		read++;
	}
	ok(read > 1000, "reading damaged pages touches nothing outside them");
}

/* Redo removes entries from pages whose checksum nobody has checked. */
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
			make_all(1500, &shapes[s]);
			build(1500, &shapes[s]);
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
	ok(deleted > 100, "removing entries from damaged pages touches nothing outside them");
	ok(unchanged, "a removal that is refused changes nothing");
}

int
main(void)
{
	lsm_group_init(&group, LSM_MAX_ENTRY_SIZE);
	test_headers();
	test_many_groups();
	test_owner();
	test_damage();
	test_damage_and_delete();
	lsm_group_free(&group);
	return done();
}
