/*
 * look_ahead.c
 *	  INSERT ... ON CONFLICT of many rows: what they will read is asked for ahead.
 *
 * The executor takes one row after the other.  It looks for its key, and where there is
 * one, for the row that has it; then it inserts the row, and its entry looks for the key
 * again.  Each look asks all runs, and in an index larger than memory a key that is there
 * costs two reads, of a leaf and of a page of the table, each of which is waited for.
 *
 * So we stand between the ModifyTable node and the plan below it.  We take some rows from
 * that at once, look for their keys together, as for a batch of a unique index, ask for
 * the table's pages that they lead to, and hand the rows on, one by one.  The executor
 * looks for each key as ever.  But it finds the pages in memory; and a key that was not
 * there is looked for only in what has come since (read/looked_for.c).
 *
 * That the plan below runs ahead of the inserts can be seen only by what it calls, or by
 * rows that it locks: so it must have no volatile functions, and only nodes that we know.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/xact.h"
#include "am/am.h"
#include "am/unique.h"
#include "base/io_depth.h"
#include "base/limits.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "storage/buffers.h"
#include "utils/memutils.h"

/* Rows that are taken at once: as many keys as are looked for together in a run. */
#define ROWS_AT_ONCE	256

/* Keys whose strings are longer, together, are not looked for: they may be too long for the index. */
#define LONGEST_STRINGS	(LSM_MAX_ENTRY_SIZE / 4)

/* A plan of fewer rows is not worth it. */
#define LEAST_ROWS		4

/* Where most keys are there it is, if the page of one row in so many is not in memory. */
#define ROWS_PER_READ	16

/* Rows that pass when it was not worth it. */
#define ROWS_TO_PASS	2048

/* Of a statement.  Freed with the memory of its executor. */
typedef struct LookAhead
{
	ResultRelInfo *target;
	bool		is_decided;		/* by which index keys are looked for: */
	Relation	index;			/* NULL: by none */
	IndexInfo  *info;
	PlanState  *source;			/* the plan below */
	ExecProcNodeMtd get_row;	/* its own function */
	MemoryContext context;		/* of the rows, up to work_mem */
	MemoryContext scratch;		/* for looking for their keys */
	bool		ended;			/* it has no more rows */
	int			count;			/* rows that were taken, */
	int			next;			/* the first of them to be handed on, */
	int			asked;			/* and the first whose page has not been asked for */
	int			ahead;			/* further rows for which that may be done now */
	TupleDesc	descriptor;		/* of the rows */
	TupleTableSlot *rows[ROWS_AT_ONCE];
	BlockNumber blocks[ROWS_AT_ONCE];	/* of the table, that they lead to; or invalid */
	int			missing;		/* of the pages that were asked for */
	MemoryContextCallback on_reset;
	struct LookAhead *outer;	/* of the statement around */
} LookAhead;

static LookAhead *current;

/*
 * What is known of the keys of rows that were taken, in one index.  Forgotten when a
 * (sub)transaction is aborted: the memory of a statement that has failed may live on, and
 * its table may be emptied.
 */
static struct
{
	LookAhead  *owner;			/* NULL: nothing */
	Oid			index;
	LsmLookedFor keys;
} known;

static ExecutorStart_hook_type previous_start;

/* --- keys -------------------------------------------------------------------- */

/* Can keys of this index be formed from a row of the plan, and be looked for together? */
static bool
is_eligible(Relation index, const IndexInfo *info)
{
	return index->rd_indam->aminsert == lsm_am_insert && info->ii_Unique &&
		info->ii_ReadyForInserts && info->ii_Expressions == NIL && info->ii_Predicate == NIL;
}

/* Decide by which index of the target keys are looked for, when core has opened them. */
static void
choose_index(LookAhead *a)
{
	ResultRelInfo *target = a->target;

	if (target->ri_IndexRelationDescs == NULL)
		return;
	a->is_decided = true;
	for (int i = 0; i < target->ri_NumIndices && a->index == NULL; i++)
	{
		Relation	index = target->ri_IndexRelationDescs[i];

		if (index == NULL || !is_eligible(index, target->ri_IndexRelationInfo[i]) ||
			!lsm_index_open(index)->coding.encoded)
			continue;
		a->index = index;
		a->info = target->ri_IndexRelationInfo[i];
	}
}

/* The block of a TID in an entry. */
static inline BlockNumber
block_of(uint64 tid)
{
	return (BlockNumber) (tid >> 16);
}

