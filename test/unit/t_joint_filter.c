/* t_joint_filter.c -- small runs that are added to a joint filter, round by round. */
#include "tap.h"

#include "backend.h"
#include "read/joint_filter.h"

#define RUNS		40
#define MOST_KEYS	400
#define STEPS		600
#define BITS		10

/* A run has `keys` keys: first, first + 1, ... */
typedef struct Run
{
	LsmJointMember member;
	uint64		first;
	uint32		keys;
	uint32		entries;		/* left, according to the run record */
} Run;

static Run runs[RUNS];
static LsmJointFilter joint;
static uint64 next_key = 1;

static uint64
hash_of(uint64 key)
{
	return lsm_filter_hash((const uint8 *) &key, sizeof(key));
}

static void
new_run(Run *run, uint32 most)
{
	memset(run, 0, sizeof(Run));
	run->first = next_key;
	run->keys = 1 + rnd(most);
	run->entries = run->keys;
	next_key += run->keys;
}

static void
join(Run *run)
{
	uint64		hashes[MOST_KEYS];

	for (uint32 i = 0; i < run->keys; i++)
		hashes[i] = hash_of(run->first + i);
	lsm_joint_filter_add(&joint, &run->member, hashes, run->keys);
}

static bool
knows(const Run *run)
{
	for (uint32 i = 0; i < run->keys; i++)
	{
		if (!lsm_joint_filter_has(&joint, hash_of(run->first + i)))
			return false;
	}
	return true;
}

/* Look up keys in some runs, as small_runs.c does. */
static int
choose_runs(Run **chosen, uint64 *more, uint64 *all)
{
	int			count = 0;

	*more = 0;
	*all = 0;
	for (int i = 0; i < RUNS; i++)
	{
		uint64		room = lsm_joint_member_room(&runs[i].member, runs[i].entries);

		if (rnd(3) == 0)
			continue;
		*all += room;
		if (!lsm_joint_filter_has_member(&joint, &runs[i].member))
			*more += room;
		chosen[count++] = &runs[i];
	}
	return count;
}

static void
test_rounds(void)
{
	bool		known = true;
	bool		fits = true;
	bool		fresh = true;
	bool		sized = true;
	uint64		rounds = 0;

	for (int step = 0; step < STEPS; step++)
	{
		Run		   *chosen[RUNS];
		uint64		more;
		uint64		all;
		uint64		before = joint.round;
		int			count = choose_runs(chosen, &more, &all);

		lsm_joint_filter_reserve(&joint, more, all);
		if (joint.round != before)
		{
			rounds++;
			fresh &= joint.count == 0;
			sized &= joint.room >= 3 * all && joint.room <= Max(12 * all, 500 * 4);
			for (int i = 0; i < RUNS; i++)
				fresh &= !lsm_joint_filter_has_member(&joint, &runs[i].member);
		}
		for (int i = 0; i < count; i++)
		{
			if (!lsm_joint_filter_has_member(&joint, &chosen[i]->member))
				join(chosen[i]);
			known &= lsm_joint_filter_has_member(&joint, &chosen[i]->member) && knows(chosen[i]);
		}
		fits &= joint.count <= joint.room;
		/* Runs are merged, or a job takes some of their entries. Later runs are smaller. */
		for (int i = 0; i < RUNS; i++)
		{
			if (rnd(10) == 0)
				new_run(&runs[i], step < STEPS / 2 ? MOST_KEYS : 10);
			else if (rnd(10) == 0)
				runs[i].entries -= runs[i].entries / 2;
		}
	}
	ok(known, "the filter has each key of its members");
	ok(fits, "it never has more keys than it has room for");
	ok(fresh, "no run is a member when a round begins");
	ok(sized, "a round has room for three times the keys that are to join, but not for much more");
	ok(rounds > 10 && rounds < STEPS / 2, "rounds end, but not with each batch");
}

static void
test_wrong_answers(void)
{
	int			wrong = 0;

	for (int i = 0; i < 10000; i++)
		wrong += lsm_joint_filter_has(&joint, hash_of(next_key + i));
	ok(wrong < 300, "few other keys pass the filter");
}

static void
test_due(void)
{
	LsmJointMember member = {0};
	int			lookups = 0;

	while (!lsm_joint_member_is_due(&member, 10, 32000))
		lookups += 10;
	ok(lookups == 990, "a run is due when searching it has cost as much as reading it");
	ok(lsm_joint_member_is_due(&member, 0, 32000), "... and stays due");
	ok(lsm_joint_member_room(&(LsmJointMember) {.key_count = 7}, 3) == 7 &&
	   lsm_joint_member_room(&(LsmJointMember) {.key_count = 7}, 9) == 9,
	   "it has room for the run's entries, or for the keys that the run had");
}

static void
test_overlaps(void)
{
	bool		good = true;

	for (int i = 0; i < 1000; i++)
	{
		LsmJointMember member = {.low = rnd(10)};
		uint64		low = rnd(10);
		uint64		high = low + rnd(5);
		bool		expected = false;

		member.high = member.low + rnd(5);
		for (uint64 key = low; key <= high; key++)
			expected |= key >= member.low && key <= member.high;
		good &= lsm_joint_member_overlaps(&member, low, high) == expected;
	}
	ok(good, "a run overlaps keys if one of them may lie between the run's own");
}

int
main(void)
{
	joint.bits_per_key = BITS;
	for (int i = 0; i < RUNS; i++)
		new_run(&runs[i], MOST_KEYS);
	test_rounds();
	test_wrong_answers();
	test_due();
	test_overlaps();
	backend_free_all();
	return done();
}
