/* t_meta.c -- the manifest and its edits, against a model of them. */
#include "tap.h"

#include "backend.h"
#include "format/leaf_mode.h"
#include "format/meta.h"

static PGAlignedBlock block;
static Page page = (Page) block.data;
static LsmMeta *meta;
static LsmEdit edit;

static LsmRunRecord model[LSM_MAX_RUNS];
static int	count;
static LsmReservation reserved[LSM_MAX_RESERVATIONS];	/* in their places */
static LsmKeyCoding coding = {.nkeys = 1,.encoded = 1};

static bool
matches(void)
{
	return (int) meta->run_count == count && lsm_meta_check(page) == NULL &&
		memcmp(meta->runs, model, count * sizeof(LsmRunRecord)) == 0 &&
		memcmp(meta->reservations, reserved, sizeof(reserved)) == 0 &&
		memcmp(&meta->coding, &coding, sizeof(coding)) == 0 &&
		lsm_page_opaque(page)->crc == lsm_page_compute_crc(page);
}

static void
random_record(LsmRunRecord *run, uint64 run_id)
{
	memset(run, 0, sizeof(LsmRunRecord));
	run->run_id = run_id;
	run->entries = rnd(1000);
	run->start = rnd(1000);
	run->level = rnd(LSM_MAX_LEVEL);
	run->state = 1 + rnd(4);
}

/* Returns the place of a reservation, or for 0 the first unused place, or -1 if there is none. */
static int
find_place(uint64 segment_id)
{
	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
	{
		if (reserved[i].segment_id == segment_id)
			return i;
	}
	return -1;
}

/* Reserve blocks, or release some. */
static void
random_reservation(uint64 *next_id)
{
	int			at = rnd(LSM_MAX_RESERVATIONS);
	int			unused = find_place(0);

	if (reserved[at].length > 0)
	{
		lsm_edit_release(&edit, reserved[at].segment_id);
		memset(&reserved[at], 0, sizeof(LsmReservation));
	}
	else if (unused >= 0)
	{
		LsmReservation *r = &reserved[unused];

		r->start = rnd(1000);
		r->length = 1 + rnd(1000);
		r->segment_id = (*next_id)++;
		r->job_id = rnd(100);
		lsm_edit_reserve(&edit, r);
	}
}

/* Add one random operation to the edit, and apply it to the model. */
static void
random_op(uint64 *next_id)
{
	LsmRunRecord *known = count > 0 ? &model[rnd(count)] : NULL;
	LsmRunRecord run;

	switch (known == NULL ? 0 : rnd(7))
	{
		case 0:
			if (count == LSM_MAX_RUNS)
				return;
			random_record(&run, (*next_id)++);
			lsm_edit_put(&edit, &run);
			model[count++] = run;
			break;
		case 1:
			random_record(&run, known->run_id);
			lsm_edit_put(&edit, &run);
			*known = run;
			break;
		case 2:
			lsm_edit_remove(&edit, known->run_id);
			count--;
			memmove(known, known + 1, (&model[count] - known) * sizeof(LsmRunRecord));
			break;
		case 3:
			lsm_edit_set_job(&edit, known->run_id, 7);
			known->job_id = 7;
			break;
		case 4:
			lsm_edit_deduct(&edit, known->run_id, 400);
			known->entries -= Min(known->entries, 400);
			known->removed += 400;
			break;
		case 5:
			random_reservation(next_id);
			break;
		case 6:
			lsm_edit_take(&edit, known->run_id, 300);
			known->entries -= Min(known->entries, 300);
			break;
	}
}

