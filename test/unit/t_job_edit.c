/*
 * t_job_edit.c -- merges and VACUUM change the manifest, in an index file in memory.
 *
 * After each change the test checks the users of each block and the totals of each run.
 */
#include "tap.h"

#include "backend.h"
#include "format/map_page.h"
#include "index_file.h"

static bool sound;				/* all checks since the last report have passed */

static LsmMeta *
meta(void)
{
	return lsm_meta(file_page(LSM_BLOCK_META));
}

static const LsmRunRecord *
find(uint64 run_id)
{
	return lsm_meta_find(meta(), run_id);
}

/* Returns the number of blocks in use, without the fixed blocks. */
static uint32
used_blocks(void)
{
	return meta()->space.mapped_end - meta()->space.free_blocks - LSM_FIXED_BLOCKS;
}

static void
check_file(void)
{
	const char *wrong = file_fault();

	if (wrong != NULL)
		printf("# %s\n", wrong);
	sound &= wrong == NULL;
}

static void
report_checks(const char *name)
{
	ok(sound, name);
	sound = true;
}

static void
describe(LsmDirectoryEntry *entry, uint64 id, BlockNumber start, uint32 blocks, uint64 low,
		 uint64 high, uint32 entries)
{
	memset(entry, 0, sizeof(*entry));
	entry->segment.id = id;
	entry->segment.start = start;
	entry->segment.blocks = blocks;
	entry->segment.leaves = blocks;
	entry->segment.entries = entries;
	entry->low = file_key(low);
	entry->high = file_key(high);
}

/* Add a run of one segment, as a batch or a seal does. */
static uint64
add_run(int level, uint32 blocks, uint32 entries)
{
	LsmChange  *change = lsm_change_begin(&file_index);
	uint64		id = change->edit.next_id++;
	LsmDirectoryEntry entry;
	LsmRunRecord run;
	BlockNumber start;

	lsm_space_take(change, blocks, blocks, false, &start);
	describe(&entry, id, start, blocks, 0, 1, entries);
	lsm_run_init_single(&run, &entry.segment, level, LSM_RUN_PACKED);
	lsm_edit_put(&change->edit, &run);
	lsm_change_commit(change);
	check_file();
	return id;
}

static uint64
begin(const uint64 *inputs, int count, int level)
{
	uint64		job = 0;

	if (!lsm_manifest_begin_job(&file_index, inputs, count, level, &job))
		job = 0;
	check_file();
	return job;
}

/* Take a step that reserves `want` blocks and writes `used` of them, with keys from low to high. */
static bool
take_step(uint64 job, uint32 want, uint32 used, uint64 low, uint64 high, const LsmTaken *taken,
		  int taken_count, bool finished)
{
	LsmReservation r;
	LsmDirectoryEntry entry;

	if (!lsm_manifest_reserve(&file_index, job, want, want, &r))
		return false;
	check_file();
	describe(&entry, r.segment_id, r.start, used, low, high, 10 * used);
	lsm_manifest_install(&file_index, job, &r, used > 0 ? &entry : NULL, taken, taken_count,
						 finished);
	check_file();
	return true;
}

/* Add a finished run with a directory. Its segments have 4 blocks and 100 keys each. */
static uint64
add_long_run(int level, int segments)
{
	uint64		input = add_run(0, 1, 10);
	uint64		job = begin(&input, 1, level);

	for (int i = 0; i < segments; i++)
		take_step(job, 4, 4, 100 * i + 1, 100 * i + 100, NULL, 0, i == segments - 1);
	lsm_manifest_reap(&file_index);
	check_file();
	return job;
}

static LsmBound
bound_behind(uint64 key)
{
	LsmEntry	entry = file_key(key);
	LsmBound	bound = {0};

	lsm_bound_set_entry(&bound, &entry, -1);
	return bound;
}

/* Returns how many segments of a run are left. */
static int
count_segments(uint64 run_id)
{
	LsmFoundSegment *found = palloc0(sizeof(LsmFoundSegment));
	LsmBound	at = {0};
	int			n = 0;

	lsm_bound_init(&at, 1);
	while (lsm_directory_find(&file_index, &file_keyspace, find(run_id), LSM_ANY_EDIT, &at,
							  ForwardScanDirection, found) == LSM_FOUND)
	{
		at = found->high;
		memset(&found->high, 0, sizeof(found->high));
		n++;
	}
	return n;
}

