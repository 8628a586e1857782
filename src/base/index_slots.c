/*
 * index_slots.c
 *	  The table of indexes in shared memory.
 *
 * An index gets a slot when something about it is counted for the first time.  Temporary
 * indexes get none: no other process can see or merge them.  When the table is full, a
 * new index takes the slot that has not been written to for the longest time, at least
 * ten minutes.  If there is no such slot, the new index does without.
 *
 * Each process remembers the slots of all indexes that it works on, and which indexes have
 * none.  Rows may go to thousands of partitions in turn, and must not cost a walk over the
 * table each.
 *
 * Locks: lsm_shared->lock is held for one walk over the table at most.  It is the last in
 * the lock order: nothing of ours is locked under it.
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
#define RETRY_MS (10 * 1000)	/* an index without a slot asks again after that time */
#define RETRY_USES 100			/* but looks at the clock only once in so many uses */
#define CACHE_MOST 16384

/* An index that this process has asked for. */
typedef struct CachedSlot
{
	uint64		key;
	LsmIndexSlot *slot;			/* NULL: there was no room */
	TimestampTz retry_at;		/* if so, when to ask again */
	int			uses_left;		/* until we look whether that time has come */
	char		status;			/* the hash table's */
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
static LsmIndexSlot *latest = NULL; /* the slot that was asked for last */
static Oid	dropped_database = InvalidOid;	/* by this transaction */

/*
 * The slot to give to a new index, or NULL.  A slot whose last write lies ahead is as good
 * as an old one: the clock was set back since.  Caller holds the lock exclusively.
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
 * Find the slot of an index, or give it one.  Returns NULL if there is no room; then nobody
 * takes the lock exclusively for some time.
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
			pg_atomic_write_u64(&slot->reset_time, (uint64) now);
		}
		else
			pg_atomic_write_u64(&lsm_shared->full_until, (uint64) (now + RETRY_MS * LSM_US_PER_MS));
	}
	LWLockRelease(lsm_shared->lock);
	return slot;
}

/* The slot of an index that is not the one of the latest call. */
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

/* The slot of an index, made if necessary, or NULL if the index has none. */
LsmIndexSlot *
lsm_slot_get(Relation index)
{
	return RelationUsesLocalBuffers(index) ? NULL : lsm_slot_of(RelationGetRelid(index));
}

/* The same for an index that is known not to be temporary. */
LsmIndexSlot *
lsm_slot_of(Oid index)
{
	uint64		key = (uint64) MyDatabaseId << 32 | index;
	LsmIndexSlot *slot;

	if (lsm_shared == NULL)
		return NULL;
	if (likely(latest != NULL && pg_atomic_read_u64(&latest->key) == key))
		return latest;
	slot = find_slot_in_cache(key);
	if (slot != NULL)
		latest = slot;
	return slot;
}

/* Keep workers away from an index for so long. */
void
lsm_slot_postpone(LsmIndexSlot *slot, int64 wait_ms)
{
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	slot->not_before = wait_ms == 0 ? 0 : GetCurrentTimestamp() + wait_ms * LSM_US_PER_MS;
	LWLockRelease(lsm_shared->lock);
}

/* Keep workers away from all indexes of a database for so long. */
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

static void
free_slots_of_database(Oid database)
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

/* The slots go with the commit: until then DROP DATABASE may fail. */
static void
free_slots_at_commit(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT && OidIsValid(dropped_database))
		free_slots_of_database(dropped_database);
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		dropped_database = InvalidOid;
}

/* This transaction drops a database: free the slots of its indexes. */
void
lsm_slots_drop_database(Oid database)
{
	static bool is_registered = false;

	if (!is_registered)
		RegisterXactCallback(free_slots_at_commit, NULL);
	is_registered = true;
	dropped_database = database;
}
