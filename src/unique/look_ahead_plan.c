/*
 * look_ahead_plan.c
 *	  INSERT ... ON CONFLICT of many rows: decides whether the plan may run ahead of the inserts.
 *
 * look_ahead.c takes a row from the plan below ModifyTable before earlier rows are inserted.  The
 * plan could notice this only by calling functions, locking rows, or scanning a sequence.  So the
 * plan may contain only nodes that we know, and may not scan a sequence.  It may call no volatile
 * functions except those that generate values, such as nextval and gen_random_uuid in column
 * defaults.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "executor/execdesc.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "unique/on_conflict.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* We look ahead only if the planner expects at least this many rows. */
#define LEAST_ROWS		4

/* Is this a volatile function that reads no table? */
static bool
generates_values(Oid function)
{
	switch (function)
	{
		case F_NEXTVAL:
		case F_GEN_RANDOM_UUID:
		case F_CLOCK_TIMESTAMP:
#ifdef F_UUIDV4
		case F_UUIDV4:
		case F_UUIDV7_:
#endif
			return true;
		default:
			return false;
	}
}

static bool
is_harmful_function(Oid function, void *may_generate)
{
	return func_volatile(function) == PROVOLATILE_VOLATILE &&
		!(*(bool *) may_generate && generates_values(function));
}

/*
 * May an expression see rows that the statement inserts?  may_generate allows functions that
 * generate values.
 */
static bool
may_see_inserts(Node *node, void *may_generate)
{
	if (node == NULL)
		return false;
	/*
	 * The expression does not contain a domain's checks, and aggregates are never marked volatile.
	 */
	if (IsA(node, CoerceToDomain) || IsA(node, WindowFunc) ||
		(IsA(node, Aggref) && ((Aggref *) node)->aggfnoid >= FirstNormalObjectId) ||
		(IsA(node, NextValueExpr) && !*(bool *) may_generate))
		return true;
	return check_functions_in_node(node, is_harmful_function, may_generate) ||
		expression_tree_walker(node, may_see_inserts, may_generate);
}

static bool
is_harmless(void *expression, bool *may_generate)
{
	return !may_see_inserts(expression, may_generate);
}

static bool
are_harmless_functions(List *functions, bool *may_generate)
{
	ListCell   *cell;

	foreach(cell, functions)
	{
		if (!is_harmless(lfirst_node(RangeTblFunction, cell)->funcexpr, may_generate))
			return false;
	}
	return true;
}

/*
 * Returns whether the expressions specific to this kind of node are harmless.  Returns false for
 * unknown kinds.  LockRows, for example, may lock rows that the statement changes.
 */
static bool
has_harmless_kind(Plan *plan, bool *may_generate)
{
	switch (nodeTag(plan))
	{
		case T_ValuesScan:
			return is_harmless(((ValuesScan *) plan)->values_lists, may_generate);
		case T_FunctionScan:
			return are_harmless_functions(((FunctionScan *) plan)->functions, may_generate);
		case T_NestLoop:
			return is_harmless(((Join *) plan)->joinqual, may_generate);
		case T_HashJoin:
			return is_harmless(((Join *) plan)->joinqual, may_generate) &&
				is_harmless(((HashJoin *) plan)->hashclauses, may_generate);
		case T_MergeJoin:
			return is_harmless(((Join *) plan)->joinqual, may_generate) &&
				is_harmless(((MergeJoin *) plan)->mergeclauses, may_generate);
		case T_IndexScan:
			return is_harmless(((IndexScan *) plan)->indexqualorig, may_generate);
		case T_IndexOnlyScan:
			return is_harmless(((IndexOnlyScan *) plan)->indexqual, may_generate);
		case T_BitmapIndexScan:
			return is_harmless(((BitmapIndexScan *) plan)->indexqualorig, may_generate);
		case T_Limit:
			return is_harmless(((Limit *) plan)->limitOffset, may_generate) &&
				is_harmless(((Limit *) plan)->limitCount, may_generate);
		case T_Result:
			return is_harmless(((Result *) plan)->resconstantqual, may_generate);
		case T_Agg:
		case T_Append:
		case T_BitmapHeapScan:
		case T_CteScan:
		case T_Group:
		case T_Hash:
		case T_IncrementalSort:
		case T_Material:
		case T_MergeAppend:
		case T_ProjectSet:
		case T_SeqScan:
		case T_Sort:
		case T_SubqueryScan:
		case T_Unique:
			return true;
		default:
			return false;
	}
}

