/*
 * t_run_probe.c
 *	  Decisions that lookups make without a page: whether to test a filter, which filter
 *	  page covers a key, which segment has a key, and which keys are known to be absent.
 */
#include "backend.h"
#include "props.h"
#include "tap.h"

#include "key/hash.h"
#include "read/filter_habit.h"
#include "read/lookup_round.h"
#include "read/looked_for.h"
#include "read/segment_walk.h"

#define ROUNDS	300

/* Keys that are their bytes. */
static LsmKeySpace bytes = {.encoded = true};

/* --- habits: whether lookups test a filter ------------------------------------- */

/* The number of lookups until the filter is tested and answers "perhaps". */
static int
lookups_until_asked(LsmFilterHabit *habit)
{
	int			lookups = 1;

	while (!lsm_habit_ask(habit))
		lookups++;
	lsm_habit_note(habit, true);
	return lookups;
}

static void
test_habit(void)
{
	LsmFilterHabit habit = 0;
	bool		asks = true;
	bool		pauses = true;

	for (int i = 0; i < LSM_HABIT_YES_IN_A_ROW; i++)
		asks &= lsm_habit_is_asking(habit) && lookups_until_asked(&habit) == 1;
	ok(asks, "a filter is tested until it has answered perhaps 16 times in a row");
	for (int i = 0; i < 5; i++)
		pauses &= !lsm_habit_is_asking(habit) && lookups_until_asked(&habit) == LSM_HABIT_UNASKED;
	ok(pauses, "... and from then on for one lookup in 48");
	lookups_until_asked(&habit);
	lsm_habit_note(&habit, false);
	asks = true;
	for (int i = 0; i < LSM_HABIT_YES_IN_A_ROW; i++)
		asks &= lookups_until_asked(&habit) == 1;
	ok(asks && !lsm_habit_is_asking(habit), "the answer no starts the count again");
	for (int i = 0; i < LSM_HABIT_YES_IN_A_ROW - 1; i++)
		lsm_habit_note(&habit, i > 0);
	ok(lsm_habit_is_asking(habit), "... even between other answers");
}

/* --- rounds ------------------------------------------------------------------- */

static LsmLookupRound round_of_keys;
static LsmProbe probes[LSM_ROUND_KEYS];
static LsmSegment segments[LSM_ROUND_KEYS];

/* Segments with filters of a few pages, some without. */
static void
make_segments(int count, uint32 most_pages)
{
	BlockNumber start = 4;

	for (int i = 0; i < count; i++)
	{
		LsmSegment *s = &segments[i];

		memset(s, 0, sizeof(LsmSegment));
		s->id = 100 + i;
		s->start = start;
		s->leaves = 1 + rnd(50);
		s->filter_blocks = rnd(5) == 0 ? 0 : 1 + rnd(most_pages);
		s->blocks = s->leaves + s->filter_blocks;
		start += s->blocks + rnd(10);
	}
}

/* How often key i is in the lists, and whether its list's segment may have the key. */
static int
count_in_lists(int i, bool *right_list)
{
	const LsmLookupRound *r = &round_of_keys;
	int			times = 0;

	for (int list = 0; list < LSM_ROUND_LISTS; list++)
	{
		int			steps = 0;

		for (int at = r->first[list]; at >= 0 && steps <= r->count; at = r->next[at], steps++)
		{
			if (at != i)
				continue;
			times++;
			*right_list &= list == (int) (lsm_round_filter_block(r, i) % LSM_ROUND_LISTS);
		}
		*right_list &= steps <= r->count;
	}
	return times;
}

