/*
 * segment_record.h
 *	  Declares what the manifest and the directories record about a segment.
 *
 * A segment is a packed B+tree in contiguous blocks, written once:
 *
 *		start							leaves, in key order
 *		start + leaves					filter pages, if there are any
 *		start + leaves + filter_blocks	fence pages, level by level upward
 *		start + blocks - 1				the root, a fence page or the only leaf
 *
 * Pages refer to each other by their number within the segment, so the bytes of
 * a segment do not depend on its place.  A buffer page is a segment of one block.
 */
#ifndef LSM_SEGMENT_RECORD_H
#define LSM_SEGMENT_RECORD_H

#include "format/leaf.h"

typedef struct LsmSegment
{
	uint64		id;				/* 0   never used again (I4) */
	uint32		entries;		/* 8   less those that VACUUM has removed */
	uint32		removed;		/* 12  entries VACUUM removed since writing */
	BlockNumber start;			/* 16  first block */
	uint32		blocks;			/* 20  number of all pages; 0: the segment is gone */
	uint32		leaves;			/* 24  pages that are leaves */
	BlockNumber heap_low;		/* 28  lowest heap block of the segment's entries */
	BlockNumber heap_high;		/* 32  highest heap block of the segment's entries */
	uint32		filter_blocks;	/* 36  pages of the filter, or 0 */
	uint8		prefix_columns; /* 40  the most columns of a prefix in the filter */
	uint8		reserved[3];	/* 41  zero */
	uint16		keylen;			/* 44  see LsmLeafMode */
	uint8		offset_bits;	/* 46  see LsmLeafMode */
	uint8		height;			/* 47  fence pages above a leaf */
} LsmSegment;

StaticAssertDecl(sizeof(LsmSegment) == 48, "LsmSegment is part of the on-disk format");

/* Sets *mode to what is known about a segment's entries, for coding the output of a merge. */
static inline void
lsm_segment_mode(const LsmSegment *segment, LsmLeafMode *mode)
{
	mode->base_block = segment->heap_low;
	mode->last_block = segment->heap_high;
	mode->keylen = segment->keylen;
	mode->offset_bits = segment->offset_bits;
}

#endif							/* LSM_SEGMENT_RECORD_H */
