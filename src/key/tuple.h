/*
 * tuple.h
 *	  Index tuples for index-only scans.
 */
#ifndef LSM_TUPLE_H
#define LSM_TUPLE_H

#include "key/keyspace.h"

/* A column of a tuple whose columns all have a fixed length. */
typedef struct LsmFixedColumn
{
	uint16		offset;			/* in the tuple */
	uint16		width;			/* bytes of the value, in the key and in the tuple */
	bool		is_bytes;		/* not an integer */
	uint64		mask;			/* of the bits that the key has inverted */
} LsmFixedColumn;

/* Makes tuples, each in the place of the one before where that is possible. */
typedef struct LsmTupleMaker
{
	LsmKeySpace *ks;
	MemoryContext context;		/* of tuples that are formed: until the next one */
	IndexTuple	tuple;			/* to be filled in; NULL if columns vary */
	LsmFixedColumn columns[FLEXIBLE_ARRAY_MEMBER];
} LsmTupleMaker;

extern LsmTupleMaker *lsm_tuple_maker_create(LsmKeySpace *ks);
extern IndexTuple lsm_tuple_make(LsmTupleMaker *maker, const LsmEntry *entry);

#endif							/* LSM_TUPLE_H */
