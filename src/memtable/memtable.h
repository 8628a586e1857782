/*
 * memtable.h
 *	  The write buffer: inserting into an open page, reading buffer pages.
 */
#ifndef LSM_MEMTABLE_H
#define LSM_MEMTABLE_H

#include "key/cursor.h"

/* A page that was open when somebody looked. */
typedef struct LsmOpenPage
{
	uint64		run_id;
	BlockNumber block;
} LsmOpenPage;

typedef enum LsmInsertResult
{
	LSM_INSERTED,
	LSM_INSERT_FULL,			/* the page has no room: seal it */
	LSM_INSERT_CLOSED,			/* the page is not open any more */
	LSM_INSERT_BUSY				/* somebody has locked it, and the caller does not want to wait */
} LsmInsertResult;

extern LsmInsertResult lsm_memtable_insert(Relation rel, LsmKeySpace *ks, const LsmOpenPage *at,
										   const LsmEntry *entry, bool wait);
extern LsmCursor *lsm_buffer_cursor_create(Relation rel, LsmKeySpace *ks,
										   BlockNumber block, uint64 run_id);

#endif							/* LSM_MEMTABLE_H */
