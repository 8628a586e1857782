/*
 * read.h
 *	  One cursor over all runs of a version, the write buffer included.
 */
#ifndef LSM_READ_H
#define LSM_READ_H

#include "key/cursor.h"
#include "manifest/manifest.h"

extern LsmCursor *lsm_read_run(Relation rel, LsmKeySpace *ks, const LsmVersion *version,
							   const LsmRunRecord *run, BufferAccessStrategy strategy);
extern LsmBound *lsm_read_frontier(Relation rel, const LsmVersion *version,
								   const LsmRunRecord *run);
extern LsmCursor *lsm_frontier_create(LsmKeySpace *ks, LsmCursor *child, LsmBound *frontier);
extern LsmCursor *lsm_read_version(Relation rel, LsmKeySpace *ks, const LsmVersion *version);
extern LsmCursor *lsm_read_inputs(Relation rel, LsmKeySpace *ks, const LsmVersion *version,
								  const uint64 *run_ids, int count,
								  BufferAccessStrategy strategy);
extern void lsm_read_inputs_mode(Relation rel, const LsmVersion *version, const uint64 *run_ids,
								 int count, BufferAccessStrategy strategy, LsmLeafMode *mode);

#endif							/* LSM_READ_H */
