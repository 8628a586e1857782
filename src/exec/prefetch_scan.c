/*
 * prefetch_scan.c
 *	  Executes the prefetching scan: an index scan that keeps many pages of the table in
 *	  flight.
 *
 * The node has core's index scan or index-only scan as its child.  The node does the child's work
 * with the child's state: keys, conditions, filter, projection, statistics.  Only the order of
 * steps differs: the node takes TIDs from the index ahead of the rows, and prefetches the table
 * pages of these TIDs.  See docs/design/prefetch-scan.md.
 *
 * While a TID waits in the queue, VACUUM may remove its row and another row may get its line
 * pointer.  That row is too young for an MVCC snapshot to see.  With any other snapshot and in
 * EvalPlanQual, core's node does all the work.
 *
 * PrefetchBuffer requests the pages, and the node reads each page when it needs the rows.  Where
 * PrefetchBuffer does nothing, a stream (page_stream.c) reads the pages and asks the node for
 * block numbers.
 *
 * read_pace.c sets the depth.  In index order at depth 0, the node runs core's loop step by step.
 * Only that loop can report dead rows to the index at once, since an access method applies such a
 * report to the TID that it returned last.  The node reports other dead rows when the scan ends
 * (dead_tids.c).
 *
 * If a scan in index order has to run backward, the index goes back to the current row, and
 * core's node takes over.
 *
 * By page, the node looks up all rows of a page under one lock, like core's bitmap scan.
 *
 * Planning is in prefetch_path.c, the queue of TIDs in tid_queue.c.
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

/* Report dead rows to the index only if one in this many TIDs, or more, had a dead row. */
#define MOST_TIDS_PER_DEAD_ROW 64

typedef struct PrefetchScan
{
	CustomScanState custom;		/* must be first */
	LsmPrefetchPlan plan;
	LsmIndexChild child;
	bool		is_plain;		/* core's node does all the work */
	bool		has_turned;		/* core's node does the rest of this scan */
	bool		is_past_end;	/* the scan has returned its last row */
	ItemPointerData current;	/* the index's TID of the last visible row, or invalid */
	LsmTidQueue queue;
	bool		is_streaming;	/* read through `stream`, not with PrefetchBuffer */
	LsmPageStream stream;
	LsmDeadTids dead;			/* dead TIDs from the queue */
	LsmPageTids page;			/* by page: visible rows of the current page */
	int			next_row_on_page;	/* by page: the next of these rows to return */
	BufferAccessStrategy ring;	/* by page: for rounds larger than shared buffers */
	LsmReadPace pace;

	/* For EXPLAIN. */
	int			max_ahead;
	uint64		read_again;		/* pages read again because they had been evicted */
	BlockNumber table_pages;	/* size of the table at the start, in blocks */
	uint8	   *was_read;		/* a bit for each page; NULL if EXPLAIN does not need it */
} PrefetchScan;

static void
start_over(PrefetchScan *scan)
{
	lsm_pace_start_over(&scan->pace);
	scan->page.count = scan->next_row_on_page = 0;
	scan->has_turned = scan->is_past_end = false;
	ItemPointerSetInvalid(&scan->current);
	ExecClearTuple(scan->child.heap_slot);
	lsm_stream_reset(&scan->stream);
	lsm_queue_reset(&scan->queue);
	lsm_dead_reset(&scan->dead);
}

static BlockNumber next_page_for_stream(void *argument);

static void
prefetch_scan_begin(CustomScanState *node, EState *estate, int flags)
{
	PrefetchScan *scan = (PrefetchScan *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	PlanState  *child = ExecInitNode(linitial(plan->custom_plans), estate, flags);

	lsm_child_init(&scan->child, child);
	node->custom_ps = list_make1(child);
	lsm_prefetch_read_plan(plan->custom_private, &scan->plan);

	/* Return rows in the child's slots, since WHERE CURRENT OF looks there. */
	node->ss.ss_ScanTupleSlot = scan->child.node->ss_ScanTupleSlot;
	node->ss.ps.resultops = ExecGetResultSlotOps(child, &node->ss.ps.resultopsfixed);
	node->ss.ps.resultopsset = true;

	/* Reading ahead in index order, a serializable scan would lock entries that it never needs. */
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
	lsm_stream_init(&scan->stream, node->ss.ss_currentRelation, scan->plan.depth, next_page_for_stream,
					scan);
	if (scan->plan.by_page)
		scan->ring = GetAccessStrategy(BAS_BULKREAD);
	start_over(scan);
}

/*
 * Called before core reads a page.  If the read is to be timed, read the page here, the way core
 * would.
 */
static inline void
watch_read(PrefetchScan *scan, IndexScanDesc index, BlockNumber block, LsmReadWatch *watch)
{
	lsm_pace_begin_watch(&scan->pace, block, watch);
	if (watch->is_timed)
	{
		IndexFetchHeapData *fetch = (IndexFetchHeapData *) index->xs_heapfetch;
		Buffer		previous = fetch->xs_cbuf;

		lsm_fetch_hold_page(fetch, ReleaseAndReadBuffer(previous, index->heapRelation, block), block);
		lsm_pace_stop_clock(watch);
		if (fetch->xs_cbuf != previous)
			lsm_fetch_prune_page(fetch);
	}
}

/* For EXPLAIN: a page was not in shared buffers.  Count it if this node has read it before. */
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
	/* The table may have grown, but our snapshot does not see the new rows. */
	if (block >= scan->table_pages)
		return;
	scan->read_again += (scan->was_read[block / 8] & bit) != 0;
	scan->was_read[block / 8] |= bit;
}

