/*
 * block_range.c
 *	  Reads neighboring blocks of an index in order, ahead of the caller, with core's read stream.
 *	  Before 17, reads nothing ahead.
 *
 * The stream pins pages ahead of the caller: with a ring, at most as many as the ring has.  After an error, the
 * resource owner releases the pins.  The caller need not read the range to its end, and may read
 * other blocks in between.  A pin does not keep others from writing to a page, so a page may have a
 * new owner by the time the caller gets it.  The caller checks the owner under a lock, as after any
 * other read.
 *
 * The pins cannot deadlock.  Only gates are ever locked for cleanup, and no range contains a gate.
 *
 * REQUIRES: while a range is in use, the file does not shrink.
 */
#include "postgres.h"

#include "storage/block_range.h"
#include "storage/buffers.h"

/* A shorter range is not worth a stream. */
#define LEAST_BLOCKS 8

static BlockNumber
next_to_ask(ReadStream *stream, void *argument, void *page_data)
{
	LsmBlockRange *range = argument;

	return range->asked < range->end ? range->asked++ : InvalidBlockNumber;
}

/*
 * Begin a range: the caller is going to read `count` blocks from `start` on.  The stream allocates
 * in the current memory context.  `ring` may be NULL.
 */
void
lsm_block_range_begin(LsmBlockRange *range, Relation rel, BlockNumber start, uint32 count,
					  BufferAccessStrategy ring)
{
	BlockNumber file_blocks;

	range->rel = rel;
	range->ring = ring;
	range->next = range->asked = start;
	range->stream = NULL;
	if (!LSM_HAS_STREAMS || count < LEAST_BLOCKS)
		return;
	/* A damaged index may name blocks that the file does not have.  Do not read those ahead. */
	file_blocks = RelationGetNumberOfBlocks(rel);
	range->end = (BlockNumber) Min((uint64) start + count, file_blocks);
	range->stream = read_stream_begin_relation(READ_STREAM_MAINTENANCE | READ_STREAM_FULL, ring, rel,
											   MAIN_FORKNUM, next_to_ask, range, 0);
}

/*
 * Read a block, which need not be in the range.  Returns true if the page is known to come from
 * disk, as lsm_buffer_read_counted does.
 */
bool
lsm_block_range_read(LsmBlockRange *range, BlockNumber block, Buffer *buffer)
{
	if (range->stream != NULL && block == range->next)
	{
		range->next++;
		*buffer = read_stream_next_buffer(range->stream, NULL);
		if (BufferIsValid(*buffer))
			return false;
	}
	return lsm_buffer_read_counted(range->rel, block, range->ring, buffer);
}

/* Release the pages that the caller has not read. */
void
lsm_block_range_end(LsmBlockRange *range)
{
	if (range->stream != NULL)
		read_stream_end(range->stream);
	range->stream = NULL;
}
