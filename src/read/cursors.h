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

#include "format/filter_page.h"
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
	int			run_count;		/* of that version that are read */
	int			packed_count;	/* of these, without the pages of the write buffer */
	bool		is_merge;		/* of the inputs of a job */
	uint32		user;			/* number of who uses the reader */
	int			seeks_timed;	/* so many further seeks in runs are, see read_ahead.c */
	int			rounds_ahead;	/* so many further rounds of keys ask for pages ahead, see there */
	const LsmBound *lookup;		/* its first columns are those of all that is looked for, */
	int			lookup_columns; /* so many: all of a key, or less; 0: filters are not asked */
	int			hashed_columns; /* so many of them have this hash; 0: none is known */
	uint64		hash;
	int			prefix_columns; /* that filters in private memory may know, at most */
	bool		prefixes_if_worth;	/* these may be fewer: see lsm_prefixes_limit */
	struct LsmRunFilterSet *filters;	/* of small runs; NULL: there are to be none */
	struct LsmKnownProbes *known_probes;	/* of segments; NULL until needed */
	const struct LsmLookedFor *looked_for;	/* keys of which is known something, or NULL */
	const struct LsmSeenVersion *without;	/* its runs do not have what is looked for; or NULL */
	uint64		generation;		/* changes when open pages are to be read anew */
	bool		stale;			/* the version is old, or the index is damaged: */
	BlockNumber stale_block;	/* here */
	LsmReadCounters counters;
	LsmPageRef *seen;			/* the latest pages, or NULL: nobody asks */
	uint32		seen_count;
} LsmReadContext;

/* Pages that a reader remembers: more than it has cursors. */
#define LSM_PAGES_SEEN	256

/* The number of a page that is being read, for its entries (LsmEntry.page). */
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

extern void lsm_read_set_stale(LsmReadContext *cx, BlockNumber block);

/* run_cursor.c */
extern LsmCursor *lsm_run_cursor_create(LsmReadContext *cx);
extern void lsm_run_cursor_set(LsmCursor *cursor, const LsmRunRecord *run, const LsmBound *clip);

extern bool lsm_run_cursor_split(LsmCursor *cursor, const LsmBound *from, uint32 leaves,
								 ScanDirection direction, LsmBound *split);

/* A key that is looked for in one run after the other. */
typedef struct LsmProbe
{
	LsmEntry	entry;			/* with that key */
	uint64		hash;			/* of an encoded key, as filters know it */
	uint64		prefix;			/* of an encoded key, see lsm_key_prefix */
	bool		repeats;		/* the one before has the same key, and answers for it */
	bool		found;			/* there is an entry with the key */
} LsmProbe;

/* Compare with a key that has this prefix, which decides nearly always. */
static inline int
lsm_probe_compare(const LsmProbe *probe, const uint8 *key, uint32 keylen, uint64 prefix)
{
	int			c;

	if (probe->prefix != prefix)
		return probe->prefix < prefix ? -1 : 1;
	c = memcmp(probe->entry.key, key, Min(probe->entry.keylen, keylen));
	if (c != 0)
		return c;
	return probe->entry.keylen < keylen ? -1 : probe->entry.keylen > keylen;
}

/* The runs of a version that was read as a whole. */
typedef struct LsmSeenVersion
{
	uint64		next_id;		/* 0: none was */
	int			open_count;
	uint64		open[LSM_MAX_OPEN_RUNS];	/* its open runs */
} LsmSeenVersion;

/* Encoded keys that were looked for there. */
typedef struct LsmLookedFor
{
	LsmSeenVersion seen;
	const LsmProbe *probes;		/* in the order of their keys */
	Size		count;
} LsmLookedFor;

/* looked_for.c */
extern void lsm_seen_note(LsmSeenVersion *seen, const LsmVersion *version);
extern bool lsm_seen_has(const LsmSeenVersion *seen, uint64 run_id);
extern bool lsm_was_absent(const LsmLookedFor *known, const uint8 *key, uint32 keylen);
extern void lsm_looked_for_set(Oid index, const LsmLookedFor *keys);
extern const LsmLookedFor *lsm_looked_for_get(Oid index);
extern void lsm_looked_for_release(const LsmLookedFor *keys);
extern void lsm_looked_for_forget(void);

/* run_lookup.c */
extern bool lsm_run_cursor_probe(LsmCursor *cursor, LsmProbe *probes, Size count, LsmBound *low,
								 LsmBound *high);
extern bool lsm_run_cursor_has_filter(LsmCursor *cursor);

/* small_runs.c */
extern bool lsm_run_cursor_is_small(LsmCursor *cursor);
extern bool lsm_small_runs_probe(LsmCursor **cursors, int cursor_count, LsmProbe *probes,
								 Size count, LsmBound *low, LsmBound *high);

/* buffer_cursor.c */
extern LsmCursor *lsm_buffer_cursor_create(LsmReadContext *cx);
extern void lsm_buffer_cursor_set(LsmCursor *cursor, const LsmRunRecord *run,
								  const LsmBound *clip);

#endif							/* LSM_CURSORS_H */
