/*
 * stats.c
 *	  What shared memory knows of the indexes, for the views
 *	  pg_stat_lsm_indexes and pg_stat_progress_lsm_compaction.
 */
#include "postgres.h"

#include "base/compat.h"
#include "base/counts.h"
#include "base/shared.h"
#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "funcapi.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(lsm_stat_indexes);
PG_FUNCTION_INFO_V1(lsm_stat_progress);
PG_FUNCTION_INFO_V1(lsm_stat_reset);

#define STAT_COLUMNS (14 + LSM_READ_COLUMNS)
#define PROGRESS_COLUMNS 8

static uint64
stat_counter(LsmIndexSlot *slot, LsmCounter which)
{
	return pg_atomic_read_u64(&slot->counters[which]);
}

static void
put_time(Datum *value, bool *null, uint64 time)
{
	*value = TimestampTzGetDatum((TimestampTz) time);
	*null = time == 0;
}

/* Pages written for each page that came in: 1 is the page itself. */
static void
put_amplification(Datum *value, bool *null, LsmIndexSlot *slot)
{
	double		flushed = (double) stat_counter(slot, LSM_COUNT_PAGES_FLUSHED);
	double		merged = (double) stat_counter(slot, LSM_COUNT_BLOCKS_WRITTEN);

	*null = flushed == 0;
	*value = Float8GetDatum(*null ? 0 : (flushed + merged) / flushed);
}

/*
 * lsm_stat_indexes(): counters of the indexes of this database that have been
 * written to or read since the server started.  What other sessions have read they
 * add now and then; this one does now.
 */
Datum
lsm_stat_indexes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	lsm_index_publish_all();
	for (int i = 0; lsm_shared != NULL && i < LSM_INDEX_SLOTS; i++)
	{
		LsmIndexSlot *slot = &lsm_shared->indexes[i];
		Datum		values[STAT_COLUMNS];
		bool		nulls[STAT_COLUMNS] = {false};
		Oid			index = lsm_slot_index(slot);
		int			n = 0;

		if (lsm_slot_database(slot) != MyDatabaseId)
			continue;
		values[n++] = ObjectIdGetDatum(index);
		values[n++] = Int64GetDatum(stat_counter(slot, LSM_COUNT_ENTRIES));
		values[n++] = Int64GetDatum(stat_counter(slot, LSM_COUNT_BATCHES));
		values[n++] = Int64GetDatum(stat_counter(slot, LSM_COUNT_PAGES_FLUSHED));
		values[n++] = Int64GetDatum(stat_counter(slot, LSM_COUNT_MERGES));
		values[n++] = Int64GetDatum(stat_counter(slot, LSM_COUNT_BLOCKS_READ) * BLCKSZ);
		values[n++] = Int64GetDatum(stat_counter(slot, LSM_COUNT_BLOCKS_WRITTEN) * BLCKSZ);
		values[n++] = Int64GetDatum(stat_counter(slot, LSM_COUNT_PAGES_COPIED));
		put_amplification(&values[n], &nulls[n], slot);
		n++;
		values[n] = Int32GetDatum(pg_atomic_read_u32(&slot->runs));
		nulls[n] = DatumGetInt32(values[n]) == 0;
		n++;
		values[n++] = Int64GetDatum(pg_atomic_read_u64(&slot->debt_blocks) * BLCKSZ);
		values[n++] = Float8GetDatum(stat_counter(slot, LSM_COUNT_THROTTLED_US) / 1000.0);
		for (int k = 0; k < LSM_READ_COLUMNS; k++)
			values[n++] = Int64GetDatum(stat_counter(slot, lsm_read_columns[k].counter));
		put_time(&values[n], &nulls[n], pg_atomic_read_u64(&slot->last_merge));
		n++;
		put_time(&values[n], &nulls[n], pg_atomic_read_u64(&slot->reset_time));
		n++;
		Assert(n == STAT_COLUMNS && n == result->setDesc->natts);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

static const char *
phase_name(LsmClaim *claim)
{
	switch ((LsmPhase) pg_atomic_read_u32(&claim->phase))
	{
		case LSM_PHASE_WAITING:
			return "between steps";
		case LSM_PHASE_SEALING:
			return "sealing write buffer";
		case LSM_PHASE_MERGING:
			return "merging";
	}
	return "unknown";
}

/* Whose work is everybody's to see?  One's own, and all for who reads statistics. */
static bool
may_see(Oid database, Oid index)
{
	if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
		return true;
	return database == MyDatabaseId &&
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index)) &&
		lsm_owns_relation(index, GetUserId());
}

/* A process that has claimed an index, if there is one. */
static void
put_progress(ReturnSetInfo *result, LsmIndexSlot *slot, LsmClaim *claim)
{
	Datum		values[PROGRESS_COLUMNS];
	bool		nulls[PROGRESS_COLUMNS] = {false};
	Oid			database;
	Oid			index;
	int			pid;

	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	pid = claim->pid;
	database = lsm_slot_database(slot);
	index = lsm_slot_index(slot);
	LWLockRelease(lsm_shared->lock);
	if (pid == 0 || BackendPidGetProc(pid) == NULL)
		return;
	values[0] = Int32GetDatum(pid);
	values[1] = ObjectIdGetDatum(database);
	if (may_see(database, index))
	{
		values[2] = ObjectIdGetDatum(index);
		values[3] = CStringGetTextDatum(phase_name(claim));
		values[4] = Int32GetDatum(pg_atomic_read_u32(&claim->level));
		values[5] = Int32GetDatum(pg_atomic_read_u32(&claim->inputs));
		values[6] = Int64GetDatum(pg_atomic_read_u32(&claim->blocks_total));
		values[7] = Int64GetDatum(pg_atomic_read_u32(&claim->blocks_done));
	}
	else
		memset(&nulls[2], true, PROGRESS_COLUMNS - 2);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * lsm_stat_progress(): the processes that compact an index, in all databases:
 * background workers and callers of lsm_compact.
 */
Datum
lsm_stat_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; lsm_shared != NULL && i < LSM_INDEX_SLOTS; i++)
	{
		for (int k = 0; k < LSM_INDEX_CLAIMS; k++)
			put_progress(result, &lsm_shared->indexes[i], &lsm_shared->indexes[i].claims[k]);
	}
	return (Datum) 0;
}

/*
 * lsm_stat_reset(): counters of this database's indexes back to zero.  The SQL
 * script keeps it from the public.
 */
Datum
lsm_stat_reset(PG_FUNCTION_ARGS)
{
	for (int i = 0; lsm_shared != NULL && i < LSM_INDEX_SLOTS; i++)
	{
		if (lsm_slot_database(&lsm_shared->indexes[i]) == MyDatabaseId)
			lsm_stats_reset(&lsm_shared->indexes[i]);
	}
	PG_RETURN_VOID();
}
