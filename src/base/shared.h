/*
 * shared.h
 *	  Defines the layout of shared memory: slots for recently used indexes, for background workers,
 *	  and for processes that verify an index.
 *
 * index_slots.h finds the slot of an index, and claims.h records which processes compact the index.
 *
 * Nothing here is durable: shared memory is empty after a restart, and fills up with use.  If the
 * library is not preloaded, lsm_shared is NULL, and no index or process gets a slot.
 *
 * "The lock" is LsmShared.lock.
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
#include "utils/timestamp.h"

/* Number of indexes that get a slot.  Other indexes have no workers, and before 18 no counters. */
#define LSM_INDEX_SLOTS 1024

/* Background workers of all databases together. */
#define LSM_WORKER_SLOTS 64

/* The counters of an index (counts.h). */
typedef enum LsmCounter
{
#define LSM_COUNTER(id, column, kind, description) LSM_COUNT_##id,
#define LSM_READ_COUNTER(field, column, label, description) LSM_COUNT_READ_##field,
#include "base/counter_list.h"
	LSM_COUNTERS
} LsmCounter;

typedef enum LsmPhase
{
	LSM_PHASE_WAITING,			/* between steps */
	LSM_PHASE_SEALING,
	LSM_PHASE_MERGING
} LsmPhase;

/* Processes that can compact an index at the same time, each with a job of its own. */
#define LSM_INDEX_CLAIMS 4

/*
 * A process that compacts an index, and its progress.  The lock guards pid.  The process writes
 * the other fields without the lock.
 */
typedef struct LsmClaim
{
	int			pid;			/* 0: unused */
	pg_atomic_uint32 phase;		/* LsmPhase */
	pg_atomic_uint32 level;		/* level of the output */
	pg_atomic_uint32 inputs;
	pg_atomic_uint32 blocks_total;
	pg_atomic_uint32 blocks_done;
} LsmClaim;

/*
 * An index in shared memory.
 *
 * The key changes only under the exclusive lock.  The other atomic fields are counters, or hints
 * whose loss costs a little time.  Any process may read and change them at any time.
 *
 * These fields ask for workers (note_debt and lsm_request_* are in schedule/request.c,
 * conclude_visit in worker.c, leave_database_alone in launcher.c):
 *
 *	asked			note_debt sets it if a job is large or under way, or a small job is due and
 *					the database has a worker.  note_debt runs after a seal, a batch, a new open
 *					page, VACUUM, lsm_compact or a visit.  conclude_visit sets it if the index
 *					was busy or locked, or the visit raised an error.  lsm_request_begin clears it.
 *	idle_check		note_debt sets it if there is more than one run, except after a visit to
 *					an idle index that left nothing to do.  After such a visit,
 *					lsm_request_note clears it.  conclude_visit sets it unless all is done,
 *					and clears it if the index is gone.
 *	read_check		lsm_request_after_reads sets it when reads reaches reads_wanted.
 *					conclude_visit sets it unless all is done or the index is gone.
 *					lsm_request_begin clears it.
 *	reads_wanted	lsm_request_begin sets it MOST_READS above reads.  A visit that knows
 *					when to look again lowers it, and so does each seal.
 *	helpless		conclude_visit sets it if the index was locked or gone, and clears it
 *					if a step was taken or nothing was left.  leave_database_alone sets it.
 *
 * Whoever changes asked, idle_check or read_check from 0 to 1 wakes a worker or the launcher.
 * conclude_visit need not, since its worker then looks at all indexes again, or exits and wakes the
 * launcher.  lsm_request_begin clears asked and read_check before the worker looks, so requests
 * made during a visit stay.  If no worker can connect to the database, leave_database_alone also
 * clears these three flags.  Writers and readers set them again.
 */
