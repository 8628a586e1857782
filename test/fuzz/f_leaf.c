/*
 * f_leaf.c
 *	  Fuzzes leaves and fence pages: all that reads them, removal, and resuming a page.
 *
 *	  uint8		options, see below
 *	  uint8		length of a key to seek
 *	  uint8		number of entries that the seek wants
 *	  uint64	TID of the key
 *	  bytes		the key
 *	  uint8		number of entries to remove or to add
 *	  page
 */
#include "walk.h"

#include "backend.h"
#include "format/leaf_build.h"
#include "format/leaf_coding.h"
#include "format/leaf_mode.h"
#include "read/near_leaf.h"
#include "segment/segment.h"

#define FENCE			0x01	/* a fence page, not a leaf */
#define BEFORE			0x02	/* the bound is before equal entries, not after them */
#define IS_ENTRY		0x04	/* the bound is next to an entry */
#define FORWARD			0x08
#define SHORT_KEYS		0x10	/* the index expects no keys longer than the one sought */

static LsmKeySpace keyspace = {.encoded = true};
static Page page;				/* between bytes that nobody may touch */
static Page changed;
static LsmGroup group;
static LsmGroup other;

/* --- decoding groups ------------------------------------------------------------------- */

static void
check_group(int g, uint32 max_keylen)
{
	LsmGroup	narrow;
	LsmEntry	first;
	bool		decoded = lsm_leaf_decode_group(page, g, &group);
	bool		has_first = lsm_leaf_first_of_group(page, g, &first);

	if (decoded)
	{
		expect(group.count >= 1 && group.count <= LSM_GROUP_ENTRIES);
		expect(has_first && same_entry(&first, &group.entries[0]));
	}
	lsm_group_init(&narrow, max_keylen);
	if (lsm_leaf_decode_group(page, g, &narrow))
	{
		expect(decoded && narrow.count == group.count);
		for (int i = 0; i < narrow.count; i++)
			expect(same_entry(&narrow.entries[i], &group.entries[i]) && narrow.entries[i].aligned);
	}
	lsm_group_free(&narrow);
}

/* Are the decoded entries those of the groups first to last? */
static void
check_same_as_groups(int first, int last, const LsmGroup *many)
{
	int			at = 0;

	for (int g = first; g <= last; g++)
	{
		expect(lsm_leaf_decode_group(page, g, &group));
		for (int i = 0; i < group.count; i++, at++)
			expect(at < many->count && same_entry(&group.entries[i], &many->entries[at]));
	}
	expect(at == many->count);
}

static void
check_many_groups(int g, int groups)
{
	int			n = lsm_leaf_decode_groups(page, g, groups - 1, &other);

	expect(n == -1 || (n >= 1 && n <= groups - g));
	if (n > 0)
		check_same_as_groups(g, g + n - 1, &other);
	n = lsm_leaf_decode_groups_before(page, g, &other);
	expect(n == -1 || (n >= 1 && n <= g + 1));
	if (n > 0)
		check_same_as_groups(g - n + 1, g, &other);
}

/* --- searching ---------------------------------------------------------------------------- */

static bool
is_before(const LsmBound *bound, const LsmEntry *entry)
{
	return lsm_bound_compare(&keyspace, bound, entry) < 0;
}

/* Decode a group around the bound: is this a part of the group, and is the place right? */
static void
check_around(int g, const LsmBound *bound, int most, bool forward, bool sorted)
{
	LsmPlaceOfKey sought = {bound->key, bound->keylen, bound->is_entry ? 0 : bound->tie, forward, most};
	int			from;
	int			to;
	int			skip = 0;

	if (!lsm_leaf_decode_around(page, g, &sought, &from, &to, &other))
		return;
	expect(from >= 0 && from <= to && to <= other.count);
	if (!sorted)
		return;
	expect(lsm_leaf_decode_group(page, g, &group));
	while (other.count > 0 && skip < group.count && !same_entry(&group.entries[skip], &other.entries[0]))
		skip++;
	expect(skip + other.count <= group.count);
	for (int i = 0; i < other.count; i++)
	{
		expect(same_entry(&group.entries[skip + i], &other.entries[i]));
		expect(i >= from || is_before(bound, &other.entries[i]));
		expect(i < to || !is_before(bound, &other.entries[i]));
	}
}

/* Returns how many entries are before the bound. */
static int
count_before(const LsmBound *bound)
{
	Walk		w;
	const LsmEntry *entry;
	int			count = 0;

	walk_begin(&w, page);
	while ((entry = walk_next(&w)) != NULL && is_before(bound, entry))
		count++;
	walk_end(&w);
	return count;
}

