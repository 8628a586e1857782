/*
 * pages_read.h
 *	  Counts the pages that this backend has read.
 */
#ifndef LSM_PAGES_READ_H
#define LSM_PAGES_READ_H

#include "executor/instrument.h"

/* Returns the number of pages read so far, from disk or from the kernel's cache. */
static inline int64
lsm_pages_read(void)
{
	return pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;
}

#endif							/* LSM_PAGES_READ_H */