static void
test_begin(void)
{
	uint64		inputs[3];
	uint64		job;

	file_make();
	for (int i = 0; i < 3; i++)
		inputs[i] = add_run(0, 2, 10);
	job = begin(inputs, 2, 1);
	ok(job != 0 && find(job)->flags == LSM_RUN_MERGING && find(job)->segments == 0 &&
	   find(job)->level == 1, "begin: the output has no segments");
	ok(find(inputs[0])->job_id == job && find(inputs[1])->job_id == job &&
	   find(inputs[2])->job_id == 0, "begin: the inputs name the job");
	ok(begin(inputs + 1, 2, 1) == 0 && find(inputs[2])->job_id == 0,
	   "begin: fails if an input already has a job");
	ok(begin(&job, 1, 2) == 0, "begin: fails if an input is the output of a job");
	inputs[0] = 999;
	ok(begin(inputs, 1, 1) == 0, "begin: fails if an input no longer exists");
	while (meta()->run_count < LSM_MAX_RUNS)
		add_run(0, 1, 10);
	ok(begin(inputs + 2, 1, 1) == 0, "begin: fails if the manifest is full");
	report_checks("the file is sound after each change");
}

static void
test_reserve(void)
{
	uint64		inputs[LSM_MAX_RESERVATIONS + 2];
	uint64		jobs[LSM_MAX_RESERVATIONS + 2];
	LsmReservation r;
	LsmReservation again;
	uint32		before;

	file_make();
	for (int i = 0; i < lengthof(inputs); i++)
	{
		inputs[i] = add_run(0, 1, 10);
		jobs[i] = begin(&inputs[i], 1, 1);
	}
	before = used_blocks();
	ok(lsm_manifest_reserve(&file_index, jobs[0], 20, 5, &r) && r.length == 20 &&
	   used_blocks() == before + 20, "reserve: takes as many blocks as requested");
	ok(r.segment_id == jobs[0] && r.job_id == jobs[0], "the first segment has the run's id");
	check_file();
	ok(lsm_manifest_reserve(&file_index, jobs[0], 30, 5, &again) && used_blocks() == before + 30,
	   "reserve: frees what a failed step had reserved");
	check_file();
	ok(!lsm_manifest_reserve(&file_index, inputs[0] + 9999, 4, 4, &r),
	   "reserve: fails for a job that no longer exists");
	for (int i = 1; i < LSM_MAX_RESERVATIONS; i++)
		lsm_manifest_reserve(&file_index, jobs[i], 4, 4, &r);
	check_file();
	before = used_blocks();
	file_busy_job = jobs[3];
	ok(lsm_manifest_reserve(&file_index, jobs[LSM_MAX_RESERVATIONS], 4, 4, &r),
	   "reserve: if none is left, releases those of jobs that nobody is working on");
	check_file();
	ok(used_blocks() == before - 30 - 14 * 4 + 4, "reserve: frees their blocks");
	report_checks("the file is sound after each change");
}

/*
 * All reservations belong to one job that another process works on. This state exists only in the
 * test.
 */
static void
test_no_reservation(void)
{
	LsmReservation r;
	uint64		input;
	uint64		job;
	uint32		before;

	file_make();
	input = add_run(0, 1, 10);
	job = begin(&input, 1, 1);
	file_busy_job = 12345;
	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
		meta()->reservations[i] = (LsmReservation) {.start = 0,.length = 1,.segment_id = i + 1,.job_id = 12345};
	before = meta()->edits;
	ok(!lsm_manifest_reserve(&file_index, job, 4, 4, &r),
	   "reserve: fails if too many steps are in progress");
	ok(meta()->edits == before, "reserve: a failure changes nothing");
}

