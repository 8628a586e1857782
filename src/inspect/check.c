/*
 * check.c
 *	  lsm_check: verifies an index, and optionally its table against it.
 *
 * The index stays in use: inserts, merges and VACUUM go on, and segments may be
 * merged away at any time.  So the verifier works in rounds.  Each round copies, at
 * one instant, everything that must be consistent (check_instant.c) and checks the
 * copy.  Then it reads the pages of the segments one by one.  When a page has another owner,
 * the current version decides.  If that version still names the segment, the index is damaged.
 * Otherwise the segment was merged or dropped, and the next round looks for the segments that
 * this round missed.
 *
 * If the table is compared, no entry of its rows escapes.  Every version contains every such entry,
 * and the last round misses no segment.  A segment's id is never reused, and a segment is written
 * once; later changes only remove entries (I6).  (An open page also gains entries, but the snapshot
 * does not see their rows.)  So a segment that was checked in one round needs no second look.
 *
 * Without the table, later rounds leave out segments written since the first round.  If merges keep
 * taking segments away, the verifier gives up on those that it has missed.
 *
 * The verifier trusts no page.  It checks a page against what it already knows, and only then
 * follows anything on that page.  The first fault raises an error.
 *
 * On a standby, the verifier takes only locks that are allowed there, and writes nothing.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "base/stop_point.h"
#include "fmgr.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(lsm_check);

/*
 * The most rounds that run while merges run.  If the table is compared, one more round then locks
 * out merges.  In recovery that is impossible, so the user has to try again.
 */
#define MOST_ROUNDS 10
#define MOST_ROUNDS_IN_RECOVERY 100

/* A segment that some round found. */
typedef struct SeenSegment
{
	uint64		id;				/* key */
	int			round;			/* the latest round that found the segment */
	bool		is_checked;		/* false: the segment was gone before we had read all of it */
} SeenSegment;

/* Do readers no longer need the segment?  If so, the segment may be freed at any time. */
static bool
segment_is_dead(LsmCheck *c, const LsmCheckSegment *segment)
{
	const LsmEntry *frontier = lsm_check_frontier(c, segment->run);

	if (segment->run->state == LSM_RUN_SPENT)
		return true;
	return segment->has_item && frontier != NULL &&
		lsm_check_compare(c, &segment->high, frontier) <= 0;
}

/*
 * Must this round check the segment?  Sets *seen to what earlier rounds know about it, or NULL.
 * If the table is not compared, later rounds skip segments that no earlier round has seen: merges
 * and inserts have just written them.  Later rounds only look for segments that were missed, since
 * a job may have moved a missed segment to its output.
 */
static bool
is_of_interest(LsmCheck *c, const LsmCheckSegment *segment, int round, SeenSegment **seen)
{
	if (segment_is_dead(c, segment))
		return false;
	*seen = hash_search(c->seen, &segment->segment.id, HASH_FIND, NULL);
	return *seen != NULL || round == 1 || c->compares_heap;
}

/* Returns how many blocks the segments have that this round will read. */
static uint64
blocks_of_round(LsmCheck *c, int round)
{
	uint64		blocks = 0;

	for (int i = 0; i < c->instant->segment_count; i++)
	{
		const LsmCheckSegment *segment = &c->instant->segments[i];
		SeenSegment *seen;

		if (is_of_interest(c, segment, round, &seen) && (seen == NULL || !seen->is_checked))
			blocks += segment->segment.blocks;
	}
	return blocks;
}

/* Check a segment unless an earlier round did.  Returns 1 if the segment was gone, else 0. */
static int
round_check_segment(LsmCheck *c, const LsmCheckSegment *segment, int round)
{
	SeenSegment *seen;
	bool		found;

	if (!is_of_interest(c, segment, round, &seen))
		return 0;
	seen = hash_search(c->seen, &segment->segment.id, HASH_ENTER, &found);
	if (found && seen->round == round)
		lsm_check_report(c, segment->segment.start, "segment " UINT64_FORMAT " appears twice",
						 segment->segment.id);
	seen->round = round;
	if (found && seen->is_checked)
		return 0;
	seen->is_checked = lsm_check_segment(c, segment);
	MemoryContextReset(c->scratch);
	/* Holds locks on the table and the index.  A round without merges also holds the merge lock. */
	LSM_STOP_POINT("check-segment");
	return seen->is_checked ? 0 : 1;
}

/*
 * Copy the state at one instant, and check what earlier rounds have not checked.  Returns how many
 * segments were gone.
 */
