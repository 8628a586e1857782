/*
 * check.c
 *	  lsm_check: verify an index, and perhaps its table against it.
 *
 * The index stays in use: inserts, merges and VACUUM go on, and segments may be
 * merged away at any time.  So the verifier works in rounds.  Each round copies, at
 * one instant, everything that must be consistent (check_instant.c) and checks the
 * copy.  Then it reads the pages of the segments one by one.  When a page belongs to
 * somebody else, the current version decides.  If it still names the segment, the
 * index is damaged.  Otherwise the segment was merged or dropped, and the next round
 * looks for the segments that this round missed.
 *
 * No entry escapes.  Every version contains every entry, and the last round misses no
 * segment.  A segment's id is never reused, and a segment is written once; VACUUM only
 * removes entries (I6).  So a segment that was checked in one round needs no second look.
 *
 * The verifier trusts no page.  It compares what a page says with what is already known
 * before it follows anything found there.  The first fault raises an error.
 *
 * On a standby, the verifier takes only locks that are allowed there, and writes nothing.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(lsm_check);

/*
 * Rounds that merges may spoil.  After these, one more round keeps merges away.  In
 * recovery that is impossible, so the user has to try again.
 */
#define MOST_ROUNDS 10
#define MOST_ROUNDS_IN_RECOVERY 100

/* A segment that some round found. */
typedef struct SeenSegment
{
	uint64		id;				/* key */
	int			round;			/* the latest round that found it */
	bool		is_checked;		/* false: it was gone when we looked */
} SeenSegment;

/* Does no reader need the segment any more?  Then it may be freed at any time. */
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
 * Check a segment unless an earlier round did.  Returns 1 if it was gone, else 0.
 * Without a table to compare with, later rounds skip segments that no earlier round has
 * seen: merges have just written them.  They only look for segments that were missed,
 * since a job may have moved one to its output.
 */
static int
round_check_segment(LsmCheck *c, const LsmCheckSegment *segment, int round)
{
	SeenSegment *seen;
	bool		found;

	if (segment_is_dead(c, segment))
		return 0;
	if (round > 1 && !c->compares_heap &&
		hash_search(c->seen, &segment->segment.id, HASH_FIND, NULL) == NULL)
		return 0;
	seen = hash_search(c->seen, &segment->segment.id, HASH_ENTER, &found);
	if (found && seen->round == round)
		lsm_check_report(c, segment->segment.start, "segment " UINT64_FORMAT " is there twice",
						 segment->segment.id);
	seen->round = round;
	if (found && seen->is_checked)
		return 0;
	seen->is_checked = lsm_check_segment(c, segment);
	MemoryContextReset(c->scratch);
	return seen->is_checked ? 0 : 1;
}

/* Take an instant and check everything new in it.  Returns the number of segments that were gone. */
static int
check_round(LsmCheck *c, int round)
{
	int			gone = 0;

	lsm_check_take_instant(c);
	lsm_check_segments(c);
	lsm_check_map(c);
	if (round == 1 && c->compares_heap)
		lsm_check_heap_begin(c);
	for (int i = 0; i < c->instant->segment_count; i++)
		gone += round_check_segment(c, &c->instant->segments[i], round);
	MemoryContextDelete(c->instant->context);
	c->instant = NULL;
	return gone;
}

/* Run rounds until one finds every segment in its place. */
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
	/* Without a table to compare with, the output of these merges can be left to another check. */
	if (gone == 0 || !c->compares_heap)
		return;
	if (in_recovery)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("index \"%s\" is merged faster than it can be verified",
						RelationGetRelationName(c->rel)),
				 errhint("Try again when there is less writing, or verify it on the primary.")));

	/* No step installs anything while we hold this lock.  Only VACUUM may still drop empty segments. */
	lsm_merge_lock(c->rel, ExclusiveLock, true);
	check_round(c, round);
	lsm_merge_unlock(c->rel, ExclusiveLock);
}

/* Does the table have the highest block that an entry names?  Our lock keeps it from shrinking. */
static void
check_furthest(LsmCheck *c)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(c->heap);

	if (c->furthest_at != 0 && c->furthest >= blocks)
		lsm_check_report(c, c->furthest_at,
						 "entry %d leads to block %u of the table, which has %u blocks",
						 c->furthest_ordinal, c->furthest, blocks);
}

static void
verify_index(LsmInspected *in, bool heapallindexed)
{
	LsmCheck   *c = palloc0(sizeof(LsmCheck));
	Snapshot	snapshot = InvalidSnapshot;
	HASHCTL		control;

	c->heap = in->heap;
	c->rel = in->index;
	c->index = lsm_index_open(in->index);
	c->ks = lsm_index_keyspace(c->index);
	c->strategy = GetAccessStrategy(BAS_BULKREAD);
	c->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm check of a page",
									   ALLOCSET_DEFAULT_SIZES);
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(uint64);
	control.entrysize = sizeof(SeenSegment);
	control.hcxt = CurrentMemoryContext;
	c->seen = hash_create("pg_lsm check segments", 256, &control,
						  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	/* Take the snapshot first: every row that it sees is in the versions that we read afterwards. */
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
	FreeAccessStrategy(c->strategy);
}

/*
 * lsm_check(index regclass, heapallindexed boolean).  Returns nothing if the index is
 * sound.  Otherwise raises an error that names the index and the block.
 */
Datum
lsm_check(PG_FUNCTION_ARGS)
{
	LsmInspected in;
	MemoryContext context;
	MemoryContext old_context;

	lsm_inspect_open(&in, PG_GETARG_OID(0), LSM_INSPECT_OWNER);
	if (!in.index->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot check index \"%s\"", RelationGetRelationName(in.index)),
				 errdetail("The index is not valid.")));
	lsm_owner_become(in.heap, &in.owner);
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm check",
									ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(context);
	verify_index(&in, PG_GETARG_BOOL(1));
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	lsm_inspect_close(&in);
	PG_RETURN_VOID();
}