static void
test_install(void)
{
	uint64		inputs[2];
	uint64		job;
	LsmTaken	taken[2];
	uint32		before;

	file_make();
	inputs[0] = add_run(0, 8, 1000);
	inputs[1] = add_run(0, 8, 500);
	before = used_blocks();
	job = begin(inputs, 2, 1);
	taken[0] = (LsmTaken) {inputs[0], 300};
	taken[1] = (LsmTaken) {inputs[1], 0};
	take_step(job, 10, 6, 1, 100, taken, 2, false);
	ok(find(job)->segments == 1 && find(job)->dir_height == 1 && find(job)->blocks == 6,
	   "install: an unfinished job's output has a directory");
	ok(used_blocks() == before + 6 + 1, "install: unused blocks are freed");
	ok(find(inputs[0])->entries == 700 && find(inputs[1])->entries == 500,
	   "install: the entries are deducted from the inputs");
	take_step(job, 10, 7, 101, 200, NULL, 0, true);
	ok(find(job)->segments == 2 && find(job)->flags == 0 && find(job)->entries == 130,
	   "install: the last one makes the output an ordinary run");
	ok(find(inputs[0])->state == LSM_RUN_SPENT && find(inputs[1])->state == LSM_RUN_SPENT,
	   "install: the last one makes the inputs spent");
	lsm_manifest_reap(&file_index);
	check_file();
	ok(find(inputs[0]) == NULL && find(inputs[1]) == NULL && used_blocks() == 6 + 7 + 1,
	   "reap: removes them and frees their blocks");

	inputs[0] = add_run(0, 3, 10);
	job = begin(inputs, 1, 1);
	take_step(job, 5, 5, 1, 10, NULL, 0, true);
	ok(lsm_run_is_single(find(job)) && find(job)->blocks == 5, "a job of one segment needs no directory");
	lsm_manifest_reap(&file_index);

	inputs[0] = add_run(0, 3, 10);
	before = used_blocks();
	job = begin(inputs, 1, 1);
	take_step(job, 5, 0, 0, 0, NULL, 0, true);
	ok(find(job) == NULL && used_blocks() == before, "an output without entries is removed");
	lsm_manifest_reap(&file_index);
	check_file();
	ok(find(inputs[0]) == NULL && used_blocks() == before - 3, "so are its inputs");
	report_checks("the file is sound after each change");
}

static void
test_trim(void)
{
	uint64		inputs[2];
	uint64		job;
	LsmBound	frontier = bound_behind(350);
	LsmBound	from = bound_behind(250);
	uint32		before;

	file_make();
	inputs[0] = add_long_run(1, 6);
	inputs[1] = add_run(0, 2, 10);
	job = begin(inputs, 2, 2);
	before = used_blocks();
	lsm_manifest_trim(&file_index, &file_keyspace, inputs[0], &from, &frontier);
	check_file();
	ok(count_segments(inputs[0]) == 5 && used_blocks() == before - 4,
	   "trim: frees a segment between two positions");
	lsm_manifest_trim(&file_index, &file_keyspace, inputs[0], NULL, &frontier);
	check_file();
	ok(count_segments(inputs[0]) == 3 && used_blocks() == before - 12,
	   "trim: frees all segments before the frontier");
	lsm_manifest_trim(&file_index, &file_keyspace, inputs[0], NULL, &frontier);
	lsm_manifest_trim(&file_index, &file_keyspace, inputs[1], NULL, &frontier);
	lsm_manifest_trim(&file_index, &file_keyspace, 999, NULL, &frontier);
	check_file();
	ok(count_segments(inputs[0]) == 3 && used_blocks() == before - 12,
	   "trim: frees nothing twice, and nothing of a run without a directory");
	take_step(job, 4, 4, 1, 600, NULL, 0, true);
	lsm_manifest_reap(&file_index);
	check_file();
	ok(used_blocks() == 4 && meta()->run_count == 1, "reap: frees the rest of a directory");
	report_checks("the file is sound after each change");
}

/* Returns the first segment of a run after a bound. */
static LsmFoundSegment *
segment_from(uint64 run_id, const LsmBound *from)
{
	LsmFoundSegment *found = palloc0(sizeof(LsmFoundSegment));

	lsm_directory_find(&file_index, &file_keyspace, find(run_id), LSM_ANY_EDIT, from,
					   ForwardScanDirection, found);
	return found;
}

static LsmFoundSegment *
first_segment(uint64 run_id)
{
	LsmBound	start = {0};

	lsm_bound_init(&start, 1);
	return segment_from(run_id, &start);
}