typedef struct LsmIndexSlot
{
	pg_atomic_uint64 key;		/* database << 32 | index; 0: unused */
#ifndef LSM_HAS_STATS_KINDS
	pg_atomic_uint64 counters[LSM_COUNTERS];	/* see counts.c */
	pg_atomic_uint64 last_merge;	/* TimestampTz, like all times here */
	pg_atomic_uint64 reset_time;
#endif

	/* Requests to the workers. */
	pg_atomic_uint32 runs;		/* number of runs, as in lsm_runs; 0: unknown or none */
	pg_atomic_uint64 debt_blocks;	/* blocks that wait to be merged */
	pg_atomic_uint64 next_blocks;	/* blocks of the smallest job */
	pg_atomic_uint32 jobs;		/* jobs that are large or under way */
	pg_atomic_uint64 last_write;	/* TimestampTz, like all times here */
	pg_atomic_uint32 asked;		/* there is a job for a worker */
	pg_atomic_uint32 idle_check;	/* a worker should visit the index once the index is idle */
	pg_atomic_uint64 truncate_at;	/* when a worker should try to truncate the file; 0: never */
	pg_atomic_uint32 truncate_tries;	/* attempts so far */
	pg_atomic_uint32 helpless;	/* workers cannot help, so writers must merge */

	/* What readers pay because there are several runs. */
	pg_atomic_uint64 reads;		/* paid so far per run, on average, in seeks; never decreases */
	pg_atomic_uint64 reads_wanted;	/* a worker should visit the index at this many reads */
	pg_atomic_uint32 read_check;	/* a worker should visit the index now */

	pg_atomic_uint32 restless;	/* set when writers wait for each other; full pages count it down */

	/* How late the merges are.  Any process may change these; a lost change is harmless. */
	pg_atomic_uint64 late_since;	/* when the current minute of late_us began */
	pg_atomic_uint64 late_us;	/* time that writers lost to merges in this minute */

	/* Processes with a claim change these without the lock.  A lost change is harmless. */
	int			failures;		/* errors since a visit left nothing to do */
	int			refusals;		/* visits refused since the last successful one */
	TimestampTz trouble_logged; /* when a failure or a refusal was last logged */

	/* Guarded by the lock. */
	LsmClaim	claims[LSM_INDEX_CLAIMS];	/* processes that compact the index */
	bool		exclusive;		/* one of the claims is exclusive */
	TimestampTz not_before;		/* workers stay away until then */
	TimestampTz asked_since;	/* when first found due since the last visit; 0: not yet */
	LsmLocator	history_of;		/* the file that the history belongs to */
	LsmReadHistory history;
} LsmIndexSlot;

/* A background worker.  The lock guards all fields; lsm_pool_has_worker reads without it. */
typedef struct LsmWorkerSlot
{
	Oid			database;		/* InvalidOid: unused */
	uint32		generation;		/* how often the slot has been used */
	int			pid;			/* 0: not connected yet */
	bool		idle;
	Latch	   *latch;
} LsmWorkerSlot;

/* The most checks that show their progress at once, in all databases together. */
#define LSM_CHECK_SLOTS 64

typedef enum LsmCheckPhase
{
	LSM_CHECK_MANIFEST,
	LSM_CHECK_SEGMENTS,
	LSM_CHECK_TABLE,
	LSM_CHECK_DUPLICATES,
	LSM_CHECK_UNIQUE
} LsmCheckPhase;

/*
 * A process that verifies an index, and its progress.  The lock guards the first three fields.  The
 * process writes the other fields without the lock.
 */
typedef struct LsmCheckSlot
{
	int			pid;			/* 0: unused */
	Oid			database;
	Oid			index;
	pg_atomic_uint32 phase;		/* LsmCheckPhase */
	pg_atomic_uint32 blocks_total;	/* of the index, to read in this phase */
	pg_atomic_uint32 blocks_done;
	pg_atomic_uint32 heap_total;	/* blocks of the table */
	pg_atomic_uint32 heap_done;
} LsmCheckSlot;

typedef struct LsmShared
{
	LWLock	   *lock;
	int			launcher_pid;	/* 0: not running; written under the lock, read without it */
	Latch	   *launcher_latch; /* guarded by the lock */
	uint32		token;			/* random, set once at server start; see storage/buffers.c */
	pg_atomic_uint64 full_until;	/* a hint: until then, assume that all slots are in use */
	LsmWorkerSlot workers[LSM_WORKER_SLOTS];
	LsmCheckSlot checks[LSM_CHECK_SLOTS];
	LsmIndexSlot indexes[LSM_INDEX_SLOTS];
} LsmShared;

extern LsmShared *lsm_shared;

/* Returns a number, never 0, that differs between server starts. */
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
extern void lsm_shared_assign_slot(LsmIndexSlot *slot, uint64 key);

#endif							/* LSM_SHARED_H */
