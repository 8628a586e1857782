/*
 * shared.c
 *	  The table of indexes in shared memory.
 *
 * An index gets a slot when something of it is counted for the first time.
 * Temporary indexes get none: nobody else can merge or see them.  When the
 * table is full, the slot that was not written to for the longest time, at
 * least ten minutes, goes to the newcomer; is there none, the newcomer does
 * without.  Each process remembers the slots of all the indexes that it works
 * on, and which have none: rows may go to thousands of partitions in turn, and a
 * walk over the table must not be made for each of them.
 *
 * Locks: lsm_shared->lock, an LWLock, is held for a walk over the table at
 * most.  It is the last in the lock order: nothing of ours is locked under it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/shared.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#define TRANCHE "pg_lsm"
#define EVICT_AFTER_MS (10 * 60 * 1000)
#define RETRY_MS (10 * 1000)	/* who got no slot tries again after that */
#define RETRY_USES 100			/* but looks at the clock only so often */
#define CACHE_MOST 16384

LsmShared  *lsm_shared = NULL;

/* An index that this process has asked for. */
typedef struct CacheEntry
{
	uint64		key;
	LsmIndexSlot *slot;			/* NULL: there was no room */
	TimestampTz retry_at;		/* and then it is tried again */
	int			uses_left;		/* until we look whether it is time for that */
	char		status;			/* the hash table's */
} CacheEntry;

#define SH_PREFIX cache
#define SH_ELEMENT_TYPE CacheEntry
#define SH_KEY_TYPE uint64
#define SH_KEY key
#define SH_HASH_KEY(tb, key) murmurhash32((uint32) (key) ^ (uint32) ((key) >> 32))
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static cache_hash *cache = NULL;
static Oid	dropped_database = InvalidOid;	/* by this transaction */
static LsmIndexSlot *latest = NULL; /* slot that was asked for last */
static LsmIndexSlot *my_slot = NULL;	/* that this process has claimed */
static LsmClaim *my_claim = NULL;
static bool my_claim_exclusive = false;


/* The server asks what is needed of shared memory. */
void
lsm_shared_request(void)
{
	RequestAddinShmemSpace(MAXALIGN(sizeof(LsmShared)));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

static void
clear_slot(LsmIndexSlot *slot, uint64 key)
{
	for (int i = 0; i < LSM_COUNTERS; i++)
		pg_atomic_write_u64(&slot->counters[i], 0);
	pg_atomic_write_u64(&slot->reset_time, 0);
	pg_atomic_write_u32(&slot->runs, 0);
	pg_atomic_write_u64(&slot->debt_blocks, 0);
	pg_atomic_write_u64(&slot->next_blocks, 0);
	pg_atomic_write_u64(&slot->last_write, 0);
	pg_atomic_write_u64(&slot->last_merge, 0);
	pg_atomic_write_u32(&slot->asked, 0);
	pg_atomic_write_u32(&slot->idle_check, 0);
	pg_atomic_write_u32(&slot->helpless, 0);
	pg_atomic_write_u32(&slot->restless, 0);
	pg_atomic_write_u64(&slot->reads, 0);
	pg_atomic_write_u64(&slot->reads_wanted, LSM_READ_FIRST);
	pg_atomic_write_u32(&slot->read_check, 0);
	memset(&slot->history_of, 0, sizeof(slot->history_of));
	memset(&slot->history, 0, sizeof(slot->history));
	for (int i = 0; i < LSM_INDEX_CLAIMS; i++)
		slot->claims[i].pid = 0;
	slot->exclusive = false;
	pg_atomic_write_u32(&slot->jobs, 0);
	slot->failures = 0;
	slot->refusals = 0;
	slot->not_before = 0;
	slot->asked_since = 0;
	pg_atomic_write_u64(&slot->key, key);
}

static void
init_slot(LsmIndexSlot *slot)
{
	pg_atomic_init_u64(&slot->key, 0);
	for (int i = 0; i < LSM_COUNTERS; i++)
		pg_atomic_init_u64(&slot->counters[i], 0);
	pg_atomic_init_u64(&slot->reset_time, 0);
	pg_atomic_init_u32(&slot->runs, 0);
	pg_atomic_init_u64(&slot->debt_blocks, 0);
	pg_atomic_init_u64(&slot->next_blocks, 0);
	pg_atomic_init_u64(&slot->last_write, 0);
	pg_atomic_init_u64(&slot->last_merge, 0);
	pg_atomic_init_u32(&slot->asked, 0);
	pg_atomic_init_u32(&slot->idle_check, 0);
	pg_atomic_init_u32(&slot->helpless, 0);
	pg_atomic_init_u32(&slot->restless, 0);
	pg_atomic_init_u64(&slot->reads, 0);
	pg_atomic_init_u64(&slot->reads_wanted, 0);
	pg_atomic_init_u32(&slot->read_check, 0);
	pg_atomic_init_u32(&slot->jobs, 0);
	for (int i = 0; i < LSM_INDEX_CLAIMS; i++)
	{
		LsmClaim   *claim = &slot->claims[i];

		pg_atomic_init_u32(&claim->phase, LSM_PHASE_WAITING);
		pg_atomic_init_u32(&claim->level, 0);
		pg_atomic_init_u32(&claim->inputs, 0);
		pg_atomic_init_u32(&claim->blocks_total, 0);
		pg_atomic_init_u32(&claim->blocks_done, 0);
	}
}

/* The server, or a process of it where they are not forked, has shared memory. */
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
		for (int i = 0; i < LSM_INDEX_SLOTS; i++)
			init_slot(&lsm_shared->indexes[i]);
	}
	LWLockRelease(AddinShmemInitLock);
}

