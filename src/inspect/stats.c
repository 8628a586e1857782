/*
 * stats.c
 *	  Functions behind the views pg_stat_lsm_indexes (base/counter_list.h lists its columns) and
 *	  pg_stat_progress_lsm_compaction, and behind lsm_health.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "base/compat.h"
#include "base/counts.h"
#include "base/index_slots.h"
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

PG_FUNCTION_INFO_V1(lsm_stat_index);
PG_FUNCTION_INFO_V1(lsm_stat_merging);
PG_FUNCTION_INFO_V1(lsm_stat_progress);
PG_FUNCTION_INFO_V1(lsm_stat_reset);

/* Columns of lsm_stat_merging(). */
#define MERGING_COLUMNS 6

/* --- the counters ----------------------------------------------------------- */

/* An index in the view: its counts, and its slot or NULL. */
typedef struct StatIndex
{
	LsmCounts	counts;
	LsmIndexSlot *slot;
} StatIndex;

static Datum
stat_count(const StatIndex *index, LsmCounter counter, bool *null)
{
	return Int64GetDatum(index->counts.values[counter]);
}

static Datum
stat_blocks(const StatIndex *index, LsmCounter counter, bool *null)
{
	return Int64GetDatum(index->counts.values[counter] * BLCKSZ);
}

static Datum
stat_microseconds(const StatIndex *index, LsmCounter counter, bool *null)
{
	return Float8GetDatum(index->counts.values[counter] / 1000.0);
}

static Datum
stat_write_amplification(const StatIndex *index, LsmCounter unused, bool *null)
{
	double		flushed = (double) index->counts.values[LSM_COUNT_PAGES_FLUSHED];
	double		merged = (double) index->counts.values[LSM_COUNT_BLOCKS_WRITTEN];

	*null = flushed == 0;
	return Float8GetDatum(*null ? 0 : (flushed + merged) / flushed);
}

static Datum
stat_runs(const StatIndex *index, LsmCounter unused, bool *null)
{
	uint32		runs = index->slot == NULL ? 0 : pg_atomic_read_u32(&index->slot->runs);

	*null = runs == 0;
	return Int32GetDatum(runs);
}

static Datum
stat_debt_bytes(const StatIndex *index, LsmCounter unused, bool *null)
{
	uint64		blocks = index->slot == NULL ? 0 : pg_atomic_read_u64(&index->slot->debt_blocks);

	return Int64GetDatum(blocks * BLCKSZ);
}

static Datum
stat_last_compaction(const StatIndex *index, LsmCounter unused, bool *null)
{
	*null = index->counts.last_merge == 0;
	return TimestampTzGetDatum(index->counts.last_merge);
}

static Datum
stat_stats_reset(const StatIndex *index, LsmCounter unused, bool *null)
{
	*null = index->counts.reset_time == 0;
	return TimestampTzGetDatum(index->counts.reset_time);
}

