/*
 * merge.h
 *	  The merge of several cursors, itself a cursor.
 */
#ifndef LSM_MERGE_H
#define LSM_MERGE_H

#include "key/cursor.h"

extern LsmCursor *lsm_merge_create(LsmKeySpace *ks, LsmCursor **children, int count);

#endif							/* LSM_MERGE_H */
