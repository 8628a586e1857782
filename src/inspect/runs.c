/*
 * runs.c
 *	  lsm_runs: shows the manifest of an index as rows.
 */
#include "postgres.h"

#include "fmgr.h"
#include "format/buffer_page.h"
#include "funcapi.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(lsm_runs);

#define RUN_COLUMNS 8

static const char *
run_state_name(const LsmRunRecord *run)
{
	switch ((LsmRunState) run->state)
	{
		case LSM_RUN_OPEN:
			return "open";
		case LSM_RUN_SEALED:
			return "sealed";
		case LSM_RUN_PACKED:
			return run->flags & LSM_RUN_MERGING ? "merging" : "packed";
		case LSM_RUN_SPENT:
			break;				/* not shown */
	}
	return "unknown";
}

/*
 * Count the entries of the open pages.  The manifest has no counts of pages that are not yet
 * sealed.  If a run's page now has another owner, returns this run, otherwise NULL.
 */
static const LsmRunRecord *
runs_count_open(LsmIndex *index, LsmVersion *version)
{
	for (uint32 i = 0; i < version->run_count; i++)
	{
		LsmRunRecord *run = &version->runs[i];
		Buffer		buffer;

		if (run->state != LSM_RUN_OPEN)
			continue;
		buffer = lsm_buffer_read_owned(index->rel, run->start, LSM_PAGE_BUFFER, run->run_id,
									   BUFFER_LOCK_SHARE, NULL);
		if (!BufferIsValid(buffer))
			return run;
		run->entries = lsm_buffer_page_count(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
	}
	return NULL;
}

/*
 * Returns the current version, with the entries of its open runs.  A page may have been sealed,
 * merged and reused since the version was copied.  If there was no edit since, the index is
 * damaged.
 */
static LsmVersion *
read_runs_version(LsmIndex *index)
{
	LsmVersion *version = lsm_version_read(index);
	const LsmRunRecord *gone;

	while ((gone = runs_count_open(index, version)) != NULL)
	{
		BlockNumber block = gone->start;
		uint64		edits = version->edits;

		CHECK_FOR_INTERRUPTS();
		pfree(version);
		version = lsm_version_read(index);
		if (version->edits == edits)
			lsm_report_corruption(index->rel, block, "page does not belong to the run in the manifest");
	}
	return version;
}

static void
runs_put(ReturnSetInfo *result, const LsmRunRecord *run)
{
	Datum		values[RUN_COLUMNS];
	bool		nulls[RUN_COLUMNS] = {false};

	values[0] = Int64GetDatum((int64) run->run_id);
	values[1] = CStringGetTextDatum(run_state_name(run));
	values[2] = Int32GetDatum(run->level);
	values[3] = Int64GetDatum(run->blocks);
	values[4] = Int64GetDatum(run->leaves);
	values[5] = Int64GetDatum((int64) run->entries);
	values[6] = Int64GetDatum((int64) run->blocks * BLCKSZ);
	values[7] = Int64GetDatum(run->segments);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * lsm_runs(index regclass): returns a row for each run, the oldest first.  Leaves out spent runs,
 * whose blocks only wait to be freed.
 */
Datum
lsm_runs(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	LsmInspected in;
	LsmVersion *version;

	lsm_init_set(fcinfo, RUN_COLUMNS);
	lsm_inspect_open(&in, PG_GETARG_OID(0), LSM_INSPECT_MONITOR);

	/* Until CREATE INDEX CONCURRENTLY has built an index, its file is empty or incomplete. */
	if (in.index->rd_index->indisready)
	{
		version = read_runs_version(lsm_index_open(in.index));
		for (uint32 i = 0; i < version->run_count; i++)
		{
			if (version->runs[i].state != LSM_RUN_SPENT)
				runs_put(result, &version->runs[i]);
		}
		pfree(version);
	}
	lsm_inspect_close(&in);
	return (Datum) 0;
}