/* Describe the first segment of a run that add_long_run made, for moving the whole segment. */
static void
whole_first(uint64 run_id, const LsmFoundSegment *found, LsmWholeSegment *whole)
{
	whole->run_id = run_id;
	whole->page = found->page;
	whole->ordinal = found->ordinal;
	describe(&whole->entry, found->segment.id, found->segment.start, 4, 1, 100, 40);
}

static void
test_move(void)
{
	uint64		inputs[2];
	uint64		job;
	LsmWholeSegment whole;
	LsmFoundSegment *found;
	uint32		before;

	file_make();
	inputs[0] = add_long_run(1, 3);
	inputs[1] = add_run(0, 2, 10);
	job = begin(inputs, 2, 2);
	before = used_blocks();
	found = first_segment(inputs[0]);
	whole_first(inputs[0], found, &whole);
	ok(lsm_manifest_move(&file_index, job, &whole) && count_segments(inputs[0]) == 2 &&
	   count_segments(job) == 1, "move: the segment belongs to the output");
	check_file();
	ok(used_blocks() == before + 1 && find(inputs[0])->entries == 80, "move: writes nothing");
	ok(!lsm_manifest_move(&file_index, job, &whole), "move: fails the second time");
	whole.run_id = inputs[1];
	describe(&whole.entry, inputs[1], find(inputs[1])->start, 2, 101, 200, 10);
	ok(lsm_manifest_move(&file_index, job, &whole) && find(inputs[1]) == NULL &&
	   count_segments(job) == 2, "move: a run of one segment disappears with its segment");
	check_file();
	ok(!lsm_manifest_move(&file_index, job, &whole), "move: such a segment cannot be moved again");
	take_step(job, 4, 4, 201, 300, NULL, 0, true);
	lsm_manifest_reap(&file_index);
	check_file();
	ok(find(job)->segments == 3 && find(job)->blocks == 10 && used_blocks() == 10 + 1,
	   "reap: keeps moved segments");
	report_checks("the file is sound after each change");
}

static void
test_vacuum(void)
{
	LsmRemoved	some = {.all = 3,.counted = 3};
	LsmRemoved	all = {.all = 10,.counted = 10,.empty = true};
	LsmBound	low = {0};
	uint64		single;
	uint64		run;
	uint64		second;
	LsmFoundSegment *found;
	LsmBound	behind_first = bound_behind(100);

	file_make();
	single = add_run(0, 2, 10);
	lsm_manifest_note_removed(&file_index, &file_keyspace, single, single, &low, &some);
	ok(find(single)->entries == 7 && find(single)->removed == 3, "VACUUM: removed entries are deducted");
	lsm_manifest_note_removed(&file_index, &file_keyspace, single, single, &low, &all);
	check_file();
	ok(find(single) == NULL && used_blocks() == 0, "a run without entries is dropped");
	single = add_run(0, 2, 10);
	begin(&single, 1, 1);
	lsm_manifest_note_removed(&file_index, &file_keyspace, single, single, &low, &all);
	check_file();
	ok(find(single) != NULL && find(single)->entries == 0 && used_blocks() == 2,
	   "VACUUM: the input of a job is not dropped");

	run = add_long_run(1, 3);
	found = segment_from(run, &behind_first);
	second = found->segment.id;
	all.all = all.counted = 40;
	lsm_manifest_note_removed(&file_index, &file_keyspace, run, second, &found->low, &all);
	check_file();
	ok(find(run)->segments == 2 && find(run)->blocks == 8 && find(run)->entries == 80 &&
	   count_segments(run) == 2, "a segment without entries is dropped from its directory");
	lsm_manifest_note_removed(&file_index, &file_keyspace, run, second, &found->low, &all);
	check_file();
	ok(find(run)->segments == 2 && find(run)->entries == 80, "once");
	report_checks("the file is sound after each change");
}

/* A job moves the segment to another run while VACUUM is reading the segment. */
static void
test_moved_owner(void)
{
	LsmRemoved	some = {.all = 5,.counted = 5};
	LsmFoundSegment *found;
	LsmWholeSegment whole;
	uint64		run;
	uint64		job;

	file_make();
	run = add_long_run(1, 3);
	job = begin(&run, 1, 2);
	found = first_segment(run);
	whole_first(run, found, &whole);
	lsm_manifest_move(&file_index, job, &whole);
	lsm_manifest_note_removed(&file_index, &file_keyspace, run, found->segment.id, &found->low, &some);
	check_file();
	ok(find(job)->entries == 35 && find(job)->removed == 5 && find(run)->entries == 80,
	   "VACUUM: a moved segment is found in its new run");
	report_checks("the file is sound after each change");
}

