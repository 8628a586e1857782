/*
 * shared.h
 *	  Shared memory: a slot for each busy index, with its counters, what it
 *	  asks of the background workers, and how far its compaction is; and the
 *	  bookkeeping of the workers themselves.
 *
 * Nothing durable lives here: after a restart all is empty and fills again.
 * Without preloading there is no shared memory, and every function does
 * nothing.
 */
#ifndef LSM_SHARED_H
#define LSM_SHARED_H

#include "postgres.h"

#include "base/compat.h"
#include "base/read_history.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"

/* Indexes that get a slot.  Others have neither counters nor workers. */
#define LSM_INDEX_SLOTS 1024

/* Background workers of all databases together. */
#define LSM_WORKER_SLOTS 64

typedef enum LsmCounter
{
	LSM_COUNT_ENTRIES,			/* entries inserted */
	LSM_COUNT_BATCHES,			/* batches of a statement's entries */
	LSM_COUNT_PAGES_FLUSHED,	/* pages that became runs: sealed ones, and those of batches */
	LSM_COUNT_MERGES,			/* merges installed */
	LSM_COUNT_BLOCKS_READ,		/* pages of inputs of installed merges */
	LSM_COUNT_BLOCKS_WRITTEN,	/* pages written by merges */
	LSM_COUNT_PAGES_COPIED,		/* those of them that are copies of a page of an input */
	LSM_COUNT_THROTTLED_US,		/* microseconds that writers spent on large merges or waiting for them */
	LSM_COUNT_SEEKS,			/* places looked up by scans */
	LSM_COUNT_RUNS,				/* runs looked into for that */
	LSM_COUNT_SEGMENTS,			/* segments read */
	LSM_COUNT_PAGES,			/* their pages, and directory pages */
	LSM_COUNT_DECODED,			/* entries decoded */
	LSM_COUNT_RESTARTS,			/* scans that had to take a newer version */
	LSM_COUNT_FILTER_CHECKS,	/* filters that lookups have asked */
	LSM_COUNT_FILTER_SKIPS,		/* segments that they have been spared */
	LSM_COUNT_FILTER_MISSES,	/* segments that they have not, with nothing to be found */
	LSM_COUNT_REMOVED,			/* entries that scans took out, their rows being dead */
	LSM_COUNT_PREFETCHED,		/* pages asked for before they are read */
	LSM_COUNTERS
} LsmCounter;

typedef enum LsmPhase
{
	LSM_PHASE_WAITING,			/* between steps */
	LSM_PHASE_SEALING,
	LSM_PHASE_MERGING
} LsmPhase;

/* Processes that compact an index at the same time, each a job of its own. */
#define LSM_INDEX_CLAIMS 4

/*
 * A process that compacts an index, and how far it is.  The process is guarded by
 * the lock; the rest is written by the process.
 */
typedef struct LsmClaim
{
	int			pid;			/* 0: unused */
	pg_atomic_uint32 phase;		/* LsmPhase */
	pg_atomic_uint32 level;		/* of the output */
	pg_atomic_uint32 inputs;
	pg_atomic_uint32 blocks_total;
	pg_atomic_uint32 blocks_done;
} LsmClaim;

/*
 * What is known of an index.  Atomic fields may be read and changed at any
 * time by anybody: they are counters, or hints whose loss costs a little time.
 * The key changes under the exclusive lock.
 *
 * What is asked of the workers, by whom, and when it is not asked any more
 * (note_debt and lsm_request_* are in schedule/request.c, conclude_visit() in worker.c,
 * where it says what follows from a visit, leave_database_alone() in launcher.c):
 *
 *	asked			set by note_debt, after a seal, VACUUM or a visit: a large job is
 *					due, or any and a worker is there; by conclude, if the index was
 *					busy, locked, or failed.
 *					Cleared by lsm_request_begin.
 *	idle_check		set by note_debt: there is more than one run; by conclude, unless
 *					all is done or the index is gone.
 *					Cleared by a visit to an idle index that leaves nothing to do, before
 *					that notes the debt, and by conclude, if the index is gone.
 *	read_check		set by lsm_request_after_reads: as many reads as were wanted; by
 *					conclude, as idle_check.
 *					Cleared by lsm_request_begin.
 *	reads_wanted	raised by lsm_request_begin, so far that it is hardly reached;
 *					lowered when the visit has found out when to look again, and
 *					with each seal.
 *	helpless		set by conclude, if the index was locked or gone; by leave_alone.
 *					Cleared by conclude, if a step was taken or nothing was left.
 *
 * Of those who ask, only the one that finds the flag at 0 wakes the launcher.
 * (conclude() need not: its worker chooses what is next.)  lsm_request_begin
 * clears before anything is looked at, so what is asked during a visit stays
 * asked.  leave_alone also clears the first three if nobody can connect to the
 * database: its writers go on asking.
 */
