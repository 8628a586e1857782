/*
 * buffers.c
 *	  Checked access to the pages of an lsm index.
 *
 * No page is trusted.  Each access checks the page's owner and block number, except for
 * lsm_buffer_pin_checked, which takes no lock.  The header and the checksum are checked once after
 * the page came from disk, whichever process read it.  Two cases need no check:
 *
 * - A page in a dirty buffer.  One of our mutators has changed the page since it was read, and
 *   all code that changes a page checks it first.
 * - A page in a clean buffer with the mark LsmPageOpaque.verified.  The page has been checked.  The
 *   mark is a hint, set under a share lock and not logged.  A page that fails the check gets no
 *   mark, so each later reader fails too.
 *
 * The mark must never reach the disk, where the page could be damaged before it is read again.  So
 * the mark is set only while the buffer is clean, and every change of the page removes it.
 * lsm_page_set_crc does so.  Open pages have no checksum, so inserts and deletions do it there.
 *
 * Core also dirties pages without our code.  At the end of a transaction that created a file
 * without WAL, core may log the whole file, so pages of such files get no mark.  And CREATE DATABASE
 * copies pages from buffer to buffer, so each database has its own mark, and a copy is checked once
 * it has been written.  A third case is not handled: from 19 on, pg_enable_data_checksums() and
 * pg_buffercache_mark_dirty() dirty pages that nobody has checked, and the mark may reach the disk.
 */
#include "postgres.h"

#include "base/pages_read.h"
#include "base/shared.h"
#include "format/buffer_page.h"
#include "format/directory_page.h"
#include "format/filter_page.h"
#include "format/leaf_read.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/buf_internals.h"
#include "storage/buffers.h"
#include "storage/emit.h"
#include "utils/memutils.h"

/* The most blocks to extend a file by: twice the segments of all reservations. */
#define MOST_NEW_BLOCKS	(2 * LSM_MAX_RESERVATIONS * LSM_MOST_DEBUG_SEGMENT_BLOCKS)

uint64		lsm_blocks_missed = 0;

/* Returns the mark of a page that this server has checked in this database. */
static inline uint32
verified_mark(void)
{
	return lsm_server_token() ^ (uint32) (MyDatabaseId << 1);
}

void
lsm_report_corruption(Relation rel, BlockNumber block, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is corrupted at block %u: %s",
					RelationGetRelationName(rel), block, what),
			 errhint("Please REINDEX it.")));
}

/*
 * Extend the file of an index to this number of blocks.  See lsm_relation_extend_to.
 *
 * A crash may lose blocks that were reserved but never written, and those are at most the segments
 * of all reservations.  If more blocks are missing, the caller's number comes from a damaged page.
 */
void
lsm_buffer_extend_file(Relation rel, BlockNumber nblocks, bool buffered)
{
	BlockNumber have = RelationGetNumberOfBlocks(rel);

	if (nblocks > have && nblocks - have > MOST_NEW_BLOCKS)
		lsm_report_corruption(rel, LSM_BLOCK_META, "the file lacks blocks that are in use");
	lsm_relation_extend_to(rel, nblocks, buffered);
}

/*
 * Returns this process's ring of buffers for reading (BAS_BULKREAD) or writing (BAS_BULKWRITE) many
 * pages without evicting those of others. A new ring takes its buffers from everybody, so all
 * merges, builds and checks of a process use the same ring.
 */
BufferAccessStrategy
lsm_ring(BufferAccessStrategyType type)
{
	static BufferAccessStrategy rings[BAS_VACUUM + 1];

	if (rings[type] == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);

		rings[type] = GetAccessStrategy(type);
		MemoryContextSwitchTo(caller);
	}
	return rings[type];
}

/*
 * Read a block into a buffer. Returns whether it came from disk. Raises an error if no such
 * block can exist.
 */
bool
lsm_buffer_read_counted(Relation rel, BlockNumber block,
						BufferAccessStrategy strategy, Buffer *buffer)
{
	int64		before = lsm_pages_read();
	bool		missed;

	/* ReadBuffer would extend the file for InvalidBlockNumber. */
	if (unlikely(!BlockNumberIsValid(block)))
		lsm_report_corruption(rel, block, "there is no such block");
	*buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
	missed = lsm_pages_read() != before;
	lsm_blocks_missed += missed;
	return missed;
}

/*
 * Check the page in a buffer that is locked, at least in share mode. Returns what is wrong, or
 * NULL. `missed`: the page has just been read from disk.
 */
