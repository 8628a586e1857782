/*
 * hashable.h
 *	  Chooses hash functions that fit the operator classes of an index.
 */
#ifndef LSM_HASHABLE_H
#define LSM_HASHABLE_H

#include "format/meta.h"
#include "key/column.h"

/* A composite type that hashes depend on. */
typedef struct LsmHashedType
{
	Oid			type;
	uint64		definition;		/* core's number for the type's definition when noted */
} LsmHashedType;

typedef struct LsmHashing
{
	int			least_columns;	/* fewest columns of a prefix in filters; 0: there are no filters */
	bool		outdated;		/* hashes may differ from those when the index was built */
	uint32		fingerprint;	/* the fingerprint when the index was built */
	LsmColumn  *columns;
	int			count;			/* of these */
	int			type_count;
	LsmHashedType *types;		/* NULL if there are none */
} LsmHashing;

extern void lsm_hashable_choose(LsmColumn *columns, int count, LsmKeyCoding *coding);
extern void lsm_hashable_init(LsmHashing *hashing, LsmColumn *columns, int count,
							  const LsmKeyCoding *coding);
extern void lsm_hashable_copy(LsmHashing *hashing, LsmColumn *columns);
extern bool lsm_hashable_recheck(LsmHashing *hashing);

/*
 * Are the hashes made so far those that filters contain?  Call this after making hashes.  Once the
 * answer is false, nobody tests or builds filters with this keyspace, and hashes of tuple keys and
 * of their prefixes are 0.
 */
static inline bool
lsm_hashing_holds(LsmHashing *hashing)
{
	return hashing->least_columns > 0 &&
		(likely(hashing->type_count == 0) || lsm_hashable_recheck(hashing));
}

#endif							/* LSM_HASHABLE_H */