typedef struct LsmIndexSlot
{
	pg_atomic_uint64 key;		/* database << 32 | index; 0: unused */
	pg_atomic_uint64 counters[LSM_COUNTERS];
	pg_atomic_uint64 reset_time;	/* TimestampTz, as all times here */

	/* Asked of the workers. */
	pg_atomic_uint32 runs;		/* as lsm_runs shows them; 0: not known */
	pg_atomic_uint64 debt_blocks;	/* waiting to be merged */
	pg_atomic_uint64 next_blocks;	/* of the smallest job */
	pg_atomic_uint32 jobs;		/* large jobs that are due */
	pg_atomic_uint64 last_write;
	pg_atomic_uint64 last_merge;
	pg_atomic_uint32 asked;		/* there is a job for a worker */
	pg_atomic_uint32 idle_check;	/* to be looked at when it has been idle */
	pg_atomic_uint32 helpless;	/* workers could not do it: the writers must */

	/* What readers pay for there being several runs, and ask of the workers. */
	pg_atomic_uint64 reads;		/* so far, in seeks in each of the runs; never less */
	pg_atomic_uint64 reads_wanted;	/* with so many a worker is to look again */
	pg_atomic_uint32 read_check;	/* a worker is to look now */

	pg_atomic_uint32 restless;	/* writers wait for each other: not 0, less with each seal */

	/* Guarded by the lock. */
	LsmClaim	claims[LSM_INDEX_CLAIMS];	/* processes that compact it */
	bool		exclusive;		/* one of them wants to be alone */
	int			failures;		/* errors since all was done; its claimant's */
	int			refusals;		/* since its relations were last locked; likewise */
	TimestampTz not_before;		/* no worker before that time */
	TimestampTz asked_since;
	LsmLocator	history_of;		/* the file that the history is about */
	LsmReadHistory history;
} LsmIndexSlot;

/* A background worker.  Guarded by the lock. */
typedef struct LsmWorkerSlot
{
	Oid			database;		/* InvalidOid: unused */
	uint32		generation;		/* counts the uses of the slot */
	int			pid;			/* 0: not connected yet */
	bool		idle;
	Latch	   *latch;
} LsmWorkerSlot;

typedef struct LsmShared
{
	LWLock	   *lock;
	int			launcher_pid;	/* 0: not running.  Written under the lock, read without. */
	Latch	   *launcher_latch;
	uint32		token;			/* random, of this start of the server; see storage/buffers.c */
	pg_atomic_uint64 full_until;	/* no room for another index was found; a hint */
	LsmWorkerSlot workers[LSM_WORKER_SLOTS];
	LsmIndexSlot indexes[LSM_INDEX_SLOTS];
} LsmShared;

extern LsmShared *lsm_shared;

/* Differs from one start of the server to the next; never 0. */
static inline uint32
lsm_server_token(void)
{
	if (likely(lsm_shared != NULL))
		return lsm_shared->token;
	return ((uint32) (PgStartTime ^ (PgStartTime >> 32))) | 1;
}

#define lsm_slot_database(slot) ((Oid) (pg_atomic_read_u64(&(slot)->key) >> 32))
#define lsm_slot_index(slot) ((Oid) pg_atomic_read_u64(&(slot)->key))

/* shared.c */
extern void lsm_shared_request(void);
extern void lsm_shared_startup(void);
extern void lsm_shared_drop_database(Oid database);
extern LsmIndexSlot *lsm_slot_get(Relation index);
extern LsmIndexSlot *lsm_slot_of(Oid index);
extern bool lsm_slot_claim(LsmIndexSlot *slot);
extern bool lsm_slot_claim_locked(LsmIndexSlot *slot, bool exclusive);
extern int	lsm_slot_claims(LsmIndexSlot *slot);
extern bool lsm_slot_has_claim(void);
extern void lsm_slot_release(void);
extern void lsm_slot_postpone(LsmIndexSlot *slot, int64 wait_ms);
extern void lsm_shared_postpone_database(Oid database, int64 wait_ms);
extern void lsm_slot_reset_counters(LsmIndexSlot *slot);
extern void lsm_progress(LsmIndexSlot *slot, LsmPhase phase, uint32 level, uint32 inputs,
						 uint32 total, uint32 done);

/*
 * Count something of an index.  Cheap, and callable anywhere but in a critical
 * section.
 */
extern void lsm_stats_add(Relation index, LsmCounter counter, uint64 n);

#endif							/* LSM_SHARED_H */
