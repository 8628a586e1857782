/*
 * vacuum.h
 *	  The callbacks of VACUUM, and truncation of the file.
 */
#ifndef LSM_VACUUM_H
#define LSM_VACUUM_H

#include "base/compat.h"

#include "access/genam.h"

struct LsmIndex;

/* vacuum.c */
extern IndexBulkDeleteResult *lsm_am_bulk_delete(IndexVacuumInfo *info,
												 IndexBulkDeleteResult *stats,
												 IndexBulkDeleteCallback callback,
												 void *state);
extern IndexBulkDeleteResult *lsm_am_vacuum_cleanup(IndexVacuumInfo *info,
													IndexBulkDeleteResult *stats);

/* truncate.c */
extern void lsm_truncate(struct LsmIndex *index);

#endif							/* LSM_VACUUM_H */