static void
check_search(const LsmBound *bound, int most, bool forward, bool sorted)
{
	int			g;
	int			pos;
	int			part_pos;
	int			before = 0;
	bool		found = lsm_leaf_search(&keyspace, page, bound, &g, &pos, &group);
	bool		part_found = lsm_leaf_seek(&keyspace, page, bound, most, forward, &part_pos, &other);

	if (found)
		expect(pos >= 0 && pos <= group.count && g >= 0);
	if (part_found)
		expect(part_pos >= 0 && part_pos <= other.count);
	if (!sorted)
		return;
	expect(found && part_found);
	if (forward && pos < group.count && most > 0)
		expect(part_pos < other.count && same_entry(&group.entries[pos], &other.entries[part_pos]));
	if (!forward && pos > 0 && most > 0)
		expect(part_pos > 0 && same_entry(&group.entries[pos - 1], &other.entries[part_pos - 1]));
	for (int i = 0; i < g; i++)
	{
		expect(lsm_leaf_decode_group(page, i, &other));
		before += other.count;
	}
	expect(before + pos == count_before(bound));
}

/* A position that is certain to lie in the leaf has entries before and after it. */
static void
check_near_leaf(const LsmBound *bound, const PageFacts *facts)
{
	LsmNearLeaf near = {.segment = FUZZ_OWNER};
	int			before;

	lsm_near_leaf_read_keys(&near, page);
	if (!facts->sorted || !lsm_near_leaf_covers(&near, FUZZ_OWNER, 0, bound->key, bound->keylen))
		return;
	before = count_before(bound);
	expect(before > 0 && before < facts->count);
}

/*
 * Is the fence page coded as our code does it?  Its search relies on entries that share as many
 * bytes as they can with the entries before them.
 */
static bool
is_built_fence(void)
{
	static LsmLeafBuilder b;
	const LsmLeafHeader *header = lsm_leaf_header(page);
	Walk		w;
	const LsmEntry *entry;
	bool		same = (lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST) && header->base_block == 0 &&
		(header->offset_bits == 16 || header->offset_bits == LSM_NARROW_OFFSET_BITS);

	lsm_fence_begin(&b, changed, header->offset_bits == 16, FUZZ_OWNER, 5);
	walk_begin(&w, page);
	while (same && (entry = walk_next(&w)) != NULL)
		same = lsm_leaf_add(&b, entry);
	walk_end(&w);
	return same && ((PageHeader) changed)->pd_lower == ((PageHeader) page)->pd_lower &&
		memcmp(changed + LSM_LEAF_DATA, page + LSM_LEAF_DATA, ((PageHeader) page)->pd_lower - LSM_LEAF_DATA) == 0;
}

static void
check_fence_search(const LsmBound *bound, bool sorted)
{
	Walk		w;
	const LsmEntry *entry;
	uint32		wanted = LSM_NO_CHILD;
	uint32		child = LSM_NO_CHILD;
	bool		sound = sorted && lsm_leaf_header(page)->keylen == 0 && is_built_fence();
	bool		found = lsm_fence_search(&keyspace, page, bound, &group, &child);

	walk_begin(&w, page);
	while (sound && (entry = walk_next(&w)) != NULL)
	{
		uint32		this = lsm_fence_child(entry->rest, entry->restlen);

		sound = this != LSM_NO_CHILD;
		if (wanted == LSM_NO_CHILD || is_before(bound, entry))
			wanted = this;
	}
	walk_end(&w);
	if (sound)
		expect(found == (wanted != LSM_NO_CHILD) && (!found || child == wanted));
	expect(!found || child != LSM_NO_CHILD);
}

/* --- changing ------------------------------------------------------------------------------- */