/* Another process acts between VACUUM's search and its edit. */
static uint64 other_run;
static uint64 other_job;

static void
move_first_segment(void)
{
	LsmWholeSegment whole;

	whole_first(other_run, first_segment(other_run), &whole);
	lsm_manifest_move(&file_index, other_job, &whole);
}

static void
begin_with_run(void)
{
	other_job = begin(&other_run, 1, 2);
}

static void
finish_run(void)
{
	for (int i = 0; i < 200; i++)
		take_step(other_run, 4, 4, 1000 + i, 1000 + i, NULL, 0, i == 199);
}

/* Let the frontier pass the segment, so that the segment's blocks are freed. */
static void
trim_and_finish(void)
{
	LsmBound	frontier = bound_behind(350);

	lsm_manifest_trim(&file_index, &file_keyspace, other_run, NULL, &frontier);
	take_step(other_job, 4, 4, 1, 600, NULL, 0, true);
	lsm_manifest_reap(&file_index);
}

static void
test_overtaken(void)
{
	LsmRemoved	some = {.all = 5,.counted = 5};
	LsmRemoved	all = {.all = 40,.counted = 40,.empty = true};
	LsmFoundSegment *found;
	uint64		input;
	uint64		first;

	for (int i = 0; i < 2; i++)
	{
		file_make();
		other_run = add_long_run(1, 3);
		other_job = begin(&other_run, 1, 2);
		found = first_segment(other_run);
		file_before_edit = move_first_segment;
		lsm_manifest_note_removed(&file_index, &file_keyspace, other_run, found->segment.id,
								  &found->low, i == 0 ? &some : &all);
		check_file();
		ok(find(other_job)->entries == (i == 0 ? 35 : 0) && find(other_run)->entries == 80 &&
		   count_segments(other_job) == 1 - i,
		   "overtaken: a segment that moves before VACUUM's edit is found again");
	}

	file_make();
	other_run = add_long_run(1, 6);
	other_job = begin(&other_run, 1, 2);
	found = first_segment(other_run);
	file_before_edit = trim_and_finish;
	lsm_manifest_note_removed(&file_index, &file_keyspace, other_run, found->segment.id, &found->low,
							  &all);
	check_file();
	ok(find(other_run) == NULL && find(other_job)->entries == 40 && used_blocks() == 4,
	   "overtaken: a segment that was freed is in no run");

	file_make();
	other_run = add_long_run(1, 3);
	found = first_segment(other_run);
	file_before_edit = begin_with_run;
	lsm_manifest_note_removed(&file_index, &file_keyspace, other_run, found->segment.id, &found->low,
							  &all);
	check_file();
	ok(find(other_run)->entries == 80 && find(other_run)->segments == 3 && count_segments(other_run) == 2,
	   "overtaken: the input of a new job keeps its totals");

	file_make();
	input = add_run(0, 1, 10);
	other_run = begin(&input, 1, 1);
	take_step(other_run, 4, 4, 1, 100, NULL, 0, false);
	found = first_segment(other_run);
	first = found->segment.id;
	file_before_edit = finish_run;
	lsm_manifest_note_removed(&file_index, &file_keyspace, other_run, first, &found->low, &all);
	check_file();
	ok(find(other_run)->dir_height == 2 && find(other_run)->segments == 200 &&
	   count_segments(other_run) == 200, "a directory that gets a new root is searched again");

	file_make();
	other_run = add_long_run(1, 2);
	for (int i = 0; i < 2; i++)
	{
		found = first_segment(other_run);
		lsm_manifest_note_removed(&file_index, &file_keyspace, other_run, found->segment.id, &found->low,
								  &all);
	}
	file_before_edit = begin_with_run;
	lsm_manifest_drop_empty(&file_index);
	check_file();
	ok(other_job != 0 && find(other_run) != NULL && find(other_run)->job_id == other_job,
	   "an empty run that a job takes is not dropped");
	report_checks("the file is sound after each change");
}

