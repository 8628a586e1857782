/*
 * hash.h
 *	  Hashes keys and their first columns.
 */
#ifndef LSM_HASH_H
#define LSM_HASH_H

#include "key/keyspace.h"

extern uint64 lsm_hash_key(LsmKeySpace *ks, const LsmEntry *entry, int columns);
extern void lsm_hash_tuple_key(LsmKeySpace *ks, const LsmEntry *entry, int columns, uint64 *hashes);
extern uint64 lsm_hash_bound(LsmKeySpace *ks, const LsmBound *bound, int columns);
extern int	lsm_hash_shared_columns(const LsmKeySpace *ks, const LsmBound *from,
									const LsmBound *limit, int most);
extern uint64 lsm_hash_add_for_lock(LsmKeySpace *ks, uint64 hash, int column, Datum value,
									bool isnull);
extern uint32 lsm_hash_for_lock(LsmKeySpace *ks, const LsmEntry *entry);

#endif							/* LSM_HASH_H */
