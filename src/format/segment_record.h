/*
 * segment_record.h
 *	  What the manifest and the directories say of a segment.
 *
 * A segment is a packed B+tree of neighbouring blocks, written once: its leaves
 * from the lowest key on, then the pages of its filter, if it has one, then its
 * fence pages, the root last.  So leaf i is block start + i, and the root is block
 * start + blocks - 1.  A page of the write buffer is a segment, too, of that one
 * block.
 */
#ifndef LSM_SEGMENT_RECORD_H
#define LSM_SEGMENT_RECORD_H

#include "format/leaf.h"

typedef struct LsmSegment
{
	uint64		id;				/* never used again */
	uint32		entries;		/* less those that VACUUM has removed */
	uint32		removed;		/* by VACUUM since it was written */
	BlockNumber start;
	uint32		blocks;			/* all of its pages; 0: nothing is left of it */
	uint32		leaves;
	BlockNumber heap_low;		/* lowest and highest heap block of its entries */
	BlockNumber heap_high;
	uint32		filter_blocks;	/* pages of the filter, or 0 */
	uint8		prefix_columns; /* prefixes of up to so many columns are in the filter */
	uint8		reserved[3];
	uint16		keylen;			/* see LsmLeafMode */
	uint8		offset_bits;
	uint8		height;			/* fence pages above a leaf */
} LsmSegment;

StaticAssertDecl(sizeof(LsmSegment) == 48, "LsmSegment is part of the on-disk format");

/* What is known of the entries of a segment, for coding those of a merge. */
static inline void
lsm_segment_mode(const LsmSegment *segment, LsmLeafMode *mode)
{
	mode->base_block = segment->heap_low;
	mode->last_block = segment->heap_high;
	mode->keylen = segment->keylen;
	mode->offset_bits = segment->offset_bits;
}

#endif							/* LSM_SEGMENT_RECORD_H */
