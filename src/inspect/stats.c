/*
 * stats.c
 *	  The functions behind the views pg_stat_lsm_indexes, whose columns are in
 *	  base/counter_list.h, and pg_stat_progress_lsm_compaction.  All data is in shared memory.
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

#define PROGRESS_COLUMNS 8

/* --- the counters ----------------------------------------------------------- */

static Datum
stat_count(LsmIndexSlot *slot, LsmCounter counter, bool *null)
{
	return Int64GetDatum(pg_atomic_read_u64(&slot->counters[counter]));
}

static Datum
stat_blocks(LsmIndexSlot *slot, LsmCounter counter, bool *null)
{
	return Int64GetDatum(pg_atomic_read_u64(&slot->counters[counter]) * BLCKSZ);
}

static Datum
stat_microseconds(LsmIndexSlot *slot, LsmCounter counter, bool *null)
{
	return Float8GetDatum(pg_atomic_read_u64(&slot->counters[counter]) / 1000.0);
}

static Datum
stat_write_amplification(LsmIndexSlot *slot, LsmCounter unused, bool *null)
{
	double		flushed = (double) pg_atomic_read_u64(&slot->counters[LSM_COUNT_PAGES_FLUSHED]);
	double		merged = (double) pg_atomic_read_u64(&slot->counters[LSM_COUNT_BLOCKS_WRITTEN]);

	*null = flushed == 0;
	return Float8GetDatum(*null ? 0 : (flushed + merged) / flushed);
}

static Datum
stat_runs(LsmIndexSlot *slot, LsmCounter unused, bool *null)
{
	uint32		runs = pg_atomic_read_u32(&slot->runs);

	*null = runs == 0;
	return Int32GetDatum(runs);
}

static Datum
stat_debt_bytes(LsmIndexSlot *slot, LsmCounter unused, bool *null)
{
	return Int64GetDatum(pg_atomic_read_u64(&slot->debt_blocks) * BLCKSZ);
}

static Datum
stat_last_compaction(LsmIndexSlot *slot, LsmCounter unused, bool *null)
{
	TimestampTz time = (TimestampTz) pg_atomic_read_u64(&slot->last_merge);

	*null = time == 0;
	return TimestampTzGetDatum(time);
}

static Datum
stat_stats_reset(LsmIndexSlot *slot, LsmCounter unused, bool *null)
{
	TimestampTz time = (TimestampTz) pg_atomic_read_u64(&slot->reset_time);

	*null = time == 0;
	return TimestampTzGetDatum(time);
}

/* A column of lsm_stat_indexes(). */
typedef struct StatColumn
{
	Datum		(*value) (LsmIndexSlot *slot, LsmCounter counter, bool *null);
	LsmCounter	counter;
} StatColumn;

static const StatColumn stat_columns[] =
{
#define LSM_COUNTER(id, column, kind, description) {stat_##kind, LSM_COUNT_##id},
#define LSM_READ_COUNTER(field, column, label, description) {stat_count, LSM_COUNT_READ_##field},
#define LSM_STATE(column, kind, description) {stat_##column, 0},
#include "base/counter_list.h"
};

/*
 * lsm_stat_indexes(): returns a row for each index of this database that was written or read since
 * the server started.  Includes all reads of this session; other sessions publish theirs from
 * time to time.
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
		Datum		values[1 + lengthof(stat_columns)];
		bool		nulls[1 + lengthof(stat_columns)] = {false};

		if (lsm_slot_database(slot) != MyDatabaseId)
			continue;
		Assert(result->setDesc->natts == lengthof(values));
		values[0] = ObjectIdGetDatum(lsm_slot_index(slot));
		for (int k = 0; k < lengthof(stat_columns); k++)
			values[1 + k] = stat_columns[k].value(slot, stat_columns[k].counter, &nulls[1 + k]);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * lsm_stat_reset(): resets the counters of this database's indexes.  The SQL script revokes the
 * function from PUBLIC.
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

/* --- progress --------------------------------------------------------------- */

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

/* May this user see the details?  Owners see their own indexes, pg_read_all_stats sees all. */
static bool
may_see(Oid database, Oid index)
{
	if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
		return true;
	return database == MyDatabaseId &&
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index)) &&
		lsm_owns_relation(index, GetUserId());
}

/* Add a row for a claim, if a live process holds it. */
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
 * lsm_stat_progress(): returns a row for each background worker and each caller of lsm_compact that
 * works on an index, in all databases.
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
