/*
 * meta.h
 *	  The meta page: identity, format version, gate epoch, and the manifest.
 *
 * The manifest is an array of run records, changed by edits.  An edit is a
 * short list of operations that is applied as a whole and logged as one WAL
 * record; normal operation and redo apply it with lsm_meta_apply.
 */
#ifndef LSM_META_H
#define LSM_META_H

#include "base/limits.h"
#include "format/page.h"

#define LSM_META_MAGIC 0x4C534D49	/* "LSMI" */

typedef enum LsmRunState
{
	LSM_RUN_OPEN = 1,			/* a page of the write buffer that takes entries */
	LSM_RUN_SEALED = 2,			/* one buffer page, full */
	LSM_RUN_PACKED = 3,			/* leaves and fences, complete */
	LSM_RUN_BUILDING = 4,		/* output of a job that is not installed (I8) */
	LSM_RUN_PART = 5			/* the finished part of a building run, which scans
								 * read; see "The frontier" in src/README.md */
} LsmRunState;

/* Run flags. */
#define LSM_RUN_STEPPING 0x01	/* a step is writing; found later: it failed */
#define LSM_RUN_RETRIED 0x02	/* the last step failed, and the run goes on */
#define LSM_RUN_RECOVERED 0x04	/* a step has failed: may own blocks beside its own */
#define LSM_RUN_PARTED	0x08	/* had parts or was appended to: owns blocks that are
								 * not its own any more, or reserved */
#define LSM_RUN_CUT		0x10	/* input of which a part has taken the beginning:
								 * its entries are an estimate */

typedef struct LsmRunRecord
{
	uint64		run_id;
	uint64		job_id;			/* building run that this one goes into, or 0 */
	uint64		entries;		/* written, less those VACUUM has removed */
	BlockNumber root;			/* highest fence page, only leaf, or buffer page */
	BlockNumber first_leaf;
	BlockNumber last_leaf;
	BlockNumber end_block;		/* highest block of the run + 1 */
	uint32		leaves;
	uint32		blocks;			/* leaves and fence pages */
	BlockNumber next_block;		/* the first one that is reserved, or invalid */
	BlockNumber extent_end;		/* end of those; part: the page with the frontier */
	uint16		level;
	uint8		height;			/* fence pages above a leaf */
	uint8		state;			/* LsmRunState */
	uint8		flags;
	uint8		reserved[3];
} LsmRunRecord;

StaticAssertDecl(sizeof(LsmRunRecord) == 64, "LsmRunRecord is part of the on-disk format");

/* The run id on the pages of a run: a part's pages are those of its job's output. */
static inline uint64
lsm_run_owner(const LsmRunRecord *run)
{
	return run->state == LSM_RUN_PART ? run->job_id : run->run_id;
}

typedef struct LsmMeta
{
	uint32		magic;
	uint32		version;		/* LSM_FORMAT_VERSION */
	uint64		edits;			/* number of edits so far */
	uint64		next_run_id;
	uint32		gate_epoch;		/* current gate: block 1 + epoch % 2 */
	uint32		run_count;
	uint64		seals;			/* pages that came in so far: paces steps */
	LsmRunRecord runs[LSM_MAX_RUNS];
} LsmMeta;

#define lsm_meta(page) ((LsmMeta *) ((char *) (page) + LSM_PAGE_CONTENT))

StaticAssertDecl(LSM_PAGE_CONTENT + sizeof(LsmMeta) <= LSM_PAGE_SPECIAL,
				 "the manifest must fit on the meta page");

/* Operations of an edit. */
typedef enum LsmEditKind
{
	LSM_EDIT_PUT = 1,			/* add the record, or replace the one of its id */
	LSM_EDIT_REMOVE = 2,		/* remove the record with that id */
	LSM_EDIT_SET_JOB = 3,		/* set job_id of the record with that id */
	LSM_EDIT_DEDUCT = 4			/* VACUUM removed so many entries */
} LsmEditKind;

typedef struct LsmEditOp
{
	uint32		kind;
	uint32		reserved;
	LsmRunRecord run;			/* REMOVE: run_id; SET_JOB: run_id and job_id;
								 * DEDUCT: run_id and entries */
} LsmEditOp;

#define LSM_MAX_EDIT_OPS (LSM_MAX_RUNS + 4)

typedef struct LsmEdit
{
	uint32		count;
	uint32		seals;			/* pages that come in with this edit */
	LsmEditOp	ops[LSM_MAX_EDIT_OPS];
} LsmEdit;

#define lsm_edit_size(edit) \
	(offsetof(LsmEdit, ops) + (edit)->count * sizeof(LsmEditOp))

extern void lsm_meta_init(Page page);
extern const char *lsm_meta_check(Page page);
extern bool lsm_meta_apply(Page page, const LsmEdit *edit);
extern LsmRunRecord *lsm_meta_find(LsmMeta *meta, uint64 run_id);
extern void lsm_meta_flip_gate(Page page);

extern void lsm_edit_init(LsmEdit *edit);
extern void lsm_edit_put(LsmEdit *edit, const LsmRunRecord *run);
extern void lsm_edit_remove(LsmEdit *edit, uint64 run_id);
extern void lsm_edit_set_job(LsmEdit *edit, uint64 run_id, uint64 job_id);
extern void lsm_edit_deduct(LsmEdit *edit, uint64 run_id, uint64 entries);

#endif							/* LSM_META_H */
