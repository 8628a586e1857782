/*
 * look_ahead_keys.c
 *	  INSERT ... ON CONFLICT of many rows: finds out which keys of the taken rows exist.
 *
 * This file searches for the keys of all taken rows together, as for a batch of a unique index.
 * The search finds the table block that each existing key leads to.  Later searches for a missing
 * key can skip the runs that this search has read (read/looked_for.c).
 */
#include "postgres.h"

#include "access/detoast.h"
#include "base/io_depth.h"
#include "base/limits.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "scan/scan.h"
#include "schedule/schedule.h"
#include "unique/look_ahead_state.h"
#include "utils/memutils.h"

/* A key with longer variable-length values is not searched for: it may be too long for the index. */
#define LONGEST_VALUES	(LSM_MAX_ENTRY_SIZE / 4)

/* --- the index --------------------------------------------------------------- */

/* Can we form keys of this index from a row of the plan, and search for them together? */
static bool
can_find_keys(Relation index, const IndexInfo *info)
{
	return lsm_is_own(index) && info->ii_Unique &&
		info->ii_ReadyForInserts && info->ii_Expressions == NIL && info->ii_Predicate == NIL &&
		lsm_index_open(index)->ks->hashing.least_columns > 0;
}

/* Does each row probably get a new key in this index, for example from a sequence? */
static bool
generates_keys(const LsmLookAhead *a, const IndexInfo *info)
{
	List	   *columns = a->source->plan->targetlist;

	for (int i = 0; i < info->ii_NumIndexKeyAttrs; i++)
	{
		if (contain_volatile_functions(list_nth(columns, info->ii_IndexAttrNumbers[i] - 1)))
			return true;
	}
	return false;
}

/* Is this index the only one that can have a conflict? */
static bool
is_only_constraint(const ResultRelInfo *target, Relation index)
{
	for (int i = 0; i < target->ri_NumIndices; i++)
	{
		const IndexInfo *info = target->ri_IndexRelationInfo[i];

		if (target->ri_IndexRelationDescs[i] != index &&
			(info->ii_Unique || info->ii_ExclusionOps != NULL))
			return false;
	}
	return true;
}

/*
 * May the executor skip its check for rows whose keys are absent?  The executor skips the check if
 * the index's description says that it is not unique.  But if the statement names arbiters and none
 * of them is checked, the executor raises an error.  If the table has no other unique or exclusion
 * constraint, this function removes the name.
 */
static bool
may_skip_checks(LsmLookAhead *a)
{
	if (!lsm_look_ahead_is_arbiter(a, a->index) || !a->index->rd_index->indimmediate)
		return false;
	if (a->target->ri_onConflictArbiterIndexes != NIL)
	{
		if (!is_only_constraint(a->target, a->index))
			return false;
		a->target->ri_onConflictArbiterIndexes = NIL;
	}
	return true;
}

/*
 * Choose the index to search.  Prefers an arbiter, then an index whose keys may exist.
 * REQUIRES: core has opened the indexes.
 */
void
lsm_look_ahead_choose_index(LsmLookAhead *a)
{
	ResultRelInfo *target = a->target;
	int			best = 0;

	if (target->ri_IndexRelationDescs == NULL)
		return;
	a->is_decided = true;
	for (int i = 0; i < target->ri_NumIndices; i++)
	{
		Relation	index = target->ri_IndexRelationDescs[i];
		IndexInfo  *info = target->ri_IndexRelationInfo[i];
		int			rank;

		if (index == NULL || !can_find_keys(index, info))
			continue;
		rank = 1 + !generates_keys(a, info) + 2 * lsm_look_ahead_is_arbiter(a, index);
		if (rank <= best)
			continue;
		best = rank;
		a->index = index;
		a->info = info;
	}
	if (a->index == NULL)
		return;
	a->keeps_back = lsm_keep_back_is_possible(a);
	a->skips_checks = may_skip_checks(a);
}

/* --- keys -------------------------------------------------------------------- */

/* Returns the block of an entry's TID. */
static inline BlockNumber
block_of_tid(uint64 tid)
{
	return (BlockNumber) (tid >> 16);
}

/*
 * Form the key of a row, with the row's number as the block of the TID.  Returns false if we should
 * not search for the key.
 */