/* A column of lsm_stat_index(). */
typedef struct StatColumn
{
	Datum		(*value) (const StatIndex *index, LsmCounter counter, bool *null);
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
 * lsm_stat_index(index): returns the counts of an index of this database.  Includes all reads of
 * this session; other sessions publish their reads from time to time.
 */
Datum
lsm_stat_index(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	StatIndex	index;
	TupleDesc	desc;
	Datum		values[lengthof(stat_columns)];
	bool		nulls[lengthof(stat_columns)] = {false};

	desc = lsm_row_type(fcinfo, lengthof(values));
	lsm_index_publish(oid);
	lsm_stats_get(oid, &index.counts);
	index.slot = lsm_slot_find(oid);
	for (int i = 0; i < lengthof(stat_columns); i++)
		values[i] = stat_columns[i].value(&index, stat_columns[i].counter, &nulls[i]);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

static int
count_running_workers(Oid database)
{
	int			count = 0;

	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	for (int i = 0; i < LSM_WORKER_SLOTS; i++)
		count += lsm_shared->workers[i].pid != 0 && lsm_shared->workers[i].database == database;
	LWLockRelease(lsm_shared->lock);
	return count;
}

/*
 * lsm_stat_merging(index): returns the state of merging in an index of this database.  All columns
 * are null if the library is not preloaded.  The columns about an index without a slot are 0.
 */
Datum
lsm_stat_merging(PG_FUNCTION_ARGS)
{
	LsmIndexSlot *slot = lsm_slot_find(PG_GETARG_OID(0));
	TimestampTz now = GetCurrentTimestamp();
	TupleDesc	desc;
	Datum		values[MERGING_COLUMNS] = {0};
	bool		nulls[MERGING_COLUMNS] = {false};

	desc = lsm_row_type(fcinfo, MERGING_COLUMNS);
	if (lsm_shared == NULL)
		memset(nulls, true, sizeof(nulls));
	else
	{
		values[0] = BoolGetDatum(lsm_shared->launcher_pid != 0);
		values[1] = Int32GetDatum(count_running_workers(MyDatabaseId));
	}
	if (slot != NULL)
	{
		values[2] = Int32GetDatum(pg_atomic_read_u32(&slot->jobs));
		values[3] = Int32GetDatum(slot->failures);
		values[4] = Int32GetDatum(slot->refusals);
		values[5] = Float8GetDatum(lsm_slot_late_us(slot, now) / 1000.0);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/*
 * lsm_stat_reset(): resets the counters of this database's indexes.  The SQL script revokes the
 * function from PUBLIC.
 */
Datum
lsm_stat_reset(PG_FUNCTION_ARGS)
{
	/* Otherwise this session would publish its earlier counts after the reset. */
	lsm_index_publish_all();
	lsm_stats_reset_database();
	PG_RETURN_VOID();
}

/* --- progress --------------------------------------------------------------- */

static const char *
phase_name_of_merge(LsmClaim *claim)
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

/*
 * Add a row about a process to a progress view, if the process is alive.  The row has the process,
 * the database and the index, and then the details.
 */
void
lsm_stats_put_progress(ReturnSetInfo *result, int pid, Oid database, Oid index,
					   const Datum details[LSM_PROGRESS_DETAILS])
{
	Datum		values[LSM_PROGRESS_COLUMNS];
	bool		nulls[LSM_PROGRESS_COLUMNS] = {false};

	if (BackendPidGetProc(pid) == NULL)
		return;
	values[0] = Int32GetDatum(pid);
	values[1] = ObjectIdGetDatum(database);
	values[2] = ObjectIdGetDatum(index);
	memcpy(&values[3], details, LSM_PROGRESS_DETAILS * sizeof(Datum));
	if (!may_see(database, index))
		memset(&nulls[2], true, lengthof(nulls) - 2);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
put_claim(ReturnSetInfo *result, LsmIndexSlot *slot, LsmClaim *claim)
{
	Datum		details[LSM_PROGRESS_DETAILS];
	Oid			database;
	Oid			index;
	int			pid;

	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	pid = claim->pid;
	database = lsm_slot_database(slot);
	index = lsm_slot_index(slot);
	LWLockRelease(lsm_shared->lock);
	if (pid == 0)
		return;
	details[0] = CStringGetTextDatum(phase_name_of_merge(claim));
	details[1] = Int32GetDatum(pg_atomic_read_u32(&claim->level));
	details[2] = Int32GetDatum(pg_atomic_read_u32(&claim->inputs));
	details[3] = Int64GetDatum(pg_atomic_read_u32(&claim->blocks_total));
	details[4] = Int64GetDatum(pg_atomic_read_u32(&claim->blocks_done));
	lsm_stats_put_progress(result, pid, database, index, details);
}

/*
 * lsm_stat_progress(): returns a row for each background worker and each caller of lsm_compact that
 * works on an index, in all databases.
 */
Datum
lsm_stat_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	lsm_init_set(fcinfo, LSM_PROGRESS_COLUMNS);
	for (int i = 0; lsm_shared != NULL && i < LSM_INDEX_SLOTS; i++)
	{
		for (int k = 0; k < LSM_INDEX_CLAIMS; k++)
			put_claim(result, &lsm_shared->indexes[i], &lsm_shared->indexes[i].claims[k]);
	}
	return (Datum) 0;
}
