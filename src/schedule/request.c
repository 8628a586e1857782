/*
 * request.c
 *	  Asks workers to merge on behalf of writers and readers, and delays writers while workers are
 *	  behind.
 *
 * All requests are hints in shared memory.  If one is lost, the next sealed page repeats it.
 */
#include "postgres.h"

#include "base/claims.h"
#include "base/clock.h"
#include "base/compat.h"
#include "base/counts.h"
#include "base/index_slots.h"
#include "base/limits.h"
#include "base/options.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "schedule/rules.h"
#include "schedule/schedule.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/*
 * After at most this many reads, readers ask a worker to check whether the reads pay for a merge.
 * So no index is forgotten.  They wait for at least LSM_READS_PER_LOOK reads to keep checks cheap.
 */
#define MOST_READS (UINT64CONST(1) << 24)

/* Merges are late if they cost an index's writers this much time within a minute. */
#define LATE_US INT64CONST(1000000)

/*
 * Note what waits to be merged.  If there is work for a worker, ask for a visit: at once (ask), or
 * once the index is idle (when_idle).  Small jobs start no worker, since writers do them at once.
 * Returns the pressure.
 */
static int
note_debt(LsmIndexSlot *slot, Relation rel, const LsmVersion *version, bool ask, bool when_idle)
{
	LsmDebt		debt;
	uint32		live = 0;
	bool		news = false;

	for (uint32 i = 0; i < version->run_count; i++)
		live += lsm_run_is_read(&version->runs[i]);
	pg_atomic_write_u32(&slot->runs, live);
	lsm_pick_debt(version->runs, version->run_count, lsm_fanout(rel), lsm_foreground_blocks,
				  &debt);
	pg_atomic_write_u64(&slot->debt_blocks, debt.blocks);
	pg_atomic_write_u64(&slot->next_blocks, debt.next_blocks);
	pg_atomic_write_u32(&slot->jobs, debt.jobs);
	/* Only the first request needs to wake a worker. */
	if (when_idle && version->run_count > 1 && pg_atomic_exchange_u32(&slot->idle_check, 1) == 0)
		news = true;
	if (ask && (debt.jobs > 0 || (debt.next_blocks > 0 && lsm_pool_has_worker(MyDatabaseId))) &&
		pg_atomic_exchange_u32(&slot->asked, 1) == 0)
		news = true;
	if (news && lsm_max_workers > 0)
		lsm_pool_wake(MyDatabaseId);
	return debt.pressure;
}

/*
 * Call note_debt in a process that does not write.  when_idle says whether the index may need more
 * work once it is idle.  If when_idle is false, a worker has just found that the index needs none,
 * and we clear idle_check.  We clear the flag before we read the version.  If a slow writer then
 * notes an outdated state, the writer sets the flag again, and a worker looks once more.
 */
void
lsm_request_note(LsmIndex *index, bool when_idle)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);
	LsmVersion *version;

	if (slot == NULL)
		return;
	if (!when_idle)
		pg_atomic_write_u32(&slot->idle_check, 0);
	version = lsm_version_read(index);
	note_debt(slot, index->rel, version, true, when_idle);
	pfree(version);
}

/* Ask a worker to truncate the file once the index is idle and nobody has it open. */
void
lsm_request_truncate(LsmIndex *index)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);

	if (slot == NULL || lsm_max_workers == 0)
		return;
	pg_atomic_write_u32(&slot->truncate_tries, 0);
	pg_atomic_write_u64(&slot->truncate_at, (uint64) GetCurrentTimestamp());
	lsm_pool_wake(MyDatabaseId);
}

/* Let a worker check after `wait` more reads whether the reads pay for a merge. */
static void
expect_reads(LsmIndexSlot *slot, uint64 wait)
{
	uint64		wanted = pg_atomic_read_u64(&slot->reads) + Max(wait, LSM_READS_PER_LOOK);

	if (wanted < pg_atomic_read_u64(&slot->reads_wanted))
		pg_atomic_write_u64(&slot->reads_wanted, wanted);
}

/*
 * Called when a scan has ended or restarts.  Asks for a worker if readers may have paid enough for
 * a merge.
 */
