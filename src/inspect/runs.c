/*
 * runs.c
 *	  lsm_runs: the manifest of an index as rows.
 */
#include "postgres.h"

#include "fmgr.h"
#include "format/buffer_page.h"
#include "funcapi.h"
#include "inspect/inspect.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(lsm_runs);

#define RUN_COLUMNS 7

static const char *
state_name(const LsmRunRecord *run)
{
	switch ((LsmRunState) run->state)
	{
		case LSM_RUN_OPEN:
			return "open";
		case LSM_RUN_SEALED:
			return "sealed";
		case LSM_RUN_PACKED:
			return "packed";
		case LSM_RUN_BUILDING:
			return "building";
		case LSM_RUN_PART:
			return "part";
	}
	return "unknown";
}

/*
 * Entries of a run.  The manifest learns those of an open page when it is
 * sealed, so the page is asked.  It may have been sealed since, but not reused:
 * the query's snapshot prevents that (I9).
 */
static uint64
count_entries(Relation index, const LsmRunRecord *run)
{
	Buffer		buffer;
	uint64		count;

	if (run->state != LSM_RUN_OPEN)
		return run->entries;
	buffer = lsm_buffer_read(index, run->root, LSM_KIND(LSM_PAGE_BUFFER), run->run_id,
							 BUFFER_LOCK_SHARE, NULL);
	count = lsm_buffer_page_count(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	return count;
}

static void
put_run(ReturnSetInfo *result, Relation index, const LsmRunRecord *run)
{
	Datum		values[RUN_COLUMNS];
	bool		nulls[RUN_COLUMNS] = {false};

	values[0] = Int64GetDatum((int64) run->run_id);
	values[1] = CStringGetTextDatum(state_name(run));
	values[2] = Int32GetDatum(run->level);
	values[3] = Int64GetDatum(run->blocks);
	values[4] = Int64GetDatum(run->leaves);
	values[5] = Int64GetDatum((int64) count_entries(index, run));
	values[6] = Int64GetDatum((int64) run->blocks * BLCKSZ);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * lsm_runs(index regclass): one row for each run, in the order of their age.
 */
Datum
lsm_runs(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	LsmInspected in;
	LsmVersion *version;

	InitMaterializedSRF(fcinfo, 0);
	lsm_inspect_open(&in, PG_GETARG_OID(0), LSM_INSPECT_MONITOR);

	/* Until CREATE INDEX CONCURRENTLY has built it, an index is an empty file. */
	if (in.index->rd_index->indisvalid || RelationGetNumberOfBlocks(in.index) > 0)
	{
		version = lsm_version_read(in.index, NULL);
		for (uint32 i = 0; i < version->run_count; i++)
			put_run(result, in.index, &version->runs[i]);
		pfree(version);
	}
	lsm_inspect_close(&in);
	return (Datum) 0;
}
