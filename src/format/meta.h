/*
 * meta.h
 *	  The meta page holds the format version, how keys are compared, the gate epoch, the
 *	  state of the space map, and the manifest.
 *
 * The content of block 0 is an LsmMeta, beginning at byte 24.  Its array of run records
 * is the manifest, in the order in which the runs were added.  The page has no content
 * after run_count records.
 *
 * Edits change the manifest.  An edit is a short list of operations that is applied as a
 * whole and logged as one WAL record (I1).  Normal operation and redo apply edits with
 * lsm_meta_apply.
 */
#ifndef LSM_META_H
#define LSM_META_H

#include "base/limits.h"
#include "format/page.h"
#include "format/segment_record.h"

#define LSM_META_MAGIC 0x4C534D49	/* "LSMI" */

/* Ids of runs and segments begin here.  Lower numbers have other meanings. */
#define LSM_FIRST_ID		16

typedef enum LsmRunState
{
	LSM_RUN_OPEN = 1,			/* a page of the write buffer that takes entries */
	LSM_RUN_SEALED = 2,			/* one buffer page, full */
	LSM_RUN_PACKED = 3,			/* segments */
	LSM_RUN_SPENT = 4			/* merged into another run: its blocks are to be freed (I8) */
} LsmRunState;

/* Run flags. */
#define LSM_RUN_MERGING 0x01	/* output of a job under way (I8) */

/*
 * A run.  If dir_height is 0, the record describes the run's only segment, if it has one.
 * The segment's id is run_id.  A page of the write buffer also counts as a segment.
 * Otherwise, a directory names the segments, and the record has the totals of their
 * blocks, leaves and so on.
 */
typedef struct LsmRunRecord
{
	uint64		run_id;			/* 0   never used again (I4) */
	uint64		job_id;			/* 8   run that this one is merged into, or 0 */
	uint64		entries;		/* 16  less those that VACUUM has removed */
	uint32		removed;		/* 24  entries VACUUM removed since writing; at most UINT32_MAX */
	uint32		filter_blocks;	/* 28  of the segments' filters */
	BlockNumber start;			/* 32  of the segment; or the directory's root */
	uint32		blocks;			/* 36  of the segments, filters included */
	uint32		leaves;			/* 40  of the segments */
	BlockNumber heap_low;		/* 44  lowest heap block of the run's entries */
	BlockNumber heap_high;		/* 48  highest heap block of the run's entries */
	uint32		segments;		/* 52  number of segments */
	uint16		keylen;			/* 56  see LsmLeafMode */
	uint8		offset_bits;	/* 58  see LsmLeafMode */
	uint8		height;			/* 59  of the segment: fence pages above a leaf */
	uint8		dir_height;		/* 60  levels of directory pages, or 0 */
	uint8		level;			/* 61  about how often its entries were merged */
	uint8		state;			/* 62  LsmRunState */
	uint8		flags:3,		/* 63  LSM_RUN_* */
				prefix_columns:5;	/* of the only segment; with a directory: 0 */
} LsmRunRecord;

StaticAssertDecl(sizeof(LsmRunRecord) == 64, "LsmRunRecord is part of the on-disk format");
StaticAssertDecl(INDEX_MAX_KEYS <= 1 << 5, "prefix_columns must hold INDEX_MAX_KEYS - 1");

/* Blocks that a step has taken and not installed yet (I3). */
typedef struct LsmReservation
{
	BlockNumber start;			/* 0   first block */
	uint32		length;			/* 4   blocks; 0: the slot is unused */
	uint64		segment_id;		/* 8   the segment that is written there */
	uint64		job_id;			/* 16  output run of the job */
} LsmReservation;

StaticAssertDecl(sizeof(LsmReservation) == 24, "LsmReservation is part of the on-disk format");

/* How the keys of an index are compared and hashed.  Fixed when the index is created. */
typedef struct LsmKeyCoding
{
	uint8		nkeys;			/* 0   key columns */
	uint8		encoded;		/* 1   keys compare as bytes; 0: with support functions */
	uint8		encodings[INDEX_MAX_KEYS];	/* 2   LsmEncoding of each key column */
	uint16		expected[INDEX_MAX_KEYS];	/* 34  what decoding assumes about a column's values,
											 * from its type; numeric: 1 + the display scale;
											 * char(n): n; 0: nothing */
	uint8		hashes[INDEX_MAX_KEYS];	/* 98  LsmHashKind of each key column */
	uint8		reserved[2];	/* 130 zero */
	uint32		hash_fingerprint;	/* 132 fingerprint of all that hashes depend on: key/hashable.c */
} LsmKeyCoding;

StaticAssertDecl(sizeof(LsmKeyCoding) == 136, "LsmKeyCoding is part of the on-disk format");

/* The state of the space map, in addition to the map pages. */
typedef struct LsmSpace
{
	BlockNumber mapped_end;		/* 0   this block and all later ones were never used or were truncated */
	uint32		free_blocks;	/* 4   free blocks before mapped_end */
	BlockNumber search_small;	/* 8   where the next search for a small extent starts */
	BlockNumber search_large;	/* 12  the same for a large extent */
} LsmSpace;

