/*
 * prefetch_scan.c
 *	  Runs the prefetching scan: an index scan that keeps many pages of the
 *	  table in flight.
 *
 * The node has core's index scan below it and uses its state: keys, conditions,
 * filter, projection, statistics.  It takes that scan's place, so that nothing
 * is done twice; only the order of two steps differs: TIDs are taken from the
 * index ahead of the rows, and their pages are prefetched.
 *
 * A TID that waits may lose its row to VACUUM, and its line pointer may get
 * another row.  A snapshot of the MVCC kind does not see that row, since it is
 * younger.  With any other snapshot, and when EvalPlanQual runs the plan, core's
 * node does all the work.
 *
 * Pages are asked for with PrefetchBuffer, and read when their rows are wanted.
 * Where PrefetchBuffer does nothing they come from a stream (page_stream.c), which
 * asks us for the next page when it wants one.
 *
 * How far to look ahead, read_pace.c says.  With a depth of 0 and in index order this
 * is core's loop, step by step.  Only there the index can be told at once of rows
 * that are dead to everybody, since the method takes that to be about the TID that it
 * returned last; what else is found dead is told afterwards (dead_tids.c).
 *
 * A scan in index order can be asked to go back.  Then the index goes back to the
 * row that the reader is on, and core's node does the rest.
 *
 * By page, the rows of a page are looked up under one lock, as core's bitmap scan
 * does it.
 *
 * Over an index-only scan the node is one, too.  See docs/design/prefetch-scan.md.
 *
 * Planning is in prefetch_path.c, the TIDs are in tid_queue.c.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "base/compat.h"
#include "exec/dead_tids.h"
#include "exec/index_child.h"
#include "exec/page_stream.h"
#include "exec/prefetch.h"
#include "exec/read_pace.h"
#include "exec/tid_queue.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"

/* The index is told of dead rows where it gives no more TIDs for each of them than these. */
#define TAKEN_A_DEAD 64

typedef struct PrefetchScan
{
	CustomScanState custom;		/* must be first */
	LsmPrefetchPlan plan;
	LsmIndexChild child;
	bool		is_plain;		/* core's node does all the work */
	bool		has_turned;		/* it does from now on, to the end of this scan */
	bool		is_past_end;	/* the reader has been told that there are no more rows */
	ItemPointerData current;	/* where the index has the last visible row; or invalid */
	LsmTidQueue queue;
	bool		is_streaming;	/* in place of PrefetchBuffer, pages come from: */
	LsmPageStream stream;
	LsmDeadTids dead;			/* found among those of the queue */
	LsmPageTids page;			/* by page: visible rows of the page that is read */
	int			next_of_page;	/* the next of them */
	BufferAccessStrategy ring;	/* by page: for more pages than shared buffers hold */
	LsmReadPace pace;

	/* For EXPLAIN. */
	int			max_ahead;
	uint64		read_again;		/* pages, that had left shared buffers since this node read them */
	BlockNumber table_pages;	/* when the scan began */
	uint8	   *was_read;		/* a bit for each of them; NULL unless it is told */
} PrefetchScan;

static void
start_over(PrefetchScan *scan)
{
	lsm_pace_start_over(&scan->pace);
	scan->page.count = scan->next_of_page = 0;
	scan->has_turned = scan->is_past_end = false;
	ItemPointerSetInvalid(&scan->current);
	ExecClearTuple(scan->child.heap_slot);
	lsm_stream_reset(&scan->stream);
	lsm_queue_reset(&scan->queue);
	lsm_dead_reset(&scan->dead);
}

static BlockNumber next_of_stream(void *argument);