static void
test_rounds(void)
{
	LsmLookupRound *r = &round_of_keys;
	bool		in_segments = true;
	bool		listed = true;
	bool		in_filter = true;

	for (int round = 0; round < ROUNDS; round++)
	{
		int			count = rnd(LSM_ROUND_KEYS + 1);
		int			used = 0;
		int			of_key[LSM_ROUND_KEYS];

		make_segments(LSM_ROUND_KEYS, 1 + rnd(4));
		lsm_round_clear(r);
		for (int i = 0; i < count; i++)
		{
			used = Min(used + rnd(1 + rnd(3)), LSM_ROUND_KEYS - 1);
			of_key[i] = used;
			probes[i].hash = ((uint64) rnd(PG_UINT32_MAX) << 32) | rnd(PG_UINT32_MAX);
			lsm_round_add(r, &probes[i], &segments[used]);
		}
		lsm_round_clear_lists(r);
		for (int i = 0; i < count; i++)
			listed &= lsm_round_list_key(r, i) == (segments[of_key[i]].filter_blocks > 0);
		in_segments &= r->count == count && r->segment_count <= count;
		for (int i = 0; i < count; i++)
		{
			const LsmSegment *s = lsm_round_segment(r, i);

			in_segments &= s->id == segments[of_key[i]].id && r->probes[i] == &probes[i];
			listed &= count_in_lists(i, &listed) == (s->filter_blocks > 0);
			if (s->filter_blocks > 0)
				in_filter &= lsm_round_filter_page(r, i) >= s->leaves &&
					lsm_round_filter_block(r, i) < s->start + s->blocks;
		}
	}
	ok(in_segments, "a round finds each key's segment");
	ok(listed, "a key is in one list, that of its filter page; without a filter it is in none");
	ok(in_filter, "the page is one of its segment's filter");
}

/* --- walks -------------------------------------------------------------------- */

#define MOST_SEGMENTS 60

typedef struct Range
{
	uint8		low[8];
	uint8		high[8];
	bool		is_free;		/* no entry of the segment is left */
} Range;

static Range ranges[MOST_SEGMENTS];
static LsmSegmentWalk walk;

static void
put_number(uint8 *key, uint64 number)
{
	number = pg_hton64(number);
	memcpy(key, &number, 8);
}

/* A directory page of segments whose ranges ascend.  Returns their number. */
static int
make_directory(void)
{
	Page		page = walk.copy.data;
	char		item[LSM_MAX_DIRECTORY_ITEM];
	int			count = 1 + rnd(MOST_SEGMENTS);
	uint64		number = rnd(5);

	lsm_directory_page_init(page, 77, 5, 1);
	for (int i = 0; i < count; i++)
	{
		LsmDirectoryEntry entry;

		memset(&entry, 0, sizeof(entry));
		put_number(ranges[i].low, number += 1 + rnd(5));
		put_number(ranges[i].high, number += rnd(5));
		ranges[i].is_free = rnd(4) == 0;
		entry.segment.id = i;
		entry.segment.blocks = ranges[i].is_free ? 0 : 9;
		entry.low.key = ranges[i].low;
		entry.high.key = ranges[i].high;
		entry.low.keylen = entry.high.keylen = 8;
		if (!lsm_directory_page_append(page, item, lsm_directory_item_encode(item, &entry)))
			abort();
	}
	return count;
}

static LsmProbe
probe_for(uint8 *key, uint64 number)
{
	LsmProbe	probe = {.entry = {.key = key,.keylen = 8}};

	put_number(key, number);
	probe.prefix = lsm_key_prefix(key, 8);
	return probe;
}

/* The first segment that does not end before the key, or the count if there is none. */
static int
expected_segment(int count, const uint8 *key)
{
	int			i = 0;

	while (i < count && (ranges[i].is_free || memcmp(ranges[i].high, key, 8) < 0))
		i++;
	return i;
}