const char *
lsm_buffer_verify(Relation rel, Buffer buffer, bool missed)
{
	Page		page = BufferGetPage(buffer);
	LsmPageOpaque *opaque;
	const char *wrong = lsm_page_check_header(page, BufferGetBlockNumber(buffer));

	if (wrong != NULL)
		return wrong;
	opaque = lsm_page_opaque(page);
	if (opaque->flags & LSM_PAGE_DAMAGED)
		return "page was damaged before recovery changed it";
	if (!missed && opaque->verified == verified_mark())
		return NULL;
	if (lsm_buffer_is_dirty(buffer))
		return NULL;
	opaque->verified = 0;
	if (!lsm_page_crc_matches(page))
		return "checksum does not match the content";
	if (opaque->kind == LSM_PAGE_LEAF || opaque->kind == LSM_PAGE_FENCE)
		wrong = lsm_leaf_check(page);
	else if (opaque->kind == LSM_PAGE_BUFFER)
	{
		wrong = lsm_buffer_page_check(page);
		/* PostgreSQL asserts that the TIDs of an index are valid, and an open page has no checksum. */
		if (wrong == NULL)
			wrong = lsm_buffer_page_check_tids(page);
	}
	else if (opaque->kind == LSM_PAGE_DIRECTORY)
		wrong = lsm_directory_page_check(page);
	else if (opaque->kind == LSM_PAGE_FILTER)
		wrong = lsm_filter_page_check(page);
	if (wrong == NULL && (RelationNeedsWAL(rel) || !RelationIsPermanent(rel)))
		opaque->verified = verified_mark();
	return wrong;
}

/*
 * Read, lock and check a page that must be one of `kinds` and belong to `owner` (0: any).
 * Raises an error if the page fails the check.
 */
Buffer
lsm_buffer_read(Relation rel, BlockNumber block, int kinds, uint64 owner,
				int lock_mode, BufferAccessStrategy strategy)
{
	Buffer		buffer;
	bool		missed = lsm_buffer_read_counted(rel, block, strategy, &buffer);
	const char *wrong;
	LsmPageOpaque *opaque;

	LockBuffer(buffer, lock_mode);
	wrong = lsm_buffer_verify(rel, buffer, missed);
	if (unlikely(wrong != NULL))
		lsm_report_corruption(rel, block, wrong);
	opaque = lsm_page_opaque(BufferGetPage(buffer));
	if (unlikely((LSM_KIND(opaque->kind) & kinds) == 0))
		lsm_report_corruption(rel, block, "page is of another kind than expected");
	if (unlikely(owner != 0 && opaque->owner != owner))
		lsm_report_corruption(rel, block, "page belongs to another segment");
	return buffer;
}

/*
 * Like lsm_buffer_read_owned, for a page that the caller has pinned. `missed`: see
 * lsm_buffer_verify. If the function returns InvalidBuffer, it has released the pin.
 */
Buffer
lsm_buffer_lock_owned(Relation rel, Buffer buffer, bool missed, uint16 kind, uint64 owner,
					  int lock_mode)
{
	BlockNumber block = BufferGetBlockNumber(buffer);
	Page		page = BufferGetPage(buffer);
	LsmPageOpaque *opaque = lsm_page_opaque(page);
	const char *wrong;

	LockBuffer(buffer, lock_mode);
	/* If the page was checked, skip its header, which may cost a cache miss. */
	if (!missed && opaque->verified == verified_mark() && opaque->owner == owner &&
		opaque->kind == kind && opaque->self == block)
		return buffer;
	if (unlikely(lsm_page_check_header(page, block) != NULL ||
				 opaque->owner != owner || opaque->kind != kind))
	{
		UnlockReleaseBuffer(buffer);
		return InvalidBuffer;
	}
	wrong = lsm_buffer_verify(rel, buffer, missed);
	if (unlikely(wrong != NULL))
		lsm_report_corruption(rel, block, wrong);
	return buffer;
}

/*
 * Like lsm_buffer_read, for a page that may have another owner by now. In that case returns
 * InvalidBuffer: the caller's version is old, or the index is damaged (I4).
 *
 * Another process may be about to write the page for the first time, or a crash may have left
 * such a page. So a page that is empty or has a damaged header counts as another owner's. The
 * caller then looks at the current version: the index is damaged only if that version still names
 * the page. A sound header that names the wanted owner is different: if the page then fails the
 * check, this function raises an error.
 */
