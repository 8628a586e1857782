/*
 * worker.c
 *	  A background worker: merges the indexes of one database.
 *
 * The worker chooses the index with the smallest job, or one that has waited longer
 * (lsm_rule_rank).  It visits the index for about a tenth of a second in a transaction of its own,
 * and chooses again.  It holds no merge lock between two steps, so that VACUUM gets its turn.  It
 * holds no lock at all between two transactions.  It exits after a second without work, when
 * the database has more workers than a lowered pg_lsm.max_workers allows, or when a command needs
 * exclusive use of the database.
 *
 * Several workers may merge one index, each with its own job.
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/claims.h"
#include "base/clock.h"
#include "base/compat.h"
#include "base/index_slots.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/shared.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "portability/instr_time.h"
#include "schedule/rules.h"
#include "schedule/schedule.h"
#include "storage/buffers.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/procsignal.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define TRANSACTION_MS 100
#define IDLE_EXIT_MS 1000

/* How long workers stay away from an index, initially and at most. */
#define BUSY_MS 20				/* others have locked all due jobs, or VACUUM is about to end */
#define REFUSED_MS 200			/* the index cannot be locked or seen */
#define MOST_REFUSED_MS 30000
#define FAILED_MS 1000			/* the visit has raised an error */
#define MOST_FAILED_MS LSM_LONGEST_POSTPONE_MS
#define DATABASE_WANTED_MS 5000

/* Refusals are logged only after this many, which takes about a minute. */
#define LOG_REFUSALS 9

/* Waits between attempts to truncate a file, and how many attempts: about an hour in total. */
#define TRUNCATE_MS 1000
#define MOST_TRUNCATE_MS 60000
#define TRUNCATE_TRIES 70

/* How a visit to an index ends. */
typedef enum WorkResult
{
	WORK_DONE,					/* nothing is left to do */
	WORK_MORE,					/* there is more to do */
	WORK_BUSY,					/* no step is possible: others hold the merge lock or job locks */
	WORK_LOCKED,				/* another process holds a relation lock */
	WORK_GONE,					/* the index is dropped, not ready, or not visible yet */
	WORK_FAILED,				/* the visit raised an error */
	WORK_LEAVE					/* a command needs exclusive use of the database */
} WorkResult;

static LsmWorkerSlot *my_slot;
static uint32 my_generation;
static uint32 wait_event;

/* The name for the error context, whose callback cannot read catalogs. */
static char index_name[3 * NAMEDATALEN];

static void
describe_work(void *arg)
{
	if (index_name[0] != '\0')
		errcontext("background compaction of index \"%s\"", index_name);
}

static void
detach_worker(int code, Datum arg)
{
	lsm_slot_release();
	/*
	 * From 19 on, a command that needs exclusive use of the database terminates its workers.  So may
	 * users, and fatal errors.
	 */
	if (code != 0)
		lsm_slots_postpone_database(MyDatabaseId, DATABASE_WANTED_MS);
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	my_slot->database = InvalidOid;
	my_slot->pid = 0;
	my_slot->latch = NULL;
	/* Work may have arrived since this worker decided to exit. */
	if (lsm_shared->launcher_latch != NULL)
		SetLatch(lsm_shared->launcher_latch);
	LWLockRelease(lsm_shared->lock);
}

/* Returns the database to work in, or InvalidOid if the slot is no longer ours. */
static Oid
find_worker_database(Datum arg)
{
	Oid			database = InvalidOid;

	memcpy(&my_generation, MyBgworkerEntry->bgw_extra, sizeof(my_generation));
	my_slot = &lsm_shared->workers[DatumGetInt32(arg)];
	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	if (my_slot->generation == my_generation && my_slot->pid == 0)
		database = my_slot->database;
	LWLockRelease(lsm_shared->lock);
	return database;
}

/* Enter this process into its slot.  Returns false if the slot is no longer ours. */
static bool
attach_worker(void)
{
	bool		ours;

	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	ours = my_slot->generation == my_generation && my_slot->pid == 0;
	if (ours)
	{
		my_slot->pid = MyProcPid;
		my_slot->latch = MyLatch;
	}
	LWLockRelease(lsm_shared->lock);
	if (ours)
		before_shmem_exit(detach_worker, (Datum) 0);
	return ours;
}

/*
 * Override settings of the database or the role that would disturb the worker.  synchronous_commit
 * is off because nobody waits for our commits, and we must not wait for a standby while we hold
 * locks.
 */
