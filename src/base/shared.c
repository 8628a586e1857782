/*
 * shared.c
 *	  Requests and initializes shared memory.
 */
#include "postgres.h"

#include "base/shared.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#define TRANCHE "pg_lsm"

LsmShared  *lsm_shared = NULL;

/* Request the memory and the lock.  Called while the server starts. */
void
lsm_shared_request(void)
{
	RequestAddinShmemSpace(MAXALIGN(sizeof(LsmShared)));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

/* Set an atomic variable.  is_first: initialize the variable, because this is its first use. */
static void
set_u64(pg_atomic_uint64 *field, uint64 value, bool is_first)
{
	if (is_first)
		pg_atomic_init_u64(field, value);
	else
		pg_atomic_write_u64(field, value);
}

static void
set_u32(pg_atomic_uint32 *field, uint32 value, bool is_first)
{
	if (is_first)
		pg_atomic_init_u32(field, value);
	else
		pg_atomic_write_u32(field, value);
}

static void
clear_claim(LsmClaim *claim, bool is_first)
{
	claim->pid = 0;
	set_u32(&claim->phase, LSM_PHASE_WAITING, is_first);
	set_u32(&claim->level, 0, is_first);
	set_u32(&claim->inputs, 0, is_first);
	set_u32(&claim->blocks_total, 0, is_first);
	set_u32(&claim->blocks_done, 0, is_first);
}

/* Clear a slot and set its key.  Sets the key last, so that nobody finds an uncleared slot. */
static void
clear_slot(LsmIndexSlot *slot, uint64 key, bool is_first)
{
#ifndef LSM_HAS_STATS_KINDS
	for (int i = 0; i < LSM_COUNTERS; i++)
		set_u64(&slot->counters[i], 0, is_first);
	set_u64(&slot->last_merge, 0, is_first);
	set_u64(&slot->reset_time, 0, is_first);
#endif

	set_u32(&slot->runs, 0, is_first);
	set_u64(&slot->debt_blocks, 0, is_first);
	set_u64(&slot->next_blocks, 0, is_first);
	set_u32(&slot->jobs, 0, is_first);
	set_u64(&slot->last_write, 0, is_first);
	set_u32(&slot->asked, 0, is_first);
	set_u32(&slot->idle_check, 0, is_first);
	set_u64(&slot->truncate_at, 0, is_first);
	set_u32(&slot->truncate_tries, 0, is_first);
	set_u32(&slot->helpless, 0, is_first);

	set_u64(&slot->reads, 0, is_first);
	set_u64(&slot->reads_wanted, LSM_READS_PER_LOOK, is_first);
	set_u32(&slot->read_check, 0, is_first);

	set_u32(&slot->restless, 0, is_first);

	set_u64(&slot->late_since, 0, is_first);
	set_u64(&slot->late_us, 0, is_first);

	slot->failures = 0;
	slot->refusals = 0;
	slot->trouble_logged = 0;

	for (int i = 0; i < LSM_INDEX_CLAIMS; i++)
		clear_claim(&slot->claims[i], is_first);
	slot->exclusive = false;
	slot->not_before = 0;
	slot->asked_since = 0;
	memset(&slot->history_of, 0, sizeof(slot->history_of));
	slot->history.count = 0;
	set_u64(&slot->key, key, is_first);
}

static void
init_check(LsmCheckSlot *check)
{
	pg_atomic_init_u32(&check->phase, LSM_CHECK_MANIFEST);
	pg_atomic_init_u32(&check->blocks_total, 0);
	pg_atomic_init_u32(&check->blocks_done, 0);
	pg_atomic_init_u32(&check->heap_total, 0);
	pg_atomic_init_u32(&check->heap_done, 0);
}

/* Give a slot to an index (0: to none).  Caller holds the lock exclusively. */
void
lsm_shared_assign_slot(LsmIndexSlot *slot, uint64 key)
{
	clear_slot(slot, key, false);
}

/* Attach to the memory; the first process initializes it. */
void
lsm_shared_startup(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	lsm_shared = ShmemInitStruct("pg_lsm", sizeof(LsmShared), &found);
	if (!found)
	{
		memset(lsm_shared, 0, sizeof(LsmShared));
		lsm_shared->lock = &GetNamedLWLockTranche(TRANCHE)->lock;
		if (!pg_strong_random(&lsm_shared->token, sizeof(lsm_shared->token)))
			lsm_shared->token = (uint32) (PgStartTime ^ (PgStartTime >> 32));
		lsm_shared->token |= 1;
		pg_atomic_init_u64(&lsm_shared->full_until, 0);
		for (int i = 0; i < LSM_CHECK_SLOTS; i++)
			init_check(&lsm_shared->checks[i]);
		for (int i = 0; i < LSM_INDEX_SLOTS; i++)
			clear_slot(&lsm_shared->indexes[i], 0, true);
	}
	LWLockRelease(AddinShmemInitLock);
}