static void
begin(CustomScanState *node, EState *estate, int flags)
{
	PrefetchScan *scan = (PrefetchScan *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	PlanState  *child = ExecInitNode(linitial(plan->custom_plans), estate, flags);

	lsm_child_init(&scan->child, child);
	node->custom_ps = list_make1(child);
	lsm_prefetch_read_plan(plan->custom_private, &scan->plan);

	/* Rows are those of the child, in its slots; WHERE CURRENT OF looks there. */
	node->ss.ss_ScanTupleSlot = scan->child.node->ss_ScanTupleSlot;
	node->ss.ps.resultops = ExecGetResultSlotOps(child, &node->ss.ps.resultopsfixed);
	node->ss.ps.resultopsset = true;

	/* A serializable transaction would lock entries that its reader never asks for. */
	scan->is_plain = estate->es_epq_active != NULL || estate->es_snapshot == NULL ||
		!IsMVCCSnapshot(estate->es_snapshot) ||
		(!scan->plan.by_page && IsolationIsSerializable());
	scan->table_pages = RelationGetNumberOfBlocks(node->ss.ss_currentRelation);
	scan->is_streaming = !lsm_can_prefetch();
	lsm_queue_init(&scan->queue, scan->table_pages, scan->plan.by_page, scan->plan.growth,
				   scan->plan.depth * (scan->is_streaming ? LSM_STREAM_PAGES_PER_READ : 1),
				   scan->child.map);
	lsm_dead_init(&scan->dead);
	lsm_pace_init(&scan->pace, scan->plan.depth, scan->plan.forced);
	lsm_stream_init(&scan->stream, node->ss.ss_currentRelation, scan->plan.depth, next_of_stream,
					scan);
	if (scan->plan.by_page)
		scan->ring = GetAccessStrategy(BAS_BULKREAD);
	start_over(scan);
}

/* Core is about to read this page: if that is timed we do so, as core would. */
static inline void
watch_read(PrefetchScan *scan, IndexScanDesc index, BlockNumber block, LsmReadWatch *watch)
{
	lsm_pace_begin_watch(&scan->pace, block, watch);
	if (watch->is_timed)
	{
		IndexFetchHeapData *fetch = (IndexFetchHeapData *) index->xs_heapfetch;
		Buffer		previous = fetch->xs_cbuf;

		fetch->xs_cbuf = ReleaseAndReadBuffer(previous, index->heapRelation, block);
		lsm_pace_stop_clock(watch);
		if (fetch->xs_cbuf != previous)
			heap_page_prune_opt(index->heapRelation, fetch->xs_cbuf);
	}
}

/* A page was not in shared buffers, and EXPLAIN will tell how often that was so again. */
static void
note_missed(PrefetchScan *scan, BlockNumber block)
{
	uint8		bit = 1 << (block % 8);

	if (scan->was_read == NULL)
	{
		Size		size = scan->table_pages / 8 + 1;

		scan->was_read = MemoryContextAllocHuge(scan->custom.ss.ps.state->es_query_cxt, size);
		memset(scan->was_read, 0, size);
	}
	/* The table may have grown, but its new rows are not seen. */
	if (block >= scan->table_pages)
		return;
	scan->read_again += (scan->was_read[block / 8] & bit) != 0;
	scan->was_read[block / 8] |= bit;
}

/* It has been read, or was there. */
static inline void
note_read(PrefetchScan *scan, BlockNumber block, const LsmReadWatch *watch)
{
	bool		missed = lsm_pace_note_read(&scan->pace, watch);

	if (unlikely(missed && scan->custom.ss.ps.instrument != NULL))
		note_missed(scan, block);
}

/*
 * The next page that the stream has to read.  How far ahead it looks it decides
 * itself, but where our depth falls to 0 it ends.
 */
static BlockNumber
next_of_stream(void *argument)
{
	PrefetchScan *scan = argument;
	Relation	table = (*scan->child.scan)->heapRelation;
	BlockNumber block;
	PrefetchBufferResult result;

	/* A round is not begun here: the last page of the one before has not been read. */
	if (scan->pace.depth == 0 || (scan->plan.by_page && lsm_queue_is_empty(&scan->queue)))
		return InvalidBlockNumber;
	block = lsm_queue_look_ahead(&scan->queue, *scan->child.scan, scan->child.direction, INT_MAX);
	if (block == InvalidBlockNumber)
		return block;
	scan->max_ahead = Max(scan->max_ahead, scan->queue.pages_ahead);
	/* Where there are streams this only looks whether it is in shared buffers. */
	result = PrefetchBuffer(table, MAIN_FORKNUM, block);
	lsm_pace_note_ahead(&scan->pace, !BufferIsValid(result.recent_buffer));
	if (!BufferIsValid(result.recent_buffer) && scan->custom.ss.ps.instrument != NULL)
		note_missed(scan, block);
	return block;
}

/* By page: each page of this round is read once, and would be gone before the next scan comes. */
static BufferAccessStrategy
ring_of_round(const PrefetchScan *scan)
{
	return scan->queue.round_pages > (Size) NBuffers ? scan->ring : NULL;
}

static void
look_ahead(PrefetchScan *scan, IndexScanDesc index, ScanDirection direction)
{
	BlockNumber block;

	if (scan->is_streaming)
	{
		/* From then on, each page that is taken has it look further. */
		if (scan->pace.depth > 0 && lsm_queue_has_none_ahead(&scan->queue))
			lsm_stream_prime(&scan->stream, ring_of_round(scan));
		return;
	}
	while ((block = lsm_queue_look_ahead(&scan->queue, index, direction, scan->pace.depth)) !=
		   InvalidBlockNumber)
	{
		PrefetchBufferResult result;

		if (!lsm_pace_wants_prefetch(&scan->pace, block))
			continue;
		result = PrefetchBuffer(index->heapRelation, MAIN_FORKNUM, block);
		lsm_pace_note_ahead(&scan->pace, !BufferIsValid(result.recent_buffer));
	}
	scan->max_ahead = Max(scan->max_ahead, scan->queue.pages_ahead);
}

/*
 * A row was found, to which the index has led by `tid`, and which is at `place`.
 * Index only, it is the index's entry.
 */
static inline void
note_row(PrefetchScan *scan, const ItemPointerData *tid, ItemPointer place, IndexTuple entry)
{
	scan->current = *tid;
	if (lsm_child_is_index_only(&scan->child))
	{
		ExecClearTuple(scan->child.heap_slot);
		lsm_child_store_entry(&scan->child, entry, place);
	}
}

/* The same where nobody has looked at its page. */
static void
note_visible_row(PrefetchScan *scan, IndexScanDesc index, ItemPointer tid, IndexTuple entry)
{
	note_row(scan, tid, tid, entry);
	PredicateLockPage(index->heapRelation, ItemPointerGetBlockNumber(tid), index->xs_snapshot);
}

/* Pin this page, which comes from the stream, in place of the one before. */
static void
take_of_stream(PrefetchScan *scan, IndexScanDesc index, BlockNumber block)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) index->xs_heapfetch;

	if (BufferIsValid(fetch->xs_cbuf))
		ReleaseBuffer(fetch->xs_cbuf);
	fetch->xs_cbuf = InvalidBuffer;
	fetch->xs_cbuf = lsm_stream_take(&scan->stream, block);
	heap_page_prune_opt(index->heapRelation, fetch->xs_cbuf);
}