static void
test_model(void)
{
	uint64		next_id = LSM_FIRST_ID;
	bool		good = true;
	bool		ids = true;
	bool		spaces = true;
	uint64		seals = 0;

	lsm_meta_init(page, &coding);
	for (int round = 0; round < 20000; round++)
	{
		lsm_edit_init(&edit, meta);
		edit.seals = rnd(2);
		seals += edit.seals;
		for (int ops = rnd(5); ops > 0; ops--)
			random_op(&next_id);
		edit.next_id = next_id;
		edit.space.mapped_end = rnd(1000000);
		edit.space.free_blocks = rnd(1000);
		good &= lsm_meta_apply(page, &edit) && matches();
		ids &= meta->next_id == next_id;
		spaces &= memcmp(&meta->space, &edit.space, sizeof(LsmSpace)) == 0;
	}
	ok(good, "edits apply their operations in order");
	ok(ids, "the next id is above all assigned ids");
	ok(spaces, "the number of free blocks is the one in the edit");
	ok(meta->edits == 20000 && meta->seals == seals, "edits and seals are counted");
}

static void
test_limits(void)
{
	bool		good = true;
	LsmRunRecord run;

	lsm_meta_init(page, &coding);
	ok(lsm_meta_check(page) == NULL && meta->next_id == LSM_FIRST_ID &&
	   meta->run_count == 0 && meta->version == LSM_FORMAT_VERSION &&
	   meta->space.mapped_end == LSM_FIXED_BLOCKS && meta->space.free_blocks == 0,
	   "a new manifest is sound and empty");
	for (int i = 0; i < LSM_MAX_RUNS; i++)
	{
		lsm_edit_init(&edit, meta);
		random_record(&run, edit.next_id++);
		lsm_edit_put(&edit, &run);
		good &= lsm_meta_apply(page, &edit);
	}
	ok(good && meta->run_count == LSM_MAX_RUNS && lsm_meta_check(page) == NULL,
	   "it takes as many runs as it has room for");
	lsm_edit_init(&edit, meta);
	random_record(&run, meta->next_id);
	lsm_edit_put(&edit, &run);
	ok(!lsm_meta_apply(page, &edit), "and rejects one more");

	/* A job with the maximum number of inputs. */
	lsm_meta_init(page, &coding);
	for (int i = 0; i < LSM_MAX_JOB_INPUTS; i++)
	{
		lsm_edit_init(&edit, meta);
		random_record(&run, edit.next_id++);
		lsm_edit_put(&edit, &run);
		good &= lsm_meta_apply(page, &edit);
	}
	lsm_edit_init(&edit, meta);
	for (int i = 0; i < LSM_MAX_JOB_INPUTS; i++)
		lsm_edit_remove(&edit, meta->runs[i].run_id);
	random_record(&run, edit.next_id++);
	lsm_edit_put(&edit, &run);
	ok(good && lsm_meta_apply(page, &edit) && meta->run_count == 1 &&
	   meta->runs[0].run_id == run.run_id && lsm_meta_check(page) == NULL,
	   "one run replaces all inputs of a job in one edit");
}

/* More operations than an edit has room for: an error, before anything is overwritten. */
static void
test_edit_overflow(void)
{
	static struct
	{
		LsmEdit		edit;
		uint8		guard[64];
	}			room;
	sigjmp_buf	jump;
	volatile int added = 0;
	bool		intact = true;

	memset(&room, 0x5A, sizeof(room));
	lsm_meta_init(page, &coding);
	lsm_edit_init(&room.edit, meta);
	if (sigsetjmp(jump, 0) == 0)
	{
		backend_catch = &jump;
		for (; added < 2 * LSM_MAX_EDIT_OPS; added++)
			lsm_edit_remove(&room.edit, added);
	}
	backend_catch = NULL;
	for (int i = 0; i < lengthof(room.guard); i++)
		intact &= room.guard[i] == 0x5A;
	ok(added == LSM_MAX_EDIT_OPS && intact, "an edit rejects more operations than it has room for");
}

