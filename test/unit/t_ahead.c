/*
 * t_ahead.c -- parts of the prefetching scan that need no table: the queue of TIDs, the depth,
 * and which dead TIDs to report to the index.
 *
 * An array takes the place of the index.
 */
#include "backend.h"
#include "tap.h"

#include "access/genam.h"
#include "access/visibilitymap.h"
#include "executor/instrument.h"
#include "exec/dead_tids.h"
#include "exec/read_pace.h"
#include "exec/tid_queue.h"

#define TIDS 20000

static ItemPointerData tids[TIDS];
static int	tid_count;
static int	given;
static int	fetched;
static IndexScanDescData scan;

/* --- replacements of server functions ------------------------------------------ */

BufferUsage pgBufferUsage;
int			work_mem = 64;

ItemPointer
index_getnext_tid(IndexScanDesc index, ScanDirection direction)
{
	if (given >= tid_count)
		return NULL;
	index->xs_heaptid = tids[given++];
	return &index->xs_heaptid;
}

bool
index_fetch_heap(IndexScanDesc index, TupleTableSlot *slot)
{
	fetched++;
	return false;
}

uint8
visibilitymap_get_status(Relation table, BlockNumber block, Buffer *map)
{
	return 0;
}

IndexTuple
CopyIndexTuple(IndexTuple tuple)
{
	return tuple;
}

Size
GetMemoryChunkSpace(void *pointer)
{
	return 0;
}

int32
ItemPointerCompare(ItemPointer a, ItemPointer b)
{
	BlockNumber x = ItemPointerGetBlockNumberNoCheck(a);
	BlockNumber y = ItemPointerGetBlockNumberNoCheck(b);

	if (x != y)
		return x < y ? -1 : 1;
	return (int32) ItemPointerGetOffsetNumberNoCheck(a) - ItemPointerGetOffsetNumberNoCheck(b);
}

static TupleTableSlotOps slot_ops;
static TupleTableSlot slot = {.tts_ops = &slot_ops};

static void
clear_slot(TupleTableSlot *unused)
{
}

/* --- the queue ---------------------------------------------------------------- */

static void
fill_index(int count, uint32 blocks)
{
	tid_count = count;
	given = 0;
	for (int i = 0; i < count; i++)
		ItemPointerSet(&tids[i], rnd(blocks), 1 + rnd(200));
}

static void
test_index_order(void)
{
	LsmTidQueue queue;
	LsmQueuedTid taken;
	bool		same = true;
	bool		within = true;
	int			n = 0;
	int			ahead = 0;
	int			begun = 0;

	fill_index(TIDS, 5000);
	lsm_queue_init(&queue, 5000, false, 2, 8, NULL);
	for (;;)
	{
		while (lsm_queue_look_ahead(&queue, &scan, ForwardScanDirection, 8) != InvalidBlockNumber)
			ahead++;
		within &= queue.pages_ahead <= 8;
		if (!lsm_queue_take(&queue, &scan, ForwardScanDirection, &taken))
			break;
		same &= n < TIDS && ItemPointerCompare(&taken.tid, &tids[n]) == 0;
		begun += taken.begins_page;
		n++;
	}
	ok(same && n == TIDS, "in index order, TIDs come in the order in which the index returns them");
	ok(within, "the queue looks no more pages ahead than requested");
	ok(ahead == begun, "each page looked at begins once");
	lsm_queue_free(&queue);
}

/* Take all TIDs by page, and check that no page comes twice in a round. */
static void
take_by_page(BlockNumber table_pages, const char *name)
{
	static bool seen[TIDS];
	LsmTidQueue queue;
	LsmPageTids *page = palloc(sizeof(LsmPageTids));
	uint64		round = 0;
	BlockNumber last = 0;
	bool		ascends = true;
	int			n = 0;
	int64		sum = 0;
	int64		expected = 0;

	memset(seen, 0, sizeof(seen));
	lsm_queue_init(&queue, table_pages, true, 4, 8, NULL);
	while (lsm_queue_take_page(&queue, &scan, ForwardScanDirection, page))
	{
		if (queue.rounds == round)
			ascends &= page->block > last;
		round = queue.rounds;
		last = page->block;
		n += page->count;
		for (int i = 0; i < page->count; i++)
			sum += (int64) page->block * 1000 + page->offsets[i];
	}
	for (int i = 0; i < tid_count; i++)
		expected += (int64) ItemPointerGetBlockNumber(&tids[i]) * 1000 +
			ItemPointerGetOffsetNumber(&tids[i]);
	ok(n == tid_count && sum == expected, psprintf("%s: by page, each TID comes once", name));
	ok(ascends, psprintf("%s: pages ascend within a round", name));
	ok(round > 1, psprintf("%s: the scan takes several rounds", name));
	lsm_queue_free(&queue);
}

