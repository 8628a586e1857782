/*
 * cursor.h
 *	  The cursor interface: a sorted source of entries.
 *
 * A cursor stands on an entry (valid) or beyond the last in the direction of
 * its latest move.  Runs, buffer pages and the merge of several cursors all
 * implement it.
 */
#ifndef LSM_CURSOR_H
#define LSM_CURSOR_H

#include "access/sdir.h"
#include "key/keyspace.h"

typedef struct LsmCursor LsmCursor;

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
	/* Move on, in the direction of the latest seek.  REQUIRES: valid. */
	void		(*next) (LsmCursor *cursor);
	/* Let go of pins and memory. */
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
} LsmCursorOps;

struct LsmCursor
{
	const LsmCursorOps *ops;
	bool		valid;
	bool		at_page;		/* it is worth asking for the page; if never set,
								 * the cursor need not have the operations */
	const LsmEntry *entry;		/* until the next call */
	uint64		prefix;			/* first bytes of its key; encoded keys only */
};

static inline void
lsm_cursor_seek(LsmCursor *c, const LsmBound *from, const LsmBound *limit,
				ScanDirection direction)
{
	c->ops->seek(c, from, limit, direction);
}

static inline void
lsm_cursor_next(LsmCursor *c)
{
	c->ops->next(c);
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

static inline void
lsm_cursor_close(LsmCursor *c)
{
	c->ops->close(c);
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
