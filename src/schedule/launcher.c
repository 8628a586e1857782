/*
 * launcher.c
 *	  The launcher: starts background workers for databases that ask for them.
 *
 * The launcher connects to no database and reads shared memory only.  It starts a worker when more
 * indexes of a database wait than the database has idle workers, up to pg_lsm.max_workers.  If the
 * launcher cannot register a worker, it tries again later.  In the meantime it lets the writers
 * merge, if the database has no other worker.
 *
 * Locks: the lock of shared memory.
 */
#include "postgres.h"

#include "base/clock.h"
#include "base/compat.h"
#include "base/limits.h"
#include "base/shared.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "schedule/rules.h"
#include "schedule/schedule.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/procsignal.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#define RESTART_SECONDS 5
#define LONGEST_WAIT_MS 60000
#define FIRST_RETRY_MS 1000
#define MOST_RETRY_MS 60000

/* How many indexes of a database wait, and its workers. */
typedef struct Demand
{
	Oid			database;
	int			waiting;
	int			idle;			/* idle workers, including those being started */
	int			workers;
} Demand;

/* The handles of the workers that this launcher has started, by slot number. */
static BackgroundWorkerHandle *handles[LSM_WORKER_SLOTS];

/* Consecutive failed attempts to start a worker, and when to try again. */
static int	failures = 0;
static TimestampTz retry_at = 0;