static void
override_settings(void)
{
	static const char *const settings[][2] = {
		{"application_name", "pg_lsm worker"},
		{"search_path", ""},
		{"statement_timeout", "0"},
		{"lock_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"synchronous_commit", "off"},
		{"transaction_timeout", "0"},
		{"zero_damaged_pages", "off"},
	};

	for (int i = 0; i < lengthof(settings); i++)
	{
		/* Not every version has all of these settings. */
		if (GetConfigOption(settings[i][0], true, false) != NULL)
			SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
	}
}

/*
 * Does a command want to drop, move, rename or copy the database?  Such a command holds a
 * conflicting lock on the database and waits a short time for all connections to end.  We keep our
 * lock until the end of the transaction, as connecting to a database does.
 *
 * We also check before we connect.  Connecting waits for the lock, and logs an error if the
 * database is dropped in the meantime.  Before we connect there is no transaction, so we release
 * the lock explicitly.  A command that arrives between this check and the connection still makes us
 * wait.
 */
static bool
database_is_wanted(Oid database)
{
	LOCKTAG		tag;
	bool		by_hand = !IsTransactionState();

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
	if (LockAcquire(&tag, RowExclusiveLock, by_hand, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	if (by_hand)
		LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

/*
 * Choose and claim the next index.  Returns NULL if none is due, and sets *when to the time to look
 * again.
 */
static LsmIndexSlot *
choose_next_index(TimestampTz *when)
{
	LsmIndexSlot *best = NULL;
	uint64		best_rank = 0;
	TimestampTz now = GetCurrentTimestamp();

	*when = now + IDLE_EXIT_MS * LSM_US_PER_MS;
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		LsmIndexSlot *slot = &lsm_shared->indexes[i];
		uint64		blocks = PG_UINT64_MAX;
		uint64		rank;

		if (lsm_slot_database(slot) != MyDatabaseId || !lsm_request_due(slot, now, when))
			continue;
		if (slot->asked_since == 0 || lsm_clock_was_set_back(slot->asked_since, now))
			slot->asked_since = now;
		if (pg_atomic_read_u32(&slot->asked) != 0)
			blocks = pg_atomic_read_u64(&slot->next_blocks);
		rank = lsm_rule_rank(blocks, lsm_clock_elapsed_us(slot->asked_since, now));
		if (best == NULL || rank < best_rank)
		{
			best = slot;
			best_rank = rank;
		}
	}
	if (best != NULL && !lsm_slot_claim_locked(best, false))
		best = NULL;
	if (best != NULL)
		best->asked_since = 0;
	my_slot->idle = best == NULL;
	LWLockRelease(lsm_shared->lock);
	return best;
}

/*
 * Take the first step of a job that readers have paid for.  After the first step, the job is due
 * anyway.  Sets *any if there is such a job.  Returns whether the step was possible.
 */
static bool
step_for_readers(LsmTarget *target, const LsmVersion *version, bool *any)
{
	LsmJob		job;

	if (!lsm_request_for_readers(target->index, version, &job))
		return false;
	*any = true;
	return lsm_job_step(target->index, target->heap, &job, 0, false) != LSM_STEP_BUSY;
}

/*
 * Take one step of a job.  If the manifest is nearly full, the job that makes room soonest comes
 * first.  Then come jobs that are due, lowest levels first.  Then comes a job that readers have paid
 * for.  Last, if the index is idle, comes a job that is worthwhile for an idle index.
 */
static WorkResult
take_next_step(LsmTarget *target, LsmVersion *version, bool idle)
{
	LsmPickPlace place = {0};
	int			fanout = lsm_fanout(target->rel);
	LsmJob		job;
	bool		any = false;

	lsm_version_update(target->index, version, NULL);
	/* If the manifest is nearly full, first take the job that makes room soonest. */
	if (version->run_count + 2 * LSM_RUNS_RESERVE >= LSM_MAX_RUNS &&
		lsm_pick_any(version->runs, version->run_count, fanout, &job) &&
		lsm_job_step(target->index, target->heap, &job, 0, false) != LSM_STEP_BUSY)
		return WORK_MORE;
	while (lsm_pick_job(version->runs, version->run_count, fanout, &place, &job))
	{
		if (lsm_job_step(target->index, target->heap, &job, 0, false) != LSM_STEP_BUSY)
			return WORK_MORE;
		any = true;
	}
	if (step_for_readers(target, version, &any))
		return WORK_MORE;
	if (idle && lsm_pick_idle_job(version->runs, version->run_count, fanout, &job))
	{
		if (lsm_job_step(target->index, target->heap, &job, 0, false) != LSM_STEP_BUSY)
			return WORK_MORE;
		any = true;
	}
	return any ? WORK_BUSY : WORK_DONE;
}

/*
 * Truncate the file of an idle index if a parallel VACUUM has asked for that.  That VACUUM has the
 * index open until it ends.  So the worker tries again, after longer and longer waits.
 */
static void
truncate_file(LsmIndexSlot *slot, LsmIndex *index)
{
	uint64		asked = pg_atomic_read_u64(&slot->truncate_at);
	TimestampTz now = GetCurrentTimestamp();
	uint64		next = 0;
	uint32		tries;

	if (asked == 0 || lsm_clock_is_ahead((TimestampTz) asked, now, LSM_LONGEST_POSTPONE_MS))
		return;
	tries = pg_atomic_fetch_add_u32(&slot->truncate_tries, 1);
	if (tries + 1 < TRUNCATE_TRIES)
		next = now + lsm_rule_backoff_ms(tries, TRUNCATE_MS, MOST_TRUNCATE_MS) * LSM_US_PER_MS;

	/*
	 * Note the next attempt first, since this attempt may raise an error.  Keep a new request that
	 * VACUUM has made in the meantime.
	 */
	if (pg_atomic_compare_exchange_u64(&slot->truncate_at, &asked, next) && lsm_truncate(index))
		(void) pg_atomic_compare_exchange_u64(&slot->truncate_at, &next, 0);
}

/* Have `ms` milliseconds passed on a monotonic clock? */
static bool
has_passed(instr_time since, int ms)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, since);
	return INSTR_TIME_GET_MILLISEC(now) >= ms;
}

/* Note the name for messages.  The index may be gone. */
static void
note_index_name(Oid index)
{
	char	   *name = get_rel_name(index);
	char	   *schema = name == NULL ? NULL : get_namespace_name(get_rel_namespace(index));

	if (schema != NULL)
		snprintf(index_name, sizeof(index_name), "%s.%s", schema, name);
}

/* Visit an index: take steps until TRANSACTION_MS have passed, or no step is left or possible. */
static WorkResult
visit_index(LsmIndexSlot *slot)
{
	LsmTarget	target;
	LsmOpenResult opened;
	WorkResult	result;
	LsmVersion *version;
	instr_time	begin;
	bool		idle;
	bool		any;

	INSTR_TIME_SET_CURRENT(begin);
	lsm_request_begin(slot);
	idle = lsm_rule_is_idle((TimestampTz) pg_atomic_read_u64(&slot->last_write),
							GetCurrentTimestamp(), lsm_idle_delay_ms);

	if (database_is_wanted(MyDatabaseId))
		return WORK_LEAVE;
	note_index_name(lsm_slot_index(slot));
	opened = lsm_target_open(&target, lsm_slot_index(slot), false);
	if (opened != LSM_OPENED)
		return opened == LSM_OPEN_LOCKED ? WORK_LOCKED : WORK_GONE;
	pgstat_report_activity(STATE_RUNNING, psprintf("compaction of index %s", index_name));
	if (idle)
		lsm_seal_spare_pages(target.index);
	version = lsm_version_read(target.index);
	/* Begin each visit with a step for readers, so that they need not wait for a large merge. */
	(void) step_for_readers(&target, version, &any);
	do
	{
		result = take_next_step(&target, version, idle);
		CHECK_FOR_INTERRUPTS();
	} while (result == WORK_MORE && !has_passed(begin, TRANSACTION_MS));
	pfree(version);
	if (result == WORK_DONE && idle)
		truncate_file(slot, target.index);
	lsm_request_note(target.index, result != WORK_DONE || !idle);
	lsm_target_close(&target);
	return result;
}

/* Log, at most once a minute for each index, that workers cannot merge it. */
static void
log_trouble(LsmIndexSlot *slot, WorkResult result, int64 wait_ms)
{
	if (!lsm_clock_log_is_due(&slot->trouble_logged, GetCurrentTimestamp()))
		return;
	ereport(LOG,
			(errmsg("could not merge index \"%s\"", index_name),
			 result == WORK_FAILED ?
			 errdetail("Attempts that have failed since a worker last finished all merges: %d.", slot->failures) :
			 errdetail("For a minute or longer, other sessions have held locks on it or on its table."),
			 errhint("Remove the cause. A worker tries again in %d s.",
					 (int) ((wait_ms + 999) / 1000))));
}

/* Note the result of a visit in the index's slot. */
static void
conclude_visit(LsmIndexSlot *slot, WorkResult result)
{
	int64		wait_ms = 0;

	switch (result)
	{
		case WORK_DONE:
		case WORK_MORE:
			if (result == WORK_DONE)
				slot->failures = 0;
			slot->refusals = 0;
			pg_atomic_write_u32(&slot->helpless, 0);
			break;
		case WORK_BUSY:
			wait_ms = BUSY_MS;
			break;
		case WORK_LOCKED:
		case WORK_GONE:
			wait_ms = lsm_rule_backoff_ms(slot->refusals++, REFUSED_MS, MOST_REFUSED_MS);
			pg_atomic_write_u32(&slot->helpless, 1);
			break;
		case WORK_FAILED:
			wait_ms = lsm_rule_backoff_ms(slot->failures++, FAILED_MS, MOST_FAILED_MS);
			break;
		case WORK_LEAVE:
			break;
	}
	/* An index that seems gone may just not be visible yet.  If so, its writers ask again. */
	if (result == WORK_GONE)
		pg_atomic_write_u32(&slot->idle_check, 0);
	else if (result != WORK_DONE)
	{
		pg_atomic_write_u32(&slot->idle_check, 1);
		pg_atomic_write_u32(&slot->read_check, 1);
	}
	if (result == WORK_BUSY || result == WORK_LOCKED || result == WORK_FAILED)
		pg_atomic_write_u32(&slot->asked, 1);
	lsm_slot_postpone(slot, wait_ms);
	if (result == WORK_FAILED || (result == WORK_LOCKED && slot->refusals >= LOG_REFUSALS))
		log_trouble(slot, result, wait_ms);
	if (result == WORK_LEAVE)
		lsm_slots_postpone_database(MyDatabaseId, DATABASE_WANTED_MS);
}

/*
 * Visit a claimed index.  If the visit raises an error, the worker logs the error and continues
 * with other indexes.  All workers then stay away from this index for some time.
 */
static WorkResult
visit_index_guarded(LsmIndexSlot *slot, MemoryContext context)
{
	volatile WorkResult result = WORK_FAILED;
	ErrorContextCallback callback = {.previous = error_context_stack, .callback = describe_work};

	PG_TRY();
	{
		error_context_stack = &callback;
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		result = visit_index(slot);
		CommitTransactionCommand();
		error_context_stack = callback.previous;
	}
	PG_CATCH();
	{
		HOLD_INTERRUPTS();
		EmitErrorReport();
		AbortCurrentTransaction();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		result = WORK_FAILED;
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	conclude_visit(slot, result);
	lsm_slot_release();
	index_name[0] = '\0';
	MemoryContextSwitchTo(context);
	MemoryContextReset(context);
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, "");
	return result;
}

static int
count_worker_slots(Oid database)
{
	int			count = 0;

	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	for (int i = 0; i < LSM_WORKER_SLOTS; i++)
		count += lsm_shared->workers[i].database == database;
	LWLockRelease(lsm_shared->lock);
	return count;
}

/* Visit indexes until the worker has been idle for IDLE_EXIT_MS or must leave. */
static void
worker_loop(MemoryContext context)
{
	instr_time	idle_since;

	INSTR_TIME_SET_CURRENT(idle_since);
	for (;;)
	{
		LsmIndexSlot *slot;
		TimestampTz when;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			/* If more workers exit than necessary, the launcher starts new ones. */
			if (count_worker_slots(MyDatabaseId) > lsm_max_workers)
				return;
		}
		if (lsm_max_workers == 0)
			return;
		slot = choose_next_index(&when);
		if (slot != NULL)
		{
			if (visit_index_guarded(slot, context) == WORK_LEAVE)
				return;
			INSTR_TIME_SET_CURRENT(idle_since);
			continue;
		}
		if (has_passed(idle_since, IDLE_EXIT_MS))
			return;
		/* Visits in quick succession may not have reported all their counts. */
		pgstat_report_stat(true);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 lsm_clock_timeout_ms(GetCurrentTimestamp(), when, IDLE_EXIT_MS),
						 wait_event);
		ResetLatch(MyLatch);
	}
}

void
lsm_worker_main(Datum arg)
{
	Oid			database;
	MemoryContext context;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	database = find_worker_database(arg);
	if (!OidIsValid(database))
		proc_exit(0);
	if (database_is_wanted(database))
	{
		lsm_slots_postpone_database(database, DATABASE_WANTED_MS);
		/* Attach so that the exit frees the slot. */
		(void) attach_worker();
		proc_exit(0);
	}
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	if (!attach_worker())
		proc_exit(0);
	override_settings();
	wait_event = lsm_wait_event("LsmWorkerMain");
	pgstat_report_activity(STATE_IDLE, NULL);

	context = AllocSetContextCreate(TopMemoryContext, "pg_lsm worker", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	worker_loop(context);
	proc_exit(0);
}
