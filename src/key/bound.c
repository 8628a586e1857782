/*
 * bound.c
 *	  Makes and compares bounds, that is, positions between the entries of an index.
 */
#include "postgres.h"

#include "key/encode.h"
#include "key/keyspace.h"

/* The key of a bound without columns.  memcmp must not get NULL, even for zero bytes. */
static uint8 no_key[LSM_KEY_PAD];

/* Make a bound without columns: before (+1) or after (-1) all entries. */
void
lsm_bound_init(LsmBound *bound, int tie)
{
	if (bound->key_room == 0)
		bound->key = no_key;
	bound->is_entry = false;
	bound->tie = tie;
	bound->keylen = 0;
	bound->ncolumns = 0;
}

static void
reserve_key(LsmBound *bound, uint32 size)
{
	if (bound->key_room == 0)
		bound->key = palloc(size + LSM_KEY_PAD);
	else if (bound->key_room < size)
		bound->key = repalloc(bound->key, size + LSM_KEY_PAD);
	else
		return;
	bound->key_room = size;
}

/*
 * Append a column.  With tuple keys, cmp compares the column with the value.  If cmp is NULL, the
 * column's own comparison function does.  A value of a tuple key must outlive the bound.
 */
void
lsm_bound_add(LsmKeySpace *ks, LsmBound *bound, Datum value, bool isnull, FmgrInfo *cmp)
{
	LsmColumn  *column = &ks->columns[bound->ncolumns];

	if (ks->encoded)
	{
		uint32		size;

		if (column->typlen == -1 && !isnull)
			value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
		size = lsm_encode_size(column, value, isnull);
		reserve_key(bound, bound->keylen + size);
		bound->keylen = lsm_encode_column(column, value, isnull, bound->key + bound->keylen) -
			bound->key;
	}
	bound->columns[bound->ncolumns].value = value;
	bound->columns[bound->ncolumns].isnull = isnull;
	bound->columns[bound->ncolumns].cmp = cmp ? cmp : &column->cmp;
	bound->columns[bound->ncolumns].is_own = cmp == NULL || cmp == &column->cmp;
	bound->ncolumns++;
}

/* Append columns that are already encoded. */
void
lsm_bound_add_encoded(LsmBound *bound, const uint8 *code, uint32 len, int columns)
{
	reserve_key(bound, bound->keylen + len);
	memcpy(bound->key + bound->keylen, code, len);
	bound->keylen += len;
	bound->ncolumns += columns;
}

/* Set a bound just before (+1) or just after (-1) an entry. Copies the entry's key and TID. */
void
lsm_bound_set_entry(LsmBound *bound, const LsmEntry *entry, int tie)
{
	bound->is_entry = true;
	bound->tie = tie;
	bound->ncolumns = 0;
	reserve_key(bound, entry->keylen);
	memcpy(bound->key, entry->key, entry->keylen);
	memset(bound->key + entry->keylen, 0, LSM_KEY_PAD);
	bound->keylen = entry->keylen;
	bound->tid = entry->tid;
}

/* Set a bound before (+1) or after (-1) all entries that have this entry's key. Copies the key. */
void
lsm_bound_set_key(LsmKeySpace *ks, LsmBound *bound, const LsmEntry *entry, int tie)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	LsmEntry	copy = *entry;

	lsm_bound_init(bound, tie);
	reserve_key(bound, entry->keylen);
	memcpy(bound->key, entry->key, entry->keylen);
	memset(bound->key + entry->keylen, 0, LSM_KEY_PAD);
	if (ks->encoded)
	{
		bound->keylen = entry->keylen;
		bound->ncolumns = ks->nkeys;
		return;
	}
	/* Values passed by reference point into bound->key, not into the caller's entry. */
	copy.key = bound->key;
	copy.aligned = true;
	lsm_keyspace_deform(ks, &copy, ks->nkeys, values, isnull);
	for (int i = 0; i < ks->nkeys; i++)
		lsm_bound_add(ks, bound, values[i], isnull[i], NULL);
}

/* lsm_bound_compare for tuple keys. */
int
lsm_bound_compare_slow(LsmKeySpace *ks, const LsmBound *bound, const LsmEntry *entry)
{
	IndexTuple	tuple;

	if (bound->is_entry)
	{
		LsmEntry	at;
		int			c;

		at.key = bound->key;
		at.keylen = bound->keylen;
		at.tid = bound->tid;
		at.aligned = true;
		c = lsm_key_compare_slow(ks, entry, &at);
		return c != 0 ? c : bound->tie;
	}

	tuple = lsm_key_as_tuple(entry, ks->compare_a);
	for (int i = 0; i < bound->ncolumns; i++)
	{
		const LsmBoundColumn *b = &bound->columns[i];
		bool		isnull;
		Datum		value = index_getattr(tuple, i + 1, ks->desc, &isnull);
		int			c = lsm_column_compare(&ks->columns[i], b->cmp, value, isnull,
										   b->value, b->isnull);

		if (c != 0)
			return c;
	}
	return bound->tie;
}

/*
 * Compare `other`, a position next to an entry, with `bound`. Returns a negative number if
 * `other` is before `bound`, 0 if they are the same position, and otherwise a positive number.
 */
int
lsm_bound_order(LsmKeySpace *ks, const LsmBound *bound, const LsmBound *other)
{
	LsmEntry	entry;
	LsmBound	turned;
	int			order;

	Assert(other->is_entry);
	lsm_bound_entry(other, &entry);
	order = lsm_bound_compare(ks, bound, &entry);
	if (!bound->is_entry)
		return order;

	/* If both bounds are next to the same entry, their sides decide. */
	turned = *bound;
	turned.tie = -bound->tie;
	if ((lsm_bound_compare(ks, &turned, &entry) < 0) != (order < 0))
		return (bound->tie - other->tie) / 2;
	return order;
}
