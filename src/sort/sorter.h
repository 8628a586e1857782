/*
 * sorter.h
 *	  External sort of entries, for CREATE INDEX.
 */
#ifndef LSM_SORTER_H
#define LSM_SORTER_H

#include "key/cursor.h"

typedef struct LsmSorter LsmSorter;

extern LsmSorter *lsm_sorter_begin(LsmKeySpace *ks, Size memory);
extern void lsm_sorter_add(LsmSorter *sorter, const LsmEntry *entry);
extern LsmCursor *lsm_sorter_finish(LsmSorter *sorter);
extern void lsm_sorter_end(LsmSorter *sorter);

#endif							/* LSM_SORTER_H */
