/*
 * ingest.h
 *	  What takes entries in: single ones go to the write buffer (open_pages.c,
 *	  write_buffer.c); batches are in batch.h.
 */
#ifndef LSM_INGEST_H
#define LSM_INGEST_H

#include "manifest/manifest.h"

typedef enum LsmInsertResult
{
	LSM_INSERTED,
	LSM_INSERT_FULL,			/* the page has no room: seal it */
	LSM_INSERT_CLOSED,			/* the page is not open any more */
	LSM_INSERT_BUSY				/* somebody has locked it, and the caller does not want to wait */
} LsmInsertResult;

/* write_buffer.c */
extern LsmInsertResult lsm_write_buffer_insert(Relation rel, LsmKeySpace *ks,
											   const LsmOpenPage *at, const LsmEntry *entry,
											   bool wait);

/* open_pages.c */
extern bool lsm_insert_entry(LsmIndex *index, Relation heap, LsmKeySpace *ks,
							 const LsmEntry *entry, uint64 *seals);

#endif							/* LSM_INGEST_H */
