/*
 * insert.c
 *	  aminsert: puts an entry into the batch of its statement, or into the write buffer.
 */
#include "postgres.h"

#include "am/am.h"
#include "base/counts.h"
#include "base/preload.h"
#include "base/stop_point.h"
#include "ingest/batch.h"
#include "ingest/ingest.h"
#include "ingest/statement.h"
#include "key/comparing.h"
#include "read/reader.h"
#include "storage/ssi.h"
#include "schedule/schedule.h"
#include "unique/unique.h"
#include "utils/memutils.h"

/* Kept in IndexInfo.ii_AmCache for the duration of a statement. */
typedef struct InsertState
{
	LsmIndex   *index;
	LsmKeySpace *ks;
	MemoryContext context;		/* reset after each row; NULL before the second */
	bool		again;			/* not the first row */
	LsmBatch   *batch;			/* valid while lsm_batch_generation equals generation */
	uint64		generation;
	int			rows;			/* inserted one by one so far */
	bool		shows_rows;		/* unique: triggers may see rows before a batch is checked */
	LsmUnique  *unique;			/* NULL before the first check */
} InsertState;

static InsertState *
get_insert_state(Relation index, Relation heap, IndexInfo *info)
{
	InsertState *state = info->ii_AmCache;
	MemoryContext old;

	if (state != NULL)
		return state;
	old = MemoryContextSwitchTo(info->ii_Context);
	state = palloc0(sizeof(InsertState));
	state->index = lsm_index_open(index);
	state->ks = lsm_index_keyspace(state->index);
	info->ii_AmCache = state;
	MemoryContextSwitchTo(old);
	state->shows_rows = index->rd_index->indisunique && lsm_statement_shows_rows(heap);
	return state;
}

/*
 * Returns the memory context for a row.  The first row uses the current one, since most statements
 * insert only one row.
 */
static MemoryContext
get_row_context(InsertState *state, IndexInfo *info)
{
	if (!state->again)
	{
		state->again = true;
		return CurrentMemoryContext;
	}
	if (state->context == NULL)
		state->context = AllocSetContextCreate(info->ii_Context, "pg_lsm insert",
											   ALLOCSET_DEFAULT_SIZES);
	return state->context;
}

static void
insert_singly(InsertState *state, Relation heap, const LsmEntry *entry)
{
	uint64		seals;
	bool		sealed = lsm_insert_entry(state->index, heap, state->ks, entry, &seals);

	lsm_ssi_check(state->ks, state->index->rel, entry);
	if (sealed)
		lsm_schedule_after_seal(state->index, heap, seals - 1, seals);
}

static LsmUnique *
get_unique(InsertState *state, IndexInfo *info)
{
	MemoryContext old;

	if (state->unique != NULL)
		return state->unique;
	old = MemoryContextSwitchTo(info->ii_Context);
	state->unique = lsm_unique_create(state->index, state->ks);
	MemoryContextSwitchTo(old);
	return state->unique;
}

/*
 * Check that the key is unique.  Insert the entry, unless mode says that the entry is already in
 * the index.  Returns whether the key is known to be unique.
 */
static bool
insert_unique(InsertState *state, Relation heap, const LsmEntry *entry, IndexUniqueCheck mode,
			  IndexInfo *info)
{
	LsmUnique  *unique = get_unique(state, info);
	bool		is_unique;
	bool		sealed;
	uint64		seals;

	if (mode == UNIQUE_CHECK_EXISTING)
	{
		lsm_unique_check_existing(unique, heap, entry);
		return true;
	}
	/* The check must see the entries that wait in a batch. */
	lsm_batch_flush_index(state->index->rel);
	is_unique = lsm_unique_lock_and_check(unique, heap, entry, mode);
	/*
	 * The insert holds the publish lock in share mode and the key lock, or the publish lock
	 * exclusively.  The check is done, but the entry is not in the index yet.
	 */
	LSM_STOP_POINT("unique-probed");
	sealed = lsm_insert_entry(state->index, heap, state->ks, entry, &seals);
	lsm_unique_unlock(unique);
	lsm_ssi_check(state->ks, state->index->rel, entry);
	if (sealed)
		lsm_schedule_after_seal(state->index, heap, seals - 1, seals);
	return is_unique;
}

static LsmBatch *
get_batch(InsertState *state, Relation index, Relation heap)
{
	if (state->batch == NULL || state->generation != lsm_batch_generation)
	{
		state->batch = lsm_batch_get(index, heap);
		state->generation = lsm_batch_generation;
	}
	return state->batch;
}

/*
 * May this entry wait in a batch?  If so, and if the index is unique, prepares the batch for
 * entries of this statement.
 */
static bool
prepare_to_wait(InsertState *state, Relation index, Relation heap, IndexUniqueCheck mode,
				IndexInfo *info, CommandId *seen_from)
{
	uint64		statement;

	if (!index->rd_index->indisunique)
		return lsm_statement_batches(info, state->ks->runs_user_code, state->rows, seen_from);
	return mode == UNIQUE_CHECK_YES && !state->shows_rows &&
		lsm_statement_batches_unique(info, state->rows, seen_from, &statement) &&
		lsm_batch_begin_guarded(get_batch(state, index, heap), &lsm_unique_guard, statement);
}

bool
lsm_am_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			  Relation heap, IndexUniqueCheck check_unique, bool unchanged,
			  IndexInfo *info)
{
	InsertState *state;
	MemoryContext old;
	LsmEntry	entry;
	CommandId	seen_from;
	bool		is_unique = true;

	lsm_require_preload("Or use DROP INDEX, so that the table can be written to without it.");
	lsm_compare_check(index);
	state = get_insert_state(index, heap, info);
	old = MemoryContextSwitchTo(get_row_context(state, info));
	lsm_keyspace_form(state->ks, values, isnull, tid, &entry);
	if (prepare_to_wait(state, index, heap, check_unique, info, &seen_from))
	{
		/* Release the reader, so that the batch's check can use it and its filters. */
		if (state->unique != NULL)
			lsm_unique_end(state->unique);
		lsm_batch_add(get_batch(state, index, heap), index, heap, &entry, seen_from);
	}
	else
	{
		if (check_unique != UNIQUE_CHECK_NO && !lsm_nulls_may_repeat(state->ks, index, isnull))
		{
			is_unique = insert_unique(state, heap, &entry, check_unique, info);
			if (lsm_reader_is_crowded())
				lsm_unique_end(state->unique);
		}
		else if (check_unique != UNIQUE_CHECK_EXISTING)
			insert_singly(state, heap, &entry);
		state->rows++;
		/* The entries of a batch are counted when the batch is written. */
		if (check_unique != UNIQUE_CHECK_EXISTING)
			lsm_stats_add(index, LSM_COUNT_ENTRIES, 1);
	}
	MemoryContextSwitchTo(old);
	if (state->context != NULL)
		MemoryContextReset(state->context);
	/* If ON CONFLICT skipped its check (unique/look_ahead.c), make it check when it tries again. */
	if (!is_unique)
		info->ii_Unique = true;
	return is_unique;
}
