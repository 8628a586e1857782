/*
 * run.h
 *	  Packed runs: writing one from sorted entries, reading it with a cursor.
 */
#ifndef LSM_RUN_H
#define LSM_RUN_H

#include "format/meta.h"
#include "key/cursor.h"
#include "storage/bufmgr.h"

typedef struct LsmRunWriter LsmRunWriter;

extern LsmRunWriter *lsm_run_writer_begin(Relation rel, Relation heap, LsmKeySpace *ks,
										  const LsmRunRecord *run, uint32 expected_blocks);
extern LsmRunWriter *lsm_run_writer_resume(Relation rel, Relation heap, LsmKeySpace *ks,
										   const LsmRunRecord *run, uint32 expected_blocks,
										   LsmBound *position);
extern void lsm_run_writer_add(LsmRunWriter *writer, const LsmEntry *entry);
extern uint32 lsm_run_writer_leaves(const LsmRunWriter *writer);
extern void lsm_run_writer_suspend(LsmRunWriter *writer, LsmRunRecord *run);
extern void lsm_run_writer_finish(LsmRunWriter *writer, LsmRunRecord *run);

extern LsmCursor *lsm_run_cursor_create(Relation rel, LsmKeySpace *ks, const LsmRunRecord *run,
										BufferAccessStrategy strategy);

/* Searching a packed page, search.c. */
extern bool lsm_leaf_search(LsmKeySpace *ks, Page page, const LsmBound *bound,
							int *group, int *pos, LsmGroup *decoded);
extern bool lsm_fence_search(LsmKeySpace *ks, Page page, const LsmBound *bound,
							 LsmGroup *decoded, BlockNumber *child);

#endif							/* LSM_RUN_H */
