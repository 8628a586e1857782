/*
 * on_conflict.c
 *	  INSERT ... ON CONFLICT with unique lsm indexes, where core knows btrees only.
 *
 * Before 18 the executor refuses to prepare a unique index of another method than
 * btree for ON CONFLICT.  What it would have to note is which operator means
 * "equal", and that can be noted from outside: when the executor has initialised a
 * plan, and before it runs, we open the indexes of the table and fill that in.  It
 * opens only those that are not open yet.
 *
 * Tables that rows are routed to, partitions, are opened while the plan runs, and
 * there is no place for us there.  Core's error then gets a hint.
 *
 * From 18 on this file is empty.
 */
#include "postgres.h"

#include "base/compat.h"

#ifndef LSM_SPECULATION_TAKES_ALL
#include "access/nbtree.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "scan/scan.h"
#include "unique/on_conflict.h"
#include "utils/lsyscache.h"

/* Which operators tell that two keys are equal?  Strategies are btree's. */
static void
note_equality(Relation index, IndexInfo *info)
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

/* Is there one that core would refuse?  All methods but btree and ours are its business. */
static bool
has_unique_lsm(Relation table)
{
	List	   *ids = RelationGetIndexList(table);
	bool		found = false;
	ListCell   *cell;

	foreach(cell, ids)
	{
		Relation	index = index_open(lfirst_oid(cell), RowExclusiveLock);

		found = index->rd_index->indisunique && lsm_is_own(index);
		index_close(index, RowExclusiveLock);
		if (found)
			break;
	}
	list_free(ids);
	return found;
}

static void
open_indexes(ResultRelInfo *target)
{
	Relation	table = target->ri_RelationDesc;

	if (table->rd_rel->relkind != RELKIND_RELATION || !table->rd_rel->relhasindex ||
		target->ri_IndexRelationDescs != NULL || !has_unique_lsm(table))
		return;
	ExecOpenIndices(target, false);
	for (int i = 0; i < target->ri_NumIndices; i++)
	{
		Relation	index = target->ri_IndexRelationDescs[i];
		IndexInfo  *info = target->ri_IndexRelationInfo[i];

		if (!info->ii_Unique)
			continue;
		if (lsm_is_own(index))
			note_equality(index, info);
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
prepare(PlanState *state)
{
	ModifyTableState *modify = (ModifyTableState *) state;

	if (!has_conflict_action(state))
		return;
	for (int i = 0; i < modify->mt_nrels; i++)
		open_indexes(&modify->resultRelInfo[i]);
}

/* The executor has initialised a plan, and query memory is current. */
void
lsm_on_conflict_start(QueryDesc *query)
{
	ListCell   *cell;

	prepare(query->planstate);
	/* Those of WITH. */
	foreach(cell, query->estate->es_auxmodifytables)
		prepare(lfirst(cell));
}

/* Do rows go to partitions, under ON CONFLICT? */
static bool
node_may_route(PlanState *state)
{
	return has_conflict_action(state) &&
		((ModifyTableState *) state)->resultRelInfo->ri_RelationDesc->rd_rel->relkind ==
		RELKIND_PARTITIONED_TABLE;
}

/* May the plan come to partitions that the executor refuses to prepare for ON CONFLICT? */
bool
lsm_on_conflict_may_route(QueryDesc *query)
{
	bool		routes = query->planstate != NULL && node_may_route(query->planstate);
	ListCell   *cell;

	foreach(cell, query->estate->es_auxmodifytables)
		routes |= node_may_route(lfirst(cell));
	return routes;
}

/* An error context callback for such a plan. */
void
lsm_on_conflict_give_hint(void *arg)
{
	if (geterrcode() == ERRCODE_INTERNAL_ERROR)
		errhint("Before PostgreSQL 18, ON CONFLICT on a partitioned table fails where a partition has a unique lsm index. Insert into the partition itself.");
}
#endif
