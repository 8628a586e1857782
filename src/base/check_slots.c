/*
 * check_slots.c
 *	  Slots in shared memory that show the progress of lsm_check.
 *
 * A process has at most one slot, from the beginning of a check to its end.  A process that exits
 * during a check returns its slot.
 */
#include "postgres.h"

#include "base/check_slots.h"
#include "miscadmin.h"
#include "storage/ipc.h"

static LsmCheckSlot *my_slot = NULL;

static void
return_slot_at_exit(int code, Datum arg)
{
	lsm_check_slot_return(my_slot);
}

/* Returns a free slot, or NULL.  Caller holds lsm_shared->lock. */
static LsmCheckSlot *
find_free_slot(void)
{
	for (int i = 0; i < LSM_CHECK_SLOTS; i++)
	{
		LsmCheckSlot *slot = &lsm_shared->checks[i];

		if (slot->pid == 0)
			return slot;
	}
	return NULL;
}

/*
 * Take a slot for the check of an index.  Returns NULL if the check cannot be shown: there is no
 * shared memory, all slots are in use, or a comparison function calls lsm_check during a check.
 */
LsmCheckSlot *
lsm_check_slot_take(Oid index)
{
	static bool registered = false;
	LsmCheckSlot *slot;

	if (lsm_shared == NULL || my_slot != NULL)
		return NULL;
	if (!registered)
	{
		before_shmem_exit(return_slot_at_exit, (Datum) 0);
		registered = true;
	}
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	slot = find_free_slot();
	if (slot != NULL)
	{
		slot->pid = MyProcPid;
		slot->database = MyDatabaseId;
		slot->index = index;
		pg_atomic_write_u32(&slot->phase, LSM_CHECK_MANIFEST);
		pg_atomic_write_u32(&slot->blocks_total, 0);
		pg_atomic_write_u32(&slot->blocks_done, 0);
		pg_atomic_write_u32(&slot->heap_total, 0);
		pg_atomic_write_u32(&slot->heap_done, 0);
		my_slot = slot;
	}
	LWLockRelease(lsm_shared->lock);
	return slot;
}

/* Return a slot.  Does nothing if `slot` is NULL. */
void
lsm_check_slot_return(LsmCheckSlot *slot)
{
	if (slot == NULL)
		return;
	Assert(slot == my_slot);
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	slot->pid = 0;
	LWLockRelease(lsm_shared->lock);
	my_slot = NULL;
}
