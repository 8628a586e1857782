/*
 * look_ahead_state.h
 *	  Declares the state of an INSERT ... ON CONFLICT that takes rows ahead.  For this directory
 *	  only.
 */
#ifndef LSM_LOOK_AHEAD_STATE_H
#define LSM_LOOK_AHEAD_STATE_H

#include "executor/executor.h"
#include "unique/unique.h"

/* Rows taken at once: as many as the keys that one probe of a run handles (LSM_ROUND_KEYS). */
#define LSM_ROWS_AHEAD	256

/* The state of a statement.  Freed with its executor's memory. */
typedef struct LsmLookAhead
{
	ResultRelInfo *target;
	ModifyTableState *state;
	PlanState  *source;			/* the plan below */
	ExecProcNodeMtd source_method;	/* the source's own function */
	TupleDesc	descriptor;		/* of the rows */
	MemoryContext statement_context;
	MemoryContext row_context;	/* of the rows, up to work_mem */
	bool		ended;			/* the source has no more rows */
	int			count;			/* rows taken */
	int			next;			/* the first row not handed on yet */
	TupleTableSlot *rows[LSM_ROWS_AHEAD];

	/* Prefetch of the table's pages. */
	int			asked;			/* the first row whose page was not requested yet */
	int			ahead;			/* further rows whose pages may be requested now */
	int			missing;		/* requested pages that were not in memory */

	/* Keys, look_ahead_keys.c. */
	bool		is_decided;		/* the index is chosen */
	Relation	index;			/* the index to search, or NULL */
	IndexInfo  *info;			/* of the index */
	LsmUnique  *unique;			/* searches for keys; keeps its reader, which has filters */
	LsmKeySpace *ks;
	MemoryContext key_context;	/* until the next keys */
	LsmLookedFor keys;			/* what we know about the rows' keys */
	BlockNumber blocks[LSM_ROWS_AHEAD]; /* of the rows in the table that have the keys, or invalid */
	bool		absent[LSM_ROWS_AHEAD]; /* the index had no entry with the row's key */
	bool		skips_checks;	/* the executor need not look for absent keys */

	/* DO NOTHING, keep_back.c. */
	bool		keeps_back;		/* rows with a conflict need not be handed on */
	bool		conflicts[LSM_ROWS_AHEAD];	/* the row may be kept back; its block is not prefetched */

	MemoryContextCallback on_reset;
	struct LsmLookAhead *outer; /* of the outer statement */
} LsmLookAhead;

/* Is this index an arbiter? */
static inline bool
lsm_look_ahead_is_arbiter(const LsmLookAhead *a, Relation index)
{
	return a->target->ri_onConflictArbiterIndexes == NIL ||
		list_member_oid(a->target->ri_onConflictArbiterIndexes, RelationGetRelid(index));
}

/* look_ahead_keys.c */
extern void lsm_look_ahead_choose_index(LsmLookAhead *a);
extern void lsm_look_ahead_find_keys(LsmLookAhead *a);
extern void lsm_look_ahead_forget_keys(LsmLookAhead *a);

/* keep_back.c */
extern bool lsm_keep_back_is_possible(const LsmLookAhead *a);
extern bool lsm_keep_back_is_visible(const LsmLookAhead *a, BlockNumber block, Buffer *map);
extern bool lsm_keep_back_row(LsmLookAhead *a, int row);

#endif							/* LSM_LOOK_AHEAD_STATE_H */
