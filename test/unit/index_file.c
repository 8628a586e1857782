/*
 * index_file.c
 *	  Simulates an index file in memory.  Buffer n + 1 is block n of the file.
 *
 * There are no other processes, so these functions take no locks. They log nothing either. But they
 * track whether the meta page is locked, and count actions that must not happen under that lock.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "backend.h"
#include "catalog/storage.h"
#include "format/directory_page.h"
#include "format/map_page.h"
#include "index_file.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "storage/buffers.h"
#include "storage/emit.h"

static PGAlignedBlock blocks[FILE_BLOCKS];
static RelationData relation;
static FormData_pg_class class;

LsmIndex	file_index = {.rel = &relation};
LsmKeySpace file_keyspace = {.encoded = true,.nkeys = 1,.natts = 1,.max_keylen = 8};
uint64		file_busy_job;
BlockNumber file_cut_at;
int			file_cold_reads;
int			file_searches;
void		(*file_before_edit) (void);

static bool cached[FILE_BLOCKS];
static bool meta_locked;

/* --- stand-ins for core and lower layers ---------------------------------------- */

char	   *BufferBlocks;
int			NBuffers = FILE_BLOCKS;
int			NLocBuffer = 0;
Block	   *LocalBufferBlockPointers;
volatile uint32 CritSectionCount;
int			wal_level;
XLogRecPtr	XactLastRecEnd;


Page
file_page(BlockNumber block)
{
	return (Page) blocks[block].data;
}

static Buffer
buffer_of(BlockNumber block)
{
	if (block >= FILE_BLOCKS)
		elog(ERROR, "the file has no block %u", block);
	return block + 1;
}

void
file_go_cold(void)
{
	memset(cached, 0, sizeof(cached));
	file_cold_reads = 0;
	file_searches = 0;
}

static void
note_read(BlockNumber block)
{
	(void) buffer_of(block);
	file_cold_reads += meta_locked && !cached[block];
	cached[block] = true;
}

static bool
is_page_of(BlockNumber block, int kinds, uint64 owner)
{
	LsmPageOpaque *opaque = lsm_page_opaque(BufferGetPage(buffer_of(block)));

	return lsm_page_check_header(file_page(block), block) == NULL &&
		(LSM_KIND(opaque->kind) & kinds) != 0 && (owner == 0 || opaque->owner == owner);
}

void
lsm_report_corruption(Relation rel, BlockNumber block, const char *what)
{
	if (backend_catch == NULL)
		fprintf(stderr, "block %u: %s\n", block, what);
	elog(ERROR, "index is corrupted at block %u: %s", block, what);
	pg_unreachable();
}

Buffer
lsm_meta_lock(Relation rel, int mode)
{
	void		(*before_edit) (void) = file_before_edit;

	if (mode == BUFFER_LOCK_EXCLUSIVE && before_edit != NULL)
	{
		file_before_edit = NULL;
		before_edit();
	}
	cached[LSM_BLOCK_META] = true;
	meta_locked = true;
	return buffer_of(LSM_BLOCK_META);
}

Buffer
lsm_buffer_read(Relation rel, BlockNumber block, int kinds, uint64 owner, int lock_mode,
				BufferAccessStrategy strategy)
{
	if (!is_page_of(block, kinds, owner))
		lsm_report_corruption(rel, block, "not the expected page");
	note_read(block);
	return buffer_of(block);
}

Buffer
lsm_buffer_read_recent(Relation rel, BlockNumber block, uint16 kind, uint64 owner,
					   BufferAccessStrategy strategy)
{
	note_read(block);
	file_searches += meta_locked;
	return is_page_of(block, LSM_KIND(kind), owner) ? buffer_of(block) : InvalidBuffer;
}

Buffer
lsm_buffer_read_owned(Relation rel, BlockNumber block, uint16 kind, uint64 owner, int lock_mode,
					  BufferAccessStrategy strategy)
{
	note_read(block);
	return is_page_of(block, LSM_KIND(kind), owner) ? buffer_of(block) : InvalidBuffer;
}

void
lsm_buffer_touch(Relation rel, BlockNumber block)
{
	note_read(block);
}

bool
lsm_buffer_pin_checked(Relation rel, BlockNumber block, Buffer recent)
{
	return false;
}

LsmKeySpace *
lsm_index_keyspace(LsmIndex *index)
{
	return &file_keyspace;
}

bool
lsm_job_lock(Relation rel, uint64 job_id, bool wait)
{
	return job_id != file_busy_job;
}

void
lsm_job_unlock(Relation rel, uint64 job_id)
{
}

Buffer
ReadBufferExtended(Relation rel, ForkNumber fork, BlockNumber block, ReadBufferMode mode,
				   BufferAccessStrategy strategy)
{
	Buffer		buffer = buffer_of(block);

	if (mode == RBM_NORMAL)
		note_read(block);
	else
		cached[block] = true;
	return buffer;
}