/* The row of a TID from the queue, if it is visible. */
static bool
fetch(PrefetchScan *scan, IndexScanDesc index, LsmQueuedTid *taken)
{
	ItemPointerData place = taken->tid; /* of the version that is visible, then */
	LsmReadWatch watch;
	bool		again = false;
	bool		is_dead = false;
	bool		found;

	lsm_child_count_fetches(&scan->child, 1);
	if (scan->is_streaming && taken->begins_page)
		take_of_stream(scan, index, ItemPointerGetBlockNumber(&place));
	watch_read(scan, index, ItemPointerGetBlockNumber(&place), &watch);
	found = table_index_fetch_tuple(index->xs_heapfetch, &place, index->xs_snapshot,
									scan->child.heap_slot, &again, &is_dead);
	/* There is one version that an MVCC snapshot sees. */
	Assert(!again);
	scan->dead.looked_up++;
	if (found)
	{
		note_row(scan, &taken->tid, &place, taken->entry);
		pgstat_count_heap_fetch(index->indexRelation);
	}
	else if (is_dead)
		lsm_dead_note(&scan->dead, &taken->tid);
	note_read(scan, ItemPointerGetBlockNumber(&taken->tid), &watch);
	return found;
}

/* The row that the index leads to next, without the queue: core's loop. */
static bool
next_of_index(PrefetchScan *scan, IndexScanDesc index, ScanDirection direction, bool *found)
{
	ItemPointer tid = index_getnext_tid(index, direction);
	ItemPointerData first;		/* where the index leads to */
	LsmReadWatch watch;

	if (tid == NULL)
	{
		scan->queue.at_end = true;
		return false;
	}
	scan->queue.taken++;
	*found = lsm_child_is_index_only(&scan->child) &&
		VM_ALL_VISIBLE(index->heapRelation, ItemPointerGetBlockNumber(tid), scan->child.map);
	if (*found)
	{
		note_visible_row(scan, index, tid, index->xs_itup);
		return true;
	}
	first = *tid;
	lsm_child_count_fetches(&scan->child, 1);
	watch_read(scan, index, ItemPointerGetBlockNumber(tid), &watch);
	*found = index_fetch_heap(index, scan->child.heap_slot);
	if (*found)
		note_row(scan, &first, tid, index->xs_itup);
	note_read(scan, ItemPointerGetBlockNumber(&first), &watch);
	return true;
}

