/*
 * tuple.h
 *	  Makes the index tuples that index-only scans return.
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
	uint64		mask;			/* mask of the bits that the key inverts */
} LsmFixedColumn;

/* Makes tuples. If possible, each tuple overwrites the previous one in place. */
typedef struct LsmTupleMaker
{
	LsmKeySpace *ks;
	MemoryContext context;		/* of the last tuple or values; reset for the next ones */
	IndexTuple	tuple;			/* the tuple to fill in; NULL if layouts vary */
	IndexTuple	copy;			/* of the last tuple key; NULL if there was none */
	Size		room;			/* bytes of `copy` */
	LsmFixedColumn columns[FLEXIBLE_ARRAY_MEMBER];
} LsmTupleMaker;

extern LsmTupleMaker *lsm_tuple_maker_create(LsmKeySpace *ks);
extern IndexTuple lsm_tuple_form(LsmTupleMaker *maker, const LsmEntry *entry);
extern void lsm_tuple_deform(LsmTupleMaker *maker, const LsmEntry *entry, Datum *values,
							 bool *isnull);

/* Put a value into its place. Returns the key position after it. */
static inline const uint8 *
lsm_put_value(const LsmFixedColumn *c, const uint8 *p, char *to)
{
	uint16		v16;
	uint32		v32;
	uint64		v64;

	if (c->is_bytes)
	{
		for (int i = 0; i < c->width; i++)
			to[i] = p[i] ^ (uint8) c->mask;
		return p + c->width;
	}
	switch (c->width)
	{
		case 1:
			*to = *p ^ (uint8) c->mask;
			break;
		case 2:
			memcpy(&v16, p, 2);
			v16 = pg_ntoh16(v16) ^ (uint16) c->mask;
			memcpy(to, &v16, 2);
			break;
		case 4:
			memcpy(&v32, p, 4);
			v32 = pg_ntoh32(v32) ^ (uint32) c->mask;
			memcpy(to, &v32, 4);
			break;
		default:
			memcpy(&v64, p, 8);
			v64 = pg_ntoh64(v64) ^ c->mask;
			memcpy(to, &v64, 8);
			break;
	}
	return p + c->width;
}

/*
 * Returns whether the entry's tuple has the maker's layout.  It does if its key has the length
 * of keys without nulls.
 */
static inline bool
lsm_tuple_is_fixed(const LsmTupleMaker *maker, const LsmEntry *entry)
{
	return likely(maker->tuple != NULL && entry->keylen == maker->ks->usual_keylen);
}

/*
 * Returns the index tuple of an entry, with its columns and TID. Valid until the next call.
 * Raises an error if the key is damaged.
 */
static inline IndexTuple
lsm_tuple_make(LsmTupleMaker *maker, const LsmEntry *entry)
{
	IndexTuple	tuple = maker->tuple;
	const uint8 *p = entry->key;

	if (!lsm_tuple_is_fixed(maker, entry))
		return lsm_tuple_form(maker, entry);
	/* In the key, each column has a byte before its value. */
	for (int i = 0; i < maker->ks->nkeys; i++)
		p = lsm_put_value(&maker->columns[i], p + 1,
						  (char *) tuple + maker->columns[i].offset);
	lsm_int_to_tid(entry->tid, &tuple->t_tid);
	return tuple;
}

#endif							/* LSM_TUPLE_H */