static void
test_walks(void)
{
	bool		found = true;
	bool		inside = true;
	bool		ends = true;

	for (int round = 0; round < ROUNDS; round++)
	{
		int			count = make_directory();
		uint64		number = 0;
		uint8		key[8];

		walk.ks = &bytes;
		walk.has_copy = true;
		walk.ordinal = -1;
		found &= lsm_walk_next(&walk);
		while (walk.valid)
		{
			LsmProbe	probe = probe_for(key, number += rnd(6));
			int			i = expected_segment(count, key);

			while (walk.valid && lsm_walk_is_behind(&walk, &probe))
				found &= lsm_walk_next(&walk);
			if (walk.valid)
			{
				found &= i < count && walk.segment.id == (uint64) i;
				inside &= lsm_walk_is_before(&walk, &probe) ==
					(memcmp(key, ranges[i].low, 8) < 0);
			}
			else
				ends &= i == count;
		}
	}
	ok(found, "a walk finds the segment of each key, and skips freed segments");
	ok(inside, "... and recognizes keys before the segment");
	ok(ends, "it ends at the end of the page");
	walk.has_copy = false;
	ok(lsm_walk_next(&walk) && !walk.valid, "... at once if there is no page");
	make_directory();
	((PageHeader) walk.copy.data)->pd_lower = LSM_DIRECTORY_DATA;
	walk.has_copy = true;
	walk.ordinal = -1;
	ok(!lsm_walk_next(&walk) && !walk.valid, "a damaged item is noticed");
}

/* --- keys known to be absent -------------------------------------------------- */

static LsmProbe known[200];
static TestRow rows[lengthof(known)];

/* Look for some rows.  Several may have the same key, or the same hash. */
static int
look_for_rows(const TestIndex *index, int count, LsmLookedFor *set)
{
	LsmSeenVersion seen = {0};

	for (int i = 0; i < count; i++)
	{
		LsmProbe   *probe = &known[i];

		probe->entry = rows[i].entry;
		probe->hash = lsm_hash_key(index->ks, &probe->entry, index->nkeys) % 50;
		probe->repeats = i > 0 && rows_compare_columns(index, &rows[i - 1], &rows[i], index->nkeys) == 0;
		probe->found = probe->repeats ? known[i - 1].found : rnd(2);
	}
	lsm_looked_for_make(set, &seen, known, count);
	return count;
}

/* Was a lookup made for a row's key without finding it? */
static bool
was_absent(const TestIndex *index, const TestRow *row, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (rows_compare_columns(index, row, &rows[i], index->nkeys) == 0)
			return !known[i].found;
	}
	return false;
}

static void
test_known(void)
{
	bool		good = true;

	for (int round = 0; round < ROUNDS / 10; round++)
	{
		TestIndex	index;
		LsmLookedFor set;
		int			count;

		rows_index(&index, 3);
		rows_make(&index, rows, lengthof(rows));
		count = look_for_rows(&index, rows_sort(&index, rows, rnd(lengthof(rows) + 1)), &set);
		for (int i = 0; i < lengthof(rows); i++)
		{
			LsmBound	from = {0};
			LsmBound	limit = {0};

			lsm_bound_set_key(index.ks, &from, &rows[i].entry, 1);
			lsm_bound_set_key(index.ks, &limit, &rows[i].entry, -1);
			good &= lsm_was_absent(&set, index.ks,
								   lsm_hash_key(index.ks, &rows[i].entry, index.nkeys) % 50, &from, &limit) ==
				was_absent(&index, &rows[i], count);
		}
		backend_free_all();
	}
	ok(good, "a key was absent if a lookup did not find it");
}

static void
test_seen(void)
{
	LsmSeenVersion seen = {.next_id = 100,.open_count = 2,.open = {40, 99}};

	ok(lsm_seen_has(&seen, 39) && lsm_seen_has(&seen, 98),
	   "a version had runs with ids below its next id");
	ok(!lsm_seen_has(&seen, 100) && !lsm_seen_has(&seen, 1000), "... but no later ones");
	ok(!lsm_seen_has(&seen, 40) && !lsm_seen_has(&seen, 99),
	   "... and not all entries of runs that were open");
}

int
main(void)
{
	test_habit();
	test_rounds();
	test_walks();
	test_known();
	test_seen();
	return done();
}
