/*
 * locks.c
 *	  The heavyweight locks of merges.  They come first in the lock order, and
 *	  PostgreSQL releases them on error.
 *
 * The merge lock tells whether entries may be in somebody's private memory only:
 * a step of a merge holds it in share mode from before it reads its inputs until
 * its output is installed, and VACUUM takes it exclusively at its end.
 *
 * The job lock, one for each job, is held by who takes a step of it.
 *
 * The key lock, one for each hash of a key, is held by who inserts into a unique
 * index, from before he looks for the key until his entry is in.  The publish lock
 * of a unique index is held meanwhile, too: in share mode by who inserts a row, and
 * exclusively by who adds a batch.
 *
 * All are tuple locks of the index, tags that nothing else uses: indexes have
 * no tuple locks.  Page locks would be the other choice, but some versions
 * assert that no relation is locked under them, and comparison functions may
 * open relations.
 */
#include "postgres.h"

#include "storage/buffers.h"
#include "storage/itemptr.h"
#include "storage/lmgr.h"

static bool
lock_tag(Relation rel, ItemPointer tag, LOCKMODE mode, bool wait)
{
	if (!wait)
		return lsm_conditional_lock_tuple(rel, tag, mode);
	LockTuple(rel, tag, mode);
	return true;
}

/* (0,1): a job's tag is never that, since ids are larger. */
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

/* Nobody else sees a temporary index, so it needs no key locks. */
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

/* An offset that no job's tag has. */
static void
publish_tag(ItemPointer tag)
{
	ItemPointerSet(tag, 0, 0xFFFF);
}

void
lsm_publish_lock(Relation rel, LOCKMODE mode)
{
	ItemPointerData tag;

	publish_tag(&tag);
	lock_shared_index(rel, &tag, mode);
}

void
lsm_publish_unlock(Relation rel, LOCKMODE mode)
{
	ItemPointerData tag;

	publish_tag(&tag);
	unlock_shared_index(rel, &tag, mode);
}

/* Offset 1 and a block that is not 0: neither the merge lock nor a job's. */
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

/* The low 32 bits of the id and 15 more: enough to tell the jobs of an index apart. */
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
