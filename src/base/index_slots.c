/*
 * index_slots.c
 *	  The table of indexes in shared memory.
 *
 * An index gets a slot when something about the index is first noted in shared memory: reads,
 * seals, merges or, before 18, any count.  Temporary indexes get no slot, since no other process
 * can see or merge them.  When the table is full, a new index takes over a slot.  Among the indexes
 * that no process has claimed, the one with the oldest last_write loses its slot, if last_write is
 * more than ten minutes old.  (Seals, batches and getting the slot set last_write.)  Otherwise the
 * new index gets no slot.  Dropping an index or its database frees the slot.
 *
 * Each process caches the slots of the indexes it uses, and remembers indexes without a slot.
 * Without the cache, inserts into thousands of partitions in turn would walk the table for each
 * row.
 *
 * Locks: each function holds lsm_shared->lock (number 7 of the lock order) for at most two walks
 * over the table, and takes no other lock meanwhile.
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/claims.h"
#include "base/clock.h"
#include "base/index_slots.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define EVICT_AFTER_MS (10 * 60 * 1000)
#define RETRY_MS (10 * 1000)	/* an index without a slot tries again after this time */
#define RETRY_USES 100			/* but reads the clock only once per this many uses */
#define CACHE_MOST 16384
#define LATE_MS (60 * 1000)		/* period over which the time that writers lose is summed */

/* An index that this process has looked up. */
typedef struct CachedSlot
{
	uint64		key;
	LsmIndexSlot *slot;			/* NULL: no slot was available */
	TimestampTz retry_at;		/* if slot is NULL, when to try again */
	int			uses_left;		/* uses until we read the clock */
	char		status;			/* for simplehash */
} CachedSlot;

#define SH_PREFIX slot_cache
#define SH_ELEMENT_TYPE CachedSlot
#define SH_KEY_TYPE uint64
#define SH_KEY key
#define SH_HASH_KEY(tb, key) murmurhash32((uint32) (key) ^ (uint32) ((key) >> 32))
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static slot_cache_hash *slot_cache = NULL;
static LsmIndexSlot *latest = NULL; /* the slot looked up last */

/* Returns the key of an index of this database.  See lsm_slot_database. */
static inline uint64
key_of_index(Oid index)
{
	return (uint64) MyDatabaseId << 32 | index;
}

/*
 * Returns the slot to give to a new index, or NULL.  If a slot's last write is in the future, the
 * clock was set back, and the slot counts as old.  Caller holds the lock exclusively.
 */
static LsmIndexSlot *
find_evictable_slot(TimestampTz now)
{
	LsmIndexSlot *victim = NULL;
	TimestampTz oldest = now - EVICT_AFTER_MS * LSM_US_PER_MS;

	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		LsmIndexSlot *slot = &lsm_shared->indexes[i];
		TimestampTz last = (TimestampTz) pg_atomic_read_u64(&slot->last_write);

		if (pg_atomic_read_u64(&slot->key) == 0)
			return slot;
		if (lsm_clock_was_set_back(last, now))
			last = 0;
		if (lsm_slot_claims(slot) == 0 && last < oldest)
		{
			victim = slot;
			oldest = last;
		}
	}
	return victim;
}

static LsmIndexSlot *
find_index_slot(uint64 key)
{
	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		if (pg_atomic_read_u64(&lsm_shared->indexes[i].key) == key)
			return &lsm_shared->indexes[i];
	}
	return NULL;
}

/*
 * Find or assign the slot of an index.  Returns NULL if no slot can be assigned.  In that case, no
 * process tries again to assign a slot until RETRY_MS have passed.
 */
static LsmIndexSlot *
find_or_make_slot(uint64 key, TimestampTz now)
{
	LsmIndexSlot *slot;

	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	slot = find_index_slot(key);
	LWLockRelease(lsm_shared->lock);
	if (slot != NULL ||
		lsm_clock_is_ahead((TimestampTz) pg_atomic_read_u64(&lsm_shared->full_until), now, RETRY_MS))
		return slot;

	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	slot = find_index_slot(key);
	if (slot == NULL)
	{
		slot = find_evictable_slot(now);
		if (slot != NULL)
		{
			lsm_shared_assign_slot(slot, key);
			pg_atomic_write_u64(&slot->last_write, (uint64) now);
#ifndef LSM_HAS_STATS_KINDS
			pg_atomic_write_u64(&slot->reset_time, (uint64) now);
#endif
		}
		else
			pg_atomic_write_u64(&lsm_shared->full_until, (uint64) (now + RETRY_MS * LSM_US_PER_MS));
	}
	LWLockRelease(lsm_shared->lock);
	return slot;
}