/* A scan of a sequence sees its current state, whatever the snapshot.  Inserts may advance it. */
static bool
scans_sequence(PlanState *state)
{
	return IsA(state, SeqScanState) &&
		((SeqScanState *) state)->ss.ss_currentRelation->rd_rel->relkind == RELKIND_SEQUENCE;
}

/* Could a plan see a difference if it runs ahead of the inserts? */
static bool
may_plan_see_inserts(PlanState *state, void *may_generate)
{
	Plan	   *plan = state->plan;

	return scans_sequence(state) || !is_harmless(plan->targetlist, may_generate) ||
		!is_harmless(plan->qual, may_generate) || !has_harmless_kind(plan, may_generate) ||
		planstate_tree_walker(state, may_plan_see_inserts, may_generate);
}

/* Could the plan of a CTE or a subquery see a difference? */
static bool
may_subplans_see_inserts(EState *estate, bool *may_generate)
{
	ListCell   *cell;

	foreach(cell, estate->es_subplanstates)
	{
		if (lfirst(cell) != NULL && may_plan_see_inserts(lfirst(cell), may_generate))
			return true;
	}
	return false;
}

static bool
has_volatile_check(Relation table)
{
	TupleConstr *constraints = RelationGetDescr(table)->constr;

	for (int i = 0; constraints != NULL && i < constraints->num_check; i++)
	{
		if (contain_volatile_functions(stringToNode(constraints->check[i].ccbin)))
			return true;
	}
	return false;
}

/*
 * May the plan take numbers from a sequence before earlier rows are inserted?  No, if code that
 * runs for each row could ask for the sequence's latest number.
 */
static bool
may_generate_values(ModifyTableState *state)
{
	ModifyTable *plan = (ModifyTable *) state->ps.plan;
	TriggerDesc *triggers = state->resultRelInfo->ri_TrigDesc;

	return !has_volatile_check(state->resultRelInfo->ri_RelationDesc) &&
		!contain_volatile_functions((Node *) plan->onConflictSet) &&
		!contain_volatile_functions(plan->onConflictWhere) &&
		!contain_volatile_functions((Node *) plan->returningLists) &&
		!contain_volatile_functions((Node *) plan->withCheckOptionLists) &&
		!(plan->onConflictAction == ONCONFLICT_UPDATE && triggers != NULL &&
		  triggers->trig_update_before_row);
}

static bool
may_run_ahead(QueryDesc *query, bool may_generate)
{
	return !may_subplans_see_inserts(query->estate, &may_generate) &&
		!may_plan_see_inserts(outerPlanState(query->planstate), &may_generate);
}

/* Is this an INSERT ... ON CONFLICT whose plan may run ahead of the inserts? */
bool
lsm_may_look_ahead(QueryDesc *query)
{
	ModifyTableState *state = (ModifyTableState *) query->planstate;
	ModifyTable *plan;
	Relation	table;

	if (state == NULL || !IsA(state, ModifyTableState))
		return false;
	plan = (ModifyTable *) state->ps.plan;
	table = state->resultRelInfo->ri_RelationDesc;
	/* Most statements leave here, before we look at any expression. */
	if (plan->operation != CMD_INSERT || plan->onConflictAction == ONCONFLICT_NONE ||
		outerPlan(plan)->plan_rows < LEAST_ROWS || query->estate->es_auxmodifytables != NIL ||
		table->rd_rel->relkind != RELKIND_RELATION || !table->rd_rel->relhasindex ||
		(table->trigdesc != NULL && table->trigdesc->trig_insert_before_row))
		return false;
	return may_run_ahead(query, false) || (may_generate_values(state) && may_run_ahead(query, true));
}
