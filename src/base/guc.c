/*
 * guc.c
 *	  The settings of pg_lsm.
 *
 * Administrators control the settings of the background workers.  Any user can change the settings
 * of batches, of the prefetching scan, of the default method and of EXPLAIN.
 *
 * The settings pg_lsm.debug_* are for tests.  Most of them let a test reach batches, merges and
 * several levels with little data.  SHOW ALL and pg_settings leave these settings out.  Since most
 * of them affect indexes that others use, only superusers and roles with the SET privilege on the
 * parameter can change them.
 */
#include "postgres.h"

#include <limits.h>

#include "base/compat.h"
#include "base/limits.h"
#include "base/stop_point.h"
#include "utils/guc.h"

/* Flags of the debug_ settings. */
#define DEBUG_SETTING	(GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE)

/* The full spellings of a boolean also work, but no list of values shows them. */
static const struct config_enum_entry prefetch_scan_values[] = {
	{"off", LSM_PREFETCH_OFF, false},
	{"on", LSM_PREFETCH_LSM, false},
	{"all", LSM_PREFETCH_ALL, false},
	{"false", LSM_PREFETCH_OFF, true},
	{"no", LSM_PREFETCH_OFF, true},
	{"0", LSM_PREFETCH_OFF, true},
	{"true", LSM_PREFETCH_LSM, true},
	{"yes", LSM_PREFETCH_LSM, true},
	{"1", LSM_PREFETCH_LSM, true},
	{NULL, 0, false}
};

static const struct config_enum_entry default_method_values[] = {
	{"btree", LSM_DEFAULT_BTREE, false},
	{"lsm", LSM_DEFAULT_LSM, false},
	{NULL, 0, false}
};

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
int			lsm_default_method = LSM_DEFAULT_BTREE;
int			lsm_enable_prefetch_scan = LSM_PREFETCH_LSM;
int			lsm_prefetch_depth = 0;
bool		lsm_debug_prefetch_scan = false;
#ifdef LSM_HAS_EXPLAIN_OPTIONS
bool		lsm_explain_reads = false;
#endif

void
lsm_guc_define(void)
{
	DefineCustomIntVariable("pg_lsm.max_workers",
							"Sets the maximum number of background workers that merge indexes in each database.",
							"Workers count towards max_worker_processes. Zero means that inserting "
							"processes do all merging.",
							&lsm_max_workers, 2, 0, 64,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.idle_delay",
							"Sets the time without writes after which an index is merged further.",
							"-1 disables merging of idle indexes.",
							&lsm_idle_delay_ms, 10000, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_merge_fanout",
							"Sets the number of runs of a level that are merged into one of the next level.",
							"The lowest level takes twice as many, unique indexes half as many.",
							&lsm_merge_fanout, 16, LSM_MIN_FANOUT, LSM_MAX_FANOUT,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_buffer_entries",
							"Sets the number of entries at which a page of the write buffer is sealed.",
							"Zero means that a page is sealed when it is full.",
							&lsm_buffer_entries, 0, 0, 10000,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_open_pages",
							"Sets the minimum number of open pages of the write buffer.",
							"With more than one, entries go to the open pages in turn.",
							&lsm_open_pages, 1, 1, LSM_MAX_OPEN_RUNS,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_page_entries",
							"Sets the maximum number of entries on a page of a run.",
							"Zero means as many as fit.",
							&lsm_page_entries, 0, 0, 10000,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_foreground_blocks",
							"Sets the maximum size of a merge that an inserting process does at once.",
							NULL, &lsm_foreground_blocks, 128, 0, 131072,
							PGC_SUSET, DEBUG_SETTING | GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_segment_size",
							"Sets the size of the segments that merges write.",
							"Zero means 1/256 of the merged data, but at least 1 MB and at most 8 MB.",
							&lsm_segment_blocks, 0, 0, LSM_MOST_DEBUG_SEGMENT_BLOCKS,
							PGC_SUSET, DEBUG_SETTING | GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_lsm.batch_inserts",
							 "Enables collecting the index entries of a statement into sorted runs.",
							 "When off, each entry goes into the write buffer by itself.",
							 &lsm_batch_inserts, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_batch_entries",
							"Sets the number of collected entries that are written before the statement ends.",
							"Zero means as many as one WAL record takes.",
							&lsm_batch_entries, 0, 0, 1000000,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.debug_batch_min_entries",
							"Sets the minimum number of collected entries that become a run.",
							"Smaller batches go into the write buffer.",
							&lsm_batch_min_entries, 48, 1, 1000000,
							PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_lsm.default_method",
							 "Sets the method of new indexes and keys whose definition names none.",
							 "With \"lsm\", an index or key is still a B-tree if lsm does not support it.",
							 &lsm_default_method, LSM_DEFAULT_BTREE, default_method_values,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_lsm.enable_prefetch_scan",
							 "Enables the planner's use of prefetching index scans.",
							 "\"on\" means scans of lsm indexes, \"all\" means scans of B-trees too.",
							 &lsm_enable_prefetch_scan, LSM_PREFETCH_LSM, prefetch_scan_values,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lsm.prefetch_depth",
							"Sets the maximum number of table pages that an index scan prefetches.",
							"Zero means effective_io_concurrency of the tablespace, or 16 if that is not set.",
							&lsm_prefetch_depth, 0, 0, 1000,
							PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
#ifdef LSM_HAS_EXPLAIN_OPTIONS
	DefineCustomBoolVariable("pg_lsm.explain_reads",
							 "Makes EXPLAIN (ANALYZE) and auto_explain show what scans of lsm indexes have read.",
							 "The option LSM of EXPLAIN overrides this setting.",
							 &lsm_explain_reads, false,
							 PGC_USERSET, 0, NULL, NULL, NULL);
#endif
	DefineCustomBoolVariable("pg_lsm.debug_prefetch_scan",
							 "Replaces index and bitmap scans by prefetching scans wherever possible.",
							 "These scans prefetch from the first row on.",
							 &lsm_debug_prefetch_scan, false,
							 PGC_SUSET, DEBUG_SETTING, NULL, NULL, NULL);
	lsm_stop_points_define();
	MarkGUCPrefixReserved("pg_lsm");
}