/* Returns the slot of an index, or NULL if it gets none.  The caller has checked `latest`. */
static LsmIndexSlot *
find_slot_in_cache(uint64 key)
{
	CachedSlot *entry;
	TimestampTz now;
	bool		found;

	if (slot_cache == NULL)
		slot_cache = slot_cache_create(TopMemoryContext, 64, NULL);
	entry = slot_cache_lookup(slot_cache, key);
	if (entry != NULL && entry->slot != NULL && pg_atomic_read_u64(&entry->slot->key) == key)
		return entry->slot;
	if (entry != NULL && entry->slot == NULL && entry->uses_left-- > 0)
		return NULL;

	now = GetCurrentTimestamp();
	if (entry == NULL)
	{
		if (slot_cache->members >= CACHE_MOST)
			slot_cache_reset(slot_cache);
		entry = slot_cache_insert(slot_cache, key, &found);
		entry->slot = NULL;
		entry->retry_at = 0;
	}
	entry->uses_left = RETRY_USES;
	if (entry->slot != NULL || !lsm_clock_is_ahead(entry->retry_at, now, RETRY_MS))
	{
		entry->slot = find_or_make_slot(key, now);
		entry->retry_at = now + RETRY_MS * LSM_US_PER_MS;
	}
	return entry->slot;
}

/* Returns the slot of an index, assigned if necessary, or NULL if the index gets none. */
LsmIndexSlot *
lsm_slot_get(Relation index)
{
	return RelationUsesLocalBuffers(index) ? NULL : lsm_slot_of(RelationGetRelid(index));
}

/*
 * Like lsm_slot_get, for an index that is known to exist and not to be temporary.  May allocate
 * memory and take a lock, so a session may call this only before its commit record.
 */
LsmIndexSlot *
lsm_slot_of(Oid index)
{
	uint64		key = key_of_index(index);
	LsmIndexSlot *slot;

	Assert(MyBackendType != B_BACKEND || IsTransactionState());
	if (lsm_shared == NULL)
		return NULL;
	if (likely(latest != NULL && pg_atomic_read_u64(&latest->key) == key))
		return latest;
	slot = find_slot_in_cache(key);
	if (slot != NULL)
		latest = slot;
	return slot;
}

/* Returns the slot of an index, or NULL if it has none. */
LsmIndexSlot *
lsm_slot_find(Oid index)
{
	LsmIndexSlot *slot;

	if (lsm_shared == NULL)
		return NULL;
	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	slot = find_index_slot(key_of_index(index));
	LWLockRelease(lsm_shared->lock);
	return slot;
}

/* Returns the time that writers have lost to merges in the current minute, in microseconds. */
int64
lsm_slot_late_us(LsmIndexSlot *slot, TimestampTz now)
{
	TimestampTz since = (TimestampTz) pg_atomic_read_u64(&slot->late_since);

	if (now - since >= LATE_MS * LSM_US_PER_MS || lsm_clock_was_set_back(since, now))
		return 0;
	return (int64) pg_atomic_read_u64(&slot->late_us);
}

/* Add time that a writer has lost to merges.  Returns the current minute's sum before that. */
int64
lsm_slot_add_late(LsmIndexSlot *slot, int64 us, TimestampTz now)
{
	int64		before = lsm_slot_late_us(slot, now);

	if (before == 0)
	{
		pg_atomic_write_u64(&slot->late_since, (uint64) now);
		pg_atomic_write_u64(&slot->late_us, (uint64) us);
		return 0;
	}
	return (int64) pg_atomic_fetch_add_u64(&slot->late_us, us);
}

/* Keep workers away from an index for wait_ms milliseconds; 0 lets them come at once. */
void
lsm_slot_postpone(LsmIndexSlot *slot, int64 wait_ms)
{
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	slot->not_before = wait_ms == 0 ? 0 : GetCurrentTimestamp() + wait_ms * LSM_US_PER_MS;
	LWLockRelease(lsm_shared->lock);
}

/* Keep workers away from all indexes of a database for at least wait_ms milliseconds. */
void
lsm_slots_postpone_database(Oid database, int64 wait_ms)
{
	TimestampTz until = GetCurrentTimestamp() + wait_ms * LSM_US_PER_MS;

	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		LsmIndexSlot *slot = &lsm_shared->indexes[i];

		if (lsm_slot_database(slot) == database &&
			!lsm_clock_is_ahead(slot->not_before, until, LSM_LONGEST_POSTPONE_MS))
			slot->not_before = until;
	}
	LWLockRelease(lsm_shared->lock);
}

void
lsm_slots_free_database(Oid database)
{
	if (lsm_shared == NULL)
		return;
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LSM_INDEX_SLOTS; i++)
	{
		if (lsm_slot_database(&lsm_shared->indexes[i]) == database)
			lsm_shared_assign_slot(&lsm_shared->indexes[i], 0);
	}
	LWLockRelease(lsm_shared->lock);
}

void
lsm_slot_free(Oid index)
{
	LsmIndexSlot *slot;

	if (lsm_shared == NULL)
		return;
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	slot = find_index_slot(key_of_index(index));
	if (slot != NULL)
		lsm_shared_assign_slot(slot, 0);
	LWLockRelease(lsm_shared->lock);
}
