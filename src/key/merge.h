/*
 * merge.h
 *	  Merges several cursors.  The merge is itself a cursor.
 */
#ifndef LSM_MERGE_H
#define LSM_MERGE_H

#include "key/cursor.h"

extern LsmCursor *lsm_merge_create(LsmKeySpace *ks, bool ahead, bool owns);
extern void lsm_merge_set(LsmCursor *merge, LsmCursor **children, int count);

#endif							/* LSM_MERGE_H */