/* Called after the read that watch_read announced. */
static inline void
note_read(PrefetchScan *scan, BlockNumber block, const LsmReadWatch *watch)
{
	bool		missed = lsm_pace_note_read(&scan->pace, watch);

	if (unlikely(missed && scan->custom.ss.ps.instrument != NULL))
		note_missed(scan, block);
}

/*
 * Returns the next page that the stream has to read.  The stream decides how far it reads ahead,
 * but ends when our depth falls to 0.
 */
static BlockNumber
next_page_for_stream(void *argument)
{
	PrefetchScan *scan = argument;
	Relation	table = (*scan->child.scan)->heapRelation;
	BlockNumber block;
	PrefetchBufferResult result;

	/* Do not begin a round here, since the last page of the previous one is still unread. */
	if (scan->pace.depth == 0 || (scan->plan.by_page && lsm_queue_is_empty(&scan->queue)))
		return InvalidBlockNumber;
	block = lsm_queue_look_ahead(&scan->queue, *scan->child.scan, scan->child.direction, INT_MAX);
	if (block == InvalidBlockNumber)
		return block;
	scan->max_ahead = Max(scan->max_ahead, scan->queue.pages_ahead);
	/* With streams, PrefetchBuffer only tells whether the page is in shared buffers. */
	result = PrefetchBuffer(table, MAIN_FORKNUM, block);
	lsm_pace_note_ahead(&scan->pace, !BufferIsValid(result.recent_buffer));
	if (!BufferIsValid(result.recent_buffer) && scan->custom.ss.ps.instrument != NULL)
		note_missed(scan, block);
	return block;
}

/*
 * By page: returns the ring if the round is larger than shared buffers, else NULL.  Pages of
 * such a round are read once, and would be evicted before another scan could use them.
 */
static BufferAccessStrategy
choose_ring(const PrefetchScan *scan)
{
	return scan->queue.round_pages > (Size) NBuffers ? scan->ring : NULL;
}

static void
look_ahead(PrefetchScan *scan, IndexScanDesc index, ScanDirection direction)
{
	BlockNumber block;

	if (scan->is_streaming)
	{
		/* From here on, the stream looks further each time a page is taken from it. */
		if (scan->pace.depth > 0 && lsm_queue_has_none_ahead(&scan->queue))
			lsm_stream_prime(&scan->stream, choose_ring(scan));
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
 * Note a visible row.  The index returned `tid`; the visible version is at `place`.  In an
 * index-only scan, the row is the index entry.
 */
static inline void
note_current_row(PrefetchScan *scan, const ItemPointerData *tid, ItemPointer place,
				 IndexTuple entry)
{
	scan->current = *tid;
	if (lsm_child_is_index_only(&scan->child))
	{
		ExecClearTuple(scan->child.heap_slot);
		lsm_child_store_entry(&scan->child, entry, place);
	}
}

/* Note a row on an all-visible page, which was not read. */
static void
note_all_visible_row(PrefetchScan *scan, IndexScanDesc index, ItemPointer tid, IndexTuple entry)
{
	note_current_row(scan, tid, tid, entry);
	PredicateLockPage(index->heapRelation, ItemPointerGetBlockNumber(tid), index->xs_snapshot);
}

/* Take this page from the stream, and pin it in place of the previous page. */
static void
take_page_from_stream(PrefetchScan *scan, IndexScanDesc index, BlockNumber block)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) index->xs_heapfetch;

	lsm_fetch_drop_page(fetch);
	lsm_fetch_hold_page(fetch, lsm_stream_take(&scan->stream, block), block);
	lsm_fetch_prune_page(fetch);
}

