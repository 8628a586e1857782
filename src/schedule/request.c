/*
 * request.c
 *	  Writers and workers: what a writer asks for, whether help is at hand, and
 *	  how much the writer gives way while the help is late.
 *
 * All of this is hints in shared memory.  A request that is lost is made again
 * when the next page is sealed.
 */
#include "postgres.h"

#include "base/compat.h"
#include "base/limits.h"
#include "base/options.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "schedule/schedule.h"
#include "utils/timestamp.h"

/* Longest pause of a writer for a page that it seals, and most of them at once. */
#define DELAY_US 10000
#define MOST_DELAYS 10

/* Pages between a writer's own steps when there is little pressure. */
#define LAZY_SEALS 32

/*
 * A worker looks after so many reads whether they pay for a merge: at least, so
 * that looking costs little, and at most, so that nothing is forgotten for ever.
 */
#define LEAST_READS LSM_READ_FIRST
#define MOST_READS (UINT64CONST(1) << 24)

/*
 * Note what waits to be merged, and ask for a worker if there is one's work, at once or
 * when the index has been idle.  None is started for what writers do at once.
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
	/* Only who asks first has to wake somebody. */
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
 * The same, for who does not write.  when_idle: there may be something to do when the index
 * has been idle; else a worker has just found that there is not.  That it was asked is
 * cleared before anything is noted: then a writer that is late, and notes what is not so any
 * more, has the worker look, and note, once more.
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

/* After so many more reads a worker is to look whether there is a merge that they pay for. */
static void
expect_reads(LsmIndexSlot *slot, uint64 wait)
{
	uint64		wanted = pg_atomic_read_u64(&slot->reads) + Max(wait, LEAST_READS);

	if (wanted < pg_atomic_read_u64(&slot->reads_wanted))
		pg_atomic_write_u64(&slot->reads_wanted, wanted);
}

/*
 * A scan is over, or starts again.  If readers have paid enough for the number of
 * runs, ask for a worker.
 */
void
lsm_request_after_reads(LsmIndex *index)
{
	LsmIndexSlot *slot;

	/* Nothing is new in shared memory while it is counted here. */
	if (!index->has_published)
		return;
	index->has_published = false;
	slot = lsm_slot_get(index->rel);
	if (slot == NULL || pg_atomic_read_u64(&slot->reads) < pg_atomic_read_u64(&slot->reads_wanted))
		return;
	if (lsm_max_workers == 0 || lsm_shared->launcher_pid == 0 ||
		lsm_relation_is_new(index->rel) || pg_atomic_exchange_u32(&slot->read_check, 1) != 0)
		return;
	lsm_pool_wake(MyDatabaseId);
}

/*
 * A worker is about to look, whatever brings it.  It is asked again after
 * MOST_READS, should it come to no end.
 */
void
lsm_request_begin(LsmIndexSlot *slot)
{
	/* Before looking: a request that comes later stays. */
	pg_atomic_write_u32(&slot->asked, 0);
	pg_atomic_write_u32(&slot->read_check, 0);
	pg_atomic_write_u64(&slot->reads_wanted, pg_atomic_read_u64(&slot->reads) + MOST_READS);
}

/* The history that goes with the index's file, and how often it was read. */
static uint64
note_reads(LsmIndexSlot *slot, LsmIndex *index, uint64 next_id, LsmReadHistory *history)
{
	uint64		reads;

	LWLockAcquire(lsm_shared->lock, LW_EXCLUSIVE);
	if (memcmp(&slot->history_of, &index->locator, sizeof(LsmLocator)) != 0)
	{
		/* A new file gives out its ids from the first one on. */
		memset(&slot->history, 0, sizeof(LsmReadHistory));
		slot->history_of = index->locator;
	}
	/* Under the lock, or somebody might have noted more already. */
	reads = pg_atomic_read_u64(&slot->reads);
	lsm_read_history_note(&slot->history, reads, next_id);
	*history = slot->history;
	LWLockRelease(lsm_shared->lock);
	return reads;
}

/*
 * Is there a job that readers have paid for?  If not, a worker is to look again
 * when there may be.
 */
