/*
 * pool.c
 *	  The launcher: starts background workers for databases that ask for them.
 *
 * It has no database connection and looks at shared memory only.  A worker is
 * started for a database when indexes wait there that no idle worker of it can
 * take, up to pg_lsm.max_workers.  Where none can be registered the writers are
 * told to help themselves, and it is tried again later.
 *
 * Locks: the shared table's.
 */
#include "postgres.h"

#include "base/compat.h"
#include "base/limits.h"
#include "base/shared.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
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

/* Indexes of a database that wait, and its workers. */
typedef struct Demand
{
	Oid			database;
	int			waiting;
	int			idle;			/* workers, those being started included */
	int			workers;
} Demand;

/* What became of the workers that this launcher has started. */
static BackgroundWorkerHandle *handles[LSM_WORKER_SLOTS];
static TimestampTz retry_at = 0;
static int	retry_ms = 0;

/* In _PG_init, while libraries are preloaded. */
void
lsm_pool_init(void)
{
	BackgroundWorker worker;

	/* Nothing may change while pg_upgrade looks. */
	if (IsBinaryUpgrade)
		return;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	/* Not on a standby: there is nothing to write. */
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = RESTART_SECONDS;
	strlcpy(worker.bgw_library_name, "pg_lsm", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "lsm_launcher_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "pg_lsm launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "pg_lsm launcher", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

/* There is work in a database: wake one who can do it. */
void
lsm_pool_wake(Oid database)
{
	Latch	   *latch;

	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	latch = lsm_shared->launcher_latch;
	for (int i = 0; i < LSM_WORKER_SLOTS; i++)
	{
		LsmWorkerSlot *slot = &lsm_shared->workers[i];

		if (slot->database == database && slot->pid != 0 && slot->idle)
		{
			latch = slot->latch;
			break;
		}
	}
	if (latch != NULL)
		SetLatch(latch);
	LWLockRelease(lsm_shared->lock);
}

/* Has the database a worker now?  A hint: the slots are read without a lock. */
bool
lsm_pool_has_worker(Oid database)
{
	for (int i = 0; i < LSM_WORKER_SLOTS; i++)
	{
		const LsmWorkerSlot *slot = &lsm_shared->workers[i];

		if (slot->pid != 0 && slot->database == database)
			return true;
	}
	return false;
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
 * Nobody could be started for this database, or nobody could connect to it:
 * its writers are on their own.  They go on asking.  The lock is held.
 */
static void
leave_alone(Oid database, bool forget)
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
			slot->not_before = GetCurrentTimestamp() + MOST_RETRY_MS * INT64CONST(1000);
		}
	}
}

/*
 * Clear up after workers that have ended without doing so.  One that never
 * connected met a database that is gone or does not let anyone in.
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
			leave_alone(slot->database, true);
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

/* Who needs workers?  *when becomes the time at which somebody may. */
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
		/* It sleeps until something it knows of is due. */
		if (slot->idle && slot->latch != NULL && demand->waiting > 0)
			SetLatch(slot->latch);
	}
	LWLockRelease(lsm_shared->lock);
	return count;
}

/* Reserve a worker slot; -1 if there is none. */
static int
reserve_slot(Oid database, uint32 *generation)
{
	int			found = -1;

	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LSM_WORKER_SLOTS && found < 0; i++)
	{
		LsmWorkerSlot *slot = &lsm_shared->workers[i];

		/* With a handle left it is to be reaped first. */
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

/* Start a worker for a database. */
static bool
start_worker(Oid database)
{
	BackgroundWorker worker;
	uint32		generation;
	int			number = reserve_slot(database, &generation);

	if (number < 0)
		return false;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "pg_lsm", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "lsm_worker_main", BGW_MAXLEN);
	snprintf(worker.bgw_name, BGW_MAXLEN, "pg_lsm worker for database %u", database);
	strlcpy(worker.bgw_type, "pg_lsm worker", BGW_MAXLEN);
	worker.bgw_main_arg = Int32GetDatum(number);
	memcpy(worker.bgw_extra, &generation, sizeof(generation));
	worker.bgw_notify_pid = MyProcPid;
	if (RegisterDynamicBackgroundWorker(&worker, &handles[number]))
		return true;

	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	lsm_shared->workers[number].database = InvalidOid;
	LWLockRelease(lsm_shared->lock);
	return false;
}

/* Start what can be started.  Returns when to look again. */
static TimestampTz
start_workers(void)
{
	Demand		demands[LSM_WORKER_SLOTS];
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz when = now + LONGEST_WAIT_MS * INT64CONST(1000);
	int			count;
	bool		failed = false;

	reap_workers();
	if (lsm_max_workers == 0)
		return when;
	count = collect_demands(demands, now, &when);
	if (now < retry_at)
		return Min(when, retry_at);
	for (int i = 0; i < count; i++)
	{
		Demand	   *demand = &demands[i];
		int			missing = Min(demand->waiting - demand->idle,
								  lsm_max_workers - demand->workers);

		while (missing-- > 0 && !failed)
		{
			failed = !start_worker(demand->database);
			if (!failed)
				demand->workers++;
		}
		if (failed && demand->workers == 0)
		{
			LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
			leave_alone(demand->database, false);
			LWLockRelease(lsm_shared->lock);
		}
	}
	if (!failed)
	{
		retry_ms = 0;
		return when;
	}
	retry_ms = retry_ms == 0 ? FIRST_RETRY_MS : Min(2 * retry_ms, MOST_RETRY_MS);
	retry_at = now + retry_ms * INT64CONST(1000);
	return Min(when, retry_at);
}

/* A launcher before us may have left slots whose workers never came. */
static void
take_over(void)
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
	/* To no database.  Without this it would not be in pg_stat_activity. */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	wait_event = lsm_wait_event("LsmLauncherMain");
	before_shmem_exit(launcher_exit, (Datum) 0);
	take_over();

	while (!ShutdownRequestPending)
	{
		TimestampTz when;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		when = start_workers();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 TimestampDifferenceMilliseconds(GetCurrentTimestamp(), when) + 1,
						 wait_event);
		ResetLatch(MyLatch);
	}
	/* Not 0: who only wants to be rid of the process gets another one. */
	proc_exit(1);
}
