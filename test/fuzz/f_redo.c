/*
 * f_redo.c
 *	  Fuzzes redo: any record of the resource manager, applied to pages of any kind.
 *
 * Stands in for the server: what PostgreSQL's redo offers of a record and its pages.
 *
 *	  uint8		kind of record: 0 is XLOG_LSM_INSERT; highest bit: on a hot standby
 *	  uint8		size of the record's own data
 *	  bytes		these data
 *	  blocks	uint8 BLOCK_*, without which there are no more blocks; uint8 kind of the page, from
 *				LSM_PAGE_META on; uint16 size of its data; bytes; page
 */
#include "fuzz.h"

#include "access/bufmask.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "backend.h"
#include "format/buffer_page.h"
#include "format/leaf_read.h"
#include "format/wal.h"
#include "lib/stringinfo.h"
#include "recovery/recovery.h"
#include "storage/standby.h"

#define BLOCK_EXISTS		0x01
#define BLOCK_IS_GONE		0x02	/* truncated since */
#define BLOCK_IS_DONE		0x04	/* the page has the change already */
#define BLOCK_IS_NEW		0x08	/* the record initializes the page */
#define BLOCK_IS_TWIN		0x10	/* has the number of the block before it */

#define MOST_BLOCKS			(LSM_WAL_PAGES + 1)

typedef struct RedoBlock
{
	uint8		state;
	BlockNumber number;
	Page		page;			/* between bytes that nobody may touch */
	bool		sound;			/* before redo */
	bool		locked;
	bool		dirty;
} RedoBlock;

static RedoBlock blocks[MOST_BLOCKS];

/* --- what core offers --------------------------------------------------------------------- */

/* Buffer -i - 1 is block i of the record: the pages of local buffers can be anywhere. */
static Block pages[MOST_BLOCKS];

char	   *BufferBlocks;
int			NBuffers = 0;
int			NLocBuffer = MOST_BLOCKS;
Block	   *LocalBufferBlockPointers = pages;
HotStandbyState standbyState;

static RedoBlock *
block_of(Buffer buffer)
{
	RedoBlock  *block = &blocks[-buffer - 1];

	expect(buffer < 0 && buffer >= -MOST_BLOCKS && block->locked);
	return block;
}

static Buffer
lock_block(XLogReaderState *record, uint8 id)
{
	if (!XLogRecHasBlockRef(record, id))
		elog(PANIC, "failed to locate backup block with ID %d in WAL record", id);
	/* Redo would wait for its own lock. */
	for (int i = 0; i <= XLogRecMaxBlockId(record); i++)
		expect(!blocks[i].locked || blocks[i].number != blocks[id].number);
	blocks[id].locked = true;
	return -id - 1;
}

XLogRedoAction
XLogReadBufferForRedoExtended(XLogReaderState *record, uint8 id, ReadBufferMode mode, bool cleanup_lock,
							  Buffer *buffer)
{
	*buffer = lock_block(record, id);
	if (XLogRecGetBlock(record, id)->flags & BKPBLOCK_WILL_INIT)
		elog(PANIC, "block with WILL_INIT flag in WAL record must be zeroed by redo routine");
	if (blocks[id].state & BLOCK_IS_GONE)
	{
		blocks[id].locked = false;
		*buffer = InvalidBuffer;
		return BLK_NOTFOUND;
	}
	return blocks[id].state & BLOCK_IS_DONE ? BLK_DONE : BLK_NEEDS_REDO;
}

XLogRedoAction
XLogReadBufferForRedo(XLogReaderState *record, uint8 id, Buffer *buffer)
{
	return XLogReadBufferForRedoExtended(record, id, RBM_NORMAL, false, buffer);
}

bool
HotStandbyActive(void)
{
	return standbyState == STANDBY_SNAPSHOT_READY;
}

/* No scan holds a page. */
Buffer
XLogReadBufferExtended(LsmLocator locator, ForkNumber fork, BlockNumber block, ReadBufferMode mode, Buffer recent_buffer)
{
	return InvalidBuffer;
}

bool
ConditionalLockBufferForCleanup(Buffer buffer)
{
	return true;
}

void
LockBuffer(Buffer buffer, int mode)
{
}

void
ReleaseBuffer(Buffer buffer)
{
}

Buffer
XLogInitBufferForRedo(XLogReaderState *record, uint8 id)
{
	Buffer		buffer = lock_block(record, id);

	memset(blocks[id].page, 0, BLCKSZ);
	return buffer;
}

char *
XLogRecGetBlockData(XLogReaderState *record, uint8 id, Size *size)
{
	DecodedBkpBlock *block = XLogRecGetBlock(record, id);

	if (size != NULL)
		*size = 0;
	if (!XLogRecHasBlockRef(record, id) || !block->has_data)
		return NULL;
	if (size != NULL)
		*size = block->data_len;
	return block->data;
}

void
XLogRecGetBlockTag(XLogReaderState *record, uint8 id, LsmLocator *locator, ForkNumber *fork, BlockNumber *block)
{
	if (!XLogRecHasBlockRef(record, id))
		elog(ERROR, "could not locate backup block with ID %d in WAL record", id);
	if (locator != NULL)
		memset(locator, 0, sizeof(LsmLocator));
	if (block != NULL)
		*block = blocks[id].number;
}