Buffer
lsm_buffer_read_owned(Relation rel, BlockNumber block, uint16 kind, uint64 owner,
					  int lock_mode, BufferAccessStrategy strategy)
{
	Buffer		buffer;
	bool		missed = lsm_buffer_read_counted(rel, block, strategy, &buffer);

	return lsm_buffer_lock_owned(rel, buffer, missed, kind, owner, lock_mode);
}

/*
 * A caller that reads a page repeatedly may remember its buffer, which saves the buffer lookup.
 *
 * PostgreSQL does not count such a read as a use, and might evict a page that is used all the
 * time. So one read in USUAL_WAY looks up the buffer as usual. These reads are chosen at random:
 * searches read several pages in turn, and a fixed interval might always pick the same page.
 */
#define USUAL_WAY		32

static uint32 random_state = 1;

/* A linear congruential generator, whose highest bits are good enough. */
static inline bool
is_usual_turn(void)
{
	random_state = random_state * 1664525 + 1013904223;
	return random_state < PG_UINT32_MAX / USUAL_WAY;
}

/*
 * Pin a page in the buffer that held it last. Returns false if the page must be read the usual
 * way.
 */
static bool
pin_recent(Relation rel, BlockNumber block, Buffer recent)
{
	/* A temporary relation's file may have the same number as another file. */
	if (recent == InvalidBuffer || RelationUsesLocalBuffers(rel) ||
		is_usual_turn() ||
		!ReadRecentBuffer(lsm_relation_locator(rel), MAIN_FORKNUM, block, recent))
		return false;
	pgstat_count_buffer_read(rel);
	pgstat_count_buffer_hit(rel);
	return true;
}

/*
 * Like pin_recent, for a caller that looks at the page without a lock and so cannot check it.
 * Also returns false if the page is neither marked as checked nor in a dirty buffer.
 */
bool
lsm_buffer_pin_checked(Relation rel, BlockNumber block, Buffer recent)
{
	if (!pin_recent(rel, block, recent))
		return false;
	if (lsm_page_opaque(BufferGetPage(recent))->verified == verified_mark() ||
		lsm_buffer_is_dirty(recent))
		return true;
	ReleaseBuffer(recent);
	return false;
}

/*
 * lsm_buffer_read_owned, in share mode, for a page that may be in the buffer *recent. Updates
 * *recent.
 */
Buffer
lsm_buffer_read_again(Relation rel, BlockNumber block, uint16 kind, uint64 owner,
					  BufferAccessStrategy strategy, Buffer *recent)
{
	Buffer		buffer = *recent;
	bool		missed = false;

	if (!pin_recent(rel, block, buffer))
	{
		missed = lsm_buffer_read_counted(rel, block, strategy, &buffer);
		*recent = BufferIsLocal(buffer) ? InvalidBuffer : buffer;
	}
	return lsm_buffer_lock_owned(rel, buffer, missed, kind, owner, BUFFER_LOCK_SHARE);
}

/*
 * Searches read the same pages again and again: those above the leaves of large runs, and those of
 * small runs.  So each backend that searches remembers the buffers of these blocks, in a table of
 * FEW_RECENT places.  Several blocks, even of different indexes, may share a place.
 *
 * Batches of unique indexes test very many filter pages.  If the buffers of these pages are
 * remembered as well, the needed parts of several pages can be fetched into the CPU's cache at
 * once.  The first such batch enlarges the table to at least RECENT_PER_BUFFER places for each
 * shared buffer, but to at most MOST_RECENT places in all.
 */
#define FEW_RECENT			(1 << 12)
#define RECENT_PER_BUFFER	2
#define MOST_RECENT			(1 << 18)

static Buffer *recent_buffers = NULL;	/* by block; 0: unknown */
static uint32 recent_mask;

/* Create the table with `count` places, a power of two.  Forgets all buffers. */
static void
make_recent(uint32 count)
{
	Buffer	   *old = recent_buffers;

	recent_buffers = MemoryContextAllocZero(TopMemoryContext, count * sizeof(Buffer));
	recent_mask = count - 1;
	if (old != NULL)
		pfree(old);
}

/* Returns the place that remembers the buffer of a block. */
static inline Buffer *
remembered_buffer(Relation rel, BlockNumber block)
{
	if (unlikely(recent_buffers == NULL))
		make_recent(FEW_RECENT);
	return &recent_buffers[(block + RelationGetRelid(rel) * 0x9E3779B1) & recent_mask];
}