/* Remove entries, every few ones.  The others stay as they are. */
static void
check_delete(const PageFacts *facts, int step, int most)
{
	uint16		ordinals[256];
	int			count = 0;
	int			ordinal = 0;
	Walk		old;
	Walk		new;
	const LsmEntry *entry;

	for (int i = step; count < Min(most, lengthof(ordinals)) && i < LSM_MAX_PAGE_ENTRIES; i += 1 + step)
		ordinals[count++] = i;
	memcpy(changed, page, BLCKSZ);
	if (!lsm_leaf_delete(changed, ordinals, count, &group))
	{
		expect(!facts->sorted);
		expect(memcmp(changed, page, BLCKSZ) == 0);
		return;
	}
	expect(lsm_page_check_header(changed, lsm_page_opaque(page)->self) == NULL);
	expect(lsm_leaf_check(changed) == NULL);
	expect(lsm_page_opaque(changed)->crc == lsm_page_compute_crc(changed));
	expect(((PageHeader) changed)->pd_lower <= ((PageHeader) page)->pd_lower);
	if (!facts->sorted)
		return;
	walk_begin(&old, page);
	walk_begin(&new, changed);
	for (int next = 0; (entry = walk_next(&old)) != NULL; ordinal++)
	{
		const LsmEntry *left;

		if (next < count && ordinals[next] == ordinal)
		{
			next++;
			continue;
		}
		left = walk_next(&new);
		expect(left != NULL && same_entry(left, entry));
	}
	expect(walk_next(&new) == NULL && !new.damaged);
	walk_end(&old);
	walk_end(&new);
}

/* Continue a copy of the page, as merges do, with entries after its last one. */
static void
check_resume(const PageFacts *facts, int most)
{
	static LsmLeafBuilder b;
	bool		has_rest = lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST;
	uint8		key[LSM_MAX_ENTRY_SIZE + LSM_KEY_PAD] = {0};
	LsmEntry	entry = facts->last;
	PageFacts	after;
	int			added = 0;
	int			at;

	memcpy(changed, page, BLCKSZ);
	if (!lsm_leaf_resume(&b, changed, &group))
	{
		expect(!facts->readable || facts->count == 0);
		return;
	}
	if (!facts->sorted)
		return;
	entry.key = key;
	entry.rest = key;
	entry.restlen = has_rest ? most % 20 : 0;
	memcpy(key, facts->last_key, entry.keylen);
	for (; added < most; added++)
	{
		for (at = entry.keylen - 1; at >= 0 && key[at] == 0xFF; at--)
			key[at] = 0;
		if (at < 0 || entry.keylen + entry.restlen > LSM_MAX_ENTRY_SIZE)
			break;
		key[at]++;
		if (!lsm_leaf_add(&b, &entry))
			break;
	}
	lsm_leaf_finish(&b);
	lsm_page_set_crc(changed);
	expect(lsm_page_check_header(changed, lsm_page_opaque(page)->self) == NULL);
	learn_facts(changed, &after);
	expect(after.sorted && after.count == facts->count + added);
}

void
fuzz_target(Input *in)
{
	uint8		options = take8(in);
	uint32		keylen = take8(in);
	int			most = 1 + take8(in) % 64;
	uint64		tid = take_bits(in, 8);
	uint8	   *key = palloc(keylen + LSM_KEY_PAD);
	int			changes;
	int			groups;
	LsmBound	bound = {.key = key,.keylen = keylen,.tid = tid,.tie = options & BEFORE ? 1 : -1,
		.is_entry = (options & IS_ENTRY) != 0};
	PageFacts	facts;
	LsmLeafMode mode;

	if (page == NULL)
	{
		page = (Page) backend_guarded_page();
		changed = (Page) backend_guarded_page();
	}
	take_bytes(in, key, keylen);
	memset(key + keylen, 0, LSM_KEY_PAD);
	changes = take8(in);
	fuzz_read_page(in, page, options & FENCE ? LSM_PAGE_FENCE : LSM_PAGE_LEAF, 5);
	if (lsm_page_check_header(page, 5) != NULL || lsm_leaf_check(page) != NULL)
		return;

	lsm_group_init(&group, LSM_MAX_ENTRY_SIZE);
	lsm_group_init(&other, LSM_MAX_ENTRY_SIZE);
	learn_facts(page, &facts);
	groups = lsm_leaf_group_count(page);
	for (int g = 0; g < groups; g++)
	{
		check_group(g, options & SHORT_KEYS ? keylen : LSM_MAX_ENTRY_SIZE);
		if (g < 8)
		{
			check_many_groups(g, groups);
			check_around(g, &bound, most, (options & FORWARD) != 0, facts.sorted);
		}
	}
	check_search(&bound, most, (options & FORWARD) != 0, facts.sorted);
	check_near_leaf(&bound, &facts);
	check_fence_search(&bound, facts.sorted);
	lsm_mode_of_page(page, &mode);
	lsm_mode_settle(&mode, 0);
	lsm_page_copy(changed, page);
	expect(lsm_page_compute_crc(changed) == lsm_page_opaque(page)->crc);
	check_delete(&facts, changes % 8, changes);
	check_resume(&facts, changes);
}
