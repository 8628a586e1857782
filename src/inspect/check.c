/*
 * check.c
 *	  lsm_check: verify an index, and perhaps its table against it.
 *
 * The index stays in use meanwhile: inserts, merges and VACUUM go on, and
 * nothing keeps a segment in its place.  So this works in rounds.  A round
 * copies at one instant all that must agree with each other (check_instant.c),
 * checks that, and then reads the pages of the segments, one by one.  When a
 * page belongs to somebody else, the current version decides: if it still names
 * the segment the index is damaged, else the segment was merged or dropped.  The
 * next round then looks at what it has not seen.
 *
 * An entry that was in such a segment is found in the end: it is in a segment of
 * each version, and the last round is one that has missed none.  Segments have
 * ids that are never used again, and are written once; VACUUM only takes entries
 * away (I6).  So one that was checked in an earlier round needs no second look.
 *
 * No page is trusted, even if this server has checked it before, and nothing
 * found on a page is followed before it has been compared with what is known.
 * The first fault ends the verification with an error.
 *
 * Works on a standby: takes no lock there that is not allowed, writes nothing.
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
 * Rounds that merges may spoil.  The one after that keeps them away; in recovery
 * that is impossible, but the next try may have more luck.
 */
#define MOST_ROUNDS 10
#define MOST_ROUNDS_IN_RECOVERY 100

/* A segment that some round came upon. */
typedef struct SeenSegment
{
	uint64		id;				/* key */
	int			round;			/* the latest one that named it */
	bool		is_checked;		/* else it was gone when we looked */
} SeenSegment;

/* Report a fault of a block, and end. */
void
lsm_check_report(LsmCheck *c, BlockNumber block, const char *format,...)
{
	StringInfoData what;

	initStringInfo(&what);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, format);
		needed = appendStringInfoVA(&what, format, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&what, needed);
	}
	lsm_report_corruption(c->rel, block, what.data);
}

/* Compare, with the memory that comparison functions use given back. */
int
lsm_check_compare(LsmCheck *c, const LsmEntry *a, const LsmEntry *b)
{
	MemoryContext old_context = MemoryContextSwitchTo(c->scratch);
	int			result = lsm_key_compare(c->ks, a, b);

	MemoryContextSwitchTo(old_context);
	return result;
}

/* --- pages -------------------------------------------------------------------- */

/* NULL, or what is in use of a page that its kind does not use. */
static const char *
page_foreign_field(Page page)
{
	LsmPageOpaque *opaque = lsm_page_opaque(page);
	uint16		flags = 0;

	switch (opaque->kind)
	{
		case LSM_PAGE_GATE:
			flags = LSM_PAGE_CLOSED;
			break;
		case LSM_PAGE_BUFFER:
			flags = LSM_PAGE_OPEN | LSM_PAGE_HAS_REST;
			break;
		case LSM_PAGE_LEAF:
		case LSM_PAGE_FENCE:
			flags = LSM_PAGE_HAS_REST;
			break;
	}
	if ((opaque->flags & ~flags) != 0)
		return "page has flags that do not belong to its kind";
	if (opaque->stamp != 0 && opaque->kind != LSM_PAGE_MAP && opaque->kind != LSM_PAGE_DIRECTORY &&
		opaque->kind != LSM_PAGE_LEAF && opaque->kind != LSM_PAGE_BUFFER)
		return "page has a stamp, but its kind has none";
	if (PageGetPageLayoutVersion(page) != PG_PAGE_LAYOUT_VERSION ||
		((PageHeader) page)->pd_prune_xid != InvalidTransactionId)
		return "page header is damaged";
	return NULL;
}

/*
 * Check a page that has been copied: its header, checksum, kind and owner.
 * Unlike lsm_buffer_verify this does not believe earlier checks.
 */
void
lsm_check_page(LsmCheck *c, BlockNumber block, uint16 kind, uint64 owner, Page copy)
{
	const char *wrong = lsm_page_check_header(copy, block);
	LsmPageOpaque *opaque;

	if (wrong != NULL)
		lsm_check_report(c, block, "%s", wrong);
	opaque = lsm_page_opaque(copy);
	if (opaque->kind != kind)
		lsm_check_report(c, block, "page is of kind 0x%04X, not 0x%04X", opaque->kind, kind);
	if (opaque->owner != owner)
		lsm_check_report(c, block,
						 "page belongs to segment " UINT64_FORMAT ", not " UINT64_FORMAT,
						 opaque->owner, owner);
	wrong = page_foreign_field(copy);
	if (wrong != NULL)
		lsm_check_report(c, block, "%s", wrong);
	/* An open page has no checksum (I7). */
	if (opaque->kind == LSM_PAGE_BUFFER && (opaque->flags & LSM_PAGE_OPEN))
		return;
	if (opaque->crc != lsm_page_compute_crc(copy))
		lsm_check_report(c, block, "checksum does not match the content");
}

