/*
 * build_spool.h
 *	  The sorted entries of one process that builds an index.
 */
#ifndef LSM_BUILD_SPOOL_H
#define LSM_BUILD_SPOOL_H

#include "index/index.h"
#include "sort/sorter.h"

typedef struct LsmBuildSpool
{
	LsmIndex   *index;
	LsmKeySpace *ks;
	bool		unique;
	LsmSorter  *sorter;
	LsmSorter  *dead;			/* unique: entries of dead rows, or NULL */
	SharedFileSet *files;		/* of a worker, for both sorters; or NULL */
	int			worker;
	LsmLeafMode mode;			/* of all entries */
	MemoryContext context;		/* reset after each row */
	double		rows;
	double		bytes;			/* estimated size of the entries in a segment */
} LsmBuildSpool;

/* Where to find the entries that a worker has sorted. */
typedef struct LsmSpoolShare
{
	LsmSortedShare live;
	LsmSortedShare dead;
} LsmSpoolShare;

extern void lsm_spool_begin(LsmBuildSpool *spool, LsmIndex *index, bool unique, Size memory);
extern void lsm_spool_add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
							  bool alive, void *arg);
extern void lsm_spool_share(LsmBuildSpool *spool, SharedFileSet *files, int worker);
extern void lsm_spool_export(LsmBuildSpool *spool, LsmSpoolShare *share);
extern void lsm_spool_import(LsmBuildSpool *spool, SharedFileSet *files, int worker,
							 const LsmSpoolShare *share);
extern void lsm_spool_end(LsmBuildSpool *spool);

#endif							/* LSM_BUILD_SPOOL_H */
