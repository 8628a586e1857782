/*
 * row_compare.c
 *	  Handles row comparisons as index conditions, before PostgreSQL 18.
 *
 * Before 18, the executor accepts row comparisons only as conditions of btrees.  So when the
 * planner costs a path, we replace (a, b) > (1, 2) with a >= 1, and the row comparison becomes a
 * filter.  When the executor has initialized such a scan, and before the scan runs, we add the scan
 * key that 18 would have created.  The filter stays, so a scan without the key returns the same
 * rows, but more slowly.  EvalPlanQual runs scans without the key, since it initializes plans
 * without calling us.
 *
 * In 18 and later, this file is empty.
 */
#include "postgres.h"

#include "base/compat.h"

#ifndef LSM_EXECUTOR_TAKES_ROWS
#include "access/nbtree.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "planner/planner.h"
#include "rewrite/rewriteManip.h"
#include "scan/scan.h"
#include "utils/lsyscache.h"

/* --- the planner ------------------------------------------------------------ */

/*
 * Returns the condition that a row comparison implies for the comparison's first column.  The
 * planner has put the columns on the left.
 */
static Expr *
first_column_condition(IndexOptInfo *index, IndexClause *clause, RowCompareExpr *row)
{
	Oid			family = index->opfamily[clause->indexcol];
	int			strategy;
	Oid			left;
	Oid			right;
	Oid			operator;

	get_op_opfamily_properties(linitial_oid(row->opnos), family, false, &strategy, &left, &right);
	if (strategy == BTLessStrategyNumber)
		strategy = BTLessEqualStrategyNumber;
	else if (strategy == BTGreaterStrategyNumber)
		strategy = BTGreaterEqualStrategyNumber;
	operator = get_opfamily_member(family, left, right, strategy);
	if (!OidIsValid(operator))
		elog(ERROR, "missing operator %d(%u,%u) in operator family %u",
			 strategy, left, right, family);
	return make_opclause(operator, BOOLOID, false,
						 copyObject(linitial(row->largs)), copyObject(linitial(row->rargs)),
						 InvalidOid, linitial_oid(row->inputcollids));
}

/*
 * Replace a path's row comparisons with conditions on their first columns.  The row comparisons
 * become filters.  The cost function calls this for every path over an lsm index, so no row
 * comparison reaches the executor as an index condition.
 */
void
lsm_row_compare_shorten(PlannerInfo *root, IndexPath *path)
{
	List	   *clauses = NIL;
	ListCell   *cell;

	foreach(cell, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);
		RestrictInfo *condition = linitial_node(RestrictInfo, clause->indexquals);

		if (IsA(condition->clause, RowCompareExpr))
		{
			IndexClause *shortened = makeNode(IndexClause);
			Expr	   *expr = first_column_condition(path->indexinfo, clause,
													  (RowCompareExpr *) condition->clause);

			shortened->rinfo = clause->rinfo;
			shortened->indexquals = list_make1(make_simple_restrictinfo(root, expr));
			shortened->lossy = true;
			shortened->indexcol = clause->indexcol;
			clause = shortened;
		}
		clauses = lappend(clauses, clause);
	}
	path->indexclauses = clauses;
}
/* --- the executor ------------------------------------------------------------ */

/* The fields that index scans of all kinds have. */
typedef struct RowScan
{
	PlanState  *state;
	Relation	index;
	Index		relid;			/* range table index of the table */
	List	   *conditions;		/* of the index */
	List	   *filter;
	struct ScanKeyData **keys;
	int		   *key_count;
	IndexRuntimeKeyInfo **runtime_keys;
	int		   *runtime_count;
	ExprContext **runtime_context;
} RowScan;

/* The members of a row comparison that match index columns. */
typedef struct RowMembers
{
	int			count;
	bool		all;			/* the members are the whole row */
	int			strategy;
	int			columns[INDEX_MAX_KEYS];	/* from 1 */
	Oid			operators[INDEX_MAX_KEYS];	/* with the column on the left */
	Oid			collations[INDEX_MAX_KEYS];
	Expr	   *values[INDEX_MAX_KEYS];
} RowMembers;