/* By page: pin this page in place of the one before. */
static Buffer
pin_page(PrefetchScan *scan, Relation table, Buffer previous, BlockNumber block)
{
	if (BufferIsValid(previous))
		ReleaseBuffer(previous);
	return ReadBufferExtended(table, MAIN_FORKNUM, block, RBM_NORMAL, ring_of_round(scan));
}

/*
 * By page: pin the page of these TIDs, and keep of them those that lead to a
 * visible row, as the places of these rows.  The pin, which core's scan holds, is
 * what keeps them there.
 */
static void
read_page(PrefetchScan *scan, IndexScanDesc index, LsmPageTids *page)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) index->xs_heapfetch;
	Relation	table = index->heapRelation;
	LsmReadWatch watch;
	int			found = 0;

	if (scan->is_streaming && page->was_ahead)
		take_of_stream(scan, index, page->block);
	lsm_pace_begin_watch(&scan->pace, page->block, &watch);
	if (!scan->is_streaming || !page->was_ahead)
	{
		fetch->xs_cbuf = pin_page(scan, table, fetch->xs_cbuf, page->block);
		lsm_pace_stop_clock(&watch);
		heap_page_prune_opt(table, fetch->xs_cbuf);
	}
	LockBuffer(fetch->xs_cbuf, BUFFER_LOCK_SHARE);
	lsm_test_old_snapshot(index->xs_snapshot, table, BufferGetPage(fetch->xs_cbuf));
	for (int i = 0; i < page->count; i++)
	{
		ItemPointerData tid;
		HeapTupleData tuple;
		bool		is_dead = false;

		ItemPointerSet(&tid, page->block, page->offsets[i]);
		if (!heap_hot_search_buffer(&tid, table, fetch->xs_cbuf, index->xs_snapshot, &tuple,
									&is_dead, true))
		{
			if (is_dead)
				lsm_dead_note(&scan->dead, &tid);
			continue;
		}
		page->offsets[found] = ItemPointerGetOffsetNumber(&tid);
		page->rechecks[found++] = page->rechecks[i];
	}
	LockBuffer(fetch->xs_cbuf, BUFFER_LOCK_UNLOCK);
	scan->dead.looked_up += page->count;
	lsm_child_count_fetches(&scan->child, page->count);
	page->count = found;
	note_read(scan, page->block, &watch);
}

/* By page: the row at this place of the page that read_page has pinned. */
static void
store_row(PrefetchScan *scan, IndexScanDesc index, BlockNumber block, OffsetNumber offset)
{
	TupleTableSlot *slot = scan->child.heap_slot;
	Buffer		buffer = ((IndexFetchHeapData *) index->xs_heapfetch)->xs_cbuf;
	HeapTuple	tuple = &((BufferHeapTupleTableSlot *) slot)->base.tupdata;
	Page		page = BufferGetPage(buffer);
	ItemId		item = PageGetItemId(page, offset);

	Assert(TTS_IS_BUFFERTUPLE(slot));
	Assert(ItemIdIsNormal(item));
	tuple->t_data = (HeapTupleHeader) PageGetItem(page, item);
	tuple->t_len = ItemIdGetLength(item);
	tuple->t_tableOid = RelationGetRelid(index->heapRelation);
	ItemPointerSet(&tuple->t_self, block, offset);
	ExecStoreBufferHeapTuple(tuple, slot, buffer);
	if (lsm_child_is_index_only(&scan->child))
		lsm_child_store_row(&scan->child);
	pgstat_count_heap_fetch(index->indexRelation);
}

