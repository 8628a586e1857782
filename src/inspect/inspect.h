/*
 * inspect.h
 *	  Looking into an index from SQL: lsm_runs, the statistics, and the verifier,
 *	  lsm_check.
 *
 * Nothing here changes anything.  The verifier compares what is on the pages
 * with the invariants in src/README.md:
 *
 *	  check.c			the SQL function; rounds
 *	  check_page.c		what the others share: reports, checked reading of pages
 *	  check_instant.c	what is copied at one instant; the gates
 *	  check_manifest.c	records, reservations, directories
 *	  check_map.c		the space map against all that names blocks
 *	  check_segment.c	the pages of a segment
 *	  check_entry.c		single entries: keys, included columns, TIDs
 *	  check_heap.c		the table's rows against the entries; entries that are twice
 */
#ifndef LSM_INSPECT_H
#define LSM_INSPECT_H

#include "format/map_page.h"
#include "index/index.h"
#include "key/keyspace.h"
#include "lib/bloomfilter.h"
#include "lib/stringinfo.h"
#include "manifest/manifest.h"
#include "storage/buffers.h"
#include "utils/hsearch.h"
#include "utils/snapshot.h"

/* What one must be to look. */
typedef enum LsmInspectRight
{
	LSM_INSPECT_OWNER,			/* owner of the index */
	LSM_INSPECT_MONITOR			/* that, or a role that reads statistics */
} LsmInspectRight;

/* An index that is open for inspection, and its table. */
typedef struct LsmInspected
{
	Relation	heap;
	Relation	index;
	LsmOwnerContext owner;		/* to be restored, if it was switched */
} LsmInspected;

/* A segment that a run had at an instant. */
typedef struct LsmCheckSegment
{
	const LsmRunRecord *run;	/* of the instant's version */
	LsmSegment	segment;
	Page		open_page;		/* copy of a page that takes entries, or NULL */

	/* Of a run with a directory: its item, and where that is. */
	bool		has_item;
	LsmEntry	low;
	LsmEntry	high;
	BlockNumber page;
	int			ordinal;
} LsmCheckSegment;

/* A directory page, copied. */
typedef struct LsmDirectoryCopy
{
	const LsmRunRecord *run;
	BlockNumber block;
	Page		page;
} LsmDirectoryCopy;

/* What was there at one instant, and what was found in it. */
typedef struct LsmInstant
{
	MemoryContext context;		/* of all this */
	LsmVersion	version;
	BlockNumber file_blocks;
	Page		gates[2];
	Page		open_pages[LSM_MAX_RUNS];	/* by run: NULL but for open ones */
	int			directory_count;	/* of each run the pages in the order of a walk */
	int			directory_room;
	LsmDirectoryCopy *directories;
	uint32		region_count;
	char	   *map;			/* the map page of each region */

	/* By check_manifest.c: of all runs, also those that are spent. */
	int			segment_count;
	int			segment_room;
	LsmCheckSegment *segments;
	LsmEntry	frontiers[LSM_MAX_RUNS];	/* by output run; key NULL: none */
} LsmInstant;

/* State of one verification. */
typedef struct LsmCheck
{
	Relation	heap;
	Relation	rel;
	LsmIndex   *index;
	LsmKeySpace *ks;
	BufferAccessStrategy strategy;
	MemoryContext scratch;		/* reset after each page and each row */
	LsmInstant *instant;		/* of this round */
	HTAB	   *seen;			/* segments that were looked at, see check.c */

	/* The entry that leads furthest into the table. */
	BlockNumber furthest;		/* block of the table */
	BlockNumber furthest_at;	/* block of the index; 0: no entry yet */
	int			furthest_ordinal;

	/* For the comparison with the table, if there is to be one. */
	bool		compares_heap;
	bloom_filter *filter;		/* NULL: no entries are noted */
	StringInfoData image;
	int64		rows;
} LsmCheck;

/* An entry with a copy of its key. */
typedef struct LsmSavedEntry
{
	bool		valid;			/* an entry was saved */
	LsmEntry	entry;
	uint8	   *key;			/* room for the longest key and its padding */
} LsmSavedEntry;

/* access.c */
extern void lsm_inspect_open(LsmInspected *in, Oid index_oid, LsmInspectRight right);
extern void lsm_inspect_close(LsmInspected *in);

/* check_page.c */
extern void lsm_check_report(LsmCheck *c, BlockNumber block, const char *format, ...)
			pg_attribute_printf(3, 4) __attribute__((noreturn));
extern void lsm_check_page(LsmCheck *c, BlockNumber block, uint16 kind, uint64 owner, Page copy);
extern bool lsm_check_read(LsmCheck *c, const LsmCheckSegment *segment, uint32 number,
						   uint16 kind, Page copy);
extern void lsm_check_saved_init(LsmSavedEntry *saved);
extern void lsm_check_saved_set(LsmSavedEntry *saved, const LsmEntry *entry);
extern int	lsm_check_compare(LsmCheck *c, const LsmEntry *a, const LsmEntry *b);

/* check_instant.c */
extern void lsm_check_take_instant(LsmCheck *c);

/* check_manifest.c */
extern void lsm_check_records(LsmCheck *c);
extern void lsm_check_segments(LsmCheck *c);
extern const LsmEntry *lsm_check_frontier(LsmCheck *c, const LsmRunRecord *run);

/* check_map.c */
extern void lsm_check_map(LsmCheck *c);

/* check_segment.c */
extern bool lsm_check_segment(LsmCheck *c, const LsmCheckSegment *segment);

/* check_entry.c */
extern void lsm_check_key(LsmCheck *c, const LsmEntry *entry, BlockNumber block, int ordinal);
extern void lsm_check_tid(LsmCheck *c, const LsmEntry *entry, BlockNumber block, int ordinal);
extern void lsm_check_entry(LsmCheck *c, const LsmEntry *entry, bool live, BlockNumber block,
							int ordinal);

/* check_heap.c */
extern Snapshot lsm_check_heap_snapshot(LsmCheck *c);
extern void lsm_check_heap_begin(LsmCheck *c);
extern void lsm_check_heap_add(LsmCheck *c, const Datum *values, const bool *isnull, uint64 tid);
extern void lsm_check_heap_rows(LsmCheck *c, Snapshot snapshot);
extern void lsm_check_duplicates(LsmCheck *c);

/* check_unique.c */
extern void lsm_check_unique(LsmCheck *c);

#endif							/* LSM_INSPECT_H */
