/*
 * read_context.h
 *	  Declares what the cursors of a reader share.
 *
 * Cursors read optimistically.  If a page is not the one that the version names, the cursors are
 * stale, and the context says so.  A stale cursor is not valid: the reader takes a newer version
 * and seeks again.
 */
#ifndef LSM_READ_CONTEXT_H
#define LSM_READ_CONTEXT_H

#include "format/page.h"
#include "index/index.h"
#include "key/cursor.h"
#include "utils/snapshot.h"

typedef struct LsmReadContext
{
	LsmIndex   *index;
	LsmKeySpace *ks;
	Snapshot	snapshot;		/* of the scan, or NULL */
	BufferAccessStrategy strategy;
	uint64		edits;			/* number of the version's last edit */
	int			run_count;		/* runs of the version that are read */
	int			packed_count;	/* of these, runs that are not pages of the write buffer */
	bool		is_merge;		/* reads the inputs of a job */
	uint32		user;			/* changes with each user of the reader */
	int			seeks_timed;	/* seeks in runs still to be timed, see read_ahead.c */
	int			rounds_ahead;	/* rounds of keys still to prefetch, see read_ahead.c */

	/* What a seek looks for, if filters can be asked about it. */
	const LsmBound *lookup;		/* begins with the columns to look for */
	int			lookup_columns; /* how many: the whole key, or fewer; 0: ask no filter */
	int			hashed_columns; /* columns that `hash` covers; 0: none */
	uint64		hash;
	const struct LsmLookedFor *looked_for;	/* keys that the statement has looked for, or NULL */
	const struct LsmSeenVersion *without;	/* a version whose runs lack the key; or NULL */

	/* Filters in private memory. */
	int			prefix_columns; /* columns of the longest prefix in a filter */
	bool		prefixes_if_worth;	/* the longest may be shorter: see lsm_prefixes_limit */
	struct LsmRunFilterSet *filters;	/* of small runs; NULL: make none */
	struct LsmKnownProbes *known_probes;	/* of segments, see run_probe.c; NULL until needed */

	uint64		generation;		/* when it changes, cursors reread the write buffer's pages */
	bool		stale;			/* the version is stale, or the index is damaged */
	BlockNumber stale_block;	/* the first block that shows this */
	LsmReadCounters counters;
	uint64		spared;			/* seeks in runs that filters made unnecessary, in 16ths */
	uint64		missed_runs;	/* seeks in runs that had to read a block into shared buffers */
	LsmPageRef *seen;			/* the latest pages; NULL: the user does not need them */
	uint32		seen_count;
} LsmReadContext;

/*
 * The part of a seek that a filter saves by saying no, in 16ths.  Asking a filter on disk costs
 * about half a seek, and asking a filter in private memory costs next to nothing.
 */
#define LSM_SPARED_BY_DISK		8
#define LSM_SPARED_BY_MEMORY	15

/* A reader remembers this many pages, more than it has cursors. */
#define LSM_PAGES_SEEN	256

/* Remember a page that is being read.  Returns its number for LsmEntry.page. */
static inline uint32
lsm_read_see_page(LsmReadContext *cx, BlockNumber block, Page page)
{
	const LsmPageOpaque *opaque = lsm_page_opaque(page);
	LsmPageRef *ref;

	if (cx->seen == NULL)
		return 0;
	ref = &cx->seen[++cx->seen_count % LSM_PAGES_SEEN];
	ref->block = block;
	ref->kind = opaque->kind;
	ref->owner = opaque->owner;
	ref->stamp = opaque->stamp;
	return cx->seen_count;
}

/* Note that the version is stale or the index damaged.  Keeps the first block that shows this. */
static inline void
lsm_read_set_stale(LsmReadContext *cx, BlockNumber block)
{
	if (cx->stale)
		return;
	cx->stale = true;
	cx->stale_block = block;
}

#endif							/* LSM_READ_CONTEXT_H */
