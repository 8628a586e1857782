/*
 * ssi.h
 *	  Predicate locks of serializable transactions.
 */
#ifndef LSM_SSI_H
#define LSM_SSI_H

#include "key/keyspace.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

extern void lsm_ssi_lock_range(LsmKeySpace *ks, Relation index, const LsmBound *low,
							   const LsmBound *high, Snapshot snapshot);
extern void lsm_ssi_check(LsmKeySpace *ks, Relation index, const LsmEntry *entry);

#endif							/* LSM_SSI_H */
