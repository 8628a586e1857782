/*
 * tuple.c
 *	  Makes the index tuples, or the values, that index-only scans return.
 *
 * Suppose that all columns belong to the key, have a fixed length, and have codes that consist of
 * the value's bytes (describe_encoding).  Then all entries without nulls make tuples of the same
 * layout.  We lay out one tuple in advance, and fill in only the values of each entry.  A tuple key
 * is copied.  All other tuples are formed one by one.
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "key/tuple.h"
#include "utils/memutils.h"

/*
 * Note which bits the encoding of a column inverts. Returns false if a code is not simply the bytes
 * of the value with these bits inverted.
 */
static bool
describe_encoding(const LsmColumn *column, LsmFixedColumn *fixed)
{
	uint64		sign = 0;

	fixed->width = column->typlen;
	fixed->is_bytes = false;
	switch (column->encoding)
	{
		case LSM_ENC_BOOL:
		case LSM_ENC_CHAR:
		case LSM_ENC_UINT32:
		case LSM_ENC_UINT64:
			break;
		case LSM_ENC_INT16:
			sign = 0x8000;
			break;
		case LSM_ENC_INT32:
			sign = 0x80000000u;
			break;
		case LSM_ENC_INT64:
			sign = UINT64CONST(0x8000000000000000);
			break;
		case LSM_ENC_FIXED:
			fixed->is_bytes = true;
			break;
		default:
			return false;
	}
	fixed->mask = sign ^ (column->desc ? ~UINT64CONST(0) : 0);
	return true;
}

/* Lay out the tuple. Returns false if tuples cannot be made by filling in one layout. */
static bool
lay_out_tuple(LsmTupleMaker *maker)
{
	LsmKeySpace *ks = maker->ks;
	Size		size = IndexInfoFindDataOffset(0);

	if (!ks->encoded || ks->natts != ks->nkeys || ks->usual_keylen == 0)
		return false;
	for (int i = 0; i < ks->nkeys; i++)
	{
		Form_pg_attribute att = TupleDescAttr(ks->desc, i);

		if (att->attlen <= 0 || !describe_encoding(&ks->columns[i], &maker->columns[i]))
			return false;
		size = att_align_nominal(size, att->attalign);
		maker->columns[i].offset = size;
		size += att->attlen;
	}
	maker->tuple = palloc0(MAXALIGN(size));
	maker->tuple->t_info = MAXALIGN(size);
	return true;
}

/* Create a maker in the current memory context. */
LsmTupleMaker *
lsm_tuple_maker_create(LsmKeySpace *ks)
{
	LsmTupleMaker *maker = palloc0(offsetof(LsmTupleMaker, columns) +
								   ks->nkeys * sizeof(LsmFixedColumn));

	maker->ks = ks;
	if (!lay_out_tuple(maker))
		maker->context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm tuple",
											   ALLOCSET_SMALL_SIZES);
	return maker;
}

/* Returns a copy of a tuple key, with the entry's TID. */
static IndexTuple
copy_tuple_key(LsmTupleMaker *maker, const LsmEntry *entry)
{
	Size		size = MAXALIGN(entry->keylen) + LSM_KEY_PAD;

	if (size > maker->room)
	{
		if (maker->copy != NULL)
			pfree(maker->copy);
		maker->copy = NULL;
		maker->copy = MemoryContextAlloc(GetMemoryChunkContext(maker), 2 * size);
		maker->room = 2 * size;
	}
	memcpy(maker->copy, entry->key, entry->keylen);
	memset((char *) maker->copy + entry->keylen, 0, size - entry->keylen);
	lsm_int_to_tid(entry->tid, &maker->copy->t_tid);
	return maker->copy;
}

/* Switch to the context of the maker's last tuple, which is reset. */
static MemoryContext
enter_context(LsmTupleMaker *maker)
{
	if (maker->context == NULL)
		maker->context = AllocSetContextCreate(GetMemoryChunkContext(maker), "pg_lsm tuple",
											   ALLOCSET_SMALL_SIZES);
	MemoryContextReset(maker->context);
	return MemoryContextSwitchTo(maker->context);
}

/*
 * Get all columns of an entry.  Values passed by reference are valid until the next call with this
 * maker, and as long as the entry.  Raises an error if the entry is damaged.
 */
void
lsm_tuple_deform(LsmTupleMaker *maker, const LsmEntry *entry, Datum *values, bool *isnull)
{
	MemoryContext old = enter_context(maker);

	lsm_keyspace_deform(maker->ks, entry, maker->ks->natts, values, isnull);
	MemoryContextSwitchTo(old);
}

/* lsm_tuple_make for an entry whose tuple has no fixed layout. */
IndexTuple
lsm_tuple_form(LsmTupleMaker *maker, const LsmEntry *entry)
{
	IndexTuple	tuple;
	MemoryContext old;

	if (!maker->ks->encoded)
		return copy_tuple_key(maker, entry);
	old = enter_context(maker);
	tuple = lsm_keyspace_index_tuple(maker->ks, entry);
	MemoryContextSwitchTo(old);
	return tuple;
}
