/*
 * check_entry.c
 *	  Verification of single entries: keys, included columns, TIDs.
 *
 * Index tuples, the key of a tuple keyspace and the rest of an encoded one, are
 * walked with bounds before core's functions, which trust them, look inside.
 * Encoded keys are decoded and coded again: there is one way to code a value.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/tupmacs.h"
#include "inspect/inspect.h"
#include "key/encode.h"
#include "utils/memutils.h"

static void
entry_report(LsmCheck *c, BlockNumber block, int ordinal, const char *what)
{
	lsm_check_report(c, block, "entry %d: %s", ordinal, what);
}

/*
 * Size of the value of a column at p, which ends before `end`, or -1 if it does
 * not fit.
 */
static int64
entry_value_size(Form_pg_attribute att, const char *p, const char *end)
{
	Size		room = end - p;
	Size		size;

	if (att->attlen > 0)
		return (Size) att->attlen <= room ? att->attlen : -1;
	if (att->attlen == -2)
	{
		size = strnlen(p, room);
		return size < room ? (int64) size + 1 : -1;
	}
	if (room < 1 || VARATT_IS_1B_E(p))
		return -1;				/* nothing in an index is toasted */
	if (!VARATT_IS_1B(p) && room < VARHDRSZ)
		return -1;
	size = VARSIZE_ANY(p);
	if (size > room || size < (VARATT_IS_1B(p) ? VARHDRSZ_SHORT : VARHDRSZ) ||
		(VARATT_IS_4B_C(p) && size < VARHDRSZ_COMPRESSED))
		return -1;
	return size;
}

static bool
entry_is_zero(const char *from, const char *to)
{
	while (from < to)
	{
		if (*from++ != 0)
			return false;
	}
	return true;
}

/* Bits of columns that there are not, and the padding up to the data, are zero. */
static bool
entry_nulls_are_clean(const bits8 *nulls, int natts, const char *data)
{
	int			whole = natts / 8;

	if (natts % 8 != 0 && (nulls[whole++] >> natts % 8) != 0)
		return false;
	return entry_is_zero((const char *) nulls + whole, data);
}

/*
 * NULL, or what is wrong with an index tuple of which `have` bytes are stored:
 * all but the zero bytes at its end.  It is aligned, has no TID, and is
 * followed by LSM_KEY_PAD zero bytes.  Padding is zero, as index_form_tuple
 * makes it, so equal tuples have equal bytes.
 */
static const char *
entry_tuple_fault(TupleDesc desc, const char *bytes, Size have)
{
	IndexTuple	tuple = (IndexTuple) bytes;
	const bits8 *nulls = (const bits8 *) (bytes + sizeof(IndexTupleData));
	const char *end;
	const char *data;
	Size		size;
	Size		offset = 0;
	bool		has_var = false;

	if (have < sizeof(IndexTupleData))
		return "index tuple is too short";
	size = IndexTupleSize(tuple);
	if (have > size || size - have >= LSM_KEY_PAD || (tuple->t_info & INDEX_AM_RESERVED_BIT) != 0)
		return "index tuple has a wrong size";
	if (!entry_is_zero(bytes, bytes + sizeof(ItemPointerData)))
		return "index tuple has a TID of its own";
	if (IndexInfoFindDataOffset(tuple->t_info) > size)
		return "index tuple has no room for its null bitmap";
	data = bytes + IndexInfoFindDataOffset(tuple->t_info);
	end = bytes + size;
	if (IndexTupleHasNulls(tuple) && !entry_nulls_are_clean(nulls, desc->natts, data))
		return "index tuple has a damaged null bitmap";
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Size		before = offset;
		int64		length;

		if (IndexTupleHasNulls(tuple) && att_isnull(i, nulls))
			continue;
		/* A short varlena is not aligned; its first byte tells. */
		if (att->attlen != -1 || data + offset == end || !VARATT_NOT_PAD_BYTE(data + offset))
			offset = att_align_nominal(offset, att->attalign);
		if (data + offset > end || !entry_is_zero(data + before, data + offset))
			return "index tuple has a damaged column";
		length = entry_value_size(att, data + offset, end);
		if (length < 0)
			return "a value does not fit its index tuple";
		offset += length;
		has_var |= att->attlen < 0;
	}
	if (!entry_is_zero(data + offset, end))
		return "index tuple is longer than its columns";
	if (has_var != (IndexTupleHasVarwidths(tuple) != 0))
		return "index tuple has wrong flags";
	return NULL;
}

