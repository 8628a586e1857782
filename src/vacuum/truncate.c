/*
 * truncate.c
 *	  The end of VACUUM: give the free end of the file back to the system.
 *
 * As for tables, that takes AccessExclusiveLock, conditionally, so that nobody has the
 * index open, here or on a standby.  The lock is logged, and a standby holds it
 * until it sees the (sub)transaction end that has taken it.  For tables that is
 * soon: they are cut last.  But behind us other indexes may be cleaned up for hours, and
 * then the table.  So we cut in a subtransaction, and abort that: normally standbys
 * release the lock at once.  (When a checkpoint or the background writer logs which
 * transactions are running just while we hold the lock, it logs the lock, too, as one
 * of the whole transaction.  Then standbys keep it until VACUUM ends.)  What was done
 * stays: neither edits nor the length of a file depend on how a transaction ends.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "base/compat.h"
#include "base/stop_point.h"
#include "commands/progress.h"
#include "manifest/manifest.h"
#include "storage/lmgr.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/resowner.h"
#include "vacuum/vacuum.h"

/* The file is cut at its end if that gives back so many blocks, or such a part of it. */
#define TRUNCATE_BLOCKS		1000
#define TRUNCATE_FRACTION	16
#define TRUNCATE_LEAST		8

/* What this backend reports of its progress: the end of a subtransaction clears it. */
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

/*
 * Lock the index, if nobody has it open, and cut its file.  An error ends the
 * subtransaction, too: the command must fail outside of it, or the session would be
 * left in a transaction that nobody has begun.
 */
static void
cut_in_subtransaction(LsmIndex *index, BlockNumber least)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	Progress	progress;
	volatile bool locked = false;

	save_progress(&progress);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		locked = ConditionalLockRelation(index->rel, AccessExclusiveLock);
		if (locked)
		{
			/* AccessExclusiveLock on the index, which standbys see. */
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

	/* Standbys get what has been flushed, and nobody else may do that for a while. */
	if (locked && XLogStandbyInfoActive())
		XLogFlush(XactLastRecEnd);
}

/* Whether the table's files may be cut, the index's included.  VACUUM has the table locked. */
static bool
is_allowed(LsmIndex *index)
{
	Relation	table = table_open(index->rel->rd_index->indrelid, NoLock);
	bool		allowed = lsm_vacuum_truncates(table);

	table_close(table, NoLock);
	return allowed;
}

/*
 * Cut off the free end of the file, if that is worth it, and allowed.  The lock is not
 * taken for nothing, since on a standby queries wait for it, or are cancelled.  It needs
 * a transaction id, so none can be had while several processes vacuum the indexes of
 * a table.
 */
void
lsm_truncate(LsmIndex *index)
{
	LsmVersion *version = lsm_version_read(index);
	BlockNumber blocks = RelationGetNumberOfBlocks(index->rel);
	BlockNumber worth = Max(Min(TRUNCATE_BLOCKS, blocks / TRUNCATE_FRACTION), TRUNCATE_LEAST);
	BlockNumber possible = version->space.free_blocks + (blocks - Min(blocks, version->space.mapped_end));

	pfree(version);
	if (!IsInParallelMode() && possible >= worth && is_allowed(index) &&
		blocks >= lsm_manifest_used_end(index) + worth)
		cut_in_subtransaction(index, worth);
}
