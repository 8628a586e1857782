/*
 * insert.c
 *	  aminsert: one entry into the write buffer, sealing and merging as needed.
 */
#include "postgres.h"

#include "am/am.h"
#include "base/preload.h"
#include "compact/compact.h"
#include "manifest/manifest.h"
#include "memtable/memtable.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "utils/memutils.h"

/* Kept in IndexInfo.ii_AmCache for the length of a statement. */
typedef struct InsertState
{
	LsmKeySpace *ks;
	MemoryContext context;		/* reset after each row */
} InsertState;

static InsertState *
get_state(Relation index, IndexInfo *info)
{
	InsertState *state = info->ii_AmCache;
	MemoryContext old;

	if (state != NULL)
		return state;
	old = MemoryContextSwitchTo(info->ii_Context);
	state = palloc(sizeof(InsertState));
	state->ks = lsm_keyspace_create(index);
	state->context = AllocSetContextCreate(info->ii_Context, "pg_lsm insert",
										   ALLOCSET_DEFAULT_SIZES);
	info->ii_AmCache = state;
	MemoryContextSwitchTo(old);
	return state;
}

/* Seal the page run_id (0: none is open), making room first if need be. */
static bool
seal(Relation index, Relation heap, LsmKeySpace *ks, uint64 run_id, uint64 *seals)
{
	for (;;)
	{
		switch (lsm_manifest_seal(index, heap, ks->has_rest, run_id, seals))
		{
			case LSM_SEALED:
				return run_id != 0;
			case LSM_SEAL_RACED:
				return false;
			case LSM_SEAL_NO_ROOM:
				lsm_compact_make_room(index, heap, ks);
				break;
		}
	}
}

bool
lsm_am_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			  Relation heap, IndexUniqueCheck check_unique, bool unchanged,
			  IndexInfo *info)
{
	InsertState *state;
	MemoryContext old;
	LsmEntry	entry;
	uint64		seals = 0;
	uint64		closed_run_id = 0;
	bool		sealed = false;

	lsm_require_preload();
	state = get_state(index, info);
	old = MemoryContextSwitchTo(state->context);
	lsm_keyspace_form(state->ks, values, isnull, tid, &entry);
	for (;;)
	{
		BlockNumber block;
		uint64		run_id;
		LsmInsertResult result;

		if (!lsm_manifest_open_page(index, &block, &run_id))
		{
			seal(index, heap, state->ks, 0, &seals);
			continue;
		}
		result = lsm_memtable_insert(index, state->ks, block, run_id, &entry);
		if (result == LSM_INSERTED)
			break;
		if (result == LSM_INSERT_FULL)
			sealed |= seal(index, heap, state->ks, run_id, &seals);
		else
		{
			/* Sealed since: then the manifest names another page by now (I7). */
			if (run_id == closed_run_id)
				lsm_report_corruption(index, block, "page is not the open one that the manifest says");
			closed_run_id = run_id;
		}
		CHECK_FOR_INTERRUPTS();
	}
	lsm_stats_add(index, LSM_COUNT_ENTRIES, 1);
	if (sealed)
		lsm_compact_after_seal(index, heap, state->ks, seals);
	MemoryContextSwitchTo(old);
	MemoryContextReset(state->context);
	return false;
}
