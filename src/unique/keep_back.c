/*
 * keep_back.c
 *	  ON CONFLICT DO NOTHING: keeps back rows that would conflict.
 *
 * Suppose the index has an entry with a new row's key, and the entry leads to an all-visible page.
 * Then everybody sees the old row on that page, and nobody has begun to delete it.  DO NOTHING
 * would skip the new row, so look_ahead.c keeps the new row back.  The executor does not search for
 * the key, and nobody reads the table.  Keeping rows back only saves time.  Without this file,
 * look_ahead.c would hand on all rows.
 *
 * Gain: 1.4 times the rate if a tenth of the keys exist, 2.5 times if all do.  (The conditions are
 * in docs/design/on-conflict.md.)  In memory: 1.04 times.
 */
#include "postgres.h"

#include "access/visibilitymap.h"
#include "base/compat.h"
#include "unique/look_ahead_state.h"

/*
 * Could an arbiter that core checks before ours raise an error?  Core raises one for a deferrable
 * arbiter.  If an arbiter has expressions or a predicate, core evaluates them, and they may fail.
 */
static bool
earlier_arbiter_may_fail(const LsmLookAhead *a)
{
	ResultRelInfo *target = a->target;

	for (int i = 0; i < target->ri_NumIndices; i++)
	{
		Relation	index = target->ri_IndexRelationDescs[i];
		IndexInfo  *info = target->ri_IndexRelationInfo[i];

		if (index != NULL && lsm_look_ahead_is_arbiter(a, index) &&
			(!index->rd_index->indimmediate || info->ii_Expressions != NIL ||
			 info->ii_Predicate != NIL))
			return true;
		if (index == a->index)
			break;
	}
	return false;
}

static bool
has_generated_column(TupleDesc descriptor)
{
	for (int i = 0; i < descriptor->natts; i++)
	{
		if (TupleDescAttr(descriptor, i)->attgenerated != '\0')
			return true;
	}
	return false;
}

/*
 * May the statement keep back rows?  Yes, if lsm_keep_back_row does everything that ExecInsert does
 * before searching for the row's key.
 */
bool
lsm_keep_back_is_possible(const LsmLookAhead *a)
{
	ResultRelInfo *target = a->target;

	return ((ModifyTable *) a->state->ps.plan)->onConflictAction == ONCONFLICT_NOTHING &&
		lsm_look_ahead_is_arbiter(a, a->index) && !earlier_arbiter_may_fail(a) &&
		target->ri_WithCheckOptions == NIL && !lsm_old_snapshots_fail() &&
		!has_generated_column(RelationGetDescr(target->ri_RelationDesc));
}

/* Is a page of the table all-visible?  May leave *map pinned. */
bool
lsm_keep_back_is_visible(const LsmLookAhead *a, BlockNumber block, Buffer *map)
{
	return VM_ALL_VISIBLE(a->target->ri_RelationDesc, block, map);
}

/*
 * Does the old row that has the new row's key still exist?  Whoever deletes the old row clears its
 * page's bit in the visibility map, and VACUUM does not set that bit again while our snapshot
 * lives.
 */
static bool
is_conflict_alive(const LsmLookAhead *a, int row)
{
	Buffer		map = InvalidBuffer;
	bool		visible = lsm_keep_back_is_visible(a, a->blocks[row], &map);

	if (BufferIsValid(map))
		ReleaseBuffer(map);
	return visible;
}

/*
 * Keep back a row.  Check its constraints and count it for EXPLAIN, as the executor would.  Returns
 * false if the row must be handed on: the conflict is gone, or the row belongs to another partition
 * and the executor must raise an error.
 */
bool
lsm_keep_back_row(LsmLookAhead *a, int row)
{
	Relation	table = a->target->ri_RelationDesc;
	EState	   *estate = a->state->ps.state;
	TupleTableSlot *slot = a->rows[row];

	if (!is_conflict_alive(a, row))
		return false;
	slot->tts_tableOid = RelationGetRelid(table);
	if (table->rd_rel->relispartition && !ExecPartitionCheck(a->target, slot, estate, false))
		return false;
	if (RelationGetDescr(table)->constr != NULL)
		ExecConstraints(a->target, slot, estate);
	ResetPerTupleExprContext(estate);
	InstrCountTuples2(&a->state->ps, 1);
	if (a->source->instrument)
		a->source->instrument->tuplecount += 1;
	return true;
}
