/* t_meta.c -- the manifest and its edits. */
#include "tap.h"

#include "format/map_page.h"
#include "format/meta.h"

int
main(void)
{
	static PGAlignedBlock block;
	static LsmEdit edit;
	Page		page = (Page) block.data;
	LsmMeta    *meta = lsm_meta(page);
	LsmRunRecord run;
	bool		good = true;

	memset(&run, 0, sizeof(run));
	lsm_meta_init(page);
	ok(lsm_meta_check(page) == NULL && meta->next_run_id == LSM_FIRST_RUN_ID, "a new manifest is sound and empty");

	for (int i = 0; i < LSM_MAX_RUNS; i++)
	{
		lsm_edit_init(&edit);
		run.run_id = meta->next_run_id;
		run.entries = 100;
		run.state = LSM_RUN_PACKED;
		lsm_edit_put(&edit, &run);
		good &= lsm_meta_apply(page, &edit);
	}
	ok(good && meta->run_count == LSM_MAX_RUNS && lsm_meta_check(page) == NULL, "takes as many runs as it has room for");
	lsm_edit_init(&edit);
	run.run_id = meta->next_run_id;
	lsm_edit_put(&edit, &run);
	ok(!lsm_meta_apply(page, &edit), "and refuses one more");

	lsm_edit_init(&edit);
	lsm_edit_remove(&edit, LSM_FIRST_RUN_ID + 5);
	lsm_edit_set_job(&edit, LSM_FIRST_RUN_ID + 6, 999);
	lsm_edit_deduct(&edit, LSM_FIRST_RUN_ID + 7, 30);
	lsm_edit_deduct(&edit, LSM_FIRST_RUN_ID + 8, 300);
	lsm_edit_deduct(&edit, 123456, 1);
	ok(lsm_meta_apply(page, &edit), "several operations in an edit");
	ok(lsm_meta_find(meta, LSM_FIRST_RUN_ID + 5) == NULL && meta->run_count == LSM_MAX_RUNS - 1, "removes a run");
	ok(lsm_meta_find(meta, LSM_FIRST_RUN_ID + 6)->job_id == 999, "gives a run to a job");
	ok(lsm_meta_find(meta, LSM_FIRST_RUN_ID + 7)->entries == 70, "deducts entries");
	ok(lsm_meta_find(meta, LSM_FIRST_RUN_ID + 8)->entries == 0, "but not below none");
	ok(meta->runs[5].run_id == LSM_FIRST_RUN_ID + 6 && meta->runs[4].run_id == LSM_FIRST_RUN_ID + 4, "keeps the order of age");
	ok(lsm_page_opaque(page)->crc == lsm_page_compute_crc(page), "keeps its checksum");
	lsm_edit_init(&edit);
	lsm_edit_remove(&edit, 123456);
	ok(!lsm_meta_apply(page, &edit), "refuses to remove what is not there");
	lsm_meta_flip_gate(page);
	ok(meta->gate_epoch == 1, "flips the gate");
	meta->run_count = LSM_MAX_RUNS + 1;
	ok(lsm_meta_check(page) != NULL, "a wrong number of runs is noticed");
	return done();
}