static void
test_reservations(void)
{
	LsmReservation r = {.start = 100,.length = 10,.job_id = 3};
	bool		good = true;

	lsm_meta_init(page, &coding);
	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
	{
		lsm_edit_init(&edit, meta);
		r.segment_id = edit.next_id++;
		lsm_edit_reserve(&edit, &r);
		good &= lsm_meta_apply(page, &edit);
	}
	ok(good && lsm_meta_check(page) == NULL, "the maximum number of steps can reserve blocks");
	lsm_edit_init(&edit, meta);
	r.segment_id = edit.next_id++;
	lsm_edit_reserve(&edit, &r);
	ok(!lsm_meta_apply(page, &edit), "one more is rejected");
	lsm_edit_init(&edit, meta);
	lsm_edit_release(&edit, LSM_FIRST_ID + 5);
	lsm_edit_reserve(&edit, &r);
	ok(lsm_meta_apply(page, &edit) && meta->reservations[5].segment_id == r.segment_id &&
	   meta->reservations[5].length == 10 && meta->reservations[5].job_id == 3,
	   "a released place is reused, even within the same edit");
	lsm_edit_init(&edit, meta);
	lsm_edit_release(&edit, LSM_FIRST_ID + 5);
	ok(!lsm_meta_apply(page, &edit), "blocks that are not reserved cannot be released");
	lsm_meta_init(page, &coding);
	lsm_edit_init(&edit, meta);
	lsm_edit_release(&edit, 0);
	ok(!lsm_meta_apply(page, &edit), "nor can an unused place");
}

static LsmSegment
random_segment(uint64 id)
{
	LsmSegment	segment;

	memset(&segment, 0, sizeof(segment));
	segment.id = id;
	segment.entries = 1 + rnd(PG_INT32_MAX);
	segment.removed = rnd(1000);
	segment.start = LSM_FIXED_BLOCKS + rnd(1000000);
	segment.leaves = 1 + rnd(1000);
	segment.blocks = segment.leaves + rnd(10);
	segment.heap_low = rnd(1000000);
	segment.heap_high = segment.heap_low + rnd(1000000);
	segment.keylen = rnd(3);
	segment.offset_bits = 1 + rnd(16);
	segment.height = rnd(4);
	return segment;
}

/* A record has all fields of one segment, or totals of several segments. */
static void
test_run_helpers(void)
{
	bool		back = true;
	bool		modes = true;
	bool		sums = true;

	for (int round = 0; round < 2000; round++)
	{
		LsmSegment	first = random_segment(LSM_FIRST_ID + round);
		LsmSegment	other;
		LsmRunRecord run;
		LsmLeafMode mode;
		LsmLeafMode joined;
		uint64		entries = first.entries;
		uint64		blocks = first.blocks;
		uint64		leaves = first.leaves;
		uint64		removed = first.removed;
		int			segments = 1 + rnd(20);

		lsm_run_init_single(&run, &first, 3, LSM_RUN_PACKED);
		lsm_run_segment(&run, &other);
		back &= memcmp(&first, &other, sizeof(LsmSegment)) == 0 && run.run_id == first.id &&
			run.segments == 1 && lsm_run_is_single(&run) && run.level == 3 &&
			run.state == LSM_RUN_PACKED && run.job_id == 0 && run.flags == 0;
		memset(&joined, 0, sizeof(joined));
		memset(&mode, 0, sizeof(mode));
		lsm_segment_mode(&first, &joined);
		lsm_run_mode(&run, &mode);
		modes &= memcmp(&mode, &joined, sizeof(mode)) == 0;

		for (int i = 1; i < segments; i++)
		{
			LsmLeafMode more;

			other = random_segment(i);
			entries += other.entries;
			blocks += other.blocks;
			leaves += other.leaves;
			removed += other.removed;
			lsm_run_add_segment(&run, &other);
			lsm_segment_mode(&other, &more);
			lsm_mode_join(&joined, &more);
		}
		lsm_run_mode(&run, &mode);
		modes &= memcmp(&mode, &joined, sizeof(mode)) == 0;
		sums &= run.entries == entries && run.blocks == blocks && run.leaves == leaves &&
			run.removed == removed && run.segments == segments;
	}
	ok(back, "the record of a run with one segment describes that segment");
	ok(sums, "the record of a run with several has their totals");
	ok(modes, "and their common mode");
}

