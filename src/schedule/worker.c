/*
 * worker.c
 *	  A background worker: merges the indexes of one database.
 *
 * It takes the index whose next job is the smallest, works on it for a tenth
 * of a second in a transaction of its own, and chooses again.  Between any two
 * steps no lock of a merge is held, so that VACUUM comes to its turn; between
 * any two transactions no lock is held at all.  It ends when
 * there was nothing to do for a second, and as soon as somebody wants the
 * database for himself.
 *
 * Several workers may be at one index: each takes a job that no other has.
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/compat.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/shared.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
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

/* How long an index is left alone, at first and at most. */
#define BUSY_MS 20				/* others are at all of its jobs, or VACUUM at its end */
#define REFUSED_MS 200			/* it cannot be locked, or not be seen */
#define MOST_REFUSED_MS 30000
#define FAILED_MS 1000
#define MOST_FAILED_MS 300000
#define DATABASE_WANTED_MS 5000

typedef enum WorkResult
{
	WORK_DONE,					/* nothing is left */
	WORK_MORE,
	WORK_BUSY,					/* locks of merges */
	WORK_LOCKED,				/* relation locks */
	WORK_GONE,
	WORK_FAILED,				/* with an error */
	WORK_LEAVE					/* the database is wanted */
} WorkResult;

static LsmWorkerSlot *my_slot;
static uint32 my_generation;
static uint32 wait_event;

/* For the error context: no catalogs can be read then. */
static char index_name[3 * NAMEDATALEN];

static void
describe_work(void *arg)
{
	if (index_name[0] != '\0')
		errcontext("background compaction of index \"%s\"", index_name);
}

static void
detach(int code, Datum arg)
{
	lsm_slot_release();
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	my_slot->database = InvalidOid;
	my_slot->pid = 0;
	my_slot->latch = NULL;
	/* Something may have come up while we made up our mind. */
	if (lsm_shared->launcher_latch != NULL)
		SetLatch(lsm_shared->launcher_latch);
	LWLockRelease(lsm_shared->lock);
}

/* Which database?  InvalidOid: the place is not ours any more. */
static Oid
find_database(Datum arg)
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

static bool
attach(void)
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
		before_shmem_exit(detach, (Datum) 0);
	return ours;
}

/*
 * Whatever is set for the database or the role must not get into our way.  Nobody
 * waits for our commits, and we must not wait for a standby: locks are held.
 */
static void
settle_settings(void)
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
		/* Not all versions have all of them. */
		if (GetConfigOption(settings[i][0], true, false) != NULL)
			SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
	}
}