static int
check_round(LsmCheck *c, int round)
{
	int			gone = 0;

	lsm_check_begin_phase(c, LSM_CHECK_MANIFEST, 0);
	lsm_check_take_instant(c);
	lsm_check_segments(c);
	lsm_check_map(c);
	if (round == 1 && c->compares_heap)
		lsm_check_heap_begin(c);
	lsm_check_begin_phase(c, LSM_CHECK_SEGMENTS, blocks_of_round(c, round));
	for (int i = 0; i < c->instant->segment_count; i++)
		gone += round_check_segment(c, &c->instant->segments[i], round);
	MemoryContextDelete(c->instant->context);
	c->instant = NULL;
	return gone;
}

/* Run rounds until one finds every segment in its place, or there have been too many. */
static void
check_all_rounds(LsmCheck *c)
{
	bool		in_recovery = RecoveryInProgress();
	int			most = in_recovery ? MOST_ROUNDS_IN_RECOVERY : MOST_ROUNDS;
	int			round = 1;
	int			gone;

	while ((gone = check_round(c, round)) > 0)
	{
		ereport(DEBUG1,
				(errmsg_internal("index \"%s\": %d segments were merged while it was read",
								 RelationGetRelationName(c->rel), gone)));
		if (round++ == most)
			break;
	}
	/* Only a comparison with the table needs the entries of the missed segments. */
	if (gone == 0 || !c->compares_heap)
		return;
	if (in_recovery)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("could not verify index \"%s\" because it is being merged too fast",
						RelationGetRelationName(c->rel)),
				 errhint("Try again when there are fewer writes, or verify the index on the primary.")));

	/* While we hold this lock, no step installs anything.  VACUUM may still drop empty segments. */
	lsm_merge_lock(c->rel, ExclusiveLock, true);
	check_round(c, round);
	lsm_merge_unlock(c->rel, ExclusiveLock);
}

/*
 * Check that the table has the highest heap block that any entry points to.  Our lock keeps the
 * table from shrinking.
 */
static void
check_furthest(LsmCheck *c)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(c->heap);

	if (c->furthest_at != 0 && c->furthest >= blocks)
		lsm_check_report(c, c->furthest_at,
						 "entry %d points to block %u of the table, which has %u blocks",
						 c->furthest_ordinal, c->furthest, blocks);
}

static void
verify_index(LsmInspected *in, LsmCheckSlot *slot, bool heapallindexed)
{
	LsmCheck   *c = palloc0(sizeof(LsmCheck));
	Snapshot	snapshot = InvalidSnapshot;
	HASHCTL		control;

	c->heap = in->heap;
	c->rel = in->index;
	c->slot = slot;
	c->index = lsm_index_open(in->index);
	c->ks = lsm_index_keyspace(c->index);
	c->strategy = lsm_ring(BAS_BULKREAD);
	c->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm check of a page",
									   ALLOCSET_DEFAULT_SIZES);
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(uint64);
	control.entrysize = sizeof(SeenSegment);
	control.hcxt = CurrentMemoryContext;
	c->seen = hash_create("pg_lsm check segments", 256, &control,
						  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	/* Take the snapshot first, so that all later versions have entries for its rows. */
	if (heapallindexed)
		snapshot = lsm_check_heap_snapshot(c);
	c->compares_heap = heapallindexed;
	check_all_rounds(c);
	check_furthest(c);
	if (heapallindexed)
	{
		lsm_check_heap_rows(c, snapshot);
		UnregisterSnapshot(snapshot);
		lsm_check_duplicates(c);
		lsm_check_unique(c);
	}
	hash_destroy(c->seen);
}

/*
 * lsm_check(index regclass, heapallindexed boolean).  Returns nothing if the index is
 * sound.  Otherwise raises an error that names the index, and the block or the rows.
 */
Datum
lsm_check(PG_FUNCTION_ARGS)
{
	LsmInspected in;
	MemoryContext context;
	MemoryContext old_context;
	LsmCheckSlot *slot;

	lsm_inspect_open(&in, PG_GETARG_OID(0), LSM_INSPECT_OWNER);
	if (!in.index->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot check index \"%s\"", RelationGetRelationName(in.index)),
				 errdetail("The index is not valid.")));
	lsm_owner_become(in.heap, &in.owner);
	lsm_owner_add_schemas(lsm_index_keyspace(lsm_index_open(in.index)));
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm check",
									ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(context);
	slot = lsm_check_slot_take(RelationGetRelid(in.index));
	PG_TRY();
	{
		verify_index(&in, slot, PG_GETARG_BOOL(1));
	}
	PG_FINALLY();
	{
		lsm_check_slot_return(slot);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	lsm_inspect_close(&in);
	PG_RETURN_VOID();
}