static void
forget_database(Oid database)
{
	if (lsm_shared == NULL)
		return;
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		if (lsm_slot_database(&lsm_shared->indexes[i]) == database)
			clear_slot(&lsm_shared->indexes[i], 0);
	}
	LWLockRelease(lsm_shared->lock);
}

/* It is gone with the commit: until then DROP DATABASE may fail. */
static void
forget_dropped(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT && OidIsValid(dropped_database))
		forget_database(dropped_database);
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		dropped_database = InvalidOid;
}

/* A database is being dropped: it leaves nothing to be done. */
void
lsm_shared_drop_database(Oid database)
{
	static bool is_registered = false;

	if (!is_registered)
		RegisterXactCallback(forget_dropped, NULL);
	is_registered = true;
	dropped_database = database;
}

/* The slot to give to a new index, or NULL.  The lock is held exclusively. */
static LsmIndexSlot *
find_victim(void)
{
	LsmIndexSlot *victim = NULL;
	uint64		oldest = (uint64) (GetCurrentTimestamp() - EVICT_AFTER_MS * INT64CONST(1000));

	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		LsmIndexSlot *slot = &lsm_shared->indexes[i];
		uint64		last = pg_atomic_read_u64(&slot->last_write);

		if (pg_atomic_read_u64(&slot->key) == 0)
			return slot;
		if (lsm_slot_claims(slot) == 0 && last < oldest)
		{
			victim = slot;
			oldest = last;
		}
	}
	return victim;
}

static LsmIndexSlot *
find_slot(uint64 key)
{
	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		if (pg_atomic_read_u64(&lsm_shared->indexes[i].key) == key)
			return &lsm_shared->indexes[i];
	}
	return NULL;
}

/*
 * Find the slot of an index, or give it one; NULL: no room.  When there was no
 * room for one, nobody takes the lock exclusively for some time.
 */
static LsmIndexSlot *
find_or_make_slot(uint64 key, TimestampTz now)
{
	LsmIndexSlot *slot;

	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	slot = find_slot(key);
	LWLockRelease(lsm_shared->lock);
	if (slot != NULL || (uint64) now < pg_atomic_read_u64(&lsm_shared->full_until))
		return slot;

	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	slot = find_slot(key);
	if (slot == NULL)
	{
		slot = find_victim();
		if (slot != NULL)
		{
			clear_slot(slot, key);
			pg_atomic_write_u64(&slot->last_write, (uint64) now);
			pg_atomic_write_u64(&slot->reset_time, (uint64) now);
		}
		else
			pg_atomic_write_u64(&lsm_shared->full_until,
								(uint64) now + RETRY_MS * INT64CONST(1000));
	}
	LWLockRelease(lsm_shared->lock);
	return slot;
}