static void
test_by_page(void)
{
	LsmTidQueue queue;
	LsmPageTids *page = palloc(sizeof(LsmPageTids));

	fill_index(TIDS, 3000);
	take_by_page(3000, "narrow items");
	fill_index(TIDS, 0x7fffffff);
	take_by_page(0x7fffffff, "wide items");
	fill_index(0, 1);
	lsm_queue_init(&queue, 1, true, 4, 8, NULL);
	ok(!lsm_queue_take_page(&queue, &scan, ForwardScanDirection, page), "an empty index gives no page");
	lsm_queue_free(&queue);
	ok(lsm_queue_round_limit(100) == 2 * lsm_queue_round_limit(InvalidBlockNumber),
	   "a round holds twice as many narrow items");
}

/* --- the depth ---------------------------------------------------------------- */

static void
note(LsmReadPace *pace, int64 us, bool missed)
{
	LsmReadWatch watch = {0};
	instr_time	begin;

	/* A time of `us` microseconds, in the unit of instr_time. */
	INSTR_TIME_SET_CURRENT(begin);
	do
	{
		INSTR_TIME_SET_CURRENT(watch.time);
		INSTR_TIME_SUBTRACT(watch.time, begin);
	} while (INSTR_TIME_GET_MICROSEC(watch.time) < us);
	watch.is_timed = true;
	lsm_pace_note_time(pace, &watch, missed);
}

static void
test_depth(void)
{
	LsmReadPace pace;

	lsm_pace_init(&pace, 64, false);
	for (int i = 0; i < 3; i++)
		note(&pace, 50, true);
	ok(pace.depth == 0, "three slow reads do not start prefetching");
	note(&pace, 0, false);
	ok(pace.depth == 0, "a cached page does not start prefetching");
	note(&pace, 50, true);
	ok(pace.depth > 0, "a fourth slow read starts it");
	for (int i = 0; i < 10; i++)
		lsm_pace_note_ahead(&pace, true);
	ok(pace.depth == 64, "pages not in memory double the depth, up to the limit");
	for (int i = 0; i < 64; i++)
		lsm_pace_note_ahead(&pace, false);
	ok(pace.depth == 0, "each page in memory reduces the depth by one");
	lsm_pace_start_over(&pace);
	note(&pace, 50, true);
	ok(pace.depth > 0, "a scan that has prefetched before starts again after one slow read");
	lsm_pace_init(&pace, 16, true);
	ok(pace.depth == 16, "a forced scan starts at the limit");
	lsm_pace_init(&pace, 64, false);
	pace.depth = 64;
	for (BlockNumber block = 0; block < 1000; block++)
		(void) lsm_pace_wants_prefetch(&pace, block);
	ok(!lsm_pace_wants_prefetch(&pace, 1000), "sequential pages are left to the kernel's read-ahead");
	ok(!lsm_pace_wants_prefetch(&pace, 1001), "as long as they stay sequential");
}

/* --- dead TIDs ----------------------------------------------------------------- */

static void
test_dead(void)
{
	LsmDeadTids dead;

	fill_index(1000, 50);
	lsm_dead_init(&dead);
	for (int i = 0; i < 15; i++)
		lsm_dead_note(&dead, &tids[i]);
	dead.looked_up = 100;
	ok(!lsm_dead_are_many(&dead), "15 dead TIDs are few");
	lsm_dead_note(&dead, &tids[15]);
	ok(lsm_dead_are_many(&dead), "16 of 100 are many");
	dead.looked_up = 1000;
	ok(!lsm_dead_are_many(&dead), "16 of 1000 are few");
	/* A TID is stored only once. */
	for (int i = 0; i < 16; i++)
		lsm_dead_note(&dead, &tids[i]);
	fetched = 0;
	slot_ops.clear = clear_slot;
	lsm_dead_report(&dead, &scan, ForwardScanDirection, &slot, 1000);
	ok(fetched >= 1 && fetched <= 16, "each dead TID is reported to the index once");
	lsm_dead_reset(&dead);
	for (int i = 0; i < 5000; i++)
		lsm_dead_note(&dead, &tids[i % 1000]);
	ok(dead.count <= 1024 && dead.found == 5000, "the list keeps no more TIDs than it has room for");
}

int
main(void)
{
	test_index_order();
	test_by_page();
	test_depth();
	test_dead();
	backend_free_all();
	return done();
}
