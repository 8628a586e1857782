/*
 * truncate.c
 *	  Truncates free space at the end of the index file.  VACUUM does this when it cleans up the
 *	  index.  After a parallel VACUUM, a background worker of pg_lsm does it, because in parallel
 *	  mode VACUUM cannot assign the transaction ID that the lock needs.
 *
 * Truncation takes AccessExclusiveLock, so that nobody has the index open, here or on a standby.
 * As for tables, truncation does not wait for the lock.  The lock is logged, and a standby holds it
 * until the (sub)transaction that took it ends.  After truncating a table, VACUUM soon commits.
 * After truncating an index, however, VACUUM may clean up other indexes for hours.  So we truncate
 * in a subtransaction and abort it.  Then standbys normally release the lock at once.  (If a
 * checkpoint or the background writer logs the running transactions while we hold the lock, it logs
 * the lock as held by the whole transaction.  Standbys then keep it until VACUUM ends.)  The abort
 * undoes nothing: neither edits nor the length of a file are transactional.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "base/compat.h"
#include "base/stop_point.h"
#include "commands/progress.h"
#include "manifest/manifest.h"
#include "schedule/schedule.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/resowner.h"

/*
 * The smallest number of blocks worth truncating: TRUNCATE_BLOCKS, or 1/TRUNCATE_FRACTION of the
 * file if that is less, but at least TRUNCATE_LEAST.
 */
#define TRUNCATE_BLOCKS		1000
#define TRUNCATE_FRACTION	16
#define TRUNCATE_LEAST		8

/* The progress that this backend reports.  Aborting a subtransaction clears it. */
typedef struct Progress
{
	ProgressCommandType command;
	Oid			relation;
	int64		params[PGSTAT_NUM_PROGRESS_PARAM];
} Progress;

static void
save_progress(Progress *progress)
{
	volatile PgBackendStatus *status = MyBEEntry;

	progress->command = status != NULL ? status->st_progress_command : PROGRESS_COMMAND_INVALID;
	if (progress->command == PROGRESS_COMMAND_INVALID)
		return;
	progress->relation = status->st_progress_command_target;
	for (int i = 0; i < PGSTAT_NUM_PROGRESS_PARAM; i++)
		progress->params[i] = status->st_progress_param[i];
}

static void
restore_progress(const Progress *progress)
{
	int			indexes[PGSTAT_NUM_PROGRESS_PARAM];

	if (progress->command == PROGRESS_COMMAND_INVALID)
		return;
	for (int i = 0; i < PGSTAT_NUM_PROGRESS_PARAM; i++)
		indexes[i] = i;
	pgstat_progress_start_command(progress->command, progress->relation);
	pgstat_progress_update_multi_param(PGSTAT_NUM_PROGRESS_PARAM, indexes, progress->params);
}

static void
abort_subtransaction(MemoryContext context, ResourceOwner owner, const Progress *progress)
{
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	restore_progress(progress);
}

/* Does another session have the index locked? */
static bool
is_in_use(Relation index)
{
	LOCKTAG		tag;
	int			count;
	VirtualTransactionId *holders;

	SET_LOCKTAG_RELATION(tag, index->rd_lockInfo.lockRelId.dbId, index->rd_lockInfo.lockRelId.relId);
	holders = GetLockConflicts(&tag, AccessExclusiveLock, &count);
	pfree(holders);
	return count > 0;
}

/*
 * Truncate the file.  Returns false if somebody has the index open.  After an error, this function
 * also ends the subtransaction, and then raises the error again.  Otherwise the session would stay
 * in an aborted transaction block that nobody began.
 */
static bool
truncate_in_subtransaction(LsmIndex *index, BlockNumber least)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	Progress	progress;
	volatile bool locked = false;

	/* An attempt to get the lock assigns transaction IDs, even if it fails. */
	if (is_in_use(index->rel))
		return false;
	save_progress(&progress);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		locked = ConditionalLockRelation(index->rel, AccessExclusiveLock);
		if (locked)
		{
			/* Holds AccessExclusiveLock on the index.  Standbys hold it, too. */
			LSM_STOP_POINT("truncate-lock");
			lsm_manifest_truncate(index, least);
		}
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		abort_subtransaction(context, owner, &progress);
		ReThrowError(error);
	}
	PG_END_TRY();
	abort_subtransaction(context, owner, &progress);

	/*
	 * Standbys learn of the release only when its WAL is flushed.  Without this flush, that could
	 * take a while.
	 */
	if (locked && XLogStandbyInfoActive())
		XLogFlush(XactLastRecEnd);
	return locked;
}

/* Does the table's vacuum_truncate allow truncation?  Caller holds a lock on the table. */
static bool
is_truncation_allowed(LsmIndex *index)
{
	Relation	table = table_open(index->rel->rd_index->indrelid, NoLock);
	bool		allowed = lsm_vacuum_truncates(table);

	table_close(table, NoLock);
	return allowed;
}

/* Returns the least number of blocks to truncate, or 0 if the file has fewer free blocks. */
static BlockNumber
worthwhile_blocks(LsmIndex *index)
{
	LsmVersion *version = lsm_version_read(index);
	BlockNumber blocks = RelationGetNumberOfBlocks(index->rel);
	BlockNumber worth = Max(Min(TRUNCATE_BLOCKS, blocks / TRUNCATE_FRACTION), TRUNCATE_LEAST);
	BlockNumber possible = version->space.free_blocks + (blocks - Min(blocks, version->space.mapped_end));

	pfree(version);
	return possible < worth ? 0 : worth;
}

/* Is truncation worthwhile, and does the table allow it?  Caller holds a lock on the table. */
bool
lsm_truncation_is_wanted(LsmIndex *index)
{
	return worthwhile_blocks(index) > 0 && is_truncation_allowed(index);
}

/*
 * Truncate the free end of the file if it is large enough.  Returns false if somebody has the index
 * open.  We take the lock only if truncation is worthwhile, because queries on a standby wait for
 * the lock or are canceled.
 */
bool
lsm_truncate(LsmIndex *index)
{
	BlockNumber worth = worthwhile_blocks(index);

	return worth == 0 ||
		RelationGetNumberOfBlocks(index->rel) < lsm_manifest_used_end(index) + worth ||
		truncate_in_subtransaction(index, worth);
}
