/*
 * build.h
 *	  The callbacks of CREATE INDEX.
 */
#ifndef LSM_BUILD_H
#define LSM_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"

extern IndexBuildResult *lsm_am_build(Relation heap, Relation index, IndexInfo *info);
extern void lsm_am_build_empty(Relation index);
extern char *lsm_am_build_phase_name(int64 phase);

#endif							/* LSM_BUILD_H */
