/*
 * remove.h
 *	  Finds and removes the dead entries of a page, for VACUUM and for scans.
 */
#ifndef LSM_REMOVE_H
#define LSM_REMOVE_H

#include "format/leaf.h"
#include "storage/buf.h"
#include "utils/relcache.h"

/* Returns whether to remove the entry with this TID. */
typedef bool (*LsmDeadTest) (void *arg, uint64 tid);

extern int	lsm_remove_find(Relation rel, Buffer buffer, LsmDeadTest test, void *arg,
							LsmGroup *scratch, uint16 *ordinals, int *total);
extern void lsm_remove(Relation rel, Buffer buffer, uint16 *ordinals, int count,
					   TransactionId horizon, bool is_catalog, LsmGroup *scratch);

#endif							/* LSM_REMOVE_H */
