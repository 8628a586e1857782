/*
 * sorter.h
 *	  Sorts entries for CREATE INDEX, in one process or several.
 */
#ifndef LSM_SORTER_H
#define LSM_SORTER_H

#include "key/cursor.h"
#include "storage/sharedfileset.h"

typedef struct LsmSorter LsmSorter;

/* Where to find the batches that a process has sorted for another process. */
typedef struct LsmSortedShare
{
	int			batch_count;	/* 0: there is no file */
	int			fileno;			/* where the list of batches is in the file */
	off_t		offset;
} LsmSortedShare;

extern LsmSorter *lsm_sorter_begin(LsmKeySpace *ks, Size memory);
extern void lsm_sorter_add(LsmSorter *sorter, const LsmEntry *entry);
extern LsmCursor *lsm_sorter_finish(LsmSorter *sorter);
extern void lsm_sorter_share(LsmSorter *sorter, SharedFileSet *files, int number);
extern void lsm_sorter_export(LsmSorter *sorter, LsmSortedShare *share);
extern void lsm_sorter_import(LsmSorter *sorter, SharedFileSet *files, int number,
							  const LsmSortedShare *share);
extern void lsm_sorter_end(LsmSorter *sorter);

#endif							/* LSM_SORTER_H */
