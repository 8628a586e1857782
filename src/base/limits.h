/*
 * limits.h
 *	  Constants of the on-disk format, limits, and the settings (guc.c).
 */
#ifndef LSM_LIMITS_H
#define LSM_LIMITS_H

#include "postgres.h"

/* The version of the library.  tools/check_versions.py names the other places that have it. */
#define LSM_VERSION				"0.2.0"

/* Bumped with each incompatible change of the on-disk format. */
#define LSM_FORMAT_VERSION		7

/*
 * The largest key plus rest of an entry, in bytes.  Two such entries and their group offsets must
 * fit on a page, so that fence pages can branch.
 */
#define LSM_MAX_ENTRY_SIZE		(BLCKSZ / 3 - 56)

/*
 * The most entries in a group of a packed page.  Unframed groups have a lower limit: each entry is
 * coded against the previous one, so such a group is decoded as a whole.
 */
#define LSM_GROUP_ENTRIES		32
#define LSM_UNFRAMED_ENTRIES	16

/* The longest key in a framed group, in bytes. */
#define LSM_FRAMED_KEYLEN		64

/* The most entries that a cursor decodes at once.  This is several groups. */
#define LSM_DECODED_ENTRIES		128

/* Number of run records that fit on the meta page (I12). */
#define LSM_MAX_RUNS			118

/* Number of steps that can be in progress in an index at once (I3). */
#define LSM_MAX_RESERVATIONS	16

/* Seals and batches must first make room if at most this many run records are free (I12). */
#define LSM_RUNS_RESERVE		16

/* The most open pages of the write buffer (I7). */
#define LSM_MAX_OPEN_RUNS		8

/* The most runs that one job merges. */
#define LSM_MAX_JOB_INPUTS		64

/* The most fence levels of a segment, and levels of a directory.  Far more than needed. */
#define LSM_MAX_HEIGHT			24

/* Number of levels of runs. */
#define LSM_MAX_LEVEL			32

/*
 * The most pages of a run that a single WAL record writes and installs.  A record has room for 32
 * blocks, and the meta page and map pages need some of them.
 */
#define LSM_IMAGE_PAGES			24

/*
 * A merge writes segments of 1/256 of its inputs, but at least 1 MB and at most 8 MB.  So it needs
 * little space besides its inputs, and a large index has few segments.
 */
#define LSM_MIN_SEGMENT_BLOCKS	128
#define LSM_MAX_SEGMENT_BLOCKS	1024
#define LSM_MOST_DEBUG_SEGMENT_BLOCKS 8192	/* with pg_lsm.debug_segment_size */
#define LSM_JOB_SEGMENTS		256

/*
 * Reads in flight if effective_io_concurrency has its old default, 1.  Since 18, the default is 16.
 */
#define LSM_DEFAULT_READ_DEPTH	16

/* A read that takes fewer microseconds than this counts as one from the kernel's cache. */
#define LSM_SLOW_READ_US		20

/* A reservation for a segment has at least this many blocks, even if space is fragmented. */
#define LSM_LEAST_EXTENT		4

/* Settings. */
extern int	lsm_max_workers;
extern int	lsm_idle_delay_ms;

/* Bits of a filter per key.  10 bits give 1% false positives, 16 bits 0.1%. */
#define LSM_FILTER_BITS			10
#define LSM_UNIQUE_FILTER_BITS	16
#define LSM_MAX_FILTER_BITS		32

/* Value of filter_prefix: filters cover as many columns as are useful. */
#define LSM_USEFUL_PREFIXES		(-1)

/* Bounds for the number of runs of a level that are merged into one run of the next level. */
#define LSM_MIN_FANOUT			2
#define LSM_MAX_FANOUT			32

/* Settings that shape batches, runs and merges; see guc.c. */
extern int	lsm_merge_fanout;
extern int	lsm_buffer_entries;
extern int	lsm_open_pages;
extern int	lsm_page_entries;
extern int	lsm_foreground_blocks;
extern int	lsm_segment_blocks;
extern bool lsm_batch_inserts;
extern bool lsm_explain_reads;	/* exists since 18 */
extern int	lsm_batch_entries;
extern int	lsm_batch_min_entries;

/* Which indexes the prefetching scan may use. */
typedef enum LsmPrefetchScan
{
	LSM_PREFETCH_OFF,
	LSM_PREFETCH_LSM,			/* "on": lsm indexes */
	LSM_PREFETCH_ALL			/* lsm indexes and B-trees */
} LsmPrefetchScan;

/* The method of indexes and keys whose definition names none (planner/default_method.c). */
typedef enum LsmDefaultMethod
{
	LSM_DEFAULT_BTREE,
	LSM_DEFAULT_LSM
} LsmDefaultMethod;

extern int	lsm_default_method; /* LsmDefaultMethod */
extern int	lsm_enable_prefetch_scan;	/* LsmPrefetchScan */
extern int	lsm_prefetch_depth;
extern bool lsm_debug_prefetch_scan;

extern void lsm_guc_define(void);

#endif							/* LSM_LIMITS_H */