/* Fetch the row of a TID from the queue.  Returns whether the row is visible. */
static bool
fetch_queued_row(PrefetchScan *scan, IndexScanDesc index, LsmQueuedTid *taken)
{
	ItemPointerData place = taken->tid; /* becomes that of the visible version */
	LsmReadWatch watch;
	bool		again = false;
	bool		is_dead = false;
	bool		found;

	lsm_child_count_fetches(&scan->child, 1);
	if (scan->is_streaming && taken->begins_page)
		take_page_from_stream(scan, index, ItemPointerGetBlockNumber(&place));
	watch_read(scan, index, ItemPointerGetBlockNumber(&place), &watch);
	found = table_index_fetch_tuple(index->xs_heapfetch, &place, index->xs_snapshot,
									scan->child.heap_slot, &again, &is_dead);
	/* An MVCC snapshot sees one version at most. */
	Assert(!again);
	scan->dead.looked_up++;
	if (found)
	{
		note_current_row(scan, &taken->tid, &place, taken->entry);
		pgstat_count_heap_fetch(index->indexRelation);
	}
	else if (is_dead)
		lsm_dead_note(&scan->dead, &taken->tid);
	note_read(scan, ItemPointerGetBlockNumber(&taken->tid), &watch);
	return found;
}

/* Fetch the next row without the queue, as core's loop does.  Returns false at the end. */
static bool
fetch_next_from_index(PrefetchScan *scan, IndexScanDesc index, ScanDirection direction, bool *found)
{
	ItemPointer tid = index_getnext_tid(index, direction);
	ItemPointerData first;		/* the TID that the index returned */
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
		note_all_visible_row(scan, index, tid, index->xs_itup);
		return true;
	}
	first = *tid;
	lsm_child_count_fetches(&scan->child, 1);
	watch_read(scan, index, ItemPointerGetBlockNumber(tid), &watch);
	*found = index_fetch_heap(index, scan->child.heap_slot);
	if (*found)
		note_current_row(scan, &first, tid, index->xs_itup);
	note_read(scan, ItemPointerGetBlockNumber(&first), &watch);
	return true;
}

/*
 * By page: pin the page of these TIDs.  Replace the TIDs with the places of their visible rows,
 * and drop TIDs without a visible row.  The pin belongs to core's scan and keeps the rows in place.
 */
