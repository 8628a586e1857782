/*
 * hash.c
 *	  Hashes keys and their first columns.  Equal keys have equal hashes.
 *
 * The hash of an encoded key is the hash of its bytes.  For a tuple key, the hash of the first n
 * columns combines the hash of the first n - 1 columns with that of column n.  Filters on disk
 * depend on the hashes, so format/filter_page.h specifies them.  Functions of operator classes run
 * here, so callers hold no lock on a page.
 */
#include "postgres.h"

#include "base/compat.h"
#include "common/hashfn.h"
#include "format/filter_page.h"
#include "key/comparing.h"
#include "key/encode.h"
#include "key/hash.h"
#include "utils/builtins.h"
#include "utils/datum.h"

/* Returns the hash of a value's encoding. */
static uint64
hash_code(LsmColumn *column, Datum value)
{
	LsmCode		code;
	uint64		hash;

	lsm_code_make(&code, column, value, false);
	hash = hash_bytes_extended(code.bytes, code.length, 0);
	lsm_code_free(&code);
	return hash;
}

/* Returns the hash of a string, as core's extended function computes it with seed 0. */
static uint64
hash_string(Datum value, bool is_trimmed)
{
	struct varlena *string = PG_DETOAST_DATUM_PACKED(value);
	int			length = VARSIZE_ANY_EXHDR(string);
	uint64		hash;

	if (is_trimmed)
		length = bpchartruelen(VARDATA_ANY(string), length);
	hash = hash_bytes_extended((const uint8 *) VARDATA_ANY(string), length, 0);
	if (string != (struct varlena *) DatumGetPointer(value))
		pfree(string);
	return hash;
}

/* Returns the hash of a column's value. */
static uint64
hash_value(LsmColumn *column, Datum value, bool isnull)
{
	if (isnull)
		return LSM_FILTER_NULL;
	switch (column->hash_kind)
	{
		case LSM_HASH_NONE:
			return 0;
		case LSM_HASH_BYTES:
			return hash_code(column, value);
		default:
			if (column->hashes_string || column->hashes_trimmed)
				return hash_string(value, column->hashes_trimmed);
			return lsm_compare_hash(column, value);
	}
}

/*
 * Compute the hashes of the first column of a tuple key, of the first two columns, and so on.  If
 * filters expect other hashes, the hash functions might not accept the values, so all hashes are 0.
 */
void
lsm_hash_tuple_key(LsmKeySpace *ks, const LsmEntry *entry, int columns, uint64 *hashes)
{
	IndexTuple	tuple;
	uint64		hash = 0;

	if (!lsm_hashing_holds(&ks->hashing))
	{
		memset(hashes, 0, columns * sizeof(uint64));
		return;
	}
	tuple = lsm_key_as_tuple(entry, ks->compare_a);
	for (int i = 0; i < columns; i++)
	{
		bool		isnull;
		Datum		value = index_getattr(tuple, i + 1, ks->desc, &isnull);

		hash = lsm_filter_add_column(hash, hash_value(&ks->columns[i], value, isnull));
		hashes[i] = hash;
	}
}

/* Returns the hash of the first `columns` columns of a key that is encoded in `keylen` bytes. */
static uint64
hash_bytes_of_key(const LsmKeySpace *ks, const uint8 *key, uint32 keylen, int columns)
{
	uint32		length;

	if (columns == ks->nkeys)
		return lsm_filter_hash(key, keylen);
	length = lsm_encoded_prefix_length(ks->columns, key, keylen, columns);
	return lsm_filter_prefix_hash(key, length, columns);
}

/* Returns the hash of an entry's first columns, as filters use it. */
uint64
lsm_hash_key(LsmKeySpace *ks, const LsmEntry *entry, int columns)
{
	uint64		hashes[INDEX_MAX_KEYS];

	if (ks->encoded)
		return hash_bytes_of_key(ks, entry->key, entry->keylen, columns);
	lsm_hash_tuple_key(ks, entry, columns, hashes);
	return hashes[columns - 1];
}

/*
 * Returns the hash of a bound's first columns, or 0 for a tuple key if filters expect other hashes.
 *
 * REQUIRES: encoded keys, or lsm_hash_shared_columns has counted at least this many columns.
 */
uint64
lsm_hash_bound(LsmKeySpace *ks, const LsmBound *bound, int columns)
{
	uint64		hash = 0;

	if (ks->encoded)
		return hash_bytes_of_key(ks, bound->key, bound->keylen, columns);
	if (!lsm_hashing_holds(&ks->hashing))
		return 0;
	for (int i = 0; i < columns; i++)
		hash = lsm_filter_add_column(hash, hash_value(&ks->columns[i], bound->columns[i].value,
													  bound->columns[i].isnull));
	return hash;
}

/*
 * Returns true only if two bounds are certain to have the same value in a column, and the column's
 * hash function accepts that value.
 */
static bool
share_column(const LsmColumn *column, const LsmBoundColumn *a, const LsmBoundColumn *b)
{
	if (a->isnull || b->isnull)
		return a->isnull && b->isnull;
	return a->is_own && b->is_own &&
		(a->value == b->value || datumIsEqual(a->value, b->value, column->typbyval, column->typlen));
}

/*
 * Returns how many of the first columns, up to `most`, can be hashed and have only one value
 * between two bounds.
 */
int
lsm_hash_shared_columns(const LsmKeySpace *ks, const LsmBound *from, const LsmBound *limit, int most)
{
	int			count = 0;

	if (ks->encoded)
		return lsm_encoded_columns(ks->columns, limit->key,
								   lsm_common_prefix(from->key, from->keylen, limit->key,
													 limit->keylen),
								   most);
	most = Min(most, Min(from->ncolumns, limit->ncolumns));
	while (count < most && share_column(&ks->columns[count], &from->columns[count],
										&limit->columns[count]))
		count++;
	return count;
}

/*
 * Add a column to the hash of the columns before it, for locks.  The hash of no columns is 0.
 * Unlike a filter's hash, the hash of equal values must be the same in all sessions, even during
 * ALTER TYPE.
 *
 * REQUIRES: tuple keys.
 */
uint64
lsm_hash_add_for_lock(LsmKeySpace *ks, uint64 hash, int column, Datum value, bool isnull)
{
	LsmColumn  *c = &ks->columns[column];

	if (c->hash_may_change && !isnull)
		return lsm_filter_add_column(hash, 0);
	return lsm_filter_add_column(hash, hash_value(c, value, isnull));
}

/*
 * Returns the hash of an entry's key, for the key lock.  Sessions agree on it as long as their
 * keyspaces are not outdated.
 */
uint32
lsm_hash_for_lock(LsmKeySpace *ks, const LsmEntry *entry)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint64		hash = 0;

	if (ks->encoded)
		return DatumGetUInt32(hash_any(entry->key, entry->keylen));
	lsm_keyspace_deform(ks, entry, ks->nkeys, values, isnull);
	for (int i = 0; i < ks->nkeys; i++)
		hash = lsm_hash_add_for_lock(ks, hash, i, values[i], isnull[i]);
	return (uint32) hash;
}
