/*
 * sort_support.h
 *	  Uses core's faster comparisons for text that does not sort in byte order.
 */
#ifndef LSM_SORT_SUPPORT_H
#define LSM_SORT_SUPPORT_H

#include "key/column.h"

extern struct SortSupportData *lsm_sort_support(const LsmColumn *column);
extern bool lsm_has_abbreviations(LsmColumn *column, MemoryContext context);
extern uint64 lsm_abbreviate(LsmColumn *column, Datum value);

#endif							/* LSM_SORT_SUPPORT_H */
