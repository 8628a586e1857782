/*
 * cursor.h
 *	  The cursor interface: a sorted source of entries, read in arrays.
 *
 * A cursor stands on an entry (valid), or beyond the last entry in the direction of its
 * latest move. It decodes several neighboring entries at a time into an array, and moves
 * within the array without a call. At the end of the array it calls `fill`. Runs, buffer
 * pages, the merge of several cursors, and sorted files implement the interface.
 */
#ifndef LSM_CURSOR_H
#define LSM_CURSOR_H

#include "access/sdir.h"
#include "format/directory_page.h"
#include "key/keyspace.h"

typedef struct LsmCursor LsmCursor;

/* A whole segment that comes next in a merge. */
typedef struct LsmWholeSegment
{
	uint64		run_id;
	LsmDirectoryEntry entry;	/* its keys are valid until the cursor's next call */
	BlockNumber page;			/* directory page, if the run has a directory */
	int			ordinal;
} LsmWholeSegment;


typedef struct LsmCursorOps
{
	/*
	 * Forward: stand on the first entry after `from`. Backward: stand on the last entry before
	 * `from`. The caller will stop at `limit`, if not NULL. A cursor whose first entry lies
	 * beyond the limit may end at once, to save copying a page.
	 */
	void		(*seek) (LsmCursor *cursor, const LsmBound *from,
						 const LsmBound *limit, ScanDirection direction);
	/* Continue after the current array, in the direction of the latest seek. */
	void		(*fill) (LsmCursor *cursor);
	/* Free memory and release pins. */
	void		(*close) (LsmCursor *cursor);

	/*
	 * Returns the packed page whose first entry the cursor stands on, if all entries of the
	 * page come next and the page has not changed since the cursor read it; otherwise NULL.
	 * *last is the page's last entry. Page and entry are valid until the next call. Forward only.
	 * REQUIRES: at_page.
	 */
	Page		(*page) (LsmCursor *cursor, const LsmEntry **last);
	/* Move to the entry after that page. REQUIRES: `page` has returned it. */
	void		(*skip_page) (LsmCursor *cursor);
	/*
	 * Like `page`, but for a whole segment of at least `least_blocks` blocks. Describes the
	 * segment in *whole. Returns false if no such segment comes next.
	 */
	bool		(*segment) (LsmCursor *cursor, uint32 least_blocks, LsmWholeSegment *whole);
	/*
	 * The caller will soon make the same seek. Prefetch the page that the seek may wait for. This
	 * callback is NULL if the cursor never waits.
	 */
	void		(*expect) (LsmCursor *cursor, const LsmBound *from, ScanDirection direction);
} LsmCursorOps;

struct LsmCursor
{
	const LsmCursorOps *ops;
	bool		valid;
	bool		at_page;		/* `page` may return a page; only cursors with these operations
								 * set this */
	int			stride;			/* to the next entry: 1, or -1 backward */
	int			left;			/* entries of the array after the current one */
	const LsmEntry *entry;		/* the array is valid until the next fill or seek */
	LsmCursor  *source;			/* the cursor that the entry comes from: itself, or a merged
								 * cursor */
	uint64		taken;			/* entries the user has consumed; the user counts them */
	int			waited;			/* if the latest seek waited, the reads that may be in flight;
								 * otherwise 0 */
};

static inline void
lsm_cursor_seek(LsmCursor *c, const LsmBound *from, const LsmBound *limit,
				ScanDirection direction)
{
	c->ops->seek(c, from, limit, direction);
}

/* Move on in the direction of the latest seek. REQUIRES: valid. */
static inline void
lsm_cursor_next(LsmCursor *c)
{
	c->at_page = false;
	if (likely(c->left > 0))
	{
		c->left--;
		c->entry += c->stride;
	}
	else
		c->ops->fill(c);
}

static inline Page
lsm_cursor_page(LsmCursor *c, const LsmEntry **last)
{
	return c->ops->page(c, last);
}

static inline void
lsm_cursor_skip_page(LsmCursor *c)
{
	c->ops->skip_page(c);
}

static inline bool
lsm_cursor_segment(LsmCursor *c, uint32 least_blocks, LsmWholeSegment *whole)
{
	return c->ops->segment(c, least_blocks, whole);
}

static inline void
lsm_cursor_close(LsmCursor *c)
{
	c->ops->close(c);
}

/* Stand on an entry of an array with `left` further entries. */
static inline void
lsm_cursor_stand(LsmCursor *c, const LsmEntry *entry, int left)
{
	c->entry = entry;
	c->left = left;
	c->valid = true;
}

/* Returns whether an entry lies beyond a limit, in this direction. */
static inline bool
lsm_beyond(LsmKeySpace *ks, const LsmBound *limit, const LsmEntry *entry,
		   ScanDirection direction)
{
	int			c = lsm_bound_compare(ks, limit, entry);

	return ScanDirectionIsForward(direction) ? c > 0 : c < 0;
}

#endif							/* LSM_CURSOR_H */
