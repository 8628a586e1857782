/*
 * vacuum.h
 *	  The callbacks of VACUUM.
 */
#ifndef LSM_VACUUM_H
#define LSM_VACUUM_H

#include "access/genam.h"

extern IndexBulkDeleteResult *lsm_am_bulk_delete(IndexVacuumInfo *info,
												 IndexBulkDeleteResult *stats,
												 IndexBulkDeleteCallback callback,
												 void *state);
extern IndexBulkDeleteResult *lsm_am_vacuum_cleanup(IndexVacuumInfo *info,
													IndexBulkDeleteResult *stats);

#endif							/* LSM_VACUUM_H */