void
lsm_request_after_reads(LsmIndex *index)
{
	LsmIndexSlot *slot;

	/* There is nothing to check until this process adds its counts to shared memory. */
	if (!index->reads.has_published)
		return;
	index->reads.has_published = false;
	slot = lsm_slot_get(index->rel);
	if (slot == NULL || pg_atomic_read_u64(&slot->reads) < pg_atomic_read_u64(&slot->reads_wanted))
		return;
	if (lsm_max_workers == 0 || lsm_shared->launcher_pid == 0 ||
		lsm_relation_is_new(index->rel) || pg_atomic_exchange_u32(&slot->read_check, 1) != 0)
		return;
	lsm_pool_wake(MyDatabaseId);
}

/*
 * Called when a worker is about to look at the index.  If the worker does not finish, readers ask
 * again after MOST_READS reads.
 */
void
lsm_request_begin(LsmIndexSlot *slot)
{
	/* Clear the requests before looking, so that later requests stay. */
	pg_atomic_write_u32(&slot->asked, 0);
	pg_atomic_write_u32(&slot->read_check, 0);
	pg_atomic_write_u64(&slot->reads_wanted, pg_atomic_read_u64(&slot->reads) + MOST_READS);
}

/*
 * Note the reads so far in the history of the index's file.  Sets since[i] to a lower bound on the
 * reads since run i was written.
 */
static void
note_reads(LsmIndexSlot *slot, LsmIndex *index, const LsmVersion *version, uint64 *since)
{
	uint64		ids[LSM_MAX_RUNS];

	for (uint32 i = 0; i < version->run_count; i++)
		ids[i] = version->runs[i].run_id;
	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	if (memcmp(&slot->history_of, &index->locator, sizeof(LsmLocator)) != 0)
	{
		/* Run ids start over in a new file. */
		slot->history.count = 0;
		slot->history_of = index->locator;
	}
	/* Get the count under the lock.  Otherwise another process might note a higher count first. */
	lsm_read_history_note(&slot->history, pg_atomic_read_u64(&slot->reads), ids,
						  version->run_count, since);
	LWLockRelease(lsm_shared->lock);
}

/*
 * Have readers paid for a job?  If so, sets *job.  If not, notes after how many reads a worker
 * should look again.
 */
bool
lsm_request_for_readers(LsmIndex *index, const LsmVersion *version, LsmJob *job)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);
	uint64		since[LSM_MAX_RUNS];
	uint64		wait;

	if (slot == NULL)
		return false;
	note_reads(slot, index, version, since);
	if (lsm_pick_for_readers(version->runs, version->run_count, lsm_fanout(index->rel), since,
							 job, &wait))
		return true;
	if (wait < MOST_READS)
		expect_reads(slot, wait);
	return false;
}

/*
 * Called when a writer has sealed pages.  Counts the pages, asks for a worker, and reports in *help
 * whether workers can help.  Workers can neither see nor lock an index that this transaction has
 * created or rewritten.
 */
void
lsm_request_help(LsmIndex *index, Relation heap, const LsmVersion *version, uint64 sealed,
				 LsmHelp *help)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);
	bool		is_new = lsm_relation_is_new(index->rel) || lsm_relation_is_new(heap);

	memset(help, 0, sizeof(LsmHelp));
	help->sealed = sealed;
	lsm_stats_add(index->rel, LSM_COUNT_PAGES_FLUSHED, sealed);
	if (slot == NULL)
		return;
	pg_atomic_write_u64(&slot->last_write, (uint64) GetCurrentTimestamp());
	help->pressure = note_debt(slot, index->rel, version, !is_new, true);
	expect_reads(slot, 0);
	help->at_hand = lsm_max_workers > 0 && lsm_shared->launcher_pid != 0 &&
		pg_atomic_read_u32(&slot->helpless) == 0 && !is_new;
}