/* lsm_slot_get for an index that is not the one of the last call. */
static LsmIndexSlot *
look_up(uint64 key)
{
	CacheEntry *entry;
	TimestampTz now;
	bool		found;

	if (cache == NULL)
		cache = cache_create(TopMemoryContext, 64, NULL);
	entry = cache_lookup(cache, key);
	if (entry != NULL && entry->slot != NULL && pg_atomic_read_u64(&entry->slot->key) == key)
		return entry->slot;
	if (entry != NULL && entry->slot == NULL && entry->uses_left-- > 0)
		return NULL;

	now = GetCurrentTimestamp();
	if (entry == NULL)
	{
		if (cache->members >= CACHE_MOST)
			cache_reset(cache);
		entry = cache_insert(cache, key, &found);
		entry->slot = NULL;
		entry->retry_at = 0;
	}
	entry->uses_left = RETRY_USES;
	if (entry->slot != NULL || now >= entry->retry_at)
	{
		entry->slot = find_or_make_slot(key, now);
		entry->retry_at = now + RETRY_MS * INT64CONST(1000);
	}
	return entry->slot;
}

/* The slot of an index, made if need be, or NULL if it has none. */
LsmIndexSlot *
lsm_slot_get(Relation index)
{
	return RelationUsesLocalBuffers(index) ? NULL : lsm_slot_of(RelationGetRelid(index));
}

/* The same of one that is not temporary. */
LsmIndexSlot *
lsm_slot_of(Oid index)
{
	uint64		key = (uint64) MyDatabaseId << 32 | index;
	LsmIndexSlot *slot;

	if (lsm_shared == NULL)
		return NULL;
	if (likely(latest != NULL && pg_atomic_read_u64(&latest->key) == key))
		return latest;
	slot = look_up(key);
	if (slot != NULL)
		latest = slot;
	return slot;
}

void
lsm_stats_add(Relation index, LsmCounter counter, uint64 n)
{
	LsmIndexSlot *slot = lsm_slot_get(index);

	if (slot != NULL)
		pg_atomic_fetch_add_u64(&slot->counters[counter], n);
}

void
lsm_slot_reset_counters(LsmIndexSlot *slot)
{
	for (int i = 0; i < LSM_COUNTERS; i++)
		pg_atomic_write_u64(&slot->counters[i], 0);
	pg_atomic_write_u64(&slot->reset_time, (uint64) GetCurrentTimestamp());
}

static void
release_at_exit(int code, Datum arg)
{
	lsm_slot_release();
}

/* Processes that have claimed the index.  The caller holds the lock. */
int
lsm_slot_claims(LsmIndexSlot *slot)
{
	int			n = 0;

	for (int i = 0; i < LSM_INDEX_CLAIMS; i++)
		n += slot->claims[i].pid != 0;
	return n;
}

/* Claims of processes that have ended without a word are void. */
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
 * Claim an index for this process, one of several, or so that no worker takes it
 * up any more (exclusive).  It is no lock on the index, merges have locks of
 * their own; it tells who is at it.  The caller holds the lock exclusively, and
 * has released any claim that the process had.
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
		before_shmem_exit(release_at_exit, (Datum) 0);
		registered = true;
	}
	my_slot = slot;
	my_claim->pid = MyProcPid;
	my_claim_exclusive = exclusive;
	slot->exclusive |= exclusive;
	lsm_progress(slot, LSM_PHASE_WAITING, 0, 0, 0, 0);
	return true;
}

/*
 * The same for a caller that wants to be alone with it, and may have it already.  Not
 * while the process has claimed another one, for which it calls a comparison function
 * that has brought us here.
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
	/* The slot may have gone to another index, when its database was dropped. */
	if (my_claim->pid == MyProcPid)
	{
		my_claim->pid = 0;
		if (my_claim_exclusive)
		{
			my_slot->exclusive = false;
			/* What was asked meanwhile did not count as due. */
			if (lsm_shared->launcher_latch != NULL)
				SetLatch(lsm_shared->launcher_latch);
		}
	}
	my_claim = NULL;
	my_slot = NULL;
	LWLockRelease(lsm_shared->lock);
}

/* No worker is to take the index up for that long. */
void
lsm_slot_postpone(LsmIndexSlot *slot, int64 wait_ms)
{
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	slot->not_before = wait_ms == 0 ? 0 : GetCurrentTimestamp() + wait_ms * 1000;
	LWLockRelease(lsm_shared->lock);
}

/* The same for all indexes of a database. */
void
lsm_shared_postpone_database(Oid database, int64 wait_ms)
{
	TimestampTz until = GetCurrentTimestamp() + wait_ms * 1000;

	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		LsmIndexSlot *slot = &lsm_shared->indexes[i];

		if (lsm_slot_database(slot) == database)
			slot->not_before = Max(slot->not_before, until);
	}
	LWLockRelease(lsm_shared->lock);
}

/* How far this process is; only who has claimed the index tells. */
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