/* Decode an encoded key, and see that coding the values again gives it back. */
static void
entry_check_encoded_key(LsmCheck *c, const LsmEntry *entry, BlockNumber block, int ordinal)
{
	LsmKeySpace *ks = c->ks;
	const uint8 *p = entry->key;
	const uint8 *end = p + entry->keylen;

	for (int i = 0; i < ks->nkeys; i++)
	{
		LsmColumn  *column = &ks->columns[i];
		const uint8 *from = p;
		Datum		value;
		bool		isnull;
		uint8	   *again;
		Size		size;

		p = lsm_decode_column(column, p, end, &value, &isnull);
		if (p == NULL)
			entry_report(c, block, ordinal, "key cannot be decoded");
		again = palloc(lsm_encode_size(column, value, isnull));
		size = lsm_encode_column(column, value, isnull, again) - again;
		if (size != (Size) (p - from) || memcmp(again, from, size) != 0)
			entry_report(c, block, ordinal, "key is not coded as its values are");
	}
	if (p != end)
		entry_report(c, block, ordinal, "key is longer than its columns");
}

/* The key of an entry, or of a separator of a tuple keyspace. */
void
lsm_check_key(LsmCheck *c, const LsmEntry *entry, BlockNumber block, int ordinal)
{
	MemoryContext old_context = MemoryContextSwitchTo(c->scratch);
	const char *wrong;

	if (c->ks->encoded)
		entry_check_encoded_key(c, entry, block, ordinal);
	else
	{
		/* Compare functions get the tuple as this function returns it. */
		if (entry->keylen < sizeof(IndexTupleData))
			entry_report(c, block, ordinal, "index tuple is too short");
		wrong = entry_tuple_fault(c->ks->desc, (char *) lsm_key_as_tuple(entry, c->ks->compare_a),
							entry->keylen);
		if (wrong != NULL)
			entry_report(c, block, ordinal, wrong);
	}
	MemoryContextSwitchTo(old_context);
}

/* The TID of an entry, or of a key in a directory: is there such a place in any table? */
void
lsm_check_tid(LsmCheck *c, const LsmEntry *entry, BlockNumber block, int ordinal)
{
	if ((entry->tid >> 16) > MaxBlockNumber || (entry->tid & 0xFFFF) == InvalidOffsetNumber)
		entry_report(c, block, ordinal, "TID is impossible");
}

/*
 * The rest of an entry in an encoded keyspace.  It may be missing only where
 * it holds nothing but values that the key keeps as well.
 */
static void
entry_check_rest(LsmCheck *c, const LsmEntry *entry, BlockNumber block, int ordinal)
{
	LsmKeySpace *ks = c->ks;
	const Size	tid_size = sizeof(ItemPointerData);
	char	   *tuple;
	const char *wrong;

	if (entry->restlen == 0)
	{
		if (ks->natts > ks->nkeys && ks->encoded)
			entry_report(c, block, ordinal, "included columns are missing");
		return;
	}
	if (!ks->has_rest)
		entry_report(c, block, ordinal, "there is something behind the key");
	tuple = palloc0(MAXALIGN(tid_size + entry->restlen) + LSM_KEY_PAD);
	memcpy(tuple + tid_size, entry->rest, entry->restlen);
	wrong = entry_tuple_fault(ks->rest_desc, tuple, tid_size + entry->restlen);
	if (wrong != NULL)
		entry_report(c, block, ordinal, wrong);
}

/* A float that the rest keeps must be one that the key stands for. */
static void
entry_check_kept_floats(LsmCheck *c, const LsmEntry *entry, const Datum *values, const bool *isnull,
				  BlockNumber block, int ordinal)
{
	LsmKeySpace *ks = c->ks;
	uint8	   *again = palloc(entry->keylen + LSM_MAX_ENTRY_SIZE);
	uint8	   *end = again;

	for (int i = 0; i < ks->nkeys; i++)
		end = lsm_encode_column(&ks->columns[i], values[i], isnull[i], end);
	if ((uint32) (end - again) != entry->keylen || memcmp(again, entry->key, entry->keylen) != 0)
		entry_report(c, block, ordinal, "key and exact values contradict each other");
}

/*
 * An entry of a leaf or buffer page.  In a verification against the table one
 * that scans can see, a live one, is also noted.
 */
void
lsm_check_entry(LsmCheck *c, const LsmEntry *entry, bool live, BlockNumber block, int ordinal)
{
	LsmKeySpace *ks = c->ks;
	MemoryContext old_context = MemoryContextSwitchTo(c->scratch);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (entry->keylen + entry->restlen > LSM_MAX_ENTRY_SIZE)
		entry_report(c, block, ordinal, "size exceeds the maximum");
	lsm_check_tid(c, entry, block, ordinal);
	if (c->furthest_at == 0 || entry->tid >> 16 > c->furthest)
	{
		c->furthest = (BlockNumber) (entry->tid >> 16);
		c->furthest_at = block;
		c->furthest_ordinal = ordinal;
	}
	lsm_check_key(c, entry, block, ordinal);
	entry_check_rest(c, entry, block, ordinal);
	lsm_keyspace_deform(ks, entry, ks->natts, values, isnull);
	if (ks->has_rest)
		entry_check_kept_floats(c, entry, values, isnull, block, ordinal);
	if (live && c->filter != NULL)
		lsm_check_heap_add(c, values, isnull, entry->tid);
	MemoryContextSwitchTo(old_context);
}
