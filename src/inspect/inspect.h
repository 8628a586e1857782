/*
 * inspect.h
 *	  Declares what the SQL functions that inspect an index share: opening the index, the verifier
 *	  lsm_check, and helpers that return rows.
 *
 * Nothing declared here changes an index, except that lsm_inspect_open writes the index's batch.
 * The verifier checks the pages against the invariants in src/README.md:
 *
 *	  check.c			the SQL function and its rounds
 *	  check_all.c		the same for many indexes
 *	  check_page.c		common parts: reporting faults, reading and checking pages
 *	  check_instant.c	copies a consistent state; checks the gates
 *	  check_manifest.c	run records, reservations, directories
 *	  check_map.c		the space map against everything that names blocks
 *	  check_segment.c	the pages of a segment
 *	  check_entry.c		single entries: keys, included columns, TIDs
 *	  check_heap.c		the table's rows against the entries; duplicate entries
 *	  check_unique.c	the keys of a unique index
 *	  check_progress.c	the progress that other sessions see
 */
#ifndef LSM_INSPECT_H
#define LSM_INSPECT_H

#include "base/check_slots.h"
#include "fmgr.h"
#include "format/map_page.h"
#include "index/index.h"
#include "key/keyspace.h"
#include "lib/bloomfilter.h"
#include "lib/stringinfo.h"
#include "manifest/manifest.h"
#include "read/reader.h"
#include "storage/block_range.h"
#include "storage/buffers.h"
#include "utils/hsearch.h"
#include "utils/snapshot.h"

/* The right that a caller needs. */
typedef enum LsmInspectRight
{
	LSM_INSPECT_OWNER,			/* owns the index */
	LSM_INSPECT_MONITOR			/* owns the index, or has the rights of pg_stat_scan_tables */
} LsmInspectRight;

/* An index that is open for inspection, and its table. */
typedef struct LsmInspected
{
	Relation	heap;
	Relation	index;
	LsmOwnerContext owner;		/* the former user, if lsm_owner_become was called */
} LsmInspected;

/* A segment that a run had at an instant. */
typedef struct LsmCheckSegment
{
	const LsmRunRecord *run;	/* in the instant's version */
	LsmSegment	segment;
	Page		open_page;		/* copy of the page if the run is open, else NULL */

	/* If the run has a directory: the bounds in the segment's item, and the item's place. */
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

/* A consistent copy of the state at one instant, and what the checks found in it. */
typedef struct LsmInstant
{
	MemoryContext context;		/* holds the instant and the copies */
	LsmVersion	version;
	BlockNumber file_blocks;	/* size of the file */
	Page		gates[2];
	Page		open_pages[LSM_MAX_RUNS];	/* by run; NULL unless the run is open */
	int			directory_count;
	int			directory_room;
	LsmDirectoryCopy *directories;	/* run by run, in the order of a walk */
	uint32		region_count;
	char	   *map;			/* the map page of each region */

	/* Set by check_manifest.c, for all runs, including spent ones. */
	int			segment_count;
	int			segment_room;
	LsmCheckSegment *segments;
	LsmEntry	frontiers[LSM_MAX_RUNS];	/* by output run; no key if there is none */
} LsmInstant;

/* The state of one verification. */
typedef struct LsmCheck
{
	Relation	heap;
	Relation	rel;
	LsmIndex   *index;
	LsmKeySpace *ks;
	BufferAccessStrategy strategy;
	MemoryContext scratch;		/* reset after each page and each row */
	LsmInstant *instant;		/* the instant of this round */
	HTAB	   *seen;			/* segments that rounds have found; see check.c */
	LsmBlockRange leaves;		/* of the segment being checked */

	/* The entry whose TID has the highest block of the table. */
	BlockNumber furthest;		/* that block */
	BlockNumber furthest_at;	/* the entry's block in the index; 0: no entry yet */
	int			furthest_ordinal;	/* the entry's number on its page */

	/* For the comparison with the table. */
	bool		compares_heap;	/* the caller asked for the comparison */
	bloom_filter *filter;		/* NULL unless entries are being collected */
	StringInfoData image;		/* of the current entry or row; see check_heap.c */
	int64		rows;			/* rows of the table checked so far */

	/* Progress, see check_progress.c. */
	LsmCheckSlot *slot;			/* NULL: the check is not shown */
	uint64		blocks_total;	/* of the index, to read in this phase */
	uint64		blocks_done;
	BlockNumber heap_blocks;	/* blocks of the table */
	BlockNumber heap_first;		/* the block of the first row, or invalid */
	BlockNumber heap_at;		/* the block of the latest row, or invalid */
} LsmCheck;

/* An entry with a copy of its key. */
typedef struct LsmSavedEntry
{
	bool		valid;			/* an entry was saved */
	LsmEntry	entry;
	uint8	   *key;			/* buffer for the longest key and its padding */
} LsmSavedEntry;

/* library.c */
extern TupleDesc lsm_row_type(FunctionCallInfo fcinfo, int columns);
extern void lsm_init_set(FunctionCallInfo fcinfo, int columns);

/* access.c */
extern void lsm_inspect_refuse_reindexed(Oid oid);
extern void lsm_inspect_open(LsmInspected *in, Oid index_oid, LsmInspectRight right);
extern void lsm_inspect_close(LsmInspected *in);

/* check_page.c */
extern void lsm_check_report(LsmCheck *c, BlockNumber block, const char *format, ...)
			pg_attribute_printf(3, 4) __attribute__((noreturn));
extern void lsm_check_report_order(LsmCheck *c, BlockNumber block, const char *item, int ordinal,
								   const char *what) __attribute__((noreturn));
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

/* check.c */
extern PGDLLEXPORT Datum lsm_check(PG_FUNCTION_ARGS);

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

/* check_progress.c */
extern void lsm_check_begin_phase(LsmCheck *c, LsmCheckPhase phase, uint64 blocks);
extern void lsm_check_begin_reading(LsmCheck *c, LsmCheckPhase phase, const LsmReader *reader);
extern void lsm_check_begin_table(LsmCheck *c);
extern void lsm_check_end_table(LsmCheck *c);
extern void lsm_check_show_blocks(LsmCheck *c);
extern void lsm_check_show_row(LsmCheck *c, BlockNumber block);

/*
 * Note that `done` blocks of the index have been read in this phase.  Cheap if nothing has
 * changed.
 */
static inline void
lsm_check_note_blocks(LsmCheck *c, uint64 done)
{
	if (done == c->blocks_done)
		return;
	c->blocks_done = done;
	lsm_check_show_blocks(c);
}

/* Note that the scan of the table has reached a row.  Cheap if the row is on the same block. */
static inline void
lsm_check_note_row(LsmCheck *c, BlockNumber block)
{
	if (block != c->heap_at)
		lsm_check_show_row(c, block);
}

/* stats.c */
#define LSM_PROGRESS_DETAILS 5	/* columns of each progress view after the first three */
#define LSM_PROGRESS_COLUMNS (3 + LSM_PROGRESS_DETAILS)

extern void lsm_stats_put_progress(ReturnSetInfo *result, int pid, Oid database, Oid index,
								   const Datum details[LSM_PROGRESS_DETAILS]);

#endif							/* LSM_INSPECT_H */
