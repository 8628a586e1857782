/*
 * on_conflict.c
 *	  INSERT ... ON CONFLICT with unique lsm indexes, before PostgreSQL 18.
 *
 * Before 18, the executor prepares only unique B-trees for ON CONFLICT and refuses other unique
 * indexes.  To prepare an index means to note which of its operators means "equal".  We do that
 * ourselves.  When the executor has initialized a plan, and before it runs the plan, we open the
 * table's indexes and note their operators.  The executor does not open the indexes again.
 *
 * The executor opens a partition only when it routes a row there, and calls no hook.  So such a
 * statement fails, and we add a hint to core's error.
 *
 * In 18 and later, this file is empty.
 */
#include "postgres.h"

#include "base/compat.h"

#ifndef LSM_UNIQUE_TAKES_ALL
#include "access/nbtree.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "scan/scan.h"
#include "unique/on_conflict.h"
#include "utils/lsyscache.h"

/* Note the operators by which two keys are equal.  Strategies are numbered as btree's. */
static void
note_equality_operators(Relation index, IndexInfo *info)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);

	info->ii_UniqueOps = palloc(nkeys * sizeof(Oid));
	info->ii_UniqueProcs = palloc(nkeys * sizeof(Oid));
	info->ii_UniqueStrats = palloc(nkeys * sizeof(uint16));
	for (int i = 0; i < nkeys; i++)
	{
		Oid			type = index->rd_opcintype[i];
		Oid			operator = get_opfamily_member(index->rd_opfamily[i], type, type,
												   BTEqualStrategyNumber);

		if (!OidIsValid(operator))
			elog(ERROR, "missing operator %d(%u,%u) in operator family %u",
				 BTEqualStrategyNumber, type, type, index->rd_opfamily[i]);
		info->ii_UniqueOps[i] = operator;
		info->ii_UniqueProcs[i] = get_opcode(operator);
		info->ii_UniqueStrats[i] = BTEqualStrategyNumber;
	}
}

/*
 * Open the table's indexes as the executor would.  Even if the table has no unique lsm index now,
 * we do not leave this to the executor: it would refuse one that another session adds before the
 * first row.
 */
static void
open_indexes(ResultRelInfo *target)
{
	Relation	table = target->ri_RelationDesc;

	if (table->rd_rel->relkind != RELKIND_RELATION || !table->rd_rel->relhasindex ||
		target->ri_IndexRelationDescs != NULL)
		return;
	ExecOpenIndices(target, false);
	for (int i = 0; i < target->ri_NumIndices; i++)
	{
		Relation	index = target->ri_IndexRelationDescs[i];
		IndexInfo  *info = target->ri_IndexRelationInfo[i];

		if (!info->ii_Unique)
			continue;
		if (lsm_is_own(index))
			note_equality_operators(index, info);
		else
			BuildSpeculativeIndexInfo(index, info);
	}
}

static bool
has_conflict_action(PlanState *state)
{
	return IsA(state, ModifyTableState) &&
		((ModifyTable *) state->plan)->onConflictAction != ONCONFLICT_NONE;
}

static void
prepare_conflict_targets(PlanState *state)
{
	ModifyTableState *modify = (ModifyTableState *) state;

	if (!has_conflict_action(state))
		return;
	for (int i = 0; i < modify->mt_nrels; i++)
		open_indexes(&modify->resultRelInfo[i]);
}

/* Called when the executor has initialized a plan, with the query's memory context current. */
void
lsm_on_conflict_start(QueryDesc *query)
{
	ListCell   *cell;

	prepare_conflict_targets(query->planstate);
	/* The INSERTs of WITH. */
	foreach(cell, query->estate->es_auxmodifytables)
		prepare_conflict_targets(lfirst(cell));
}

/* Does this node route rows to partitions, under ON CONFLICT? */
static bool
routes_conflicts(PlanState *state)
{
	return has_conflict_action(state) &&
		((ModifyTableState *) state)->resultRelInfo->ri_RelationDesc->rd_rel->relkind ==
		RELKIND_PARTITIONED_TABLE;
}

/* Could the executor fail because it refuses a partition's lsm index for ON CONFLICT? */
bool
lsm_on_conflict_may_route(QueryDesc *query)
{
	bool		routes = query->planstate != NULL && routes_conflicts(query->planstate);
	ListCell   *cell;

	foreach(cell, query->estate->es_auxmodifytables)
		routes |= routes_conflicts(lfirst(cell));
	return routes;
}

/* An error context callback for plans for which lsm_on_conflict_may_route returns true. */
void
lsm_on_conflict_give_hint(void *arg)
{
	if (geterrcode() == ERRCODE_INTERNAL_ERROR)
		errhint("Before PostgreSQL 18, ON CONFLICT on a partitioned table fails if a partition has a unique lsm index. Insert into the partition itself.");
}
#endif
