/*
 * ingest.h
 *	  Inserts single entries into the write buffer.  batch.h declares the batches.
 */
#ifndef LSM_INGEST_H
#define LSM_INGEST_H

#include "manifest/manifest.h"

typedef enum LsmInsertResult
{
	LSM_INSERTED,
	LSM_INSERT_FULL,			/* the page is full: seal it */
	LSM_INSERT_CLOSED,			/* the page is no longer open */
	LSM_INSERT_BUSY				/* others have locked or changed it, and the caller does not wait */
} LsmInsertResult;

/* write_buffer.c */
extern LsmInsertResult lsm_write_buffer_insert(Relation rel, LsmKeySpace *ks,
											   const LsmOpenPage *at, const LsmEntry *entry,
											   bool wait);

/* open_pages.c */
extern bool lsm_insert_entry(LsmIndex *index, Relation heap, LsmKeySpace *ks,
							 const LsmEntry *entry, uint64 *seals);

#endif							/* LSM_INGEST_H */