/*
 * The key of a row.  Its number stands where an entry has its block, and what is
 * included does not matter.  False if the key is not to be looked for.
 */
static bool
form_key(LsmKeySpace *ks, const IndexInfo *info, TupleTableSlot *row, int number, LsmEntry *entry)
{
	Datum		values[INDEX_MAX_KEYS] = {0};
	bool		isnull[INDEX_MAX_KEYS];
	Size		strings = 0;
	ItemPointerData tid;

	for (int i = 0; i < info->ii_NumIndexAttrs; i++)
	{
		isnull[i] = true;
		if (i >= info->ii_NumIndexKeyAttrs)
			continue;
		values[i] = slot_getattr(row, info->ii_IndexAttrNumbers[i], &isnull[i]);
		if (isnull[i])
			return false;
		if (ks->columns[i].typlen == -1)
			strings += toast_raw_datum_size(values[i]);
	}
	if (strings > LONGEST_STRINGS)
		return false;
	ItemPointerSet(&tid, number, FirstOffsetNumber);
	lsm_keyspace_form(ks, values, isnull, &tid, entry);
	return true;
}

/* What was found out about keys of the index; or NULL. */
const LsmLookedFor *
lsm_look_ahead_known(LsmIndex *index)
{
	return known.owner != NULL && known.index == index->id ? &known.keys : NULL;
}

/* An index is made anew, perhaps in the same file: its ids begin anew, too. */
void
lsm_look_ahead_forget(void)
{
	known.owner = NULL;
}

/* Note where the rows that have the keys are, if there are any. */
static void
find_blocks(LookAhead *a, LsmUnique *unique, LsmKeySpace *ks)
{
	BlockNumber end = RelationGetNumberOfBlocks(a->target->ri_RelationDesc);
	LsmReader  *reader = lsm_unique_reader(unique, false);
	BlockNumber block = InvalidBlockNumber;

	for (Size i = 0; i < known.keys.count; i++)
	{
		const LsmProbe *probe = &known.keys.probes[i];
		LsmBound	low = {0};
		LsmBound	high = {0};

		CHECK_FOR_INTERRUPTS();
		if (!probe->repeats)
			block = InvalidBlockNumber;
		if (!probe->repeats && probe->found)
		{
			lsm_bound_set_key(ks, &low, &probe->entry, 1);
			lsm_bound_set_key(ks, &high, &probe->entry, -1);
			lsm_reader_seek(reader, &low, &high, ForwardScanDirection);
			if (lsm_reader_is_valid(reader) && !lsm_reader_is_beyond(reader))
				block = block_of(lsm_reader_entry(reader)->tid);
			/* VACUUM may have cut off the end of the table, but does not as long as we use it. */
			if (block >= end)
				block = InvalidBlockNumber;
		}
		a->blocks[block_of(probe->entry.tid)] = block;
	}
	lsm_reader_let_go(reader);
	lsm_reader_count(reader);
}

/* Forget what is known. */
static void
forget_keys(LookAhead *a)
{
	if (known.owner == a)
		known.owner = NULL;
	MemoryContextReset(a->scratch);
}

/* Look for the keys of the rows that were taken. */
static void
look_for_keys(LookAhead *a)
{
	LsmIndex   *index = lsm_index_open(a->index);
	LsmKeySpace *ks = lsm_index_keyspace(index);
	MemoryContext old = MemoryContextSwitchTo(a->scratch);
	LsmUnique  *unique = lsm_unique_create(index, ks);
	LsmEntries	keys;

	lsm_entries_init(&keys, ks, a->scratch);
	for (int i = 0; i < a->count; i++)
	{
		LsmEntry	entry;

		a->blocks[i] = InvalidBlockNumber;
		if (form_key(ks, a->info, a->rows[i], i, &entry))
			lsm_entries_add(&keys, &entry);
	}
	a->ahead = lsm_reads_in_flight(a->target->ri_RelationDesc->rd_rel->reltablespace, false);
	lsm_item_refs_sort(keys.refs, keys.count, ks);
	known.owner = NULL;
	lsm_unique_look_for(unique, index, ks, keys.refs, keys.count, &known.keys);
	find_blocks(a, unique, ks);
	lsm_unique_end(unique);
	known.index = index->id;
	known.owner = a;
	MemoryContextSwitchTo(old);
}

/* --- rows -------------------------------------------------------------------- */

/*
 * All rows that were taken have been handed on.  Was it worth it?  Where most keys were
 * there, in memory, it was not, and some rows pass.
 */
