/*
 * check_progress.c
 *	  Reports the progress of lsm_check, and shows it in pg_stat_progress_lsm_check.
 *
 * A check reports to its slot in shared memory without a lock, once for each page.  A reader of the
 * view may see fields from different moments.
 */
#include "postgres.h"

#include "base/stop_point.h"
#include "fmgr.h"
#include "funcapi.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(lsm_stat_check_progress);

/* --- reporting -------------------------------------------------------------- */

/* Begin a phase that reads `blocks` blocks of the index. */
void
lsm_check_begin_phase(LsmCheck *c, LsmCheckPhase phase, uint64 blocks)
{
	c->blocks_total = blocks;
	c->blocks_done = 0;
	if (c->slot == NULL)
		return;
	pg_atomic_write_u32(&c->slot->blocks_done, 0);
	pg_atomic_write_u32(&c->slot->blocks_total, (uint32) Min(blocks, PG_UINT32_MAX));
	pg_atomic_write_u32(&c->slot->phase, phase);
}

/* Begin a phase that reads all entries in order. */
void
lsm_check_begin_reading(LsmCheck *c, LsmCheckPhase phase, const LsmReader *reader)
{
	uint64		blocks = 0;

	for (int i = 0; i < reader->child_count; i++)
		blocks += Max(reader->child_leaves[i], 1);
	lsm_check_begin_phase(c, phase, blocks);
}

/* Called when the scan of the table begins. */
void
lsm_check_begin_table(LsmCheck *c)
{
	lsm_check_begin_phase(c, LSM_CHECK_TABLE, 0);
	c->heap_blocks = RelationGetNumberOfBlocks(c->heap);
	c->heap_first = InvalidBlockNumber;
	c->heap_at = InvalidBlockNumber;
	if (c->slot != NULL)
		pg_atomic_write_u32(&c->slot->heap_total, c->heap_blocks);
}

/* Called when the scan of the table ends.  The table's last blocks may have no rows. */
void
lsm_check_end_table(LsmCheck *c)
{
	if (c->slot != NULL)
		pg_atomic_write_u32(&c->slot->heap_done, c->heap_blocks);
}

/*
 * Show c->blocks_done.  Readers read some pages again, and pages above the leaves, so the number
 * can exceed the total.
 */
void
lsm_check_show_blocks(LsmCheck *c)
{
	if (c->slot != NULL)
		pg_atomic_write_u32(&c->slot->blocks_done,
							(uint32) Min(Min(c->blocks_done, c->blocks_total), PG_UINT32_MAX));
}

/*
 * Called when the scan of the table has reached another block.  The scan may have begun anywhere,
 * to follow another scan of the table.  After the table's last block, it continues with the first.
 */
void
lsm_check_show_row(LsmCheck *c, BlockNumber block)
{
	uint64		done;

	c->heap_at = block;
	if (c->heap_first == InvalidBlockNumber)
		c->heap_first = block;
	done = (uint64) block + 1 - c->heap_first + (block < c->heap_first ? c->heap_blocks : 0);
	if (c->slot != NULL)
		pg_atomic_write_u32(&c->slot->heap_done, (uint32) Min(done, c->heap_blocks));
	/* Holds the scan's pin on the block. */
	LSM_STOP_POINT("check-table");
}

/* --- the view --------------------------------------------------------------- */

static const char *
phase_name_of_check(LsmCheckSlot *slot)
{
	switch ((LsmCheckPhase) pg_atomic_read_u32(&slot->phase))
	{
		case LSM_CHECK_MANIFEST:
			return "checking manifest";
		case LSM_CHECK_SEGMENTS:
			return "checking segments";
		case LSM_CHECK_TABLE:
			return "comparing with table";
		case LSM_CHECK_DUPLICATES:
			return "checking for duplicate entries";
		case LSM_CHECK_UNIQUE:
			return "checking unique keys";
	}
	return "unknown";
}

static void
put_check(ReturnSetInfo *result, LsmCheckSlot *slot)
{
	Datum		details[LSM_PROGRESS_DETAILS];
	Oid			database;
	Oid			index;
	int			pid;

	LWLockAcquire(lsm_shared->lock, LW_SHARED);
	pid = slot->pid;
	database = slot->database;
	index = slot->index;
	LWLockRelease(lsm_shared->lock);
	if (pid == 0)
		return;
	details[0] = CStringGetTextDatum(phase_name_of_check(slot));
	details[1] = Int64GetDatum(pg_atomic_read_u32(&slot->blocks_total));
	details[2] = Int64GetDatum(pg_atomic_read_u32(&slot->blocks_done));
	details[3] = Int64GetDatum(pg_atomic_read_u32(&slot->heap_total));
	details[4] = Int64GetDatum(pg_atomic_read_u32(&slot->heap_done));
	lsm_stats_put_progress(result, pid, database, index, details);
}

/*
 * lsm_stat_check_progress(): returns a row for each process that runs lsm_check, in all databases.
 */
Datum
lsm_stat_check_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	lsm_init_set(fcinfo, LSM_PROGRESS_COLUMNS);
	for (int i = 0; lsm_shared != NULL && i < LSM_CHECK_SLOTS; i++)
		put_check(result, &lsm_shared->checks[i]);
	return (Datum) 0;
}