/* By page: the next visible row. */
static bool
next_of_pages(PrefetchScan *scan, IndexScanDesc index, ScanDirection direction, bool *found,
			  bool *recheck)
{
	LsmPageTids *page = &scan->page;
	ItemPointer tid;

	*found = true;
	while (scan->next_of_page == page->count)
	{
		CHECK_FOR_INTERRUPTS();
		if (lsm_child_is_index_only(&scan->child) &&
			(tid = lsm_queue_next_visible(&scan->queue, index, direction)) != NULL)
		{
			note_visible_row(scan, index, tid, index->xs_itup);
			*recheck = index->xs_recheck;
			return true;
		}
		look_ahead(scan, index, direction);
		scan->next_of_page = 0;
		if (!lsm_queue_take_page(&scan->queue, index, direction, page))
		{
			page->count = 0;
			return false;
		}
		read_page(scan, index, page);
	}
	*recheck = page->rechecks[scan->next_of_page];
	store_row(scan, index, page->block, page->offsets[scan->next_of_page++]);
	return true;
}

static bool
next_of_queue(PrefetchScan *scan, IndexScanDesc index, ScanDirection direction, bool *found,
			  bool *recheck)
{
	LsmQueuedTid taken;

	look_ahead(scan, index, direction);
	if (!lsm_queue_take(&scan->queue, index, direction, &taken))
		return false;
	*recheck = taken.recheck;
	if (taken.is_visible)
		note_visible_row(scan, index, &taken.tid, taken.entry);
	*found = taken.is_visible || fetch(scan, index, &taken);
	return true;
}

/* Does the next row come without the queue? */
static inline bool
bypasses_queue(const PrefetchScan *scan)
{
	return !scan->plan.by_page && scan->pace.depth == 0 && lsm_queue_is_empty(&scan->queue) &&
		!scan->queue.at_end;
}

/*
 * Tell the index of the rows that were found dead, if there are enough of them.
 * Parallel scans do not: each process has seen a part of the index only.
 *
 * The index is scanned with the keys of the scan that ends.  Those that come from an
 * outer row may point into it, and it may be gone once we are not asked for a row.
 */
static void
tell_of_dead(PrefetchScan *scan, bool keys_are_there)
{
	const LsmIndexChild *child = &scan->child;
	IndexScanDesc index = *child->scan;

	if (!lsm_dead_are_many(&scan->dead))
		return;
	if ((keys_are_there || *child->runtime_key_count == 0) &&
		scan->queue.taken <= (uint64) scan->dead.count * TAKEN_A_DEAD &&
		!index->xactStartedInRecovery && index->parallel_scan == NULL)
	{
		/* None is active when the scan of a query ends. */
		PushActiveSnapshot(index->xs_snapshot);
		lsm_child_rescan_index(child);
		lsm_dead_tell(&scan->dead, index, child->direction, child->heap_slot,
					  scan->queue.taken);
		/* From here it goes back from the end, as from where it was. */
		lsm_child_rescan_index(child);
		PopActiveSnapshot();
	}
	lsm_dead_reset(&scan->dead);
}

/* The next visible row that meets the conditions of the index; NULL at the end. */
static TupleTableSlot *
next_row(PrefetchScan *scan, IndexScanDesc index, ScanDirection direction)
{
	ScanState  *child = scan->child.node;
	ExprContext *context = child->ps.ps_ExprContext;
	TupleTableSlot *slot = child->ss_ScanTupleSlot;

	for (;;)
	{
		bool		found = false;
		bool		recheck = false;

		CHECK_FOR_INTERRUPTS();
		if (bypasses_queue(scan))
		{
			if (!next_of_index(scan, index, direction, &found))
				break;
			recheck = index->xs_recheck;
		}
		else if (!(scan->plan.by_page ?
				   next_of_pages(scan, index, direction, &found, &recheck) :
				   next_of_queue(scan, index, direction, &found, &recheck)))
			break;
		if (!found)
			continue;
		if (!recheck)
			return slot;
		context->ecxt_scantuple = slot;
		if (ExecQualAndReset(scan->child.conditions, context))
			return slot;
		InstrCountFiltered2(child, 1);
	}
	scan->is_past_end = true;
	tell_of_dead(scan, true);
	ExecClearTuple(scan->child.heap_slot);
	ExecClearTuple(slot);
	return NULL;
}