static void
read_page(PrefetchScan *scan, IndexScanDesc index, LsmPageTids *page)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) index->xs_heapfetch;
	Relation	table = index->heapRelation;
	LsmReadWatch watch;
	int			found = 0;

	if (scan->is_streaming && page->was_ahead)
		take_page_from_stream(scan, index, page->block);
	lsm_pace_begin_watch(&scan->pace, page->block, &watch);
	if (!scan->is_streaming || !page->was_ahead)
	{
		lsm_fetch_drop_page(fetch);
		lsm_fetch_hold_page(fetch, ReadBufferExtended(table, MAIN_FORKNUM, page->block, RBM_NORMAL,
													  choose_ring(scan)), page->block);
		lsm_pace_stop_clock(&watch);
		lsm_fetch_prune_page(fetch);
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

/* By page: store the row at this place of the page that read_page has pinned. */
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

/* By page: find the next visible row.  Returns false at the end. */
static bool
fetch_next_by_page(PrefetchScan *scan, IndexScanDesc index, ScanDirection direction, bool *found,
				   bool *recheck)
{
	LsmPageTids *page = &scan->page;
	ItemPointer tid;

	*found = true;
	while (scan->next_row_on_page == page->count)
	{
		CHECK_FOR_INTERRUPTS();
		if (lsm_child_is_index_only(&scan->child) &&
			(tid = lsm_queue_next_visible(&scan->queue, index, direction)) != NULL)
		{
			note_all_visible_row(scan, index, tid, index->xs_itup);
			*recheck = index->xs_recheck;
			return true;
		}
		/* Reading the pages of a round takes long. */
		if (lsm_child_is_index_only(&scan->child))
			lsm_prefetch_pause(index);
		look_ahead(scan, index, direction);
		scan->next_row_on_page = 0;
		if (!lsm_queue_take_page(&scan->queue, index, direction, page))
		{
			page->count = 0;
			return false;
		}
		read_page(scan, index, page);
	}
	*recheck = page->rechecks[scan->next_row_on_page];
	store_row(scan, index, page->block, page->offsets[scan->next_row_on_page++]);
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
		note_all_visible_row(scan, index, &taken.tid, taken.entry);
	*found = taken.is_visible || fetch_queued_row(scan, index, &taken);
	return true;
}

/* Can the next row come straight from the index? */
static inline bool
bypasses_queue(const PrefetchScan *scan)
{
	return !scan->plan.by_page && scan->pace.depth == 0 && lsm_queue_is_empty(&scan->queue) &&
		!scan->queue.at_end;
}

/*
 * Report the dead rows to the index, if there are enough of them.  Parallel scans report none,
 * since each process has seen only a part of the index.
 *
 * Reporting scans the index again with the keys of the scan that is ending.  Keys from an outer
 * row may point into that row.  The outer row may be gone by now, unless the executor is currently
 * asking us for a row (keys_are_valid).
 */
static void
report_dead_rows(PrefetchScan *scan, bool keys_are_valid)
{
	const LsmIndexChild *child = &scan->child;
	IndexScanDesc index = *child->scan;

	if (!lsm_dead_are_many(&scan->dead))
		return;
	if ((keys_are_valid || *child->runtime_key_count == 0) &&
		scan->queue.taken <= (uint64) scan->dead.count * MOST_TIDS_PER_DEAD_ROW &&
		!index->xactStartedInRecovery && index->parallel_scan == NULL)
	{
		/* No snapshot is active when the scan of a query ends. */
		PushActiveSnapshot(index->xs_snapshot);
		lsm_child_rescan_index(child);
		lsm_dead_report(&scan->dead, index, child->direction, child->heap_slot,
						scan->queue.taken);
		/*
		 * If the next fetch goes backward, the new scan starts at the end of the range.  The old
		 * scan stopped at the same place.
		 */
		lsm_child_rescan_index(child);
		PopActiveSnapshot();
	}
	lsm_dead_reset(&scan->dead);
}

/* Returns the next visible row that meets the index conditions, or NULL at the end. */
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
			if (!fetch_next_from_index(scan, index, direction, &found))
				break;
			recheck = index->xs_recheck;
		}
		else if (!(scan->plan.by_page ?
				   fetch_next_by_page(scan, index, direction, &found, &recheck) :
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
	report_dead_rows(scan, true);
	ExecClearTuple(scan->child.heap_slot);
	ExecClearTuple(slot);
	return NULL;
}

/* Returns the next row that passes the filter, projected.  Does what ExecScan does. */
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
 * Called when the scan turns around.  Move the index back to the current row, and leave the rest to
 * core's node.  The current row is visible, so its TID is still in the index.  Counting TIDs
 * backward would be wrong, since entries may have been added or removed.
 */
static void
turn_around(PrefetchScan *scan)
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
prefetch_scan_next(CustomScanState *node)
{
	PrefetchScan *scan = (PrefetchScan *) node;
	PlanState  *child = &scan->child.node->ps;
	TupleTableSlot *slot;

	if (ScanDirectionIsBackward(child->state->es_direction) && !scan->has_turned && !scan->is_plain)
		turn_around(scan);
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
prefetch_scan_rescan(CustomScanState *node)
{
	PrefetchScan *scan = (PrefetchScan *) node;
	PlanState  *child = &scan->child.node->ps;

	report_dead_rows(scan, false);
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(child, node->ss.ps.chgParam);
	start_over(scan);
	ExecReScan(child);
}

static void
prefetch_scan_end(CustomScanState *node)
{
	PrefetchScan *scan = (PrefetchScan *) node;

	lsm_stream_end(&scan->stream);
	report_dead_rows(scan, false);
	lsm_queue_free(&scan->queue);
	ExecEndNode(&scan->child.node->ps);
}

static void
prefetch_scan_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	PrefetchScan *scan = (PrefetchScan *) node;

	ExplainPropertyText("Mode", scan->plan.by_page ? "by page" : "in index order", es);
	ExplainPropertyInteger("Depth", NULL, scan->plan.depth, es);
	if (!es->analyze)
		return;
	/* These figures exclude parallel workers. */
	ExplainPropertyInteger("Depth Reached", NULL, scan->max_ahead, es);
	ExplainPropertyInteger("Pages Prefetched", NULL, scan->pace.missing, es);
	ExplainPropertyInteger("Pages Read Again", NULL, scan->read_again, es);
	if (scan->plan.by_page)
		ExplainPropertyInteger("Rounds", NULL, scan->queue.rounds, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = LSM_PREFETCH_NAME,
	.BeginCustomScan = prefetch_scan_begin,
	.ExecCustomScan = prefetch_scan_next,
	.EndCustomScan = prefetch_scan_end,
	.ReScanCustomScan = prefetch_scan_rescan,
	.ExplainCustomScan = prefetch_scan_explain,
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