/* An empty run, the initial output of a job, has the mode of no entries. */
static void
test_empty_run(void)
{
	LsmRunRecord run;
	LsmLeafMode mode;
	LsmLeafMode none;
	LsmSegment	segment = random_segment(50);

	memset(&run, 0, sizeof(run));
	memset(&mode, 0, sizeof(mode));
	memset(&none, 0, sizeof(none));
	lsm_mode_init(&none);
	lsm_run_mode(&run, &mode);
	ok(memcmp(&mode, &none, sizeof(mode)) == 0, "a run without segments has the mode of no entries");
	lsm_run_add_segment(&run, &segment);
	lsm_run_mode(&run, &mode);
	lsm_segment_mode(&segment, &none);
	ok(memcmp(&mode, &none, sizeof(mode)) == 0, "it takes over the mode of its first segment");

	/* An empty page of the write buffer, as manifest/buffer_edit.c opens it. */
	memset(&segment, 0, sizeof(segment));
	segment.id = 51;
	segment.blocks = segment.leaves = 1;
	segment.heap_low = InvalidBlockNumber;
	segment.keylen = LSM_KEYLEN_NONE;
	segment.offset_bits = 1;
	lsm_run_init_single(&run, &segment, 0, LSM_RUN_OPEN);
	lsm_run_mode(&run, &mode);
	lsm_mode_init(&none);
	ok(memcmp(&mode, &none, sizeof(mode)) == 0 && run.blocks == 1 && run.entries == 0,
	   "so has an open page");
}

static void
test_refusals(void)
{
	LsmRunRecord run;

	lsm_meta_init(page, &coding);
	lsm_edit_init(&edit, meta);
	lsm_edit_remove(&edit, 123456);
	ok(!lsm_meta_apply(page, &edit), "an edit refuses to remove a missing run");
	lsm_edit_init(&edit, meta);
	lsm_edit_set_job(&edit, 123456, 1);
	ok(!lsm_meta_apply(page, &edit), "or to give it to a job");
	lsm_edit_init(&edit, meta);
	lsm_edit_deduct(&edit, 123456, 1);
	ok(lsm_meta_apply(page, &edit), "but deducting entries from a missing run is no error");
	lsm_edit_init(&edit, meta);
	lsm_edit_take(&edit, 123456, 1);
	ok(!lsm_meta_apply(page, &edit), "a merge takes no entries from it");
	edit.ops[0].kind = 99;
	ok(!lsm_meta_apply(page, &edit), "an operation of an unknown kind is rejected");

	lsm_meta_init(page, &coding);
	lsm_meta_flip_gate(page);
	ok(meta->gate_epoch == 1 && matches(), "an edit flips the gate");
	meta->run_count = LSM_MAX_RUNS + 1;
	ok(lsm_meta_check(page) != NULL, "a wrong number of runs is noticed");
	lsm_meta_init(page, &coding);
	meta->magic++;
	ok(lsm_meta_check(page) != NULL, "so is a page that is not a meta page");

	lsm_meta_init(page, &coding);
	random_record(&run, meta->next_id);
	lsm_edit_init(&edit, meta);
	edit.next_id++;
	lsm_edit_put(&edit, &run);
	ok(lsm_meta_apply(page, &edit), "a run with a new id is added");
	meta->runs[0].run_id = LSM_FIRST_ID - 1;
	ok(lsm_meta_check(page) != NULL, "an id that no run can have is noticed");
	meta->runs[0].run_id = meta->next_id;
	ok(lsm_meta_check(page) != NULL, "so is one that was never assigned");
	meta->runs[0].run_id = run.run_id;
	meta->runs[0].state = 0;
	ok(lsm_meta_check(page) != NULL, "so is a state that no run can have");
	meta->runs[0].state = run.state;
	ok(lsm_meta_check(page) == NULL, "the sound page passes");
	meta->edits = 0;
	ok(lsm_meta_check(page) != NULL, "runs without an edit are noticed");
}

int
main(void)
{
	meta = lsm_meta(page);
	test_model();
	test_limits();
	test_edit_overflow();
	test_reservations();
	count = 0;
	memset(reserved, 0, sizeof(reserved));
	test_refusals();
	test_run_helpers();
	test_empty_run();
	return done();
}