static Node *
without_relabel(Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/* Is an operand of the filter this column of the index? */
static bool
is_column(RowScan *scan, Node *operand, int column, List *expressions)
{
	AttrNumber	attribute = scan->index->rd_index->indkey.values[column - 1];
	int			before = 0;
	Node	   *expression;

	if (IsA(operand, Var) && ((Var *) operand)->varno == INDEX_VAR)
		return ((Var *) operand)->varattno == column;
	if (attribute != 0)
		return IsA(operand, Var) && ((Var *) operand)->varno == scan->relid &&
			((Var *) operand)->varattno == attribute;
	for (int i = 0; i < column - 1; i++)
		before += scan->index->rd_index->indkey.values[i] == 0;
	expression = copyObject(list_nth(expressions, before));
	ChangeVarNodes(expression, 1, scan->relid, 0);
	return equal(without_relabel(expression), operand);
}

/*
 * Find the index column for the next member, and note the column and the operator.  Returns the
 * operator's strategy, which must equal that of the previous members.  Returns InvalidStrategy if
 * no column fits.
 */
static int
find_strategy(RowScan *scan, RowMembers *members, Node *operand, Oid operator, Oid collation)
{
	Relation	index = scan->index;
	List	   *expressions = RelationGetIndexExpressions(index);

	operand = without_relabel(operand);
	for (int column = 1; column <= IndexRelationGetNumberOfKeyAttributes(index); column++)
	{
		int			strategy = get_op_opfamily_strategy(operator, index->rd_opfamily[column - 1]);

		if (strategy == InvalidStrategy || strategy == BTEqualStrategyNumber ||
			(members->count > 0 && strategy != members->strategy))
			continue;
		if (OidIsValid(index->rd_indcollation[column - 1]) &&
			index->rd_indcollation[column - 1] != collation)
			continue;
		if (!is_column(scan, operand, column, expressions))
			continue;
		members->columns[members->count] = column;
		members->operators[members->count] = operator;
		members->collations[members->count] = collation;
		return strategy;
	}
	return InvalidStrategy;
}

/* Can the value be computed each time the scan starts, before it reads any row? */
static bool
is_scan_constant(Node *value)
{
	return !contain_var_clause(value) && !contain_subplans(value) &&
		!contain_volatile_functions(value);
}

/*
 * Match the members with columns of the index, from left to right.  `columns_left` says on which
 * side of the comparison the columns are.
 */
static void
match_members(RowScan *scan, RowCompareExpr *row, bool columns_left, RowMembers *members)
{
	List	   *operands = columns_left ? row->largs : row->rargs;
	List	   *values = columns_left ? row->rargs : row->largs;

	members->count = 0;
	for (int i = 0; i < list_length(row->opnos) && i < INDEX_MAX_KEYS; i++)
	{
		Oid			operator = list_nth_oid(row->opnos, i);
		Node	   *value = list_nth(values, i);
		int			strategy;

		if (!columns_left)
			operator = get_commutator(operator);
		if (!OidIsValid(operator) || !is_scan_constant(value))
			break;
		strategy = find_strategy(scan, members, list_nth(operands, i), operator,
								 list_nth_oid(row->inputcollids, i));
		if (strategy == InvalidStrategy)
			break;
		members->strategy = strategy;
		members->values[members->count] = (Expr *) value;
		members->count++;
	}
	members->all = members->count == list_length(row->opnos);
}

/*
 * Has the planner made an index condition from the row's first member?  If not, the planner may
 * have had a reason, such as a security policy that must be checked first.
 */
static bool
has_condition(RowScan *scan, RowMembers *members)
{
	Oid			family = scan->index->rd_opfamily[members->columns[0] - 1];
	int			strategy = members->strategy < BTEqualStrategyNumber ?
		BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber;
	ListCell   *cell;

	foreach(cell, scan->conditions)
	{
		OpExpr	   *condition = lfirst(cell);
		Node	   *left;

		if (!IsA(condition, OpExpr))
			continue;
		left = without_relabel(linitial(condition->args));
		if (IsA(left, Var) && ((Var *) left)->varattno == members->columns[0] &&
			get_op_opfamily_strategy(condition->opno, family) == strategy &&
			equal(lsecond(condition->args), members->values[0]))
			return true;
	}
	return false;
}

/*
 * Set the value of a key.  If the value is not a constant, the executor computes it at each rescan.
 */
static void
set_key_value(RowScan *scan, ScanKey key, Expr *value, Oid type)
{
	IndexRuntimeKeyInfo *runtime;

	value = (Expr *) without_relabel((Node *) value);
	if (IsA(value, Const))
	{
		key->sk_argument = ((Const *) value)->constvalue;
		if (((Const *) value)->constisnull)
			key->sk_flags |= SK_ISNULL;
		return;
	}
	runtime = palloc((*scan->runtime_count + 1) * sizeof(IndexRuntimeKeyInfo));
	if (*scan->runtime_count > 0)
		memcpy(runtime, *scan->runtime_keys, *scan->runtime_count * sizeof(IndexRuntimeKeyInfo));
	runtime[*scan->runtime_count].scan_key = key;
	runtime[*scan->runtime_count].key_expr = ExecInitExpr(value, scan->state);
	runtime[*scan->runtime_count].key_toastable = TypeIsToastable(type);
	*scan->runtime_keys = runtime;
	(*scan->runtime_count)++;
	if (*scan->runtime_context == NULL)
		*scan->runtime_context = CreateExprContext(scan->state->state);
}

/*
 * Returns the keys of the members.  If the members are only a part of the row, the condition must
 * include rows that are equal in that part.
 */
static ScanKey
make_members(RowScan *scan, RowMembers *members)
{
	ScanKey		keys = palloc0(members->count * sizeof(ScanKeyData));

	if (!members->all && members->strategy == BTLessStrategyNumber)
		members->strategy = BTLessEqualStrategyNumber;
	if (!members->all && members->strategy == BTGreaterStrategyNumber)
		members->strategy = BTGreaterEqualStrategyNumber;
	for (int i = 0; i < members->count; i++)
	{
		Oid			family = scan->index->rd_opfamily[members->columns[i] - 1];
		int			strategy;
		Oid			left;
		Oid			right;
		Oid			order;

		get_op_opfamily_properties(members->operators[i], family, false, &strategy, &left, &right);
		order = get_opfamily_proc(family, left, right, BTORDER_PROC);
		if (!OidIsValid(order))
			elog(ERROR, "missing support function %d(%u,%u) in operator family %u",
				 BTORDER_PROC, left, right, family);
		ScanKeyEntryInitialize(&keys[i], SK_ROW_MEMBER, members->columns[i], members->strategy,
							   right, members->collations[i], order, (Datum) 0);
		set_key_value(scan, &keys[i], members->values[i], right);
	}
	keys[members->count - 1].sk_flags |= SK_ROW_END;
	return keys;
}

/*
 * Append a key to the scan's keys.  The array of keys moves, so adjust the runtime keys, which
 * point into the array.
 */
static void
append_row_key(RowScan *scan, RowMembers *members, ScanKey member_keys)
{
	ScanKey		old = *scan->keys;
	int			count = *scan->key_count;
	ScanKey		keys = palloc0((count + 1) * sizeof(ScanKeyData));

	memcpy(keys, old, count * sizeof(ScanKeyData));
	for (int i = 0; i < *scan->runtime_count; i++)
	{
		IndexRuntimeKeyInfo *runtime = &(*scan->runtime_keys)[i];

		if (runtime->scan_key >= old && runtime->scan_key < old + count)
			runtime->scan_key = keys + (runtime->scan_key - old);
	}
	keys[count].sk_flags = SK_ROW_HEADER;
	keys[count].sk_attno = member_keys[0].sk_attno;
	keys[count].sk_strategy = members->strategy;
	keys[count].sk_argument = PointerGetDatum(member_keys);
	*scan->keys = keys;
	(*scan->key_count)++;
}

/* Add keys for the row comparisons of the filter.  Returns false if it added none. */
static bool
add_row_keys(RowScan *scan)
{
	bool		added = false;
	ListCell   *cell;

	foreach(cell, scan->filter)
	{
		RowCompareExpr *row = lfirst(cell);
		RowMembers	members;

		if (!IsA(row, RowCompareExpr))
			continue;
		match_members(scan, row, true, &members);
		if (members.count == 0)
			match_members(scan, row, false, &members);
		/* The index condition already covers one member. */
		if (members.count < 2 || !has_condition(scan, &members))
			continue;
		append_row_key(scan, &members, make_members(scan, &members));
		added = true;
	}
	return added;
}

static void
extend_index_scan(IndexScanState *state)
{
	IndexScan  *plan = (IndexScan *) state->ss.ps.plan;
	RowScan		scan = {&state->ss.ps, state->iss_RelationDesc, plan->scan.scanrelid,
		plan->indexqual, plan->scan.plan.qual, &state->iss_ScanKeys, &state->iss_NumScanKeys,
	&state->iss_RuntimeKeys, &state->iss_NumRuntimeKeys, &state->iss_RuntimeContext};

	if (lsm_is_own(scan.index) && state->iss_ScanDesc == NULL)
		(void) add_row_keys(&scan);
}

static void
extend_index_only_scan(IndexOnlyScanState *state)
{
	IndexOnlyScan *plan = (IndexOnlyScan *) state->ss.ps.plan;
	RowScan		scan = {&state->ss.ps, state->ioss_RelationDesc, plan->scan.scanrelid,
		plan->indexqual, plan->scan.plan.qual, &state->ioss_ScanKeys, &state->ioss_NumScanKeys,
	&state->ioss_RuntimeKeys, &state->ioss_NumRuntimeKeys, &state->ioss_RuntimeContext};

	if (lsm_is_own(scan.index) && state->ioss_ScanDesc == NULL)
		(void) add_row_keys(&scan);
}

/*
 * Extend a bitmap index scan.  `filter` is the filter of the bitmap heap scan above.  Every row
 * that the heap scan returns passes this filter.
 */
static void
extend_bitmap_scan(BitmapIndexScanState *state, List *filter)
{
	BitmapIndexScan *plan = (BitmapIndexScan *) state->ss.ps.plan;
	RowScan		scan = {&state->ss.ps, state->biss_RelationDesc, plan->scan.scanrelid,
		plan->indexqual, filter, &state->biss_ScanKeys, &state->biss_NumScanKeys,
	&state->biss_RuntimeKeys, &state->biss_NumRuntimeKeys, &state->biss_RuntimeContext};

	if (!lsm_is_own(scan.index) || !add_row_keys(&scan))
		return;
	/* The executor has already begun the scan, with the old number of keys. */
	index_endscan(state->biss_ScanDesc);
	state->biss_ScanDesc = index_beginscan_bitmap(scan.index, state->ss.ps.state->es_snapshot,
												  state->biss_NumScanKeys);
	if (state->biss_NumRuntimeKeys == 0)
		index_rescan(state->biss_ScanDesc, state->biss_ScanKeys, state->biss_NumScanKeys, NULL, 0);
}

/* Extend all scans of a plan.  `filter` is the filter of a bitmap heap scan above, or NIL. */
static bool
extend_scans_below(PlanState *state, void *filter)
{
	switch (nodeTag(state))
	{
		case T_IndexScanState:
			extend_index_scan((IndexScanState *) state);
			break;
		case T_IndexOnlyScanState:
			extend_index_only_scan((IndexOnlyScanState *) state);
			break;
		case T_BitmapIndexScanState:
			extend_bitmap_scan((BitmapIndexScanState *) state, filter);
			break;
		case T_BitmapHeapScanState:
			return planstate_tree_walker(state, extend_scans_below, state->plan->qual);
		case T_BitmapAndState:
		case T_BitmapOrState:
			return planstate_tree_walker(state, extend_scans_below, filter);
		default:
			break;
	}
	return planstate_tree_walker(state, extend_scans_below, NIL);
}

/* Called when the executor has initialized a plan, with the query's memory context current. */
void
lsm_row_compare_start(PlanState *plan)
{
	(void) extend_scans_below(plan, NIL);
}
#endif
