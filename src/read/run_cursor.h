/*
 * run_cursor.h
 *	  Reads a run of packed segments as a cursor.
 */
#ifndef LSM_RUN_CURSOR_H
#define LSM_RUN_CURSOR_H

#include "read/run_search.h"

extern LsmCursor *lsm_run_cursor_create(LsmReadContext *cx);
extern void lsm_run_cursor_set(LsmCursor *cursor, const LsmRunRecord *run, const LsmBound *clip);
extern bool lsm_run_cursor_split(LsmCursor *cursor, const LsmBound *from, uint32 leaves,
								 ScanDirection direction, LsmBound *split);
extern void lsm_run_seek_in_segment(LsmRunCursor *c, const LsmBound *from,
									const LsmBound *limit);

#endif							/* LSM_RUN_CURSOR_H */