static bool
form_row_key(LsmKeySpace *ks, const IndexInfo *info, TupleTableSlot *row, int number,
			 LsmEntry *entry)
{
	Datum		values[INDEX_MAX_KEYS] = {0};
	bool		isnull[INDEX_MAX_KEYS];
	Size		strings = 0;
	ItemPointerData tid;

	for (int i = 0; i < info->ii_NumIndexAttrs; i++)
	{
		/* Included columns do not matter. */
		isnull[i] = true;
		if (i >= info->ii_NumIndexKeyAttrs)
			continue;
		values[i] = slot_getattr(row, info->ii_IndexAttrNumbers[i], &isnull[i]);
		if (isnull[i])
			return false;
		if (ks->columns[i].typlen == -1)
			strings += toast_raw_datum_size(values[i]);
	}
	if (strings > LONGEST_VALUES)
		return false;
	ItemPointerSet(&tid, number, FirstOffsetNumber);
	lsm_keyspace_form(ks, values, isnull, &tid, entry);
	return true;
}

/*
 * Find out which table blocks the keys lead to, and which rows can be kept back.  While the reader
 * pins the gate, no TID that it finds can be reused for another row.  Rows with the same key lead to the
 * same block.
 */
static void
find_blocks(LsmLookAhead *a)
{
	BlockNumber end = RelationGetNumberOfBlocks(a->target->ri_RelationDesc);
	LsmReader  *reader = lsm_unique_reader(a->unique, a->keeps_back);
	LsmBound	bounds[2] = {0};
	Buffer		map = InvalidBuffer;
	BlockNumber block = InvalidBlockNumber;
	bool		conflicts = false;

	for (Size i = 0; i < a->keys.count; i++)
	{
		const LsmProbe *probe = &a->keys.probes[i];
		int			number = block_of_tid(probe->entry.tid);

		CHECK_FOR_INTERRUPTS();
		if (!probe->repeats)
		{
			if (lsm_reader_must_leave(reader))
				reader = lsm_unique_reader(a->unique, a->keeps_back);
			block = InvalidBlockNumber;
			if (probe->found && lsm_reader_seek_key(reader, &probe->entry, bounds))
				block = block_of_tid(lsm_reader_entry(reader)->tid);
			/*
			 * Without the gate, the TID may be out of date.  The table may also have grown
			 * meanwhile.
			 */
			if (block >= end)
				block = InvalidBlockNumber;
			conflicts = a->keeps_back && BlockNumberIsValid(block) &&
				lsm_keep_back_is_visible(a, block, &map);
		}
		a->blocks[number] = block;
		a->absent[number] = !probe->found && !probe->repeats;
		a->conflicts[number] = conflicts;
	}
	lsm_reader_let_go(reader);
	lsm_reader_count(reader);
	if (BufferIsValid(map))
		ReleaseBuffer(map);
}

/* Forget what we know about the keys. */
void
lsm_look_ahead_forget_keys(LsmLookAhead *a)
{
	lsm_looked_for_release(&a->keys);
	MemoryContextReset(a->key_context);
}

/* Prepare to search for keys until the end of the statement. */
static void
prepare_to_find(LsmLookAhead *a, LsmIndex *index)
{
	MemoryContext old = MemoryContextSwitchTo(a->statement_context);

	a->ks = lsm_index_keyspace(index);
	a->unique = lsm_unique_create(index, a->ks);
	MemoryContextSwitchTo(old);
}

/* Search for the keys of the taken rows. */
void
lsm_look_ahead_find_keys(LsmLookAhead *a)
{
	LsmIndex   *index = lsm_index_open(a->index);
	MemoryContext old = MemoryContextSwitchTo(a->key_context);
	LsmEntries	keys;

	if (a->unique == NULL)
		prepare_to_find(a, index);
	lsm_entries_init(&keys, a->ks, a->key_context);
	for (int i = 0; i < a->count; i++)
	{
		LsmEntry	entry;

		a->blocks[i] = InvalidBlockNumber;
		a->absent[i] = false;
		a->conflicts[i] = false;
		if (form_row_key(a->ks, a->info, a->rows[i], i, &entry))
			lsm_entries_add(&keys, &entry);
	}
	a->ahead = lsm_reads_in_flight(a->target->ri_RelationDesc->rd_rel->reltablespace, false);
	lsm_item_refs_sort(keys.refs, keys.count, a->ks);
	lsm_looked_for_forget();
	lsm_unique_look_for(a->unique, index, a->ks, keys.refs, keys.count, &a->keys);
	find_blocks(a);
	lsm_looked_for_set(index->id, &a->keys);
	MemoryContextSwitchTo(old);
	lsm_request_after_reads(index);
}