static void
log_late(LsmIndex *index, LsmIndexSlot *slot, int64 late_us)
{
	ereport(LOG,
			(errmsg("merges of index \"%s.%s\" are late",
					get_namespace_name(RelationGetNamespace(index->rel)),
					RelationGetRelationName(index->rel)),
			 errdetail("Merges cost writers %d ms within a minute. The index has %u runs, and " UINT64_FORMAT " kB wait to be merged.",
					   (int) (late_us / LSM_US_PER_MS), pg_atomic_read_u32(&slot->runs),
					   pg_atomic_read_u64(&slot->debt_blocks) * (BLCKSZ / 1024)),
			 errhint("Allow more workers, use a faster disk, or slow down the load.")));
}

/*
 * Add the time since `start` to throttled_time.  Logs, at most once a minute for each index, that
 * merges cost writers a lot of time.  Logs nothing for a new index or if workers are disabled,
 * because sessions are then expected to merge by themselves.  Caller holds no lock but perhaps the
 * publish lock and a key lock.
 */
void
lsm_request_count_time(LsmIndex *index, instr_time start)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);
	instr_time	now;
	int64		us;
	int64		before;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	us = (int64) INSTR_TIME_GET_MICROSEC(now);
	lsm_stats_add(index->rel, LSM_COUNT_THROTTLED_US, us);
	if (slot == NULL || lsm_max_workers == 0 || lsm_relation_is_new(index->rel))
		return;
	before = lsm_slot_add_late(slot, us, GetCurrentTimestamp());
	if (before < LATE_US && before + us >= LATE_US)
		log_late(index, slot, before + us);
}

/*
 * Take a step of a large job for a writer.  The step is small, so that it does not delay the writer
 * for long.
 */
LsmStepResult
lsm_request_step(LsmIndex *index, Relation heap, LsmJob *job)
{
	LsmStepResult result;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	result = lsm_job_step(index, heap, job, LSM_MIN_SEGMENT_BLOCKS, false);
	lsm_request_count_time(index, start);
	return result;
}

/*
 * If workers are running but behind, pause the writer.  The pause grows with the pressure.  Caller
 * holds no lock.
 */
void
lsm_request_delay(LsmIndex *index, const LsmHelp *help)
{
	static uint32 wait_event = 0;
	instr_time	start;

	if (!help->at_hand || help->pressure == 0)
		return;
	if (wait_event == 0)
		wait_event = lsm_wait_event("LsmThrottle");
	INSTR_TIME_SET_CURRENT(start);
	for (int n = lsm_rule_delays(help->sealed); n > 0; n--)
	{
		pgstat_report_wait_start(wait_event);
		pg_usleep((long) lsm_rule_delay_us(help->pressure));
		pgstat_report_wait_end();
		CHECK_FOR_INTERRUPTS();
	}
	lsm_request_count_time(index, start);
}

/*
 * Is there work for one more worker now?  If there will be work later, sets *when to the earlier of
 * that time and its old value.  Caller holds lsm_shared->lock.
 */
bool
lsm_request_due(LsmIndexSlot *slot, TimestampTz now, TimestampTz *when)
{
	LsmAsk		ask;
	TimestampTz truncate_at;
	int			claims = lsm_slot_claims(slot);

	if (pg_atomic_read_u64(&slot->key) == 0 || slot->exclusive || claims == LSM_INDEX_CLAIMS)
		return false;
	/* A second worker needs a second job. */
	if (claims > 0 && claims >= (int) pg_atomic_read_u32(&slot->jobs))
		return false;
	ask.now = pg_atomic_read_u32(&slot->asked) != 0 || pg_atomic_read_u32(&slot->read_check) != 0;
	ask.when_idle = pg_atomic_read_u32(&slot->idle_check) != 0;
	ask.not_before = slot->not_before;
	ask.last_write = (TimestampTz) pg_atomic_read_u64(&slot->last_write);
	if (lsm_rule_is_due(&ask, lsm_idle_delay_ms, now, when))
		return true;

	/* An index may have nothing to merge, but a file to truncate. */
	truncate_at = (TimestampTz) pg_atomic_read_u64(&slot->truncate_at);
	ask.now = false;
	ask.when_idle = truncate_at != 0;
	ask.not_before = Max(ask.not_before, truncate_at);
	return lsm_rule_is_due(&ask, lsm_idle_delay_ms, now, when);
}
