/*
 * index_child.h
 *	  Gives access to core's node below the prefetching scan: an index scan or index-only scan.
 */
#ifndef LSM_INDEX_CHILD_H
#define LSM_INDEX_CHILD_H

#include "postgres.h"

#include "access/itup.h"
#include "access/relscan.h"
#include "access/sdir.h"
#include "access/visibilitymap.h"
#include "nodes/execnodes.h"
#include "storage/buf.h"
#include "storage/itemptr.h"

/* The fields that both kinds of nodes have. */
typedef struct LsmIndexChild
{
	ScanState  *node;			/* one of the two states */
	Relation	index;
	IndexScanDesc *scan;		/* the node's field; holds NULL before the scan begins */
	ScanDirection direction;	/* of the plan; forward if unordered */
	/*
	 * The node's keys. Before PostgreSQL 18, planner/row_compare.c adds keys for row comparisons.
	 */
	struct ScanKeyData **keys;
	int		   *key_count;
	int		   *runtime_key_count;
	bool	   *keys_are_ready;
	ExprState  *conditions;		/* rechecks rows if the index is lossy */
	TupleTableSlot *heap_slot;	/* for a table row */
	Buffer	   *map;			/* index-only: the node's pin on the visibility map; else NULL */
} LsmIndexChild;

extern void lsm_child_init(LsmIndexChild *child, PlanState *node);
extern void lsm_child_rescan_index(const LsmIndexChild *child);
extern IndexScanDesc lsm_child_open_index(const LsmIndexChild *child);
extern void lsm_child_store_entry(const LsmIndexChild *child, IndexTuple entry, ItemPointer place);
extern void lsm_child_store_row(const LsmIndexChild *child);
extern void lsm_child_note_place(const LsmIndexChild *child);

/* Returns whether the scan reads only those table pages that are not all-visible. */
static inline bool
lsm_child_is_index_only(const LsmIndexChild *child)
{
	return child->map != NULL;
}

/* Index-only: count TIDs that had to be looked up in the table. */
static inline void
lsm_child_count_fetches(const LsmIndexChild *child, int count)
{
	if (lsm_child_is_index_only(child))
		InstrCountTuples2(child->node, count);
}

#endif							/* LSM_INDEX_CHILD_H */