BlockNumber
RelationGetNumberOfBlocksInFork(Relation rel, ForkNumber fork)
{
	return FILE_BLOCKS;
}

void
RelationTruncate(Relation rel, BlockNumber end)
{
	file_cut_at = end;
}

void
UnlockReleaseBuffer(Buffer buffer)
{
	meta_locked &= buffer != buffer_of(LSM_BLOCK_META);
}

void
ReleaseBuffer(Buffer buffer)
{
}

void
LockBuffer(Buffer buffer, int mode)
{
}

void
MarkBufferDirty(Buffer buffer)
{
}

void
lsm_buffer_extend_file(Relation rel, BlockNumber nblocks, bool buffered)
{
}

void
XLogFlush(XLogRecPtr lsn)
{
}

void
lsm_wal_prepare_edit(int pages)
{
}

void
lsm_wal_edit(Buffer meta, LsmEdit *edit, const LsmWalPage *pages, int count)
{
}

void
check_stack_depth(void)
{
}

/* --- the index ------------------------------------------------------------------- */

void
file_make(void)
{
	LsmKeyCoding coding = {.nkeys = 1,.encoded = 1};

	memset(blocks, 0, sizeof(blocks));
	BufferBlocks = blocks[0].data;
	class.relpersistence = RELPERSISTENCE_UNLOGGED;
	relation.rd_rel = &class;
	lsm_meta_init(file_page(LSM_BLOCK_META), &coding);
	lsm_map_page_init(file_page(LSM_BLOCK_MAP), LSM_BLOCK_MAP);
	file_busy_job = 0;
	file_cut_at = 0;
	file_before_edit = NULL;
	meta_locked = false;
}

LsmEntry
file_key(uint64 number)
{
	uint64	   *key = palloc0(sizeof(uint64) + LSM_KEY_PAD);
	LsmEntry	entry = {.key = (uint8 *) key,.keylen = sizeof(uint64),.tid = 1};

	*key = pg_hton64(number);
	return entry;
}

/* --- checks ---------------------------------------------------------------------- */

static uint8 users[FILE_BLOCKS];	/* the number of users of each block */
static LsmRunRecord sums;		/* of the segments of a run */

static void
name_blocks(BlockNumber start, uint32 length)
{
	for (uint32 i = 0; i < length; i++)
		users[start + i]++;
}

static void
add_item(void *arg, BlockNumber block, Page page, int ordinal, const LsmDirectoryEntry *item)
{
	if (item == NULL)
		name_blocks(block, 1);
	else if (item->segment.blocks > 0)
	{
		name_blocks(item->segment.start, item->segment.blocks);
		sums.segments++;
		sums.blocks += item->segment.blocks;
	}
}

static const char *
run_fault(LsmMeta *meta, const LsmRunRecord *run)
{
	LsmRunRecord *output = lsm_meta_find(meta, run->job_id);

	memset(&sums, 0, sizeof(sums));
	if (run->state != LSM_RUN_SPENT && run->job_id != 0 &&
		(output == NULL || !(output->flags & LSM_RUN_MERGING)))
		return "an input has no output";
	if (lsm_run_is_single(run))
	{
		name_blocks(run->start, run->segments > 0 ? run->blocks : 0);
		return NULL;
	}
	if (!lsm_directory_walk(&file_index, run, LSM_ANY_EDIT, add_item, NULL))
		return "a directory cannot be read";
	if (lsm_run_is_free(run) && (sums.segments != run->segments || sums.blocks != run->blocks))
		return "the totals of a run differ from the sums over its segments";
	return NULL;
}

const char *
file_fault(void)
{
	LsmMeta    *meta = lsm_meta(file_page(LSM_BLOCK_META));
	uint32		used = 0;

	if (lsm_meta_check(file_page(LSM_BLOCK_META)) != NULL)
		return "the meta page is damaged";
	memset(users, 0, sizeof(users));
	name_blocks(0, LSM_FIXED_BLOCKS);
	for (uint32 i = 0; i < meta->run_count; i++)
	{
		const char *wrong = run_fault(meta, &meta->runs[i]);

		if (wrong != NULL)
			return wrong;
	}
	for (int i = 0; i < LSM_MAX_RESERVATIONS; i++)
	{
		const LsmReservation *r = &meta->reservations[i];

		name_blocks(r->start, r->length);
		if (r->length > 0 && lsm_meta_find(meta, r->job_id) == NULL)
			return "a reservation has no job";
	}
	for (BlockNumber block = 0; block < FILE_BLOCKS; block++)
	{
		if (users[block] > 1)
			return "a block is used twice";
		if (users[block] != lsm_map_is_used(file_page(LSM_BLOCK_MAP), block))
			return users[block] > 0 ? "a block is used, but the map says that it is free" :
				"the map says that a block is used, but nothing uses it";
		used += users[block];
	}
	if (used + meta->space.free_blocks != meta->space.mapped_end)
		return "the number of free blocks is wrong";
	return NULL;
}