static void
judge(LookAhead *a, LsmIndex *index)
{
	int			found = 0;

	for (int i = 0; i < a->count; i++)
		found += BlockNumberIsValid(a->blocks[i]);
	if (found * 2 > a->count && a->missing * ROWS_PER_READ < a->count)
		index->rows_to_pass = ROWS_TO_PASS;
}

/* Are rows to be looked at ahead?  If not, one more passes. */
static bool
is_due(LsmIndex *index)
{
	if (index->rows_to_pass == 0 || lsm_debug_prefetch_scan)
		return true;
	index->rows_to_pass--;
	return false;
}

/* Take rows from the plan below. */
static void
take_rows(LookAhead *a)
{
	forget_keys(a);
	a->count = a->next = a->asked = a->missing = 0;
	if (MemoryContextMemAllocated(a->context, false) >= (Size) work_mem * 1024)
	{
		MemoryContextReset(a->context);
		memset(a->rows, 0, sizeof(a->rows));
		a->descriptor = NULL;
	}
	do
	{
		TupleTableSlot *row = a->get_row(a->source);
		MemoryContext old;

		if (TupIsNull(row))
		{
			a->ended = true;
			break;
		}
		old = MemoryContextSwitchTo(a->context);
		/* A descriptor of our own: one of a relation would be referenced by each of them. */
		if (a->descriptor == NULL)
			a->descriptor = CreateTupleDescCopyConstr(row->tts_tupleDescriptor);
		if (a->rows[a->count] == NULL)
			a->rows[a->count] = MakeSingleTupleTableSlot(a->descriptor, row->tts_ops);
		ExecCopySlot(a->rows[a->count], row);
		/* No pin is kept. */
		ExecMaterializeSlot(a->rows[a->count]);
		MemoryContextSwitchTo(old);
		a->count++;
	} while (a->count < ROWS_AT_ONCE &&
			 MemoryContextMemAllocated(a->context, false) < (Size) work_mem * 1024);
}

/* Hand on the next row that was taken, and ask for the pages of those behind it. */
static TupleTableSlot *
hand_on(LookAhead *a)
{
	for (; a->ahead > 0 && a->asked < a->count; a->asked++)
	{
		if (!BlockNumberIsValid(a->blocks[a->asked]))
			continue;
		a->missing += lsm_buffer_ask(a->target->ri_RelationDesc, a->blocks[a->asked]);
		a->ahead--;
	}
	if (a->next < a->asked && BlockNumberIsValid(a->blocks[a->next]))
		a->ahead++;
	return a->rows[a->next++];
}

static void
clear_rows(LookAhead *a)
{
	for (int i = 0; i < a->count; i++)
		ExecClearTuple(a->rows[i]);
	a->count = a->next = 0;
}

/* In place of the function of the plan below. */
static TupleTableSlot *
get_row(PlanState *source)
{
	LookAhead  *a = current;
	LsmIndex   *index;

	while (a->source != source)
		a = a->outer;
	if (a->next < a->count)
		return hand_on(a);
	if (!a->is_decided)
		choose_index(a);
	if (a->index == NULL)
		return a->get_row(source);
	index = lsm_index_open(a->index);
	if (a->count > 0)
		judge(a, index);
	clear_rows(a);
	if (a->ended)
		return NULL;
	if (!is_due(index))
		return a->get_row(source);
	take_rows(a);
	if (a->count == 0)
		return NULL;
	look_for_keys(a);
	return hand_on(a);
}

/* --- statements -------------------------------------------------------------- */

/* Does an expression call what may look at the table, or at what is inserted? */
static bool
may_look(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	/* Checks of domains are not in the expression; aggregates never count as volatile. */
	if (IsA(node, CoerceToDomain) || IsA(node, WindowFunc) ||
		(IsA(node, Aggref) && ((Aggref *) node)->aggfnoid >= FirstNormalObjectId))
		return true;
	return expression_tree_walker(node, may_look, unused);
}

static bool
is_harmless(void *expression)
{
	return !contain_volatile_functions(expression) && !may_look(expression, NULL);
}

static bool
are_harmless_functions(List *functions)
{
	ListCell   *cell;

	foreach(cell, functions)
	{
		if (!is_harmless(lfirst_node(RangeTblFunction, cell)->funcexpr))
			return false;
	}
	return true;
}

/*
 * Are the expressions of a node harmless that only nodes of its kind have?  No, if we do
 * not know the kind: rows that are locked, for instance, may be changed by the statement.
 */
