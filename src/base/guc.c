/*
 * guc.c
 *	  The settings of pg_lsm.
 *
 * Administrators set those of the background workers.  Any user sets those of
 * batches and of the prefetching scan.  The settings pg_lsm.debug_* are for tests:
 * most of them make batches, merges and levels happen at small sizes.  SHOW ALL
 * and pg_settings leave them out.  They shape indexes that others use, so only
 * superusers and roles with GRANT SET ON PARAMETER can set them.
 */
#include "postgres.h"

#include <limits.h>

#include "base/limits.h"
#include "base/stop_point.h"
#include "utils/guc.h"

/* Flags of the settings for tests. */
#define DEBUG_SETTING	(GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE)

int			lsm_max_workers = 2;
int			lsm_idle_delay_ms = 10000;
int			lsm_merge_fanout = 16;
int			lsm_buffer_entries = 0;
int			lsm_open_pages = 1;
int			lsm_page_entries = 0;
int			lsm_foreground_blocks = 128;
int			lsm_segment_blocks = 0;
bool		lsm_batch_inserts = true;
int			lsm_batch_entries = 0;
int			lsm_batch_min_entries = 48;
bool		lsm_enable_prefetch_scan = true;
int			lsm_prefetch_depth = 0;
bool		lsm_debug_prefetch_scan = false;

void
lsm_guc_define(void)
{
	DefineCustomIntVariable("pg_lsm.max_workers",
							"Largest number of background workers that merge indexes, in each database.",
							"They are taken from max_worker_processes. Zero means that the processes "
							"that insert do all merging.",
							&lsm_max_workers, 2, 0, 64,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.idle_delay",
							"Time after which an index that is not written to is merged further.",
							"-1 turns that off.",
							&lsm_idle_delay_ms, 10000, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_merge_fanout",
							"Number of runs of a level that are merged into one of the next level.",
							"On the lowest level, twice as many; in unique indexes, half as many.",
							&lsm_merge_fanout, 16, LSM_MIN_FANOUT, LSM_MAX_FANOUT,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_buffer_entries",
							"Number of entries in the write buffer at which it is sealed.",
							"Zero means: when the page is full.",
							&lsm_buffer_entries, 0, 0, 10000,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_open_pages",
							"Number of pages of the write buffer that are open at least.",
							"With more than one, entries go to all of them in turn.",
							&lsm_open_pages, 1, 1, LSM_MAX_OPEN_RUNS,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_page_entries",
							"Largest number of entries that are written to a page of a run.",
							"Zero means: as many as fit.",
							&lsm_page_entries, 0, 0, 10000,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_foreground_blocks",
							"Largest merge that the inserting process finishes at once.",
							NULL, &lsm_foreground_blocks, 128, 0, 131072,
							PGC_SUSET, DEBUG_SETTING | GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_segment_size",
							"Size of the segments that merges write.",
							"Zero means: a 256th of what is merged, but 1 MB to 8 MB.",
							&lsm_segment_blocks, 0, 0, 8192,
							PGC_SUSET, DEBUG_SETTING | GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_lsm.batch_inserts",
							 "Collects the index entries of a statement and writes them as sorted runs.",
							 "When off, each row goes into the write buffer by itself.",
							 &lsm_batch_inserts, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_batch_entries",
							"Number of collected entries that are written without waiting for the end of the statement.",
							"Zero means: as many as a run of a single WAL record holds.",
							&lsm_batch_entries, 0, 0, 1000000,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_batch_min_entries",
							"Smallest number of collected entries that become a run of their own.",
							"Fewer go into the write buffer.",
							&lsm_batch_min_entries, 48, 1, 1000000,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_lsm.enable_prefetch_scan",
							 "Lets the planner use index scans that read pages of the table ahead.",
							 NULL, &lsm_enable_prefetch_scan, true,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.prefetch_depth",
							"Largest number of pages of the table that an index scan reads ahead.",
							"Zero means: effective_io_concurrency of the tablespace, or 16 if nobody has set that.",
							&lsm_prefetch_depth, 0, 0, 1000,
							PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_lsm.debug_prefetch_scan",
							 "Puts prefetching scans in the place of all index and bitmap scans that allow it.",
							 "They read ahead whether there is something to be read or not.",
							 &lsm_debug_prefetch_scan, false,
							 PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	lsm_stop_points_define();
	MarkGUCPrefixReserved("pg_lsm");
}