/* The next row that passes the filter, projected: what ExecScan does. */
static TupleTableSlot *
next_result(PrefetchScan *scan)
{
	PlanState  *child = &scan->child.node->ps;
	ProjectionInfo *projection = child->ps_ProjInfo;
	ExprContext *context = child->ps_ExprContext;
	IndexScanDesc index = lsm_child_open_index(&scan->child);

	ResetExprContext(context);
	for (;;)
	{
		TupleTableSlot *slot = next_row(scan, index, scan->child.direction);

		if (slot == NULL)
			return projection ? ExecClearTuple(projection->pi_state.resultslot) :
				scan->child.node->ss_ScanTupleSlot;
		context->ecxt_scantuple = slot;
		if (child->qual == NULL || ExecQual(child->qual, context))
			return projection ? ExecProject(projection) : slot;
		InstrCountFiltered1(child, 1);
		ResetExprContext(context);
	}
}

/*
 * The reader turns round.  Core's node goes on, when the index has gone back to
 * the row that the reader is on: that is visible, so it is still there.  TIDs that
 * were taken from the index since cannot be counted, since others may have come
 * between them, or gone.
 */
static void
turn_round(PrefetchScan *scan)
{
	IndexScanDesc index = *scan->child.scan;
	ScanDirection back = ScanDirectionIsBackward(scan->child.direction) ? ForwardScanDirection :
		BackwardScanDirection;
	bool		is_ahead = scan->queue.at_end || !lsm_queue_is_empty(&scan->queue);

	if (scan->plan.by_page)
		elog(ERROR, "a prefetching scan by page cannot run backward");
	scan->has_turned = true;
	lsm_stream_reset(&scan->stream);
	if (index == NULL || scan->is_past_end || !is_ahead)
		return;
	for (;;)
	{
		ItemPointer tid = index_getnext_tid(index, back);

		CHECK_FOR_INTERRUPTS();
		if (tid == NULL || ItemPointerEquals(tid, &scan->current))
			return;
	}
}

static TupleTableSlot *
next(CustomScanState *node)
{
	PrefetchScan *scan = (PrefetchScan *) node;
	PlanState  *child = &scan->child.node->ps;
	TupleTableSlot *slot;

	if (ScanDirectionIsBackward(child->state->es_direction) && !scan->has_turned && !scan->is_plain)
		turn_round(scan);
	if (scan->is_plain || scan->has_turned)
	{
		slot = ExecProcNode(child);
		lsm_child_note_place(&scan->child);
		return slot;
	}
	if (child->instrument)
		InstrStartNode(child->instrument);
	slot = next_result(scan);
	if (child->instrument)
		InstrStopNode(child->instrument, TupIsNull(slot) ? 0.0 : 1.0);
	return slot;
}

static void
rescan(CustomScanState *node)
{
	PrefetchScan *scan = (PrefetchScan *) node;
	PlanState  *child = &scan->child.node->ps;

	tell_of_dead(scan, false);
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(child, node->ss.ps.chgParam);
	start_over(scan);
	ExecReScan(child);
}

static void
end(CustomScanState *node)
{
	PrefetchScan *scan = (PrefetchScan *) node;

	lsm_stream_end(&scan->stream);
	tell_of_dead(scan, false);
	lsm_queue_free(&scan->queue);
	ExecEndNode(&scan->child.node->ps);
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	PrefetchScan *scan = (PrefetchScan *) node;

	ExplainPropertyText("Mode", scan->plan.by_page ? "by page" : "in index order", es);
	ExplainPropertyInteger("Depth", NULL, scan->plan.depth, es);
	if (!es->analyze)
		return;
	/* Those of this process; parallel workers have their own. */
	ExplainPropertyInteger("Depth Reached", NULL, scan->max_ahead, es);
	ExplainPropertyInteger("Pages Prefetched", NULL, scan->pace.missing, es);
	ExplainPropertyInteger("Pages Read Again", NULL, scan->read_again, es);
	if (scan->plan.by_page)
		ExplainPropertyInteger("Rounds", NULL, scan->queue.rounds, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = LSM_PREFETCH_NAME,
	.BeginCustomScan = begin,
	.ExecCustomScan = next,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain,
};

static Node *
create_state(CustomScan *plan)
{
	PrefetchScan *scan = palloc0(sizeof(PrefetchScan));

	NodeSetTag(scan, T_CustomScanState);
	scan->custom.methods = &exec_methods;
	return (Node *) scan;
}

const CustomScanMethods lsm_prefetch_scan_methods = {
	.CustomName = LSM_PREFETCH_NAME,
	.CreateCustomScanState = create_state,
};
