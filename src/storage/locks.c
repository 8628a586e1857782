/*
 * locks.c
 *	  The heavyweight locks of merges and unique indexes: locks 1a to 3 of the lock order.
 *	  PostgreSQL releases them on error.
 *
 * Merge lock: a step holds it in share mode from before it reads its inputs until its output is
 * installed.  So a process that holds it exclusively, like VACUUM at its end, knows that no step
 * has entries in private memory.
 *
 * Job lock, one for each job: held by the process that takes a step of the job.
 *
 * Key lock, one for each hash of a key: a process that inserts a row into a unique index holds it
 * from before it looks for the key until its entry is in the index.  If hashes are no longer those
 * with which the index was built, the process takes the publish lock exclusively instead.
 *
 * Publish lock, one for each unique index: held in share mode while a row is inserted, and
 * exclusively while a batch is added.  It consists of stripes, so that inserts do not all contend
 * for one partition of PostgreSQL's lock manager.  A row takes one stripe, a batch takes all.
 *
 * All are tuple locks on the index.  Nothing else takes tuple locks on an index.  Page locks cannot
 * be used: some PostgreSQL versions assert that a process locks no relation while it holds a page
 * lock, and comparison functions may open relations.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/buffers.h"
#include "storage/itemptr.h"
#include "storage/lmgr.h"

#define PUBLISH_STRIPES 8

static bool
lock_tag(Relation rel, ItemPointer tag, LOCKMODE mode, bool wait)
{
	if (!wait)
		return lsm_conditional_lock_tuple(rel, tag, mode);
	LockTuple(rel, tag, mode);
	return true;
}

/* Take the merge lock, tag (0,1).  No job has that tag, since offsets of job tags start at 2. */
bool
lsm_merge_lock(Relation rel, LOCKMODE mode, bool wait)
{
	ItemPointerData tag;

	ItemPointerSet(&tag, 0, 1);
	return lock_tag(rel, &tag, mode, wait);
}

void
lsm_merge_unlock(Relation rel, LOCKMODE mode)
{
	ItemPointerData tag;

	ItemPointerSet(&tag, 0, 1);
	UnlockTuple(rel, &tag, mode);
}

/* Lock a tag, unless the index is temporary: no other process sees it, so it needs no lock. */
static void
lock_shared_index(Relation rel, ItemPointer tag, LOCKMODE mode)
{
	if (!RelationUsesLocalBuffers(rel))
		LockTuple(rel, tag, mode);
}

static void
unlock_shared_index(Relation rel, ItemPointer tag, LOCKMODE mode)
{
	if (!RelationUsesLocalBuffers(rel))
		UnlockTuple(rel, tag, mode);
}

/* Stripes have the tags from (0,65528) to (0,65535).  No job's tag has such an offset. */
static void
publish_tag(int stripe, ItemPointer tag)
{
	ItemPointerSet(tag, 0, 0xFFFF - stripe);
}

/* The stripe of this process. */
static int
own_stripe(void)
{
	return MyProcPid % PUBLISH_STRIPES;
}

/* Take a stripe of the publish lock in share mode. */
void
lsm_publish_lock_shared(Relation rel)
{
	ItemPointerData tag;

	publish_tag(own_stripe(), &tag);
	lock_shared_index(rel, &tag, ShareLock);
}

void
lsm_publish_unlock_shared(Relation rel)
{
	ItemPointerData tag;

	publish_tag(own_stripe(), &tag);
	unlock_shared_index(rel, &tag, ShareLock);
}

/* Take the whole publish lock.  All processes take the stripes in the same order. */
void
lsm_publish_lock_exclusive(Relation rel)
{
	for (int stripe = 0; stripe < PUBLISH_STRIPES; stripe++)
	{
		ItemPointerData tag;

		publish_tag(stripe, &tag);
		lock_shared_index(rel, &tag, ExclusiveLock);
	}
}

void
lsm_publish_unlock_exclusive(Relation rel)
{
	for (int stripe = PUBLISH_STRIPES - 1; stripe >= 0; stripe--)
	{
		ItemPointerData tag;

		publish_tag(stripe, &tag);
		unlock_shared_index(rel, &tag, ExclusiveLock);
	}
}

/* A tag with offset 1 and a block other than 0, which neither the merge lock nor a job has. */
static void
key_tag(uint32 hash, ItemPointer tag)
{
	ItemPointerSet(tag, Max(hash, 1), 1);
}

void
lsm_key_lock(Relation rel, uint32 hash)
{
	ItemPointerData tag;

	key_tag(hash, &tag);
	lock_shared_index(rel, &tag, ExclusiveLock);
}

void
lsm_key_unlock(Relation rel, uint32 hash)
{
	ItemPointerData tag;

	key_tag(hash, &tag);
	unlock_shared_index(rel, &tag, ExclusiveLock);
}

/* A tag made of the low 47 bits of the id, enough to tell the jobs of an index apart. */
static void
job_tag(uint64 job_id, ItemPointer tag)
{
	ItemPointerSet(tag, (BlockNumber) job_id, (OffsetNumber) (2 + ((job_id >> 32) & 0x7FFF)));
}

bool
lsm_job_lock(Relation rel, uint64 job_id, bool wait)
{
	ItemPointerData tag;

	job_tag(job_id, &tag);
	return lock_tag(rel, &tag, ExclusiveLock, wait);
}

void
lsm_job_unlock(Relation rel, uint64 job_id)
{
	ItemPointerData tag;

	job_tag(job_id, &tag);
	UnlockTuple(rel, &tag, ExclusiveLock);
}
