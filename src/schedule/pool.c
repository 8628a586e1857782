/*
 * pool.c
 *	  Finds the running background workers, and wakes one of them or the launcher.
 *
 * launcher.c starts the workers; worker.c has their main loop.
 */
#include "postgres.h"

#include "base/shared.h"
#include "schedule/schedule.h"
#include "storage/latch.h"

/* Called when a database has work.  Wakes one of its idle workers, or else the launcher. */
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

/* Does the database have a worker?  Only a hint, since nothing is locked. */
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
