/* t_meta.c -- the manifest and its edits, against a model of them. */
#include "tap.h"

#include "format/map_page.h"
#include "format/meta.h"

static PGAlignedBlock block;
static Page page = (Page) block.data;
static LsmMeta *meta;
static LsmEdit edit;

static LsmRunRecord model[LSM_MAX_RUNS];
static int	count;

static bool
matches(void)
{
	return (int) meta->run_count == count && lsm_meta_check(page) == NULL &&
		memcmp(meta->runs, model, count * sizeof(LsmRunRecord)) == 0 &&
		lsm_page_opaque(page)->crc == lsm_page_compute_crc(page);
}

static void
random_record(LsmRunRecord *run, uint64 run_id)
{
	memset(run, 0, sizeof(LsmRunRecord));
	run->run_id = run_id;
	run->entries = rnd(1000);
	run->root = rnd(1000);
	run->level = rnd(LSM_MAX_LEVEL);
	run->state = 1 + rnd(4);
}

/* Add one random operation to the edit, and do the same to the model. */
static void
random_op(uint64 *next_run_id)
{
	LsmRunRecord *known = count > 0 ? &model[rnd(count)] : NULL;
	LsmRunRecord run;

	switch (known == NULL ? 0 : rnd(5))
	{
		case 0:
			if (count == LSM_MAX_RUNS)
				return;
			random_record(&run, (*next_run_id)++);
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
			break;
	}
}

static void
test_model(void)
{
	uint64		next_run_id = LSM_FIRST_RUN_ID;
	bool		good = true;
	bool		ids = true;
	uint64		seals = 0;

	lsm_meta_init(page);
	for (int round = 0; round < 20000; round++)
	{
		lsm_edit_init(&edit);
		edit.seals = rnd(2);
		seals += edit.seals;
		for (int ops = rnd(5); ops > 0; ops--)
			random_op(&next_run_id);
		good &= lsm_meta_apply(page, &edit) && matches();
		ids &= meta->next_run_id == next_run_id;
	}
	ok(good, "edits do what they say, in their order");
	ok(ids, "the next id is above all that were given out");
	ok(meta->edits == 20000 && meta->seals == seals, "edits and seals are counted");
}

static void
test_limits(void)
{
	bool		good = true;
	LsmRunRecord run;

	lsm_meta_init(page);
	ok(lsm_meta_check(page) == NULL && meta->next_run_id == LSM_FIRST_RUN_ID &&
	   meta->run_count == 0, "a new manifest is sound and empty");
	for (int i = 0; i < LSM_MAX_RUNS; i++)
	{
		lsm_edit_init(&edit);
		random_record(&run, meta->next_run_id);
		lsm_edit_put(&edit, &run);
		good &= lsm_meta_apply(page, &edit);
	}
	ok(good && meta->run_count == LSM_MAX_RUNS && lsm_meta_check(page) == NULL,
	   "takes as many runs as it has room for");
	lsm_edit_init(&edit);
	random_record(&run, meta->next_run_id);
	lsm_edit_put(&edit, &run);
	ok(!lsm_meta_apply(page, &edit), "and refuses one more");

	/* A job with the most inputs that there can be. */
	lsm_meta_init(page);
	for (int i = 0; i < LSM_MAX_RUNS; i++)
	{
		lsm_edit_init(&edit);
		random_record(&run, meta->next_run_id);
		lsm_edit_put(&edit, &run);
		good &= lsm_meta_apply(page, &edit);
	}
	lsm_edit_init(&edit);
	for (int i = 0; i < LSM_MAX_RUNS; i++)
		lsm_edit_remove(&edit, meta->runs[i].run_id);
	random_record(&run, meta->next_run_id);
	lsm_edit_put(&edit, &run);
	ok(lsm_meta_apply(page, &edit) && meta->run_count == 1 && lsm_meta_check(page) == NULL,
	   "one run replaces all others in one edit");
}

static void
test_refusals(void)
{
	lsm_meta_init(page);
	lsm_edit_init(&edit);
	lsm_edit_remove(&edit, 123456);
	ok(!lsm_meta_apply(page, &edit), "refuses to remove what is not there");
	lsm_edit_init(&edit);
	lsm_edit_set_job(&edit, 123456, 1);
	ok(!lsm_meta_apply(page, &edit), "or to give it to a job");
	lsm_edit_init(&edit);
	lsm_edit_deduct(&edit, 123456, 1);
	ok(lsm_meta_apply(page, &edit), "but entries of a run that is gone need no deduction");
	edit.ops[0].kind = 99;
	ok(!lsm_meta_apply(page, &edit), "an operation of no known kind is refused");

	lsm_meta_init(page);
	lsm_meta_flip_gate(page);
	ok(meta->gate_epoch == 1 && matches(), "flips the gate");
	meta->run_count = LSM_MAX_RUNS + 1;
	ok(lsm_meta_check(page) != NULL, "a wrong number of runs is noticed");
	lsm_meta_init(page);
	meta->magic++;
	ok(lsm_meta_check(page) != NULL, "and a page that is no meta page");
}

int
main(void)
{
	meta = lsm_meta(page);
	test_model();
	test_limits();
	count = 0;
	test_refusals();
	return done();
}