/*
 * Is the database to be dropped, moved, renamed or copied?  Who does that
 * holds this lock and waits, not for long, until nobody is connected.  We take
 * it for as long as connecting to a database does: to the transaction's end.
 *
 * We ask before we connect, too, since connecting waits for the lock, and fails with
 * an error in the server's log if the database is dropped meanwhile.  Then there is no
 * transaction yet, and the lock is given back by hand; only who comes in the instant
 * between that and connecting still makes us wait.
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

/* The next index for us, claimed, or NULL; then *when is the time to look again. */
static LsmIndexSlot *
choose(TimestampTz *when)
{
	LsmIndexSlot *best = NULL;
	uint64		best_size = 0;
	TimestampTz now = GetCurrentTimestamp();

	*when = now + IDLE_EXIT_MS * INT64CONST(1000);
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		LsmIndexSlot *slot = &lsm_shared->indexes[i];
		uint64		size = PG_UINT64_MAX;
		int64		waited_s;

		if (lsm_slot_database(slot) != MyDatabaseId || !lsm_request_due(slot, now, when))
			continue;
		/* Who waits gets smaller by and by, or he might wait for ever. */
		if (slot->asked_since == 0)
			slot->asked_since = now;
		waited_s = (now - slot->asked_since) / USECS_PER_SEC;
		if (pg_atomic_read_u32(&slot->asked) != 0)
			size = pg_atomic_read_u64(&slot->next_blocks);
		size >>= Min(waited_s, 63);
		if (best == NULL || size < best_size)
		{
			best = slot;
			best_size = size;
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

/* The first step of a job that readers have paid for.  The others are due then. */
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
 * A step of a job that is due, the smallest levels first, or of one that readers
 * have paid for, or, when the index is idle, of one that is worth it.
 */
static WorkResult
work_once(LsmTarget *target, LsmVersion *version, bool idle)
{
	LsmPickPlace place = {0};
	int			fanout = lsm_fanout(target->rel);
	LsmJob		job;
	bool		any = false;

	lsm_version_update(target->index, version, NULL);
	/* The manifest is about to be full: what gives room soonest comes first. */
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

/* Has nobody written to the index for the time that makes it idle? */
static bool
slot_is_idle(LsmIndexSlot *slot)
{
	return lsm_idle_delay_ms >= 0 &&
		TimestampDifferenceExceeds((TimestampTz) pg_atomic_read_u64(&slot->last_write),
								   GetCurrentTimestamp(), lsm_idle_delay_ms);
}

/* A transaction's work on an index. */
static WorkResult
work(LsmIndexSlot *slot)
{
	LsmTarget	target;
	LsmOpenResult opened;
	WorkResult	result;
	TimestampTz begin = GetCurrentTimestamp();
	LsmVersion *version;
	bool		idle;
	bool		any;

	lsm_request_begin(slot);
	idle = slot_is_idle(slot);

	if (database_is_wanted(MyDatabaseId))
		return WORK_LEAVE;
	opened = lsm_target_open(&target, lsm_slot_index(slot), false);
	if (opened != LSM_OPENED)
		return opened == LSM_OPEN_LOCKED ? WORK_LOCKED : WORK_GONE;
	snprintf(index_name, sizeof(index_name), "%s.%s",
			 get_namespace_name(RelationGetNamespace(target.rel)),
			 RelationGetRelationName(target.rel));
	pgstat_report_activity(STATE_RUNNING, psprintf("compaction of index %s", index_name));
	if (idle)
		lsm_seal_spare_pages(target.index);
	version = lsm_version_read(target.index);
	/* Readers need not wait until a large merge is over: they have a turn each time. */
	(void) step_for_readers(&target, version, &any);
	do
	{
		result = work_once(&target, version, idle);
		CHECK_FOR_INTERRUPTS();
	} while (result == WORK_MORE &&
			 !TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), TRANSACTION_MS));
	pfree(version);
	lsm_request_note(target.index, result != WORK_DONE || !idle);
	lsm_target_close(&target);
	return result;
}

/* Twice as long each time. */
static int64
backoff(int *tries, int64 first_ms, int64 most_ms)
{
	int64		wait_ms = Min(first_ms << Min(*tries, 20), most_ms);

	(*tries)++;
	return wait_ms;
}

/* What follows from the result. */
static void
conclude(LsmIndexSlot *slot, WorkResult result)
{
	int64		wait_ms = 0;

	switch (result)
	{
		case WORK_DONE:
			slot->failures = 0;
			/* FALLTHROUGH */
		case WORK_MORE:
			slot->refusals = 0;
			pg_atomic_write_u32(&slot->helpless, 0);
			break;
		case WORK_BUSY:
			wait_ms = BUSY_MS;
			break;
		case WORK_LOCKED:
		case WORK_GONE:
			wait_ms = backoff(&slot->refusals, REFUSED_MS, MOST_REFUSED_MS);
			pg_atomic_write_u32(&slot->helpless, 1);
			break;
		case WORK_FAILED:
			wait_ms = backoff(&slot->failures, FAILED_MS, MOST_FAILED_MS);
			break;
		case WORK_LEAVE:
			break;
	}
	/* What is gone is perhaps only not there yet: then its writers ask again. */
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
	if (result == WORK_LEAVE)
		lsm_shared_postpone_database(MyDatabaseId, DATABASE_WANTED_MS);
}

/*
 * Work on a claimed index.  An error is logged, and the index left alone for
 * some time; all others go on.
 */
static WorkResult
work_guarded(LsmIndexSlot *slot, MemoryContext context)
{
	volatile WorkResult result = WORK_FAILED;
	ErrorContextCallback callback = {.previous = error_context_stack, .callback = describe_work};

	PG_TRY();
	{
		error_context_stack = &callback;
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		result = work(slot);
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
	conclude(slot, result);
	lsm_slot_release();
	index_name[0] = '\0';
	MemoryContextSwitchTo(context);
	MemoryContextReset(context);
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, "");
	return result;
}

static void
main_loop(MemoryContext context)
{
	TimestampTz idle_since = GetCurrentTimestamp();

	for (;;)
	{
		LsmIndexSlot *slot;
		TimestampTz when;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (lsm_max_workers == 0)
			return;
		slot = choose(&when);
		if (slot != NULL)
		{
			if (work_guarded(slot, context) == WORK_LEAVE)
				return;
			idle_since = GetCurrentTimestamp();
			continue;
		}
		if (TimestampDifferenceExceeds(idle_since, GetCurrentTimestamp(), IDLE_EXIT_MS))
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 TimestampDifferenceMilliseconds(GetCurrentTimestamp(), when) + 1,
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
	database = find_database(arg);
	if (!OidIsValid(database))
		proc_exit(0);
	if (database_is_wanted(database))
	{
		lsm_shared_postpone_database(database, DATABASE_WANTED_MS);
		/* Its end gives the place back. */
		(void) attach();
		proc_exit(0);
	}
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	if (!attach())
		proc_exit(0);
	settle_settings();
	wait_event = lsm_wait_event("LsmWorkerMain");
	pgstat_report_activity(STATE_IDLE, NULL);

	context = AllocSetContextCreate(TopMemoryContext, "pg_lsm worker", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	main_loop(context);
	proc_exit(0);
}
