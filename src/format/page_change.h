/*
 * page_change.h
 *	  Page changes that belong to an edit of the manifest.  Normal operation and
 *	  redo apply the same bytes.
 *
 * A change is the edit's number (uint64), followed by operations.  Each operation
 * is an LsmPageOp and its data.
 */
#ifndef LSM_PAGE_CHANGE_H
#define LSM_PAGE_CHANGE_H

#include "format/directory_page.h"
#include "format/map_page.h"

typedef enum LsmPageOpKind
{
	LSM_OP_MAP_INIT = 1,		/* BlockNumber: self */
	LSM_OP_MAP_SET,				/* LsmMapSet */
	LSM_OP_DIRECTORY_INIT,		/* LsmDirectoryInit */
	LSM_OP_DIRECTORY_APPEND,	/* an item */
	LSM_OP_DIRECTORY_SET,		/* LsmDirectorySet */
	LSM_OP_OPEN,				/* LsmOpenInit: a page of the write buffer */
	LSM_OP_SEAL					/* no data: the page accepts no more entries */
} LsmPageOpKind;

typedef struct LsmPageOp
{
	uint16		kind;
	uint16		size;			/* of the data that follows */
} LsmPageOp;

typedef struct LsmMapSet
{
	uint32		first;			/* bit */
	uint32		count;
	uint32		used;
} LsmMapSet;

typedef struct LsmDirectoryInit
{
	uint64		run_id;
	BlockNumber self;
	uint32		level;
} LsmDirectoryInit;

typedef struct LsmDirectorySet
{
	LsmSegment	segment;
	uint32		ordinal;
	uint32		reserved;
} LsmDirectorySet;

typedef struct LsmOpenInit
{
	uint64		segment_id;
	BlockNumber self;
	uint32		flags;
} LsmOpenInit;

extern bool lsm_page_apply_op(Page page, LsmPageOpKind kind, const void *data, uint32 size);
extern void lsm_page_end_change(Page page, uint64 stamp);
extern bool lsm_page_apply(Page page, const char *change, Size size);

#endif							/* LSM_PAGE_CHANGE_H */
