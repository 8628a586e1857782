/*
 * change.h
 *	  Collects an edit of the manifest, with all pages that change in the edit (I1).
 *
 * From lsm_change_begin to lsm_change_commit the meta page is locked exclusively.  Each other
 * page is locked exclusively from the time it joins the change.  A change modifies copies of
 * the pages, so later operations see earlier ones, and an error before the commit leaves
 * everything as it was.  The commit copies the pages back and writes a single WAL record.
 */
#ifndef LSM_CHANGE_H
#define LSM_CHANGE_H

#include "format/wal.h"
#include "index/index.h"
#include "storage/bufmgr.h"

typedef struct LsmChangedPage
{
	BlockNumber block;
	Buffer		buffer;			/* locked exclusively */
	bool		init;			/* the old content does not matter */
	bool		image;			/* logged as a full image */
	bool		changed;
	Page		copy;			/* the page after the change */
	char	   *data;			/* the operations to log; see page_change.h */
	Size		size;			/* bytes of data in use */
	Size		room;			/* bytes allocated for data */
} LsmChangedPage;

typedef struct LsmChange
{
	LsmIndex   *index;
	MemoryContext context;		/* holds the change and the copies */
	Buffer		meta_buffer;	/* locked exclusively */
	LsmMeta    *meta;			/* on the page: the state before the edit */
	LsmEdit		edit;
	uint64		stamp;			/* the number of the edit */
	int			page_count;
	LsmChangedPage pages[LSM_WAL_PAGES];
} LsmChange;

extern LsmChange *lsm_change_begin(LsmIndex *index);
extern LsmChangedPage *lsm_change_find(LsmChange *change, BlockNumber block);
extern LsmChangedPage *lsm_change_page(LsmChange *change, BlockNumber block, uint16 kind,
									   uint64 owner);
extern LsmChangedPage *lsm_change_new_page(LsmChange *change, BlockNumber block);
extern void lsm_change_image(LsmChange *change, BlockNumber block, Page page);
extern void lsm_change_op(LsmChange *change, LsmChangedPage *page, LsmPageOpKind kind,
						  const void *data, uint32 size);
extern void lsm_change_commit(LsmChange *change);
extern void lsm_change_cancel(LsmChange *change);

/*
 * space.c: an edit searches at most this many regions for free blocks.  An edit that frees no
 * blocks changes at most one map page per region searched, and two for the end of the file.
 */
#define LSM_MOST_REGIONS 4
#define LSM_MOST_MAP_PAGES (LSM_MOST_REGIONS + 2)

extern uint32 lsm_space_take(LsmChange *change, uint32 want, uint32 least, bool large,
							 BlockNumber *start);
extern void lsm_space_give(LsmChange *change, BlockNumber start, uint32 length);
extern void lsm_space_touch(LsmIndex *index, BlockNumber block);
extern void lsm_space_prepare(LsmIndex *index, uint32 want, bool large);
extern void lsm_space_touch_end(LsmIndex *index);
extern BlockNumber lsm_space_used_end(LsmChange *change);
extern void lsm_space_cut(LsmChange *change, BlockNumber end);

#endif							/* LSM_CHANGE_H */
