/*
 * buffer_cursor.h
 *	  Reads one page of the write buffer as a cursor.
 */
#ifndef LSM_BUFFER_CURSOR_H
#define LSM_BUFFER_CURSOR_H

#include "read/looked_for.h"
#include "read/read_context.h"

extern LsmCursor *lsm_buffer_cursor_create(LsmReadContext *cx);
extern bool lsm_buffer_cursor_probe(LsmCursor *cursor, LsmProbe *probes, Size count,
									LsmBound *low, LsmBound *high);
extern void lsm_buffer_cursor_set(LsmCursor *cursor, const LsmRunRecord *run,
								  const LsmBound *clip);

#endif							/* LSM_BUFFER_CURSOR_H */