bool
lsm_request_for_readers(LsmIndex *index, const LsmVersion *version, LsmJob *job)
{
	LsmIndexSlot *slot = lsm_slot_get(index->rel);
	LsmReadHistory history;
	uint64		since[LSM_MAX_RUNS];
	uint64		reads;
	uint64		wait;

	if (slot == NULL)
		return false;
	reads = note_reads(slot, index, version->next_id, &history);
	for (uint32 i = 0; i < version->run_count; i++)
		since[i] = lsm_read_history_since(&history, version->runs[i].run_id, reads);
	if (lsm_pick_for_readers(version->runs, version->run_count, lsm_fanout(index->rel), since,
							 job, &wait))
		return true;
	if (wait < MOST_READS)
		expect_reads(slot, wait);
	return false;
}

/*
 * A writer has sealed pages: count them, ask for help, and tell how things
 * stand.  Workers can neither see nor lock an index that this transaction has
 * created or rewritten.
 */
void
lsm_request_help(LsmIndex *index, Relation heap, const LsmVersion *version, uint64 sealed,
				 LsmHelp *help)
{
	bool		is_new = lsm_relation_is_new(index->rel) || lsm_relation_is_new(heap);

	memset(help, 0, sizeof(LsmHelp));
	help->slot = lsm_slot_get(index->rel);
	help->sealed = sealed;
	if (help->slot == NULL)
		return;
	pg_atomic_fetch_add_u64(&help->slot->counters[LSM_COUNT_PAGES_FLUSHED], sealed);
	pg_atomic_write_u64(&help->slot->last_write, (uint64) GetCurrentTimestamp());
	help->pressure = note_debt(help->slot, index->rel, version, !is_new, true);
	expect_reads(help->slot, 0);
	help->at_hand = lsm_max_workers > 0 && lsm_shared->launcher_pid != 0 &&
		pg_atomic_read_u32(&help->slot->helpless) == 0 && !is_new;
}

/*
 * Help is at hand, but late: is it time for a step of our own?  Rarely at
 * first, for every page in the end.  `seals` counts the pages sealed so far.
 */
bool
lsm_request_is_turn(const LsmHelp *help, int level, uint64 seals)
{
	uint64		every;

	if (help->pressure == 0)
		return false;
	every = Max(1, LAZY_SEALS * (100 - help->pressure) / 100);
	seals += level * 7;
	return seals / every != (seals - Min(help->sealed, seals)) / every;
}

/* Count the time since `start` as one that large merges have cost a writer. */
void
lsm_request_count_time(LsmIndex *index, instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	lsm_stats_add(index->rel, LSM_COUNT_THROTTLED_US, INSTR_TIME_GET_MICROSEC(now));
}

/* A writer's step of a large job: a small one, so that nobody waits for long. */
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
 * Help is late and at work: give way, the longer the later it is.  No lock is
 * held.
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
	for (uint64 n = 0; n < Min(help->sealed, MOST_DELAYS); n++)
	{
		pgstat_report_wait_start(wait_event);
		pg_usleep(DELAY_US * (long) help->pressure / 100);
		pgstat_report_wait_end();
		CHECK_FOR_INTERRUPTS();
	}
	lsm_request_count_time(index, start);
}

/*
 * Is there work for a worker now?  If only later, *when becomes the earlier of
 * that time and what it was.  The caller holds the lock of the shared table.
 */
bool
lsm_request_due(LsmIndexSlot *slot, TimestampTz now, TimestampTz *when)
{
	TimestampTz due;
	int			claims = lsm_slot_claims(slot);

	if (pg_atomic_read_u64(&slot->key) == 0 || slot->exclusive || claims == LSM_INDEX_CLAIMS)
		return false;
	/* A second worker, and a third, where there is a job for each. */
	if (claims > 0 && claims >= (int) pg_atomic_read_u32(&slot->jobs))
		return false;
	if (pg_atomic_read_u32(&slot->asked) != 0 || pg_atomic_read_u32(&slot->read_check) != 0)
		due = slot->not_before;
	else if (pg_atomic_read_u32(&slot->idle_check) != 0 && lsm_idle_delay_ms >= 0)
	{
		due = (TimestampTz) pg_atomic_read_u64(&slot->last_write) +
			lsm_idle_delay_ms * INT64CONST(1000);
		due = Max(due, slot->not_before);
	}
	else
		return false;
	if (due <= now)
		return true;
	*when = Min(*when, due);
	return false;
}
