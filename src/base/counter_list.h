/*
 * counter_list.h
 *	  The columns of pg_stat_lsm_indexes, in order, except those that name the index.
 *
 * This is the only list of counters.  To generate code for each counter, define one or more of
 * the following macros and include this file.  The file undefines all of them at its end.
 *
 *	  LSM_COUNTER(id, column, kind, description)
 *			Defines LSM_COUNT_<id>, for lsm_stats_add().  kind is count, blocks (shown as
 *			bytes), or microseconds (shown as milliseconds).
 *	  LSM_READ_COUNTER(field, column, label, description)
 *			Defines a field of LsmReadCounters, and LSM_COUNT_READ_<field>.
 *			EXPLAIN (LSM) shows the field's name in text format, and the label in other formats.
 *	  LSM_STATE(column, kind, description)
 *			Defines a column that has no counter of its own.  The function stat_<column> in
 *			inspect/stats.c returns its value.  A reset leaves runs and debt_bytes alone.
 *			kind is bytes, number, ratio or time.  All kinds except bytes can be NULL.
 *
 * From this file, tools/make_counters.py generates the columns of the view and of lsm_stat_index,
 * their comments, and the table in docs/monitoring-counters.md.  Run the script after a change.
 */
/* No include guard, since each include generates different code. */
#ifndef LSM_COUNTER
#define LSM_COUNTER(id, column, kind, description)
#endif
#ifndef LSM_READ_COUNTER
#define LSM_READ_COUNTER(field, column, label, description)
#endif
#ifndef LSM_STATE
#define LSM_STATE(column, kind, description)
#endif

/* Writing and merging. */
LSM_COUNTER(ENTRIES, entries_inserted, count,
			"entries inserted")
LSM_COUNTER(BATCHES, batches, count,
			"runs written at once from batches of entries, without the write buffer")
LSM_COUNTER(PAGES_FLUSHED, pages_flushed, count,
			"pages that became runs: sealed pages of the write buffer, and pages of batches")
LSM_COUNTER(MERGES, merges, count,
			"merges completed")
LSM_COUNTER(BLOCKS_READ, bytes_read, blocks,
			"bytes of the runs that were merged")
LSM_COUNTER(BLOCKS_WRITTEN, bytes_merged, blocks,
			"bytes written by merges")
LSM_COUNTER(PAGES_COPIED, pages_copied, count,
			"pages that merges copied whole from a run")
LSM_STATE(write_amplification, ratio,
		  "pages written by flushes and merges for each flushed page; NULL if no page was flushed")
LSM_STATE(runs, number,
		  "runs as of the latest flush or merge; NULL if there has been neither since the server started")
LSM_STATE(debt_bytes, bytes,
		  "bytes waiting to be merged, as of the latest flush or merge")
LSM_COUNTER(THROTTLED_US, throttled_time, microseconds,
			"milliseconds that writers spent on large merges, or waiting for them")

/* Reading. */
LSM_READ_COUNTER(seeks, seeks, "LSM Seeks",
				 "searches of the index, by scans, unique checks, lsm_check and the planner")
LSM_READ_COUNTER(runs, runs_read, "LSM Runs Read",
				 "runs that the searches looked into")
LSM_READ_COUNTER(segments, segments_read, "LSM Segments Read",
				 "segments read")
LSM_READ_COUNTER(pages, pages_read, "LSM Pages Read",
				 "pages of segments, directories and the write buffer read, from memory or disk")
LSM_READ_COUNTER(entries, entries_read, "LSM Entries Read",
				 "entries decoded")
LSM_READ_COUNTER(restarts, restarts, "LSM Restarts",
				 "times that a scan had to switch to a newer version of the index")
LSM_READ_COUNTER(removed, entries_removed, "LSM Entries Removed",
				 "entries removed by scans and unique checks because their rows were dead to all transactions")
LSM_READ_COUNTER(filter_checks, filter_checks, "LSM Filter Checks",
				 "filters of segments and write buffer pages that were checked for a key or its first columns")
LSM_READ_COUNTER(filter_skips, filter_skips, "LSM Filter Skips",
				 "filters that ruled out a key, so that the segment or the page was not searched")
LSM_READ_COUNTER(filter_misses, filter_misses, "LSM Filter Misses",
				 "filters that did not rule out a key although it was absent: mostly false positives")
LSM_READ_COUNTER(prefetched, pages_prefetched, "LSM Pages Prefetched",
				 "pages prefetched because they were not in shared buffers")
LSM_READ_COUNTER(bytes, bytes_loaded, "LSM Bytes Loaded",
				 "bytes of index pages that were not in shared buffers: read from disk or the kernel's cache")

LSM_STATE(last_compaction, time,
		  "when the last merge completed; NULL if none has since the counters were reset")
LSM_STATE(stats_reset, time,
		  "when the counters were last set to zero; NULL if never")

#undef LSM_COUNTER
#undef LSM_READ_COUNTER
#undef LSM_STATE