/* All segments of a page in the middle of a directory become empty. */
static void
test_prune(void)
{
	LsmRemoved	all = {.all = 40,.counted = 40,.empty = true};
	LsmFoundSegment *found;
	uint64		run;
	uint32		before;
	uint32		freed;
	int			cold = 0;

	file_make();
	run = add_long_run(1, 300);
	ok(find(run)->dir_height == 2, "prune: a directory of two levels");
	before = used_blocks();
	for (int i = 0; i < 200; i++)
	{
		found = first_segment(run);
		file_go_cold();
		lsm_manifest_note_removed(&file_index, &file_keyspace, run, found->segment.id, &found->low, &all);
		cold += file_cold_reads + file_searches;
		check_file();
	}
	freed = before - used_blocks() - 200 * 4;
	ok(freed >= 2 && count_segments(run) == 100 && find(run)->segments == 100,
	   "prune: empty directory pages are freed");
	ok(cold == 0, "nothing is read or searched under the lock of the meta page");
	report_checks("the file is sound after each change");
}

static bool
is_quiet(void)
{
	bool		quiet = file_cold_reads == 0 && file_searches == 0;

	if (!quiet)
		printf("# %d reads, %d searches\n", file_cold_reads, file_searches);
	file_go_cold();
	return quiet;
}

/* All writers need the meta page. So whoever locks it must first have read all other pages it needs. */
static void
test_no_reads_under_lock(void)
{
	LsmRemoved	some = {.all = 1,.counted = 1};
	LsmRemoved	all = {.all = 40,.counted = 40,.empty = true};
	LsmFoundSegment *found;
	LsmBound	behind = bound_behind(100);
	LsmBound	frontier = bound_behind(250);
	LsmBound	none = {0};
	LsmReservation r;
	LsmDirectoryEntry entry;
	uint64		inputs[2];
	uint64		job;

	file_make();
	inputs[0] = add_long_run(1, 5);
	inputs[1] = add_run(0, 4, 40);
	file_go_cold();
	job = begin(inputs, 2, 2);
	file_go_cold();
	lsm_manifest_reserve(&file_index, job, 20, 5, &r);
	ok(is_quiet(), "no reads under the lock: reserve");
	describe(&entry, r.segment_id, r.start, 5, 1, 250, 50);
	lsm_manifest_install(&file_index, job, &r, &entry, NULL, 0, false);
	ok(is_quiet(), "no reads under the lock: install the first segment");
	lsm_manifest_trim(&file_index, &file_keyspace, inputs[0], NULL, &frontier);
	ok(is_quiet() && count_segments(inputs[0]) == 3, "trim");
	other_run = inputs[0];
	other_job = job;
	/* Search first, because the search reads the page into memory. */
	found = first_segment(inputs[0]);
	{
		LsmWholeSegment whole = {.run_id = inputs[0],.page = found->page,.ordinal = found->ordinal};

		describe(&whole.entry, found->segment.id, found->segment.start, 4, 301, 400, 40);
		file_go_cold();
		ok(lsm_manifest_move(&file_index, job, &whole) && is_quiet(), "move");
	}
	lsm_manifest_reserve(&file_index, job, 20, 5, &r);
	file_go_cold();
	describe(&entry, r.segment_id, r.start, 5, 401, 600, 50);
	lsm_manifest_install(&file_index, job, &r, &entry, NULL, 0, true);
	ok(is_quiet() && find(job)->segments == 3, "no reads under the lock: install the last segment");
	lsm_manifest_reap(&file_index);
	ok(is_quiet() && find(inputs[0]) == NULL && find(inputs[1]) == NULL, "reap");
	check_file();

	found = segment_from(job, &behind);
	file_go_cold();
	lsm_manifest_note_removed(&file_index, &file_keyspace, job, found->segment.id, &found->low, &some);
	ok(is_quiet() && find(job)->removed == 1,
	   "no reads under the lock: VACUUM removes some of a segment's entries");
	lsm_manifest_note_removed(&file_index, &file_keyspace, job, found->segment.id, &found->low, &all);
	ok(is_quiet() && find(job)->segments == 2, "no reads under the lock: VACUUM removes all of them");
	inputs[1] = add_run(0, 4, 40);
	file_go_cold();
	lsm_manifest_note_removed(&file_index, &file_keyspace, inputs[1], inputs[1], &none, &all);
	ok(is_quiet() && find(inputs[1]) == NULL,
	   "no reads under the lock: VACUUM empties the only segment of a run");
	lsm_manifest_drop_empty(&file_index);
	ok(is_quiet(), "no reads under the lock: there is no empty run to drop");
	while (find(job)->segments > 0)
	{
		found = first_segment(job);
		file_go_cold();
		lsm_manifest_note_removed(&file_index, &file_keyspace, job, found->segment.id, &found->low, &all);
	}
	ok(is_quiet(), "no reads under the lock: VACUUM empties the last segment of a run");
	lsm_manifest_drop_empty(&file_index);
	ok(is_quiet() && find(job) == NULL, "no reads under the lock: drop an empty run");
	lsm_manifest_used_end(&file_index);
	ok(is_quiet(), "no reads under the lock: truncate the file");
	check_file();
	report_checks("the file is sound after each change");
}

