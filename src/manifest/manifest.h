/*
 * manifest.h
 *	  Versions and edits of the manifest; the gates.
 */
#ifndef LSM_MANIFEST_H
#define LSM_MANIFEST_H

#include "format/meta.h"
#include "memtable/memtable.h"
#include "run/run.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* A copy of the manifest: what a scan or a job works with. */
typedef struct LsmVersion
{
	uint64		edits;
	uint64		next_run_id;
	uint64		seals;
	uint32		gate_epoch;
	uint32		run_count;
	LsmRunRecord runs[FLEXIBLE_ARRAY_MEMBER];
} LsmVersion;

/* The open pages, in the order in which they were opened. */
typedef struct LsmOpenPages
{
	uint32		count;
	LsmOpenPage pages[LSM_MAX_OPEN_RUNS];
} LsmOpenPages;

typedef enum LsmSealResult
{
	LSM_SEALED,					/* done, or the run is added */
	LSM_SEAL_RACED,				/* somebody else was faster */
	LSM_SEAL_NO_ROOM			/* the manifest is full: compact first */
} LsmSealResult;

extern void lsm_manifest_create(Relation rel, ForkNumber fork);
extern LsmVersion *lsm_version_read(Relation rel, Buffer *gate);
extern LsmRunRecord *lsm_version_find(const LsmVersion *version, uint64 run_id);
extern const LsmRunRecord *lsm_version_part(const LsmVersion *version, uint64 job_id);
extern void lsm_manifest_open_pages(Relation rel, LsmOpenPages *open);

extern void lsm_manifest_edit(Relation rel, const LsmEdit *edit);
extern void lsm_manifest_begin_run(Relation rel, LsmRunRecord *run,
								   const uint64 *inputs, int input_count);
extern void lsm_manifest_put_part(Relation rel, LsmEdit *edit, LsmRunRecord *part);
extern LsmSealResult lsm_manifest_seal(Relation rel, Relation heap, bool has_rest,
									   uint64 run_id, uint32 pages, uint64 *seals);
extern LsmSealResult lsm_manifest_add_run(Relation rel, Relation heap, LsmRunImage *image,
										  int level, uint64 *seals);

extern bool lsm_gate_is_closed(Buffer gate);
extern BlockNumber lsm_gate_other(Relation rel);
extern BlockNumber lsm_gate_flip(Relation rel);
extern void lsm_gate_drain(Relation rel, BlockNumber gate);

#endif							/* LSM_MANIFEST_H */
