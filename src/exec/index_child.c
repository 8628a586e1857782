/*
 * index_child.c
 *	  Gives access to core's node below the prefetching scan: an index scan or index-only scan.
 *
 * The two node states have different types with nearly the same fields. This file knows where the
 * fields are, so that prefetch_scan.c need not know the type of the state. It also contains the
 * functions that only index-only scans need.
 */
#include "postgres.h"

#include "access/genam.h"
#include "base/compat.h"
#include "exec/index_child.h"
#include "executor/executor.h"
#include "utils/rel.h"

/* Set up the child. Core has initialized the node. The node must have no ordering operators. */
void
lsm_child_init(LsmIndexChild *child, PlanState *node)
{
	ScanDirection direction;

	memset(child, 0, sizeof(LsmIndexChild));
	if (IsA(node, IndexOnlyScanState))
	{
		IndexOnlyScanState *state = (IndexOnlyScanState *) node;

		direction = ((IndexOnlyScan *) node->plan)->indexorderdir;
		child->node = &state->ss;
		child->index = state->ioss_RelationDesc;
		child->scan = &state->ioss_ScanDesc;
		child->keys = &state->ioss_ScanKeys;
		child->key_count = &state->ioss_NumScanKeys;
		child->runtime_key_count = &state->ioss_NumRuntimeKeys;
		child->keys_are_ready = &state->ioss_RuntimeKeysReady;
		child->conditions = state->recheckqual;
		child->heap_slot = state->ioss_TableSlot;
		child->map = &state->ioss_VMBuffer;
	}
	else
	{
		IndexScanState *state = castNode(IndexScanState, node);

		direction = ((IndexScan *) node->plan)->indexorderdir;
		child->node = &state->ss;
		child->index = state->iss_RelationDesc;
		child->scan = &state->iss_ScanDesc;
		child->keys = &state->iss_ScanKeys;
		child->key_count = &state->iss_NumScanKeys;
		child->runtime_key_count = &state->iss_NumRuntimeKeys;
		child->keys_are_ready = &state->iss_RuntimeKeysReady;
		child->conditions = state->indexqualorig;
		child->heap_slot = state->ss.ss_ScanTupleSlot;
	}
	child->direction = ScanDirectionIsBackward(direction) ? BackwardScanDirection :
		ForwardScanDirection;
}

/* Start the index scan, or start it over, with the current keys. */
void
lsm_child_rescan_index(const LsmIndexChild *child)
{
	index_rescan(*child->scan, *child->keys, *child->key_count, NULL, 0);
}

/* Returns the index scan. Begins it on the first call, as core does. */
IndexScanDesc
lsm_child_open_index(const LsmIndexChild *child)
{
	if (*child->runtime_key_count > 0 && !*child->keys_are_ready)
		ExecReScan(&child->node->ps);
	if (*child->scan == NULL)
	{
		*child->scan = lsm_begin_index_scan(child->node, child->index, *child->key_count);
		(*child->scan)->xs_want_itup = lsm_child_is_index_only(child);
		lsm_child_rescan_index(child);
	}
	return *child->scan;
}

/*
 * Set the TID in the slot. WHERE CURRENT OF treats our node as a table scan and finds the
 * current row in this slot.
 */
static void
set_place(const LsmIndexChild *child, ItemPointer place)
{
	TupleTableSlot *slot = child->node->ss_ScanTupleSlot;

	slot->tts_tid = *place;
	slot->tts_tableOid = RelationGetRelid(child->node->ss_currentRelation);
}

/*
 * Index-only: put the row of this index entry into the node's slot. The row is valid as long as the
 * entry.
 */
void
lsm_child_store_entry(const LsmIndexChild *child, IndexTuple entry, ItemPointer place)
{
	TupleTableSlot *slot = child->node->ss_ScanTupleSlot;
	TupleDesc	columns = (*child->scan)->xs_itupdesc;

	Assert(entry != NULL && slot->tts_tupleDescriptor->natts == columns->natts);
	ExecClearTuple(slot);
	index_deform_tuple(entry, columns, slot->tts_values, slot->tts_isnull);
	ExecStoreVirtualTuple(slot);
	set_place(child, place);
}

/*
 * Index-only: put the columns of the table row in heap_slot into the node's slot.
 * REQUIRES: the index has no expressions.
 */
void
lsm_child_store_row(const LsmIndexChild *child)
{
	TupleTableSlot *slot = child->node->ss_ScanTupleSlot;

	ExecClearTuple(slot);
	for (int i = 0; i < slot->tts_tupleDescriptor->natts; i++)
		slot->tts_values[i] = slot_getattr(child->heap_slot,
										   child->index->rd_index->indkey.values[i],
										   &slot->tts_isnull[i]);
	ExecStoreVirtualTuple(slot);
	set_place(child, &child->heap_slot->tts_tid);
}

/* Index-only: set the TID after core has put a row into the slot. */
void
lsm_child_note_place(const LsmIndexChild *child)
{
	if (lsm_child_is_index_only(child) && *child->scan != NULL &&
		!TupIsNull(child->node->ss_ScanTupleSlot))
		set_place(child, &(*child->scan)->xs_heaptid);
}