static void
test_end_of_file(void)
{
	uint64		first;
	uint64		last;
	LsmRemoved	all = {.all = 10,.counted = 10,.empty = true};
	LsmBound	low = {0};

	file_make();
	first = add_run(0, 10, 10);
	last = add_run(0, 20, 10);
	add_run(0, 5, 10);
	ok(lsm_manifest_used_end(&file_index) == LSM_FIXED_BLOCKS + 35,
	   "truncate: the end of the file is after the last run");
	lsm_manifest_note_removed(&file_index, &file_keyspace, last, last, &low, &all);
	ok(lsm_manifest_used_end(&file_index) == LSM_FIXED_BLOCKS + 35,
	   "truncate: free space before the last run does not count");
	lsm_manifest_truncate(&file_index, FILE_BLOCKS);
	ok(file_cut_at == 0, "truncate: does nothing if too little is free");
	lsm_manifest_truncate(&file_index, 1);
	check_file();
	ok(file_cut_at == LSM_FIXED_BLOCKS + 35, "truncate: otherwise truncates after the last run");
	lsm_manifest_note_removed(&file_index, &file_keyspace, first, first, &low, &all);
	check_file();
	report_checks("the file is sound after each change");
}

/* Jobs, steps, failures and VACUUM in any order. */
static void
test_random(void)
{
	int			finished = 0;

	for (int round = 0; round < 20; round++)
	{
		file_make();
		for (int i = 0; i < 200; i++)
		{
			LsmRunRecord run;

			if (meta()->run_count < 20 || rnd(4) == 0)
				add_run(rnd(3), 1 + rnd(8), 100);
			run = meta()->runs[rnd(meta()->run_count)];
			if (lsm_run_is_free(&run) && run.segments > 0)
			{
				const LsmRunRecord *other = &meta()->runs[rnd(meta()->run_count)];
				uint64		inputs[2] = {run.run_id, other->run_id};

				begin(inputs, other->run_id == run.run_id ? 1 : 2, 1 + rnd(4));
			}
			else if (run.flags & LSM_RUN_MERGING)
			{
				uint64		low = find(run.run_id)->entries + 1;
				bool		last = rnd(3) == 0;
				LsmReservation r;

				if (rnd(4) == 0)
					lsm_manifest_reserve(&file_index, run.run_id, 1 + rnd(20), 1, &r);
				else
					take_step(run.run_id, 8, 1 + rnd(8), low, low + 5, NULL, 0, last);
				finished += last;
			}
			if (rnd(5) == 0)
				lsm_manifest_reap(&file_index);
			if (rnd(5) == 0)
				lsm_manifest_drop_empty(&file_index);
			check_file();
			if (meta()->run_count > LSM_MAX_RUNS - 4)
				break;
		}
		backend_free_all();
	}
	ok(finished > 100, "random: jobs get finished");
	report_checks("random: the file is sound");
}

int
main(void)
{
	sound = true;
	test_begin();
	test_reserve();
	test_no_reservation();
	test_install();
	test_trim();
	test_move();
	test_vacuum();
	test_moved_owner();
	test_overtaken();
	test_prune();
	test_no_reads_under_lock();
	test_end_of_file();
	backend_free_all();
	test_random();
	return done();
}
