/*
 * claims.c
 *	  Claims: record which processes compact an index, and their progress.
 *
 * A claim does not lock the index, because merges have locks of their own.  It only shows which
 * process is working.  A process has at most one claim.  A process that exits releases its claim.
 */
#include "postgres.h"

#include "base/claims.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/procarray.h"

/* This process's claim, or NULL. */
static LsmIndexSlot *my_slot = NULL;
static LsmClaim *my_claim = NULL;
static bool my_claim_is_exclusive = false;

static void
release_claim_at_exit(int code, Datum arg)
{
	lsm_slot_release();
}

/* Returns how many processes have claimed the index.  Caller holds lsm_shared->lock. */
int
lsm_slot_claims(LsmIndexSlot *slot)
{
	int			n = 0;

	for (int i = 0; i < LSM_INDEX_CLAIMS; i++)
		n += slot->claims[i].pid != 0;
	return n;
}

/* Drop the claims of processes that have died without releasing them. */
static void
drop_dead_claims(LsmIndexSlot *slot)
{
	for (int i = 0; i < LSM_INDEX_CLAIMS; i++)
	{
		if (slot->claims[i].pid != 0 && BackendPidGetProc(slot->claims[i].pid) == NULL)
			slot->claims[i].pid = 0;
	}
	if (lsm_slot_claims(slot) == 0)
		slot->exclusive = false;
}

/*
 * Claim an index for this process.  An exclusive claim keeps other processes from claiming the
 * index until this process releases its claim.  Returns false if another process has claimed the
 * index exclusively, or LSM_INDEX_CLAIMS processes have claimed it.
 *
 * REQUIRES: the caller holds lsm_shared->lock exclusively, and this process has no claim.
 */
bool
lsm_slot_claim_locked(LsmIndexSlot *slot, bool exclusive)
{
	static bool registered = false;

	Assert(my_claim == NULL);
	drop_dead_claims(slot);
	if (slot->exclusive)
		return false;
	for (int i = 0; i < LSM_INDEX_CLAIMS && my_claim == NULL; i++)
	{
		if (slot->claims[i].pid == 0)
			my_claim = &slot->claims[i];
	}
	if (my_claim == NULL)
		return false;
	if (!registered)
	{
		before_shmem_exit(release_claim_at_exit, (Datum) 0);
		registered = true;
	}
	my_slot = slot;
	my_claim->pid = MyProcPid;
	my_claim_is_exclusive = exclusive;
	slot->exclusive |= exclusive;
	lsm_progress(slot, LSM_PHASE_WAITING, 0, 0, 0, 0);
	return true;
}

/*
 * Claim an index exclusively, unless this process has claimed it already.  Returns whether this
 * process has a claim on the index.  If the process has claimed a different index, it keeps that
 * claim, and the function returns false.  This happens if a comparison function calls lsm_compact.
 */
bool
lsm_slot_claim(LsmIndexSlot *slot)
{
	bool		claimed;

	if (slot == NULL || my_claim != NULL)
		return slot != NULL && slot == my_slot;
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	claimed = lsm_slot_claim_locked(slot, true);
	LWLockRelease(lsm_shared->lock);
	return claimed;
}

/* Has this process claimed an index? */
bool
lsm_slot_has_claim(void)
{
	return my_claim != NULL;
}

/* Release this process's claim, if it has one. */
void
lsm_slot_release(void)
{
	if (my_claim == NULL)
		return;
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	/* If the index or its database was dropped, another index may have the slot. */
	if (my_claim->pid == MyProcPid)
	{
		my_claim->pid = 0;
		if (my_claim_is_exclusive)
		{
			my_slot->exclusive = false;
			/* Requests that arrived in the meantime become due now. */
			if (lsm_shared->launcher_latch != NULL)
				SetLatch(lsm_shared->launcher_latch);
		}
	}
	my_claim = NULL;
	my_slot = NULL;
	LWLockRelease(lsm_shared->lock);
}

/* Report the progress of this process.  Does nothing unless the process has claimed the index. */
void
lsm_progress(LsmIndexSlot *slot, LsmPhase phase, uint32 level, uint32 inputs, uint32 total,
			 uint32 done)
{
	if (slot == NULL || slot != my_slot)
		return;
	pg_atomic_write_u32(&my_claim->phase, phase);
	pg_atomic_write_u32(&my_claim->level, level);
	pg_atomic_write_u32(&my_claim->inputs, inputs);
	pg_atomic_write_u32(&my_claim->blocks_total, total);
	pg_atomic_write_u32(&my_claim->blocks_done, done);
}
