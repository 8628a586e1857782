/*
 * check.c
 *	  lsm_check: verify an index, and perhaps its table against it.
 *
 * The index stays in use meanwhile: inserts, merges and VACUUM go on.  So all
 * that must agree with each other, the manifest, the gates, the open pages and
 * the space map, is copied at one instant, under the locks that changes of
 * them need.  The pages of the runs in that copy are read afterwards, one by
 * one.  They cannot be reused before the calling query's snapshot is gone
 * (I9), and VACUUM only takes entries away from them (I6).
 *
 * No page is trusted, even if this server has checked it before, and nothing
 * found on a page is followed before it has been compared with what is known.
 * The first fault ends the verification with an error.
 *
 * Works on a standby: takes no lock there that is not allowed, writes nothing.
 */
#include "postgres.h"

#include "fmgr.h"
#include "inspect/inspect.h"
#include "manifest/meta_buffer.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(lsm_check);

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
	lsm_report_corruption(c->index, block, what.data);
}

/* NULL, or what is in use of a page that its kind does not use. */
static const char *
foreign_field(Page page)
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
	if (opaque->kind != LSM_PAGE_LEAF &&
		(BlockNumberIsValid(opaque->prev) ||
		 (BlockNumberIsValid(opaque->next) && opaque->kind != LSM_PAGE_MAP &&
		  opaque->kind != LSM_PAGE_FENCE)))
		return "page has neighbours, but is no leaf";
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
lsm_check_page(LsmCheck *c, BlockNumber block, uint16 kind, uint64 run_id, Page copy)
{
	const char *wrong = lsm_page_check_header(copy, block);
	LsmPageOpaque *opaque;

	if (wrong != NULL)
		lsm_check_report(c, block, "%s", wrong);
	opaque = lsm_page_opaque(copy);
	if (opaque->kind != kind)
		lsm_check_report(c, block, "page is of kind 0x%04X, not 0x%04X", opaque->kind, kind);
	if (opaque->run_id != run_id)
		lsm_check_report(c, block, "page belongs to run " UINT64_FORMAT ", not " UINT64_FORMAT,
						 opaque->run_id, run_id);
	wrong = foreign_field(copy);
	if (wrong != NULL)
		lsm_check_report(c, block, "%s", wrong);
	/* An open page has no checksum (I7). */
	if (opaque->kind == LSM_PAGE_BUFFER && (opaque->flags & LSM_PAGE_OPEN))
		return;
	if (opaque->crc != lsm_page_compute_crc(copy))
		lsm_check_report(c, block, "checksum does not match the content");
}

/* Copy a page that no lock is held for, and check it. */
void
lsm_check_read(LsmCheck *c, BlockNumber block, uint16 kind, uint64 run_id, Page copy)
{
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	/* Also keeps InvalidBlockNumber, which would extend the file, away. */
	if (block >= c->file_blocks)
		lsm_check_report(c, block, "the file ends before this block");
	buffer = ReadBufferExtended(c->index, MAIN_FORKNUM, block, RBM_NORMAL, c->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	lsm_check_page(c, block, kind, run_id, copy);
}

/*
 * The gates: the current one is open.  The other one was closed when that one
 * opened, so both are open only until the first flip.
 */
static void
check_gates(LsmCheck *c, Page copy)
{
	uint32		epoch = c->version->gate_epoch;

	for (uint32 i = 0; i < 2; i++)
	{
		BlockNumber block = LSM_BLOCK_GATE + i;
		Buffer		buffer = lsm_buffer_read(c->index, block, LSM_KIND(LSM_PAGE_GATE), 0,
											 BUFFER_LOCK_SHARE, NULL);
		bool		current = epoch % 2 == i;
		bool		closed;

		memcpy(copy, BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
		lsm_check_page(c, block, LSM_PAGE_GATE, LSM_OWNER_FREE, copy);
		closed = (lsm_page_opaque(copy)->flags & LSM_PAGE_CLOSED) != 0;
		if (current && closed)
			lsm_check_report(c, block, "the current gate is closed");
		if (!current && !closed && epoch > 0)
			lsm_check_report(c, block, "a gate that is not the current one is open");
	}
}

/* Copy the manifest.  The meta page is locked. */
static void
copy_version(LsmCheck *c, Page page)
{
	LsmMeta    *meta = lsm_meta(page);

	c->version = palloc0(offsetof(LsmVersion, runs) + meta->run_count * sizeof(LsmRunRecord));
	c->version->edits = meta->edits;
	c->version->next_run_id = meta->next_run_id;
	c->version->seals = meta->seals;
	c->version->gate_epoch = meta->gate_epoch;
	c->version->run_count = meta->run_count;
	memcpy(c->version->runs, meta->runs, meta->run_count * sizeof(LsmRunRecord));
}

/*
 * Copy the open pages, one by one.  They are what the manifest says only as long
 * as that is locked; entries may come in meanwhile, and do no harm.
 */
static void
copy_open_pages(LsmCheck *c)
{
	c->open_pages = palloc0(c->version->run_count * sizeof(Page) + 1);
	for (uint32 i = 0; i < c->version->run_count; i++)
	{
		LsmRunRecord *run = &c->version->runs[i];
		Buffer		buffer;

		if (run->state != LSM_RUN_OPEN)
			continue;
		if (run->root >= RelationGetNumberOfBlocks(c->index))
			lsm_check_report(c, run->root, "the file ends before this block");
		buffer = lsm_buffer_read(c->index, run->root, LSM_KIND(LSM_PAGE_BUFFER), run->run_id,
								 BUFFER_LOCK_SHARE, NULL);
		c->open_pages[i] = palloc(BLCKSZ);
		memcpy(c->open_pages[i], BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
	}
}

/* Copy and check what must be seen at one instant, in the order of locks. */
static void
copy_instant(LsmCheck *c)
{
	Page		copy = palloc(BLCKSZ);
	Buffer		meta = lsm_meta_lock(c->index, BUFFER_LOCK_SHARE);

	memcpy(copy, BufferGetPage(meta), BLCKSZ);
	lsm_check_page(c, LSM_BLOCK_META, LSM_PAGE_META, LSM_OWNER_FREE, copy);
	copy_version(c, copy);
	check_gates(c, copy);
	copy_open_pages(c);
	lsm_check_copy_map(c);
	UnlockReleaseBuffer(meta);
	pfree(copy);
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

	c->heap = in->heap;
	c->index = in->index;
	c->ks = lsm_keyspace_create(in->index);
	c->strategy = GetAccessStrategy(BAS_BULKREAD);
	c->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm check of a page",
									   ALLOCSET_DEFAULT_SIZES);

	/* What this snapshot sees in the table is in the version read after it. */
	if (heapallindexed)
		snapshot = lsm_check_heap_snapshot(c);
	copy_instant(c);
	c->file_blocks = RelationGetNumberOfBlocks(in->index);
	lsm_check_manifest(c);
	lsm_check_map(c);

	if (heapallindexed)
		lsm_check_heap_begin(c);
	for (uint32 i = 0; i < c->version->run_count; i++)
		lsm_check_run(c, &c->version->runs[i]);
	check_furthest(c);
	if (heapallindexed)
	{
		lsm_check_heap_rows(c, snapshot);
		UnregisterSnapshot(snapshot);
		lsm_check_duplicates(c);
	}
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
