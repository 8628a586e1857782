/*
 * inspect.h
 *	  Looking into an index from SQL: lsm_runs and the verifier, lsm_check.
 *
 * Nothing here changes anything.  The verifier compares what is on the pages
 * with the invariants in src/README.md:
 *
 *	  check.c		the SQL function; what is copied at one instant, and the gates
 *	  check_map.c	the manifest's records and the space map (I2, I3, I7, I8)
 *	  check_run.c	the pages of each run (I4, I5, I7)
 *	  check_entry.c	single entries: keys, included columns, TIDs
 *	  check_heap.c	the table's rows against the entries; entries that are twice
 */
#ifndef LSM_INSPECT_H
#define LSM_INSPECT_H

#include "compact/compact.h"
#include "key/keyspace.h"
#include "lib/bloomfilter.h"
#include "lib/stringinfo.h"
#include "manifest/manifest.h"
#include "format/map_page.h"
#include "storage/buffers.h"
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

/* State of one verification. */
typedef struct LsmCheck
{
	Relation	heap;
	Relation	index;
	LsmKeySpace *ks;
	BufferAccessStrategy strategy;
	MemoryContext scratch;		/* reset after each page and each row */
	BlockNumber file_blocks;	/* read after the version */

	/* Copied under the locks of the meta page and of the map's head. */
	LsmVersion *version;
	Page	   *open_pages;		/* by run of the version: NULL but for open ones */
	BlockNumber mapped_end;
	BlockNumber *map_blocks;	/* the chain of map pages */
	int			map_count;
	LsmExtent  *extents;
	int			extent_count;
	int			extent_room;

	uint8	   *used;			/* a bit for each block below mapped_end */

	/* The entry that leads furthest into the table. */
	BlockNumber furthest;		/* block of the table */
	BlockNumber furthest_at;	/* block of the index; 0: no entry yet */
	int			furthest_ordinal;

	/* For the comparison with the table; filter is NULL when there is none. */
	bloom_filter *filter;
	StringInfoData image;
	int64		rows;
} LsmCheck;

/* access.c */
extern void lsm_inspect_open(LsmInspected *in, Oid index_oid, LsmInspectRight right);
extern void lsm_inspect_close(LsmInspected *in);

/* check.c */
extern void lsm_check_report(LsmCheck *c, BlockNumber block, const char *format, ...)
			pg_attribute_printf(3, 4) __attribute__((noreturn));
extern void lsm_check_read(LsmCheck *c, BlockNumber block, uint16 kind, uint64 run_id, Page copy);
extern void lsm_check_page(LsmCheck *c, BlockNumber block, uint16 kind, uint64 run_id, Page copy);

/* check_map.c */
extern void lsm_check_manifest(LsmCheck *c);
extern void lsm_check_copy_map(LsmCheck *c);
extern void lsm_check_map(LsmCheck *c);
extern void lsm_check_use_block(LsmCheck *c, BlockNumber block, uint64 owner);
extern uint64 lsm_check_owned_blocks(LsmCheck *c, uint64 owner, BlockNumber *unused);

/* check_run.c */
extern void lsm_check_run(LsmCheck *c, const LsmRunRecord *run);

/* check_entry.c */
extern void lsm_check_key(LsmCheck *c, const LsmEntry *entry, BlockNumber block, int ordinal);
extern void lsm_check_entry(LsmCheck *c, const LsmEntry *entry, bool live, BlockNumber block,
							int ordinal);

/* check_heap.c */
extern Snapshot lsm_check_heap_snapshot(LsmCheck *c);
extern void lsm_check_heap_begin(LsmCheck *c);
extern void lsm_check_heap_add(LsmCheck *c, const Datum *values, const bool *isnull, uint64 tid);
extern void lsm_check_heap_rows(LsmCheck *c, Snapshot snapshot);
extern void lsm_check_duplicates(LsmCheck *c);

#endif							/* LSM_INSPECT_H */
