/*
 * change.h
 *	  An edit of the manifest under construction, with all pages that change
 *	  with it.
 *
 * Between lsm_change_begin and lsm_change_commit the meta page is locked
 * exclusively, and so is each page that takes part, as soon as it does.  Pages
 * are changed in copies: what was done in a change can be seen by what comes
 * next in it, and an error before the commit leaves everything as it was.  The
 * commit copies them back and writes a single WAL record.
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
	bool		init;			/* its old content does not count */
	bool		image;			/* logged whole */
	bool		changed;
	Page		copy;			/* as it will be */
	char	   *data;			/* the change, as logged; see page_change.h */
	Size		size;
	Size		room;
} LsmChangedPage;

typedef struct LsmChange
{
	LsmIndex   *index;
	MemoryContext context;		/* of all this */
	Buffer		meta_buffer;
	LsmMeta    *meta;			/* as it was */
	LsmEdit		edit;
	uint64		stamp;			/* number of the edit */
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
 * space.c: an edit looks for free blocks in so many regions.  Where it gives none back,
 * it has a map page of each of them, and two of where the file ends.
 */
#define LSM_MOST_REGIONS 4
#define LSM_MOST_MAP_PAGES (LSM_MOST_REGIONS + 2)

extern uint32 lsm_space_take(LsmChange *change, uint32 want, uint32 least, bool large,
							 BlockNumber *start);
extern void lsm_space_give(LsmChange *change, BlockNumber start, uint32 length);
extern void lsm_space_extend_ahead(LsmIndex *index, uint32 want);
extern BlockNumber lsm_space_used_end(LsmChange *change);
extern void lsm_space_cut(LsmChange *change, BlockNumber end);

#endif							/* LSM_CHANGE_H */
