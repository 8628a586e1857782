/*
 * cursors.h
 *	  Cursors over runs and pages of the write buffer, and the merge of several.
 *
 * They read optimistically: a page that is not what their version says makes
 * them stale, which is told in the context that they share.  A stale cursor is
 * not valid; the reader takes a newer version and seeks again.
 */
#ifndef LSM_CURSORS_H
#define LSM_CURSORS_H

#include "key/cursor.h"
#include "manifest/manifest.h"
#include "utils/snapshot.h"

/* What the cursors of a reader have in common. */
typedef struct LsmReadContext
{
	LsmIndex   *index;
	LsmKeySpace *ks;
	Snapshot	snapshot;		/* of the scan, or NULL */
	BufferAccessStrategy strategy;
	uint64		edits;			/* of the version that is read */
	uint64		generation;		/* changes when open pages are to be read anew */
	bool		stale;			/* the version is old, or the index is damaged: */
	BlockNumber stale_block;	/* here */
	LsmReadCounters counters;
} LsmReadContext;

extern void lsm_read_set_stale(LsmReadContext *cx, BlockNumber block);

/* run_cursor.c */
extern LsmCursor *lsm_run_cursor_create(LsmReadContext *cx);
extern void lsm_run_cursor_set(LsmCursor *cursor, const LsmRunRecord *run, const LsmBound *clip);

/* buffer_cursor.c */
extern LsmCursor *lsm_buffer_cursor_create(LsmReadContext *cx);
extern void lsm_buffer_cursor_set(LsmCursor *cursor, const LsmRunRecord *run,
								  const LsmBound *clip);

#endif							/* LSM_CURSORS_H */
