/*
 * virtual_pages.h
 *	  Computes the virtual pages of an index, which serializable transactions lock (storage/ssi.c).
 */
#ifndef LSM_VIRTUAL_PAGES_H
#define LSM_VIRTUAL_PAGES_H

#include "key/keyspace.h"

/* The most pages of a range. */
#define LSM_RANGE_PAGES		3

/* Depths of the nodes that are pages, in nibbles. */
#define LSM_LEAST_DEPTH		3
#define LSM_MOST_DEPTH		32

/* The most pages of a key. */
#define LSM_KEY_PAGES		(INDEX_MAX_KEYS + LSM_MOST_DEPTH - LSM_LEAST_DEPTH + 1)

extern int	lsm_pages_of_range(LsmKeySpace *ks, const LsmBound *low, const LsmBound *high,
							   BlockNumber *pages);
extern int	lsm_pages_of_key(LsmKeySpace *ks, const LsmEntry *entry, BlockNumber *pages);

#endif							/* LSM_VIRTUAL_PAGES_H */
