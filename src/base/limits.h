/*
 * limits.h
 *	  Constants of the format and the settings that bound the work.
 */
#ifndef LSM_LIMITS_H
#define LSM_LIMITS_H

#include "postgres.h"

/* Bumped with every incompatible change of what is on disk. */
#define LSM_FORMAT_VERSION		6

/*
 * The largest key plus rest of an entry, in bytes.  Two of them and a group
 * offset each must fit on a page, so that fence pages can branch.
 */
#define LSM_MAX_ENTRY_SIZE		(BLCKSZ / 3 - 56)

/*
 * Most entries in a group of a packed page: what one decoding step yields.  Where
 * each is coded against the one before, fewer.
 */
#define LSM_GROUP_ENTRIES		32
#define LSM_UNFRAMED_ENTRIES	16

/* Longest keys of framed groups, in bytes. */
#define LSM_FRAMED_KEYLEN		64

/* Most entries that a cursor decodes in one go: several groups. */
#define LSM_DECODED_ENTRIES		128

/* Run records that fit on the meta page (I12). */
#define LSM_MAX_RUNS			118

/* Steps that can be under way in an index at once (I3). */
#define LSM_MAX_RESERVATIONS	16

/* The seal path asks for compaction when fewer records than this are free. */
#define LSM_RUNS_RESERVE		16

/* Pages of the write buffer that may be open at once (I7). */
#define LSM_MAX_OPEN_RUNS		8

/* Most runs that one job merges. */
#define LSM_MAX_JOB_INPUTS		64

/* Fence levels of a segment, and levels of directory pages: far more than are needed. */
#define LSM_MAX_HEIGHT			24

/* Levels that the tiering policy knows. */
#define LSM_MAX_LEVEL			32

/*
 * Most pages of a run that is written and installed by a single WAL record: 32
 * blocks is what a record takes, and meta and map pages go with them.
 */
#define LSM_IMAGE_PAGES			24

/*
 * Blocks of a segment: a 256th of what is merged, but from 1 MB to 8 MB.  So the
 * space that a merge needs beside its inputs is small, and a large index has
 * no more segments than it must.
 */
#define LSM_MIN_SEGMENT_BLOCKS	128
#define LSM_MAX_SEGMENT_BLOCKS	1024
#define LSM_JOB_SEGMENTS		256

/* Reads in flight where effective_io_concurrency has its default of old, 1: its default from 18 on. */
#define LSM_DEFAULT_READ_DEPTH	16

/* What takes less to be read, in microseconds, was in the kernel's cache. */
#define LSM_SLOW_READ_US		20

/* Segments that are written have so many blocks at least, even where space is scarce. */
#define LSM_LEAST_EXTENT		4

/* Settings. */
extern int	lsm_max_workers;
extern int	lsm_idle_delay_ms;

/* Bits of a filter for each key: 10 answer wrong once in 100 times, 16 in 1000. */
#define LSM_FILTER_BITS			10
#define LSM_UNIQUE_FILTER_BITS	16
#define LSM_MAX_FILTER_BITS		32

/* Of the prefixes that filters know: as many columns as are worth it. */
#define LSM_USEFUL_PREFIXES		(-1)

/* Runs of a level that are merged into one of the next: what can be set. */
#define LSM_MIN_FANOUT			2
#define LSM_MAX_FANOUT			32

/* Developer settings, see guc.c.  Zero means: no limit but the page's. */
extern int	lsm_merge_fanout;
extern int	lsm_buffer_entries;
extern int	lsm_open_pages;
extern int	lsm_page_entries;
extern int	lsm_foreground_blocks;
extern int	lsm_segment_blocks;
extern bool lsm_batch_inserts;
extern int	lsm_batch_entries;
extern int	lsm_batch_min_entries;

/* The prefetching scan. */
extern bool lsm_enable_prefetch_scan;
extern int	lsm_prefetch_depth;
extern bool lsm_debug_prefetch_scan;

extern void lsm_guc_define(void);

#endif							/* LSM_LIMITS_H */
