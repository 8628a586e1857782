/*
 * on_conflict.c
 *	  Makes INSERT ... ON CONFLICT work with unique lsm indexes before PostgreSQL 18.
 *
 * Before 18, the executor prepares only unique B-trees for ON CONFLICT and refuses other unique
 * indexes.  Preparing an index means noting which of its operators mean "equal".  We do that
 * ourselves: before the executor inserts the first row, we open the table's indexes and note their
 * operators.  The executor does not open the indexes again.
 *
 * The executor opens a partition only when it routes a row there, and calls no hook then.  So a
 * statement that routes a row to a partition with a unique lsm index fails, and we add a hint to
 * core's error.
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

/* Note the operators by which two keys are equal.  Strategies have the same numbers as btree's. */
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
 * Open the table's indexes as the executor would.  If there are none, make sure that the executor
 * does not look again, because another session may have added one.
 */
static void
open_indexes(ResultRelInfo *target)
{
	if (target->ri_IndexRelationDescs != NULL)
		return;
	ExecOpenIndices(target, false);
	if (target->ri_IndexRelationDescs == NULL)
		target->ri_IndexRelationDescs = palloc0(sizeof(Relation));
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

/* --- tables without unique lsm indexes ---------------------------------------------- */

/*
 * Another session may add a unique lsm index after the statement has begun, but before the executor
 * opens the indexes for the first row.  So a function between the ModifyTable node and the plan
 * below it opens the indexes once it has fetched the first row.  It does not open them earlier,
 * because functions and triggers may alter indexes before the first row.
 */
typedef struct LateOpening
{
	PlanState  *source;			/* the plan below the ModifyTable node */
	ExecProcNodeMtd source_method;	/* the source's own function */
	ResultRelInfo *target;
	MemoryContextCallback at_end;
	struct LateOpening *next;
} LateOpening;

static LateOpening *late_openings = NULL;

/* Called when the query's memory context is deleted. */
static void
forget_opening(void *arg)
{
	LateOpening **link = &late_openings;

	while (*link != arg)
		link = &(*link)->next;
	*link = (*link)->next;
}

/* Takes the place of the source's own function for the first call. */
static TupleTableSlot *
get_first_row(PlanState *source)
{
	LateOpening *opening = late_openings;
	TupleTableSlot *slot;

	while (opening->source != source)
		opening = opening->next;
	slot = opening->source_method(source);
	source->ExecProcNodeReal = opening->source_method;
	/* With EXPLAIN's timing, ExecProcNode is a function that calls ExecProcNodeReal. */
	if (source->ExecProcNode == get_first_row)
		source->ExecProcNode = opening->source_method;
	if (!TupIsNull(slot))
		open_indexes(opening->target);
	return slot;
}

static void
open_at_first_row(PlanState *source, ResultRelInfo *target)
{
	LateOpening *opening = palloc0(sizeof(LateOpening));

	opening->source = source;
	opening->source_method = source->ExecProcNodeReal;
	opening->target = target;
	opening->at_end.func = forget_opening;
	opening->at_end.arg = opening;
	opening->next = late_openings;
	late_openings = opening;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &opening->at_end);
	source->ExecProcNodeReal = get_first_row;
}

/* --- all tables ------------------------------------------------------------------------ */

/* Does the table have a unique lsm index? */
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

static bool
has_conflict_action(PlanState *state)
{
	return IsA(state, ModifyTableState) &&
		((ModifyTable *) state->plan)->onConflictAction != ONCONFLICT_NONE;
}

static void
prepare_conflict_targets(PlanState *state)
{
	ResultRelInfo *target;

	if (!has_conflict_action(state))
		return;
	target = ((ModifyTableState *) state)->resultRelInfo;
	if (target->ri_RelationDesc->rd_rel->relkind != RELKIND_RELATION)
		return;
	if (has_unique_lsm(target->ri_RelationDesc))
		open_indexes(target);
	else
		open_at_first_row(outerPlanState(state), target);
}

/* Called when the executor has initialized a plan, with the query's memory context current. */
void
lsm_on_conflict_start(QueryDesc *query)
{
	ListCell   *cell;

	prepare_conflict_targets(query->planstate);
	/* INSERTs in WITH clauses have nodes of their own. */
	foreach(cell, query->estate->es_auxmodifytables)
		prepare_conflict_targets(lfirst(cell));
}

/* Does this node route rows to partitions, with ON CONFLICT? */
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

/* An error context callback, for plans on which lsm_on_conflict_may_route returns true. */
void
lsm_on_conflict_give_hint(void *arg)
{
	if (geterrcode() == ERRCODE_INTERNAL_ERROR)
		errhint("Before PostgreSQL 18, ON CONFLICT on a partitioned table fails if a partition has a unique lsm index. Insert into the partition itself.");
}
#endif
