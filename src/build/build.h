/*
 * build.h
 *	  CREATE INDEX, by one process (build.c) or several (build_parallel.c).
 */
#ifndef LSM_BUILD_H
#define LSM_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "index/index.h"
#include "sort/sorter.h"

/* What a process does for it. */
typedef struct LsmBuildState
{
	LsmIndex   *index;
	LsmKeySpace *ks;
	Relation	heap;
	bool		unique;
	LsmSorter  *sorter;
	LsmSorter  *dead;			/* unique: rows that do not count; NULL: there are none */
	LsmEntry	last;			/* unique: the last one that counts; its key is in last_key */
	uint8	   *last_key;
	LsmLeafMode mode;			/* of the entries */
	MemoryContext context;		/* reset after each row */
	double		rows;
	double		bytes;			/* that they take in a segment, about */
} LsmBuildState;

/* The processes that help; known to the one that builds the index. */
typedef struct LsmParallelBuild LsmParallelBuild;

/* build.c */
extern void lsm_build_begin(LsmBuildState *build, LsmIndex *index, Size memory);
extern void lsm_build_add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
							  bool alive, void *arg);
extern void lsm_build_end(LsmBuildState *build);

/* build_parallel.c */
extern LsmParallelBuild *lsm_parallel_build_begin(Relation heap, Relation index,
												  IndexInfo *info);
extern int	lsm_parallel_build_processes(const LsmParallelBuild *p);
extern double lsm_parallel_build_scan(LsmParallelBuild *p, LsmBuildState *build, Relation heap,
									  Relation index, IndexInfo *info);
extern void lsm_parallel_build_end(LsmParallelBuild *p);

/* The callbacks of the access method, build.c. */
extern IndexBuildResult *lsm_am_build(Relation heap, Relation index, IndexInfo *info);
extern void lsm_am_build_empty(Relation index);
extern char *lsm_am_build_phase_name(int64 phase);

#endif							/* LSM_BUILD_H */