typedef struct LsmMeta
{
	uint32		magic;			/* 0   LSM_META_MAGIC */
	uint32		version;		/* 4   LSM_FORMAT_VERSION */
	uint64		edits;			/* 8   number of edits so far */
	uint64		next_id;		/* 16  id of the next run or segment */
	uint64		seals;			/* 24  buffer pages sealed, plus batch leaves; paces steps */
	uint32		gate_epoch;		/* 32  current gate: block 1 + epoch % 2 */
	uint32		run_count;		/* 36  records in use */
	LsmSpace	space;			/* 40 */
	LsmKeyCoding coding;		/* 56 */
	LsmReservation reservations[LSM_MAX_RESERVATIONS];	/* 192  16 of 24 bytes */
	LsmRunRecord runs[LSM_MAX_RUNS];	/* 576  118 of 64 bytes, up to 8128 */
} LsmMeta;

#define lsm_meta(page) ((LsmMeta *) ((char *) (page) + LSM_PAGE_CONTENT))

StaticAssertDecl(LSM_PAGE_CONTENT + sizeof(LsmMeta) <= LSM_PAGE_SPECIAL,
				 "the manifest must fit on the meta page");

/* Operations of an edit. */
typedef enum LsmEditKind
{
	LSM_EDIT_PUT = 1,			/* add the record, or replace the record with its id */
	LSM_EDIT_REMOVE = 2,		/* remove the record with that id */
	LSM_EDIT_SET_JOB = 3,		/* set job_id of the record with that id */
	LSM_EDIT_DEDUCT = 4,		/* VACUUM removed this number of entries */
	LSM_EDIT_RESERVE = 5,		/* add a reservation */
	LSM_EDIT_RELEASE = 6,		/* drop the reservation of that segment */
	LSM_EDIT_TAKE = 7			/* a merge took over this number of entries */
} LsmEditKind;

typedef struct LsmEditOp
{
	uint32		kind;
	uint32		reserved;
	union
	{
		LsmRunRecord run;		/* REMOVE: run_id; SET_JOB: run_id and job_id;
								 * DEDUCT: run_id and removed; TAKE: run_id and entries */
		LsmReservation reservation; /* RELEASE: segment_id */
	}			u;
} LsmEditOp;

#define LSM_MAX_EDIT_OPS (LSM_MAX_JOB_INPUTS + LSM_MAX_RESERVATIONS + 4)

typedef struct LsmEdit
{
	uint32		count;			/* 0   operations */
	uint32		seals;			/* 4   buffer pages that this edit seals, plus batch leaves */
	uint64		next_id;		/* 8   the value after the edit */
	LsmSpace	space;			/* 16  the value after the edit */
	LsmEditOp	ops[LSM_MAX_EDIT_OPS];	/* 32  72 bytes each */
} LsmEdit;

#define lsm_edit_size(edit) \
	(offsetof(LsmEdit, ops) + (edit)->count * sizeof(LsmEditOp))

extern void lsm_meta_init(Page page, const LsmKeyCoding *coding);
extern const char *lsm_meta_check(Page page);
extern bool lsm_meta_apply(Page page, const LsmEdit *edit);
extern LsmRunRecord *lsm_meta_find(LsmMeta *meta, uint64 run_id);
extern void lsm_meta_flip_gate(Page page);

extern void lsm_edit_init(LsmEdit *edit, const LsmMeta *meta);
extern void lsm_edit_put(LsmEdit *edit, const LsmRunRecord *run);
extern void lsm_edit_remove(LsmEdit *edit, uint64 run_id);
extern void lsm_edit_set_job(LsmEdit *edit, uint64 run_id, uint64 job_id);
extern void lsm_edit_deduct(LsmEdit *edit, uint64 run_id, uint64 removed);
extern void lsm_edit_take(LsmEdit *edit, uint64 run_id, uint64 entries);
extern void lsm_edit_reserve(LsmEdit *edit, const LsmReservation *reservation);
extern void lsm_edit_release(LsmEdit *edit, uint64 segment_id);

/* May a job take this run as an input, and may VACUUM deduct segments from its totals? */
static inline bool
lsm_run_is_free(const LsmRunRecord *run)
{
	return run->job_id == 0 && !(run->flags & LSM_RUN_MERGING) &&
		(run->state == LSM_RUN_SEALED || run->state == LSM_RUN_PACKED);
}

/* Does the run have no directory, so that its record describes its only segment? */
static inline bool
lsm_run_is_single(const LsmRunRecord *run)
{
	return run->dir_height == 0;
}

extern void lsm_run_segment(const LsmRunRecord *run, LsmSegment *segment);
extern void lsm_run_init_single(LsmRunRecord *run, const LsmSegment *segment, int level,
								LsmRunState state);
extern void lsm_run_add_segment(LsmRunRecord *run, const LsmSegment *segment);
extern void lsm_run_mode(const LsmRunRecord *run, LsmLeafMode *mode);

#endif							/* LSM_META_H */
