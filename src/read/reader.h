/*
 * reader.h
 *	  Readers present all runs of the current version, write buffer included, as one sorted
 *	  source to a scan, or the inputs of a job to a merge.
 *
 * A reader belongs to a backend's handle of the index and is reused, so a scan allocates nothing if
 * the version has not changed. The reader takes a newer version by itself when its own version has
 * become stale.
 */
#ifndef LSM_READER_H
#define LSM_READER_H

#include "manifest/manifest.h"
#include "read/looked_for.h"
#include "read/read_context.h"
#include "storage/buffers.h"

/* Reading or merging this many entries of a run costs about as much as a seek in it. */
#define LSM_ENTRIES_PER_SEEK 64

/* The frontier of a job of the version. */
typedef struct LsmFrontier
{
	uint64		job_id;
	uint32		segments;		/* of the output, when the frontier was read */
	bool		is_used;		/* the version has this job */
	LsmBound	bound;
} LsmFrontier;

typedef struct LsmReader
{
	struct LsmReader *next;		/* of the same handle */
	bool		in_use;
	struct LsmReader **holder;	/* the user's pointer to the reader, cleared when
								 * the reader is forgotten; or NULL */
	MemoryContext context;		/* of the reader and everything below it */
	LsmReadContext cx;
	uint64		job_id;			/* read the inputs of this job; 0: all runs */

	LsmVersion	version;
	bool		is_ready;		/* the cursors are those of the version */
	bool		needs_gate;
	Buffer		gate;			/* pinned, or invalid (I10) */
	int			frontier_count;
	LsmFrontier **frontiers;

	/* All cursors, and those that the version uses. */
	LsmCursor **run_cursors;
	int			run_cursor_count;
	LsmCursor **buffer_cursors;
	int			buffer_cursor_count;
	LsmCursor **children;
	uint64	   *child_runs;		/* their run ids */
	uint32	   *child_leaves;	/* 0: a page of the write buffer */
	int			child_count;
	LsmCursor  *merge;
	LsmCursor  *cursor;			/* the merge, or the only child */

	const LsmBound *limit;		/* of the latest seek, or NULL */
	ScanDirection direction;
	bool		within;			/* the rest of the array is within the limit */
	uint64		child_seeks;	/* number of the version's runs, added up over all seeks
								 * that are not yet counted as paid */
	double		unpaid;			/* the fraction of a seek that is not yet counted as paid */
	LsmBound	here;			/* the position after the previous array */
	LsmBound	probe[2];		/* before and after the key to look for in a run */
	LsmBound	split[2];		/* the latest split, and room for the next one */
} LsmReader;

/* reader_pool.c */
extern void lsm_reader_init(void);
extern LsmReader *lsm_reader_acquire(LsmIndex *index, uint64 job_id, Snapshot snapshot,
									 bool needs_gate, BufferAccessStrategy strategy);
extern void lsm_reader_count(LsmReader *reader);
extern void lsm_reader_count_probes(LsmReader *reader, Size count, int runs);
extern void lsm_reader_release(LsmReader *reader);
extern void lsm_reader_give_up_on_reset(LsmReader **holder, MemoryContextCallback *callback);
extern void lsm_reader_hold(LsmReader *reader, LsmReader **holder);
extern bool lsm_reader_is_crowded(void);

/* reader.c */
extern void lsm_reader_refresh(LsmReader *reader);
extern void lsm_reader_let_go(LsmReader *reader);
extern void lsm_reader_seek(LsmReader *reader, const LsmBound *from, const LsmBound *limit,
							ScanDirection direction);
extern bool lsm_reader_seek_key(LsmReader *reader, const LsmEntry *key, LsmBound bounds[2]);
extern int	lsm_reader_step(LsmReader *reader, const LsmBound *to, int more);
extern LsmCursor *lsm_reader_seek_run(LsmReader *reader, int child, const LsmBound *from,
									  const LsmBound *limit);
extern bool lsm_reader_probe_run(LsmReader *reader, int child, LsmProbe *probes, Size count);
extern bool lsm_reader_probe_page(LsmReader *reader, int child, LsmProbe *probes, Size count,
								  bool *done);
extern bool lsm_reader_probe_small_runs(LsmReader *reader, const int *children, int child_count,
										LsmProbe *probes, Size count);
extern void lsm_reader_fill(LsmReader *reader);
extern void lsm_reader_seek_past(LsmReader *reader, const LsmEntry *entry);
extern void lsm_reader_page_changed(LsmReader *reader, const LsmPageRef *page, uint64 stamp);
extern const LsmBound *lsm_reader_frontier(LsmReader *reader, uint64 job_id);

/* split.c */
extern const LsmBound *lsm_reader_split(LsmReader *reader, const LsmBound *from,
										const LsmBound *limit, ScanDirection direction,
										uint32 leaves);

static inline bool
lsm_reader_is_valid(const LsmReader *reader)
{
	return reader->cursor->valid;
}

static inline const LsmEntry *
lsm_reader_entry(const LsmReader *reader)
{
	return reader->cursor->entry;
}

/* Move on in the direction of the latest seek. REQUIRES: valid. */
static inline void
lsm_reader_next(LsmReader *reader)
{
	LsmCursor  *c = reader->cursor;

	if (likely(c->left > 0))
	{
		c->left--;
		c->entry += c->stride;
	}
	else
		lsm_reader_fill(reader);
}

/* Move on by n entries.  REQUIRES: the reader has decoded them. */
static inline void
lsm_reader_skip(LsmReader *reader, int n)
{
	reader->cursor->left -= n;
	reader->cursor->entry += n * reader->cursor->stride;
}

/* Returns whether the current entry is beyond the limit of the latest seek. */
static inline bool
lsm_reader_is_beyond(const LsmReader *reader)
{
	return !reader->within &&
		lsm_beyond(reader->cx.ks, reader->limit, reader->cursor->entry, reader->direction);
}

/* Find the page that an entry was read from. Returns false if that is no longer known. */
static inline bool
lsm_reader_page_of(const LsmReader *reader, const LsmEntry *entry, LsmPageRef *ref)
{
	if (reader->cx.seen == NULL || entry->page == 0 ||
		reader->cx.seen_count - entry->page >= LSM_PAGES_SEEN)
		return false;
	*ref = reader->cx.seen[entry->page % LSM_PAGES_SEEN];
	return true;
}

/* Count the blocks read into shared buffers since lsm_blocks_missed was `before`. */
static inline void
lsm_reader_count_missed(LsmReader *reader, uint64 before)
{
	reader->cx.counters.bytes += (lsm_blocks_missed - before) * BLCKSZ;
}

/* Returns whether VACUUM waits for this reader's gate. */
static inline bool
lsm_reader_must_leave(const LsmReader *reader)
{
	return BufferIsValid(reader->gate) && lsm_gate_is_closed(reader->gate);
}

#endif							/* LSM_READER_H */
