/*
 * memtable.h
 *	  The write buffer: inserting into the open page, reading buffer pages.
 */
#ifndef LSM_MEMTABLE_H
#define LSM_MEMTABLE_H

#include "key/cursor.h"

typedef enum LsmInsertResult
{
	LSM_INSERTED,
	LSM_INSERT_FULL,			/* the page has no room: seal it */
	LSM_INSERT_CLOSED			/* the page is not the open one any more */
} LsmInsertResult;

extern LsmInsertResult lsm_memtable_insert(Relation rel, LsmKeySpace *ks, BlockNumber block,
										   uint64 run_id, const LsmEntry *entry);
extern LsmCursor *lsm_buffer_cursor_create(Relation rel, LsmKeySpace *ks,
										   BlockNumber block, uint64 run_id);

#endif							/* LSM_MEMTABLE_H */