/*
 * Is the item of a segment still in its place in the directory of a run?  VACUUM frees
 * pages of it that name nothing any more.  A page that is not the run's though it is still
 * named is found when the next round reads the directory.
 */
static bool
page_has_item(LsmCheck *c, const LsmCheckSegment *segment)
{
	Buffer		buffer = lsm_buffer_read_owned(c->rel, segment->page, LSM_PAGE_DIRECTORY,
											   segment->run->run_id, BUFFER_LOCK_SHARE, NULL);
	LsmDirectoryEntry item;
	bool		result;

	if (!BufferIsValid(buffer))
		return false;
	result = lsm_directory_page_get(BufferGetPage(buffer), segment->ordinal, &item) &&
		item.segment.id == segment->segment.id && item.segment.blocks > 0;
	UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * Does the current version name a segment, in the run that had it?  Items do not
 * move within a directory.  A segment that a job has moved to its output is found
 * there in the next round.
 */
static bool
segment_is_named(LsmCheck *c, const LsmCheckSegment *segment)
{
	Buffer		meta = lsm_meta_lock(c->rel, BUFFER_LOCK_SHARE);
	LsmRunRecord *run = lsm_meta_find(lsm_meta(BufferGetPage(meta)), segment->run->run_id);
	bool		result = run != NULL && run->state != LSM_RUN_SPENT;

	if (result && segment->has_item)
		result = page_has_item(c, segment);
	UnlockReleaseBuffer(meta);
	return result;
}

/*
 * Copy a page of a segment, and check it.  False if it belongs to somebody else
 * by now, and rightly so.
 */
bool
lsm_check_read(LsmCheck *c, const LsmCheckSegment *segment, uint32 number, uint16 kind, Page copy)
{
	BlockNumber block = segment->segment.start + number;
	uint64		owner = segment->segment.id;
	LsmPageOpaque *opaque = lsm_page_opaque(copy);
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	/* No file gets shorter while we hold a lock on the index. */
	if (block >= c->instant->file_blocks)
		lsm_check_report(c, block, "the file ends before this block");
	buffer = ReadBufferExtended(c->rel, MAIN_FORKNUM, block, RBM_NORMAL, c->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	/*
	 * A segment that is named now was named when its page was read, since none
	 * comes back: then the page had to be the one that we want.
	 */
	if ((lsm_page_check_header(copy, block) != NULL || opaque->owner != owner ||
		 opaque->kind != kind) && !segment_is_named(c, segment))
		return false;
	lsm_check_page(c, block, kind, owner, copy);
	return true;
}

/* --- rounds ------------------------------------------------------------------- */

/* Is nothing of it read any more?  Then it may be freed at any time, or is already. */
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
 * Check a segment, unless that was done.  Returns 1 if it was gone, else 0.
 * Without a table to compare with, there is no need to look for what its entries
 * have become; but it may have been moved.
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

/* Take an instant and check all that is new in it.  Returns how many segments were gone. */
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

/* Rounds, until one has found everything in its place. */
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
	/* Without a table, what the merges have written may be checked another time. */
	if (gone == 0 || !c->compares_heap)
		return;
	if (in_recovery)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("index \"%s\" is merged faster than it can be verified",
						RelationGetRelationName(c->rel)),
				 errhint("Try again when there is less writing, or verify it on the primary.")));

	/* Nothing is installed while we have this lock: what goes now VACUUM has emptied. */
	lsm_merge_lock(c->rel, ExclusiveLock, true);
	check_round(c, round);
	lsm_merge_unlock(c->rel, ExclusiveLock);
}

/* The table does not get shorter while we hold a lock on it. */
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
check_index(LsmInspected *in, bool heapallindexed)
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

	/* What this snapshot sees in the table is in the versions read after it. */
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
 * lsm_check(index regclass, heapallindexed boolean): raises an error at the
 * first fault.
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
	check_index(&in, PG_GETARG_BOOL(1));
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	lsm_inspect_close(&in);
	PG_RETURN_VOID();
}
