/*
 * compact_index.c
 *	  lsm_compact: merges an index into a single run.
 *
 * lsm_compact takes steps like any other merge, and holds no merge lock between them.  If it is
 * interrupted, the next call or a worker continues its job.  Entries inserted meanwhile may stay in
 * other runs.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "base/claims.h"
#include "base/compat.h"
#include "base/index_slots.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/preload.h"
#include "base/shared.h"
#include "fmgr.h"
#include "ingest/batch.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "schedule/schedule.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(lsm_compact);

/* Check the relation's kind and the caller's rights, before anything is locked. */
static void
check_compactable(Oid oid)
{
	if (lsm_index_is_partitioned(oid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", get_rel_name(oid)),
				 errhint("Compact the indexes of the partitions instead.")));
	if (!lsm_owns_relation(oid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(oid));
}

/* Seal the pages of the write buffer, except for one empty page. */
static void
seal_buffer(LsmTarget *target)
{
	lsm_progress(lsm_slot_get(target->rel), LSM_PHASE_SEALING, 0, 0, 0, 0);
	lsm_seal_spare_pages(target->index);
	while (!lsm_seal_last_page(target->index))
	{
		lsm_schedule_make_room(target->index, target->heap);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Is the output of the job that covers all runs complete? */
static bool
is_settled(LsmVersion *version, uint64 final_job)
{
	LsmRunRecord *run = final_job != 0 ? lsm_version_find(version, final_job) : NULL;

	return final_job != 0 && (run == NULL || !(run->flags & LSM_RUN_MERGING));
}

/*
 * Finish the jobs under way, then run a final job that covers all runs that exist when it begins.
 * If there are too many runs for one job, jobs of the smallest runs come first.
 *
 * Meanwhile, writers may begin jobs on lower levels faster than one process can finish them.  To
 * make sure that the loop ends, every other step belongs to the final job once that has begun.
 */
static void
merge_all(LsmTarget *target)
{
	LsmVersion *version = lsm_version_read(target->index);
	uint64		final_job = 0;	/* the job that covers all runs, once it has begun */
	bool		others_turn = false;

	while (!is_settled(version, final_job))
	{
		LsmJob		job;
		bool		last = false;

		/* Keep workers away, so that we do not take turns with one in the same job. */
		(void) lsm_slot_claim(lsm_slot_get(target->rel));
		if ((others_turn ||
			 !lsm_pick_under_way(version->runs, version->run_count, final_job, &job)) &&
			!lsm_pick_settling(version->runs, version->run_count, lsm_fanout(target->rel), &job,
							   &last))
			break;
		others_turn = !others_turn;
		lsm_job_step(target->index, target->heap, &job, 0, true);
		if (last && job.job_id != 0)
			final_job = job.job_id;
		CHECK_FOR_INTERRUPTS();
		lsm_version_update(target->index, version, NULL);
	}
	pfree(version);
}

/*
 * lsm_compact(index regclass)
 */
Datum
lsm_compact(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	LsmTarget	target;
	bool		had_claim = lsm_slot_has_claim();

	PreventCommandDuringRecovery("lsm_compact()");
	PreventCommandIfReadOnly("lsm_compact()");
	/* Processes of one parallel query do not exclude each other with merge and job locks. */
	PreventCommandIfParallelMode("lsm_compact()");
	lsm_require_preload("");
	check_compactable(oid);
	lsm_inspect_refuse_reindexed(oid);
	if (lsm_target_open(&target, oid, true) != LSM_OPENED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot compact index \"%s\"", get_rel_name(oid)),
				 errdetail("The index is being built or dropped, or it is a temporary index of another session.")));
	PG_TRY();
	{
		(void) lsm_slot_claim(lsm_slot_get(target.rel));
		lsm_batch_flush_index(target.rel);
		seal_buffer(&target);
		merge_all(&target);
		lsm_request_note(target.index, true);
	}
	PG_FINALLY();
	{
		/* If a comparison function called us, the outer call owns the claim. */
		if (!had_claim)
			lsm_slot_release();
	}
	PG_END_TRY();
	lsm_target_close(&target);
	PG_RETURN_VOID();
}
