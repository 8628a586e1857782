/* t_pick.c -- what to merge next. */
#include "tap.h"

#include "compact/compact.h"

static LsmRunRecord runs[LSM_MAX_RUNS];
static int	count;

static LsmRunRecord *
add(int level, LsmRunState state, uint32 blocks)
{
	LsmRunRecord *run = &runs[count++];

	memset(run, 0, sizeof(*run));
	run->run_id = 100 + count;
	run->level = level;
	run->state = state;
	run->blocks = blocks;
	return run;
}

int
main(void)
{
	LsmJob		job;
	LsmRunRecord *building;

	ok(!lsm_pick_job(runs, 0, 8, 0, &job), "nothing to do in an empty index");
	add(0, LSM_RUN_OPEN, 1);
	for (int i = 0; i < 7; i++)
		add(0, LSM_RUN_SEALED, 1);
	ok(!lsm_pick_job(runs, count, 8, 0, &job), "seven runs and the open one are too few");
	add(0, LSM_RUN_SEALED, 1);
	ok(lsm_pick_job(runs, count, 8, 0, &job) && job.count == 8 && job.level == 0 && job.blocks == 8 &&
	   job.run_id == 0, "eight runs are merged, without the open one");

	for (int i = 0; i < 8; i++)
		add(3, LSM_RUN_PACKED, 500);
	ok(lsm_pick_job(runs, count, 8, 0, &job) && job.level == 0, "the lowest level first");
	ok(lsm_pick_job(runs, count, 8, 1, &job) && job.level == 3 && job.blocks == 4000, "then higher ones");

	building = add(4, LSM_RUN_BUILDING, 10);
	for (int i = 0; i < count; i++)
	{
		if (runs[i].level == 3)
			runs[i].job_id = building->run_id;
	}
	ok(lsm_pick_job(runs, count, 8, 1, &job) && job.run_id == building->run_id && job.count == 8, "a job under way is gone on with");
	ok(lsm_pick_idle(runs, count, 3) == 0, "its inputs are taken");
	for (int i = 0; i < 9; i++)
		add(3, LSM_RUN_PACKED, 500);
	ok(lsm_pick_job(runs, count, 8, 1, &job) && job.run_id == building->run_id, "one job at a time from a level");

	count = 0;
	for (int i = 0; i < 100; i++)
		add(0, LSM_RUN_SEALED, 1);
	ok(lsm_pick_job(runs, count, 8, 0, &job) && job.count == LSM_MAX_JOB_INPUTS, "a job has a largest number of inputs");

	count = 0;
	for (int i = 0; i < 7; i++)
		add(1, LSM_RUN_PACKED, 5);
	for (int i = 0; i < 5; i++)
		add(2, LSM_RUN_PACKED, 50);
	ok(lsm_pick_any(runs, count, &job) && job.level == 1 && job.count == 7, "when there must be room, the fullest level");
	count = 0;
	add(1, LSM_RUN_PACKED, 5);
	add(2, LSM_RUN_PACKED, 5);
	ok(!lsm_pick_any(runs, count, &job), "single runs cannot make room");

	ok(lsm_level_for(1, 8) == 0 && lsm_level_for(8, 8) == 1 && lsm_level_for(9, 8) == 2 &&
	   lsm_level_for(4096, 8) == 4, "levels by size");
	return done();
}
