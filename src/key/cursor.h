/*
 * cursor.h
 *	  The cursor interface: a sorted source of entries, read in batches.
 *
 * A cursor stands on an entry (valid) or beyond the last in the direction of
 * its latest move.  It has decoded some neighbouring entries in one go, an array
 * in which it goes on without a call; only for the next array the source itself
 * is asked.  Runs, buffer pages, the merge of several cursors and sorted files
 * all implement it.
 */
#ifndef LSM_CURSOR_H
#define LSM_CURSOR_H

#include "access/sdir.h"
#include "format/directory_page.h"
#include "key/keyspace.h"

typedef struct LsmCursor LsmCursor;

/* A whole segment that comes next in a merge, and where it is. */
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
	 * Forward: stand on the first entry after `from`.  Backward: on the last
	 * entry before it.  `limit`, or NULL, is where the caller will stop: a
	 * cursor whose first entry lies beyond it may end at once, which saves it
	 * copying a page.
	 */
	void		(*seek) (LsmCursor *cursor, const LsmBound *from,
						 const LsmBound *limit, ScanDirection direction);
	/* Go on behind the current array, in the direction of the latest seek. */
	void		(*fill) (LsmCursor *cursor);
	/* Let go of memory. */
	void		(*close) (LsmCursor *cursor);

	/*
	 * The packed page whose first entry the cursor stands on, if its entries
	 * are the next ones of the cursor, all of them, and it has not changed
	 * under the cursor; else NULL.  *last is its last entry.  Both are valid
	 * until the next call.  Only forward; REQUIRES: at_page.
	 */
	Page		(*page) (LsmCursor *cursor, const LsmEntry **last);
	/* Move on to the entry after that page.  REQUIRES: `page` has given it. */
	void		(*skip_page) (LsmCursor *cursor);
	/*
	 * Likewise the segment of at least so many blocks whose entries are the next
	 * ones.  False if there is none.
	 */
	bool		(*segment) (LsmCursor *cursor, uint32 least_blocks, LsmWholeSegment *whole);
	/*
	 * The same seek will follow soon: ask for the page that it may have to wait for.
	 * May be NULL: nothing is ever waited for.
	 */
	void		(*expect) (LsmCursor *cursor, const LsmBound *from, ScanDirection direction);
} LsmCursorOps;

struct LsmCursor
{
	const LsmCursorOps *ops;
	bool		valid;
	bool		at_page;		/* it is worth asking for the page; if never set,
								 * the cursor need not have the operations */
	int			stride;			/* to the next entry: 1, or -1 backward */
	int			left;			/* entries of the array after the current one */
	const LsmEntry *entry;		/* the array is valid until the next fill or seek */
	LsmCursor  *source;			/* where the entry comes from: itself, or one that it merges */
	uint64		taken;			/* for its user: entries that were used up */
	int			waited;			/* its latest seek has waited for the disk, as seeks of
								 * others may: so many reads may be in flight; else 0 */
};

static inline void
lsm_cursor_seek(LsmCursor *c, const LsmBound *from, const LsmBound *limit,
				ScanDirection direction)
{
	c->ops->seek(c, from, limit, direction);
}

/* Move on, in the direction of the latest seek.  REQUIRES: valid. */
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

/* Stand on an entry of an array that goes on for `left` entries more. */
static inline void
lsm_cursor_stand(LsmCursor *c, const LsmEntry *entry, int left)
{
	c->entry = entry;
	c->left = left;
	c->valid = true;
}

/* Is an entry past a limit, in this direction? */
static inline bool
lsm_beyond(LsmKeySpace *ks, const LsmBound *limit, const LsmEntry *entry,
		   ScanDirection direction)
{
	int			c = lsm_bound_compare(ks, limit, entry);

	return ScanDirectionIsForward(direction) ? c > 0 : c < 0;
}

#endif							/* LSM_CURSOR_H */