static bool
has_harmless_kind(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_ValuesScan:
			return is_harmless(((ValuesScan *) plan)->values_lists);
		case T_FunctionScan:
			return are_harmless_functions(((FunctionScan *) plan)->functions);
		case T_NestLoop:
			return is_harmless(((Join *) plan)->joinqual);
		case T_HashJoin:
			return is_harmless(((Join *) plan)->joinqual) &&
				is_harmless(((HashJoin *) plan)->hashclauses);
		case T_MergeJoin:
			return is_harmless(((Join *) plan)->joinqual) &&
				is_harmless(((MergeJoin *) plan)->mergeclauses);
		case T_IndexScan:
			return is_harmless(((IndexScan *) plan)->indexqualorig);
		case T_IndexOnlyScan:
			return is_harmless(((IndexOnlyScan *) plan)->indexqual);
		case T_BitmapIndexScan:
			return is_harmless(((BitmapIndexScan *) plan)->indexqualorig);
		case T_Limit:
			return is_harmless(((Limit *) plan)->limitOffset) &&
				is_harmless(((Limit *) plan)->limitCount);
		case T_Result:
			return is_harmless(((Result *) plan)->resconstantqual);
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
must_wait(PlanState *state, void *unused)
{
	Plan	   *plan = state->plan;

	return scans_sequence(state) || !is_harmless(plan->targetlist) || !is_harmless(plan->qual) ||
		!has_harmless_kind(plan) || planstate_tree_walker(state, must_wait, unused);
}

/* Do the plans of WITH, and of subqueries, wait? */
static bool
subplans_wait(EState *estate)
{
	ListCell   *cell;

	foreach(cell, estate->es_subplanstates)
	{
		if (lfirst(cell) != NULL && must_wait(lfirst(cell), NULL))
			return true;
	}
	return false;
}

static bool
may_look_ahead(QueryDesc *query)
{
	ModifyTableState *state = (ModifyTableState *) query->planstate;
	ModifyTable *plan;
	Relation	table;

	if (state == NULL || !IsA(state, ModifyTableState))
		return false;
	plan = (ModifyTable *) state->ps.plan;
	table = state->resultRelInfo->ri_RelationDesc;
	return plan->operation == CMD_INSERT && plan->onConflictAction != ONCONFLICT_NONE &&
		outerPlan(plan)->plan_rows >= LEAST_ROWS && query->estate->es_auxmodifytables == NIL &&
		table->rd_rel->relkind == RELKIND_RELATION && table->rd_rel->relhasindex &&
		!(table->trigdesc != NULL && table->trigdesc->trig_insert_before_row) &&
		!subplans_wait(query->estate) && !must_wait(outerPlanState(state), NULL);
}

/* The executor's memory goes. */
static void
forget(void *arg)
{
	LookAhead **link = &current;

	while (*link != arg)
		link = &(*link)->outer;
	*link = (*link)->outer;
	if (known.owner == arg)
		known.owner = NULL;
}

static void
stand_between(QueryDesc *query)
{
	ModifyTableState *state = (ModifyTableState *) query->planstate;
	LookAhead  *a = palloc0(sizeof(LookAhead));

	a->target = state->resultRelInfo;
	a->source = outerPlanState(state);
	a->get_row = a->source->ExecProcNodeReal;
	a->context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm rows", ALLOCSET_DEFAULT_SIZES);
	a->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm keys", ALLOCSET_DEFAULT_SIZES);
	a->on_reset.func = forget;
	a->on_reset.arg = a;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &a->on_reset);
	a->outer = current;
	current = a;
	/* Which ExecProcNode calls, from the first row on, with what EXPLAIN measures around it. */
	a->source->ExecProcNodeReal = get_row;
}

static void
start(QueryDesc *query, int flags)
{
	if (previous_start)
		previous_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
	if (!(flags & EXEC_FLAG_EXPLAIN_ONLY) && may_look_ahead(query))
	{
		MemoryContext old = MemoryContextSwitchTo(query->estate->es_query_cxt);

		stand_between(query);
		MemoryContextSwitchTo(old);
	}
}

static void
forget_at_end(XactEvent event, void *unused)
{
	lsm_look_ahead_forget();
}

static void
forget_at_abort(SubXactEvent event, SubTransactionId id, SubTransactionId parent, void *unused)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		lsm_look_ahead_forget();
}

/* Install the hook.  When the library is loaded. */
void
lsm_look_ahead_init(void)
{
	RegisterXactCallback(forget_at_end, NULL);
	RegisterSubXactCallback(forget_at_abort, NULL);
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = start;
}