void
#if PG_VERSION_NUM >= 160000
ResolveRecoveryConflictWithSnapshot(TransactionId horizon, bool is_catalog, LsmLocator locator)
#else
ResolveRecoveryConflictWithSnapshot(TransactionId horizon, LsmLocator locator)
#endif
{
	expect(TransactionIdIsValid(horizon));
}

BlockNumber
BufferGetBlockNumber(Buffer buffer)
{
	return block_of(buffer)->number;
}

void
MarkBufferDirty(Buffer buffer)
{
	block_of(buffer)->dirty = true;
}

void
UnlockReleaseBuffer(Buffer buffer)
{
	block_of(buffer)->locked = false;
}

void
mask_page_lsn_and_checksum(Page page)
{
	memset(page, 0, offsetof(PageHeaderData, pd_flags));
}

void
mask_page_hint_bits(Page page)
{
	((PageHeader) page)->pd_flags = 0;
	((PageHeader) page)->pd_prune_xid = 0;
}

void
mask_unused_space(Page page)
{
	PageHeader	header = (PageHeader) page;

	if (header->pd_lower > header->pd_upper || header->pd_special < header->pd_upper ||
		header->pd_lower < SizeOfPageHeaderData || header->pd_special > BLCKSZ)
		elog(ERROR, "invalid page pd_lower %u pd_upper %u pd_special %u", header->pd_lower, header->pd_upper,
			 header->pd_special);
	memset((char *) page + header->pd_lower, 0, header->pd_upper - header->pd_lower);
}

/* --- the record ------------------------------------------------------------------------------ */

/* Is the page as readers expect it? */
static bool
is_sound(Page page)
{
	LsmPageOpaque *opaque = lsm_page_opaque(page);

	if (lsm_page_check_header(page, opaque->self) != NULL)
		return false;
	if (!(opaque->flags & LSM_PAGE_OPEN) && opaque->crc != lsm_page_compute_crc(page))
		return false;
	switch (opaque->kind)
	{
		case LSM_PAGE_META:
			return lsm_meta_check(page) == NULL;
		case LSM_PAGE_BUFFER:
			return lsm_buffer_page_check(page) == NULL;
		case LSM_PAGE_LEAF:
			return lsm_leaf_check(page) == NULL;
		case LSM_PAGE_DIRECTORY:
			return lsm_directory_page_check(page) == NULL;
	}
	return true;
}

static void
read_blocks(Input *in, DecodedXLogRecord *record)
{
	for (int id = 0; id < MOST_BLOCKS && (*in->p & BLOCK_EXISTS) != 0; id++)
	{
		RedoBlock  *block = &blocks[id];
		DecodedBkpBlock *decoded = &record->blocks[id];
		uint16		kind;
		uint32		size;

		if (block->page == NULL)
			block->page = pages[id] = (Page) backend_guarded_page();
		block->state = take8(in);
		block->number = id > 0 && (block->state & BLOCK_IS_TWIN) ? blocks[id - 1].number : id;
		block->locked = block->dirty = false;
		kind = LSM_PAGE_META + take8(in) % (LSM_PAGE_FILTER - LSM_PAGE_META + 1);
		size = take16(in);
		decoded->data = (char *) take_copy(in, &size);
		decoded->data_len = size;
		decoded->has_data = size > 0;
		decoded->in_use = true;
		decoded->flags = block->state & BLOCK_IS_NEW ? BKPBLOCK_WILL_INIT : 0;
		fuzz_read_page(in, block->page, kind, block->number);
		block->sound = is_sound(block->page);
		record->max_block_id = id;
		if (in->p == in->end)
			break;
	}
}

void
fuzz_target(Input *in)
{
	uint8		info = take8(in);
	uint32		size = take8(in);
	XLogReaderState *reader = palloc(sizeof(XLogReaderState));
	DecodedXLogRecord *record = palloc(offsetof(DecodedXLogRecord, blocks) + MOST_BLOCKS * sizeof(DecodedBkpBlock));
	StringInfoData text;

	memset(reader, 0, sizeof(XLogReaderState));
	memset(record, 0, offsetof(DecodedXLogRecord, blocks) + MOST_BLOCKS * sizeof(DecodedBkpBlock));
	reader->record = record;
	reader->EndRecPtr = 1000;
	record->header.xl_info = info << 4;
	record->main_data_len = size;
	record->main_data = (char *) take_copy(in, &record->main_data_len);
	record->max_block_id = -1;
	/* Other bytes are no bool.  Where it matters, all but 0 are true. */
	if (record->main_data_len >= sizeof(xl_lsm_delete))
		record->main_data[offsetof(xl_lsm_delete, is_catalog)] &= 1;
	standbyState = info & 0x80 ? STANDBY_SNAPSHOT_READY : STANDBY_DISABLED;
	if (in->p < in->end)
		read_blocks(in, record);

	text.data = palloc(1024);
	text.maxlen = 1024;
	resetStringInfo(&text);
	lsm_rmgr_desc(&text, reader);
	(void) lsm_rmgr_identify(record->header.xl_info);
	lsm_rmgr_redo(reader);
	for (int id = 0; id <= record->max_block_id; id++)
	{
		RedoBlock  *block = &blocks[id];

		expect(!block->locked);
		if (!block->dirty)
			continue;
		expect(lsm_page_check_header(block->page, lsm_page_opaque(block->page)->self) == NULL);
		expect(!block->sound || is_sound(block->page));
		lsm_rmgr_mask(block->page, block->number);
	}
}