/* Enlarge the table for a caller that reads very many pages repeatedly. */
void
lsm_buffer_recall_many(void)
{
	uint32		count = pg_nextpower2_32(Min(NBuffers, MOST_RECENT / RECENT_PER_BUFFER)) *
		RECENT_PER_BUFFER;

	if (recent_buffers == NULL || recent_mask + 1 < count)
		make_recent(count);
}

/* For a page needed soon, fetch the place that remembers its buffer into the CPU's cache. */
void
lsm_buffer_recall(Relation rel, BlockNumber block)
{
	__builtin_prefetch(remembered_buffer(rel, block));
}

/*
 * For a page needed soon, fetch the part at `offset`, and the header if requested, into the CPU's
 * cache. If the buffer holds another page by now, this only fetches useless lines.
 */
void
lsm_buffer_expect(Relation rel, BlockNumber block, uint32 offset, bool header)
{
	Buffer		buffer = *remembered_buffer(rel, block);
	Page		page;

	if (buffer == InvalidBuffer)
		return;
	page = BufferGetPage(buffer);
	__builtin_prefetch(GetBufferDescriptor(buffer - 1));
	if (header)
		__builtin_prefetch(page);
	__builtin_prefetch((char *) page + offset);
	__builtin_prefetch((char *) page + LSM_PAGE_SPECIAL);
}

/* lsm_buffer_read_counted for a page whose buffer may be remembered. */
bool
lsm_buffer_find(Relation rel, BlockNumber block, Buffer *buffer)
{
	Buffer	   *recent = remembered_buffer(rel, block);
	bool		missed;

	if (pin_recent(rel, block, *recent))
	{
		*buffer = *recent;
		return false;
	}
	missed = lsm_buffer_read_counted(rel, block, NULL, buffer);
	*recent = BufferIsLocal(*buffer) ? InvalidBuffer : *buffer;
	return missed;
}

/* lsm_buffer_read_owned, in share mode, for a page whose buffer may be remembered. */
Buffer
lsm_buffer_read_recent(Relation rel, BlockNumber block, uint16 kind, uint64 owner,
					   BufferAccessStrategy strategy)
{
	return lsm_buffer_read_again(rel, block, kind, owner, strategy, remembered_buffer(rel, block));
}

/* Prefetch a page. Returns false if the page is already in shared buffers. */
bool
lsm_buffer_ask(Relation rel, BlockNumber block)
{
	return !BufferIsValid(PrefetchBuffer(rel, MAIN_FORKNUM, block).recent_buffer);
}

/*
 * Like lsm_buffer_ask, for a page whose buffer may be remembered. Looks at the remembered buffer
 * without a lock. If the page is being evicted or loaded at that moment, the answer may be wrong,
 * which costs or saves one request.
 */
bool
lsm_buffer_ask_expected(Relation rel, BlockNumber block)
{
	Buffer	   *recent = remembered_buffer(rel, block);
	PrefetchBufferResult result;

	if (*recent != InvalidBuffer && !RelationUsesLocalBuffers(rel))
	{
		BufferTag	tag;

		lsm_buffer_tag_init(&tag, lsm_relation_locator(rel), MAIN_FORKNUM, block);
		if (lsm_buffer_tags_equal(&GetBufferDescriptor(*recent - 1)->tag, &tag))
			return false;
	}
	result = PrefetchBuffer(rel, MAIN_FORKNUM, block);
	if (!BufferIsValid(result.recent_buffer))
		return true;
	*recent = BufferIsLocal(result.recent_buffer) ? InvalidBuffer : result.recent_buffer;
	return false;
}

/*
 * Write a page built in private memory to a block that nobody else uses, and log it as a
 * whole.
 */
void
lsm_buffer_write_new(Relation rel, BlockNumber block, Page page,
					 BufferAccessStrategy strategy)
{
	Buffer		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block,
											RBM_ZERO_AND_LOCK, strategy);

	lsm_page_set_crc(page);
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buffer), page, BLCKSZ);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
		lsm_wal_new_page(buffer);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/* Read a block in, if the file has it, so that a later read of it needs no I/O.  Checks nothing. */
void
lsm_buffer_touch(Relation rel, BlockNumber block)
{
	if (block < RelationGetNumberOfBlocks(rel))
		ReleaseBuffer(ReadBuffer(rel, block));
}
