/*
 * settle.c
 *	  lsm_compact: merge an index into a single run, by hand.
 *
 * The work is done in steps, like any merge: interruptible, resumable, and
 * with the compaction lock free between any two.  What is inserted meanwhile
 * is left in runs of its own.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "base/compat.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/preload.h"
#include "base/shared.h"
#include "compact/batch.h"
#include "compact/compact.h"
#include "fmgr.h"
#include "format/buffer_page.h"
#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(lsm_compact);

/* Steps are larger than a writer's: a few tens of milliseconds. */
#define STEP_FACTOR 4

/* What it is and who may: before anything is locked. */
static void
check_index(Oid oid)
{
	if (lsm_index_is_partitioned(oid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", get_rel_name(oid)),
				 errhint("Call it for the indexes of the partitions.")));
	if (!lsm_owns_relation(oid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(oid));
}

/* Close the write buffer, if there is anything in it.  An empty page stays open. */
static void
seal_buffer(LsmTarget *target)
{
	LsmOpenPages open;
	BlockNumber block;
	uint64		run_id;
	Buffer		buffer;
	int			entries;

	lsm_progress(lsm_slot_get(target->index), LSM_PHASE_SEALING, 0, 0, 0, 0);
	lsm_compact_seal_spare(target->index, target->heap, target->ks, &open);
	if (open.count == 0)
		return;
	block = open.pages[0].block;
	run_id = open.pages[0].run_id;
	buffer = ReadBuffer(target->index, block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	entries = lsm_page_check_header(BufferGetPage(buffer), block) == NULL &&
		lsm_page_opaque(BufferGetPage(buffer))->kind == LSM_PAGE_BUFFER &&
		lsm_page_opaque(BufferGetPage(buffer))->run_id == run_id ?
		lsm_buffer_page_count(BufferGetPage(buffer)) : -1;
	UnlockReleaseBuffer(buffer);
	if (entries != 0)
		lsm_compact_seal(target->index, target->heap, target->ks, run_id);
}

/* Is the output of the job that covers all runs complete? */
static bool
is_settled(LsmVersion *version, uint64 *final_run)
{
	LsmRunRecord *run;

	if (*final_run == 0)
		return false;
	run = lsm_version_find(version, *final_run);
	if (run == NULL)
		*final_run = 0;			/* its step failed elsewhere: start again */
	return run != NULL && run->state == LSM_RUN_PACKED;
}

/*
 * Take steps until a job that covers all the runs that there were when it
 * began is installed.  Jobs that are under way before are finished first.
 *
 * Writers go on to begin jobs on lower levels, perhaps faster than one process
 * finishes them.  So every other step is one of ours: it must come to an end,
 * since nothing that is freed meanwhile can be used again.
 */
static void
merge_all(LsmTarget *target)
{
	uint64		final_run = 0;	/* output of the job that merges all */
	bool		others_turn = false;
	bool		more = true;

	while (more)
	{
		LsmVersion *version;
		LsmJob		job;
		bool		last;

		/* Keep workers off, so that two do not take turns in one job. */
		(void) lsm_slot_claim(lsm_slot_get(target->index));
		lsm_compaction_lock(target->index, true);
		lsm_job_recover_failed(target->index, target->heap);
		version = lsm_version_read(target->index, NULL);
		more = !is_settled(version, &final_run);
		if (more)
		{
			last = false;
			if (others_turn || !lsm_pick_building(version->runs, version->run_count, final_run, &job))
				more = lsm_pick_settling(version->runs, version->run_count,
										 lsm_fanout(target->index), &job, &last);
			others_turn = !others_turn;
		}
		pfree(version);
		if (more)
		{
			lsm_job_step(target->index, target->heap, target->ks, &job,
						 lsm_step_leaves * STEP_FACTOR);
			if (last)
				final_run = job.run_id;
		}
		lsm_compaction_unlock(target->index);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * lsm_compact(index regclass)
 */
Datum
lsm_compact(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	LsmTarget	target;

	PreventCommandDuringRecovery("lsm_compact()");
	PreventCommandIfReadOnly("lsm_compact()");
	lsm_require_preload("");
	check_index(oid);
	if (lsm_target_open(&target, oid, true) != LSM_OPENED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" cannot be compacted now", get_rel_name(oid)),
				 errdetail("It is being built or dropped, or it is a temporary index of another session.")));
	PG_TRY();
	{
		(void) lsm_slot_claim(lsm_slot_get(target.index));
		lsm_batch_flush_index(target.index);
		seal_buffer(&target);
		merge_all(&target);
		lsm_request_note(target.index);
	}
	PG_FINALLY();
	{
		lsm_slot_release();
	}
	PG_END_TRY();
	lsm_target_close(&target);
	PG_RETURN_VOID();
}
