/*
 * block_range.h
 *	  Reads neighboring blocks of an index in order, ahead of the caller.
 */
#ifndef LSM_BLOCK_RANGE_H
#define LSM_BLOCK_RANGE_H

#include "base/compat.h"
#include "storage/bufmgr.h"

typedef struct LsmBlockRange
{
	Relation	rel;
	BufferAccessStrategy ring;
	BlockNumber next;			/* the block that the stream returns next */
	BlockNumber asked;			/* the block that the stream asks for next */
	BlockNumber end;
	ReadStream *stream;			/* NULL: no block is read ahead */
} LsmBlockRange;

extern void lsm_block_range_begin(LsmBlockRange *range, Relation rel, BlockNumber start,
								  uint32 count, BufferAccessStrategy ring);
extern bool lsm_block_range_read(LsmBlockRange *range, BlockNumber block, Buffer *buffer);
extern void lsm_block_range_end(LsmBlockRange *range);

#endif							/* LSM_BLOCK_RANGE_H */