/* Fill in the fields that the launcher and its workers have in common. */
static void
init_background_process(BackgroundWorker *worker, const char *function, const char *type)
{
	memset(worker, 0, sizeof(BackgroundWorker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION |
		LSM_BGWORKER_INTERRUPTIBLE;
	/* A standby has nothing to merge. */
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	strlcpy(worker->bgw_library_name, "pg_lsm", BGW_MAXLEN);
	strlcpy(worker->bgw_function_name, function, BGW_MAXLEN);
	strlcpy(worker->bgw_type, type, BGW_MAXLEN);
}

/* Register the launcher.  Called in _PG_init, while libraries are preloaded. */
void
lsm_launcher_init(void)
{
	BackgroundWorker worker;

	/* No worker may change an index while pg_upgrade runs. */
	if (IsBinaryUpgrade)
		return;
	init_background_process(&worker, "lsm_launcher_main", "pg_lsm launcher");
	worker.bgw_restart_time = RESTART_SECONDS;
	strlcpy(worker.bgw_name, "pg_lsm launcher", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

static void
launcher_exit(int code, Datum arg)
{
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	lsm_shared->launcher_pid = 0;
	lsm_shared->launcher_latch = NULL;
	LWLockRelease(lsm_shared->lock);
}

/*
 * Called if no worker can be started for the database, or, with `forget`, if no worker can connect
 * to it.  Lets the writers of its indexes merge.  They keep asking for workers.  Caller holds the
 * lock exclusively.
 */
static void
leave_database_alone(Oid database, bool forget)
{
	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		LsmIndexSlot *slot = &lsm_shared->indexes[i];

		if (lsm_slot_database(slot) != database)
			continue;
		pg_atomic_write_u32(&slot->helpless, 1);
		if (forget)
		{
			pg_atomic_write_u32(&slot->asked, 0);
			pg_atomic_write_u32(&slot->idle_check, 0);
			pg_atomic_write_u32(&slot->read_check, 0);
			slot->not_before = GetCurrentTimestamp() + MOST_RETRY_MS * LSM_US_PER_MS;
		}
	}
}

/*
 * Free the slots of workers that have ended.  If a worker never connected, the database is gone or
 * refuses connections.
 */
static void
reap_workers(void)
{
	for (int i = 0; i < LSM_WORKER_SLOTS; i++)
	{
		LsmWorkerSlot *slot = &lsm_shared->workers[i];
		pid_t		pid;

		if (handles[i] == NULL || GetBackgroundWorkerPid(handles[i], &pid) != BGWH_STOPPED)
			continue;
		pfree(handles[i]);
		handles[i] = NULL;
		LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
		if (OidIsValid(slot->database) && slot->pid == 0)
			leave_database_alone(slot->database, true);
		else
			retry_at = 0;		/* a process is free */
		slot->database = InvalidOid;
		LWLockRelease(lsm_shared->lock);
	}
}

static Demand *
find_demand(Demand *demands, int *count, Oid database)
{
	for (int i = 0; i < *count; i++)
	{
		if (demands[i].database == database)
			return &demands[i];
	}
	if (*count == LSM_WORKER_SLOTS)
		return NULL;
	memset(&demands[*count], 0, sizeof(Demand));
	demands[*count].database = database;
	return &demands[(*count)++];
}

/*
 * Collect the databases that have work or workers.  Sets *when to the earlier of its old value and
 * the time at which more work will be due.
 */
static int
collect_demands(Demand *demands, TimestampTz now, TimestampTz *when)
{
	int			count = 0;
	Demand	   *demand;

	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		LsmIndexSlot *slot = &lsm_shared->indexes[i];

		if (!lsm_request_due(slot, now, when))
			continue;
		demand = find_demand(demands, &count, lsm_slot_database(slot));
		if (demand != NULL)
			demand->waiting++;
	}
	for (int i = 0; i < LSM_WORKER_SLOTS; i++)
	{
		LsmWorkerSlot *slot = &lsm_shared->workers[i];

		if (!OidIsValid(slot->database))
			continue;
		demand = find_demand(demands, &count, slot->database);
		if (demand == NULL)
			continue;
		demand->workers++;
		if (slot->pid == 0 || slot->idle)
			demand->idle++;
		/* Wake the worker.  Otherwise it sleeps until work that it knows about is due. */
		if (slot->idle && slot->latch != NULL && demand->waiting > 0)
			SetLatch(slot->latch);
	}
	LWLockRelease(lsm_shared->lock);
	return count;
}

/* Reserve a worker slot.  Returns its number, or -1 if all are in use. */
static int
reserve_worker_slot(Oid database, uint32 *generation)
{
	int			found = -1;

	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LSM_WORKER_SLOTS && found < 0; i++)
	{
		LsmWorkerSlot *slot = &lsm_shared->workers[i];

		/* A slot that still has a handle must be reaped first. */
		if (OidIsValid(slot->database) || handles[i] != NULL)
			continue;
		slot->database = database;
		slot->pid = 0;
		slot->idle = false;
		slot->latch = NULL;
		*generation = ++slot->generation;
		found = i;
	}
	LWLockRelease(lsm_shared->lock);
	return found;
}

/* Log, at most once a minute, that a worker could not be started. */
static void
log_missing_worker(Oid database, const char *detail, const char *hint)
{
	static TimestampTz logged = 0;

	if (!lsm_clock_log_is_due(&logged, GetCurrentTimestamp()))
		return;
	ereport(LOG,
			(errmsg("could not start a pg_lsm worker for the database with OID %u", database),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

/* Start a worker for a database.  Returns false if this is not possible now. */
static bool
start_worker(Oid database)
{
	BackgroundWorker worker;
	uint32		generation;
	int			number = reserve_worker_slot(database, &generation);

	if (number < 0)
	{
		log_missing_worker(database, "All worker slots of pg_lsm are in use.",
						   "Reduce pg_lsm.max_workers, so that more databases can have workers.");
		return false;
	}
	init_background_process(&worker, "lsm_worker_main", "pg_lsm worker");
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(worker.bgw_name, BGW_MAXLEN, "pg_lsm worker for database %u", database);
	worker.bgw_main_arg = Int32GetDatum(number);
	memcpy(worker.bgw_extra, &generation, sizeof(generation));
	worker.bgw_notify_pid = MyProcPid;
	if (RegisterDynamicBackgroundWorker(&worker, &handles[number]))
		return true;

	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	lsm_shared->workers[number].database = InvalidOid;
	LWLockRelease(lsm_shared->lock);
	log_missing_worker(database, "All background worker processes are in use.",
					   "Increase max_worker_processes.");
	return false;
}

/*
 * Start the workers that a database lacks.  Returns false if one could not be started.  If the
 * database then has no workers, its writers must merge.
 */
static bool
start_missing_workers(Demand *demand)
{
	int			missing = lsm_rule_missing_workers(demand->waiting, demand->idle, demand->workers,
												   lsm_max_workers);

	while (missing-- > 0)
	{
		if (start_worker(demand->database))
		{
			demand->workers++;
			continue;
		}
		if (demand->workers == 0)
		{
			LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
			leave_database_alone(demand->database, false);
			LWLockRelease(lsm_shared->lock);
		}
		return false;
	}
	return true;
}

/* Start the workers that are needed.  Returns when to look again. */
static TimestampTz
start_all_workers(void)
{
	Demand		demands[LSM_WORKER_SLOTS];
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz when = now + LONGEST_WAIT_MS * LSM_US_PER_MS;
	int			count;
	bool		failed = false;

	reap_workers();
	if (lsm_max_workers == 0)
		return when;
	count = collect_demands(demands, now, &when);
	if (lsm_clock_is_ahead(retry_at, now, MOST_RETRY_MS))
		return Min(when, retry_at);
	for (int i = 0; i < count; i++)
		failed |= !start_missing_workers(&demands[i]);
	if (!failed)
	{
		failures = 0;
		return when;
	}
	retry_at = now + lsm_rule_backoff_ms(failures++, FIRST_RETRY_MS, MOST_RETRY_MS) * LSM_US_PER_MS;
	return Min(when, retry_at);
}

/* Become the launcher.  An earlier launcher may have left slots whose workers never connected. */
static void
take_over_pool(void)
{
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LSM_WORKER_SLOTS; i++)
	{
		LsmWorkerSlot *slot = &lsm_shared->workers[i];

		if (slot->pid == 0)
		{
			slot->database = InvalidOid;
			slot->generation++;
		}
	}
	lsm_shared->launcher_pid = MyProcPid;
	lsm_shared->launcher_latch = MyLatch;
	LWLockRelease(lsm_shared->lock);
}

void
lsm_launcher_main(Datum arg)
{
	uint32		wait_event;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	/* Connect without a database, to be listed in pg_stat_activity. */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	wait_event = lsm_wait_event("LsmLauncherMain");
	before_shmem_exit(launcher_exit, (Datum) 0);
	take_over_pool();

	while (!ShutdownRequestPending)
	{
		TimestampTz when;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		when = start_all_workers();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 lsm_clock_timeout_ms(GetCurrentTimestamp(), when, LONGEST_WAIT_MS),
						 wait_event);
		ResetLatch(MyLatch);
	}
	/* A nonzero code makes the postmaster restart the launcher. */
	proc_exit(1);
}
