/*
 * build_parallel.h
 *	  CREATE INDEX with parallel workers.
 */
#ifndef LSM_BUILD_PARALLEL_H
#define LSM_BUILD_PARALLEL_H

#include "build/build_spool.h"
#include "nodes/execnodes.h"

/* The leader's view of its workers. */
typedef struct LsmParallelBuild LsmParallelBuild;

extern LsmParallelBuild *lsm_parallel_build_begin(Relation heap, Relation index,
												  IndexInfo *info);
extern int	lsm_parallel_build_processes(const LsmParallelBuild *p);
extern double lsm_parallel_build_scan(LsmParallelBuild *p, LsmBuildSpool *spool, Relation heap,
									  Relation index, IndexInfo *info);
extern void lsm_parallel_build_end(LsmParallelBuild *p);

#endif							/* LSM_BUILD_PARALLEL_H */
