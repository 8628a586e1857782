/*
 * look_ahead_plan.c
 *	  INSERT ... ON CONFLICT of many rows: may the plan run ahead of the inserts?
 *
 * Look_ahead.c takes rows from the plan below ModifyTable before those in front of them
 * are inserted.  That can be seen only by what the plan calls, or by rows that it locks: so it
 * must have only nodes that we know, and no volatile functions but those that make values,
 * as the defaults of columns do: nextval, gen_random_uuid.
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

/* A plan of fewer rows is not worth it. */
#define LEAST_ROWS		4

/* Volatile, but it looks at no table. */
static bool
makes_values(Oid function)
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
is_volatile(Oid function, void *may_make)
{
	return func_volatile(function) == PROVOLATILE_VOLATILE &&
		!(*(bool *) may_make && makes_values(function));
}

/*
 * Does an expression call what may look at the table, or at what is inserted?  may_make says
 * whether it may call what makes values.
 */
static bool
may_look(Node *node, void *may_make)
{
	if (node == NULL)
		return false;
	/* Checks of domains are not in the expression; aggregates never count as volatile. */
	if (IsA(node, CoerceToDomain) || IsA(node, WindowFunc) ||
		(IsA(node, Aggref) && ((Aggref *) node)->aggfnoid >= FirstNormalObjectId) ||
		(IsA(node, NextValueExpr) && !*(bool *) may_make))
		return true;
	return check_functions_in_node(node, is_volatile, may_make) ||
		expression_tree_walker(node, may_look, may_make);
}

static bool
is_harmless(void *expression, bool *may_make)
{
	return !may_look(expression, may_make);
}

static bool
are_harmless_functions(List *functions, bool *may_make)
{
	ListCell   *cell;

	foreach(cell, functions)
	{
		if (!is_harmless(lfirst_node(RangeTblFunction, cell)->funcexpr, may_make))
			return false;
	}
	return true;
}

/*
 * Are the expressions of a node harmless that only nodes of its kind have?  No, if we do
 * not know the kind: rows that are locked, for instance, may be changed by the statement.
 */
static bool
has_harmless_kind(Plan *plan, bool *may_make)
{
	switch (nodeTag(plan))
	{
		case T_ValuesScan:
			return is_harmless(((ValuesScan *) plan)->values_lists, may_make);
		case T_FunctionScan:
			return are_harmless_functions(((FunctionScan *) plan)->functions, may_make);
		case T_NestLoop:
			return is_harmless(((Join *) plan)->joinqual, may_make);
		case T_HashJoin:
			return is_harmless(((Join *) plan)->joinqual, may_make) &&
				is_harmless(((HashJoin *) plan)->hashclauses, may_make);
		case T_MergeJoin:
			return is_harmless(((Join *) plan)->joinqual, may_make) &&
				is_harmless(((MergeJoin *) plan)->mergeclauses, may_make);
		case T_IndexScan:
			return is_harmless(((IndexScan *) plan)->indexqualorig, may_make);
		case T_IndexOnlyScan:
			return is_harmless(((IndexOnlyScan *) plan)->indexqual, may_make);
		case T_BitmapIndexScan:
			return is_harmless(((BitmapIndexScan *) plan)->indexqualorig, may_make);
		case T_Limit:
			return is_harmless(((Limit *) plan)->limitOffset, may_make) &&
				is_harmless(((Limit *) plan)->limitCount, may_make);
		case T_Result:
			return is_harmless(((Result *) plan)->resconstantqual, may_make);
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

/* A sequence is read as it is at the moment, whatever the snapshot: the inserts may advance it. */
static bool
scans_sequence(PlanState *state)
{
	return IsA(state, SeqScanState) &&
		((SeqScanState *) state)->ss.ss_currentRelation->rd_rel->relkind == RELKIND_SEQUENCE;
}

/* May a plan not run ahead of the inserts? */
static bool
must_wait(PlanState *state, void *may_make)
{
	Plan	   *plan = state->plan;

	return scans_sequence(state) || !is_harmless(plan->targetlist, may_make) ||
		!is_harmless(plan->qual, may_make) || !has_harmless_kind(plan, may_make) ||
		planstate_tree_walker(state, must_wait, may_make);
}

/* Do the plans of WITH, and of subqueries, wait? */
static bool
subplans_wait(EState *estate, bool *may_make)
{
	ListCell   *cell;

	foreach(cell, estate->es_subplanstates)
	{
		if (lfirst(cell) != NULL && must_wait(lfirst(cell), may_make))
			return true;
	}
	return false;
}

/*
 * May the plan take numbers from a sequence before rows are inserted?  Not if what happens to
 * each row could ask which was the last one.
 */
static bool
may_make_values(ModifyTableState *state)
{
	ModifyTable *plan = (ModifyTable *) state->ps.plan;
	TriggerDesc *triggers = state->resultRelInfo->ri_TrigDesc;

	return !contain_volatile_functions((Node *) plan->onConflictSet) &&
		!contain_volatile_functions(plan->onConflictWhere) &&
		!contain_volatile_functions((Node *) plan->returningLists) &&
		!contain_volatile_functions((Node *) plan->withCheckOptionLists) &&
		!(plan->onConflictAction == ONCONFLICT_UPDATE && triggers != NULL &&
		  triggers->trig_update_before_row);
}

/*
 * Is this an INSERT ... ON CONFLICT whose rows may be taken from the plan below before those
 * in front of them are inserted?
 */
bool
lsm_may_look_ahead(QueryDesc *query)
{
	ModifyTableState *state = (ModifyTableState *) query->planstate;
	ModifyTable *plan;
	Relation	table;
	bool		may_make;

	if (state == NULL || !IsA(state, ModifyTableState))
		return false;
	plan = (ModifyTable *) state->ps.plan;
	table = state->resultRelInfo->ri_RelationDesc;
	/* Most statements end here, before any expression is looked at. */
	if (plan->operation != CMD_INSERT || plan->onConflictAction == ONCONFLICT_NONE ||
		outerPlan(plan)->plan_rows < LEAST_ROWS || query->estate->es_auxmodifytables != NIL ||
		table->rd_rel->relkind != RELKIND_RELATION || !table->rd_rel->relhasindex ||
		(table->trigdesc != NULL && table->trigdesc->trig_insert_before_row))
		return false;
	may_make = may_make_values(state);
	return !subplans_wait(query->estate, &may_make) && !must_wait(outerPlanState(state), &may_make);
}
