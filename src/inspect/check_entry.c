/*
 * check_entry.c
 *	  Verifies single entries: keys, included columns, TIDs.
 *
 * A tuple key is an index tuple, and so are the included columns of an entry with an encoded key.
 * Core's functions trust index tuples, so the verifier first walks each tuple and checks every
 * length.  The verifier decodes encoded keys and encodes them again, since each value has exactly
 * one encoding.
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

/* Returns the size of a column's value at p, or -1 if the value does not end before `end`. */
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
		return -1;				/* an index has no toast pointers */
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

/* Are the unused bits of the null bitmap, and the padding up to the data, zero? */
static bool
entry_nulls_are_clean(const uint8 *nulls, int natts, const char *data)
{
	int			whole = natts / 8;

	if (natts % 8 != 0 && (nulls[whole++] >> natts % 8) != 0)
		return false;
	return entry_is_zero((const char *) nulls + whole, data);
}

/*
 * Returns what is wrong with an index tuple, or NULL.  The page stores `have` bytes of the tuple:
 * all but the zero bytes at its end.  A sound tuple has no TID.  The tuple's padding is zero, as
 * index_form_tuple leaves it, so equal tuples have equal bytes.
 *
 * REQUIRES: bytes is aligned, and LSM_KEY_PAD zero bytes follow.
 */
static const char *
entry_tuple_fault(TupleDesc desc, const char *bytes, Size have)
{
	IndexTuple	tuple = (IndexTuple) bytes;
	const uint8 *nulls = (const uint8 *) (bytes + sizeof(IndexTupleData));
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
		/* All values are aligned, except short varlenas, which their first byte identifies. */
		if (att->attlen != -1 || data + offset == end || !VARATT_IS_1B(data + offset))
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

/* Decode an encoded key, and check that encoding the values gives the same key. */
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

		p = lsm_decode_column(column, p, end, 0, &value, &isnull);
		if (p == NULL)
			entry_report(c, block, ordinal, "key cannot be decoded");
		again = palloc(lsm_encode_size(column, value, isnull));
		size = lsm_encode_column(column, value, isnull, again) - again;
		if (size != (Size) (p - from) || memcmp(again, from, size) != 0)
			entry_report(c, block, ordinal, "key differs from the encoding of its values");
	}
	if (p != end)
		entry_report(c, block, ordinal, "key is longer than its columns");
}

/* Check the key of an entry, or of a separator if keys are tuple keys. */
void
lsm_check_key(LsmCheck *c, const LsmEntry *entry, BlockNumber block, int ordinal)
{
	MemoryContext old_context = MemoryContextSwitchTo(c->scratch);
	const char *wrong;

	if (c->ks->encoded)
		entry_check_encoded_key(c, entry, block, ordinal);
	else
	{
		/* Check the tuple in the form that comparison functions get. */
		if (entry->keylen < sizeof(IndexTupleData))
			entry_report(c, block, ordinal, "index tuple is too short");
		wrong = entry_tuple_fault(c->ks->desc, (char *) lsm_key_as_tuple(entry, c->ks->compare_a),
							entry->keylen);
		if (wrong != NULL)
			entry_report(c, block, ordinal, wrong);
	}
	MemoryContextSwitchTo(old_context);
}

/* Check the TID of an entry, or of a key in a directory: can any table have it? */
void
lsm_check_tid(LsmCheck *c, const LsmEntry *entry, BlockNumber block, int ordinal)
{
	if ((entry->tid >> 16) > MaxBlockNumber || (entry->tid & 0xFFFF) == InvalidOffsetNumber)
		entry_report(c, block, ordinal, "TID is invalid");
}

/* Check the included columns, which are at the end of an entry's rest. */
static void
entry_check_included(LsmCheck *c, const LsmEntry *entry, const uint8 *included, BlockNumber block,
					 int ordinal)
{
	const Size	tid_size = sizeof(ItemPointerData);
	Size		len = entry->rest + entry->restlen - included;
	char	   *tuple = palloc0(MAXALIGN(tid_size + len) + LSM_KEY_PAD);
	const char *wrong;

	memcpy(tuple + tid_size, included, len);
	wrong = entry_tuple_fault(c->ks->rest_desc, tuple, tid_size + len);
	if (wrong != NULL)
		entry_report(c, block, ordinal, wrong);
}

/*
 * Check the details of an entry.  Decoding a key column with its detail, and encoding the value
 * again, must give the same bytes and the same detail.  There must be no other details.
 *
 * REQUIRES: the key was checked.
 */
static void
entry_check_details(LsmCheck *c, const LsmEntry *entry, LsmDetails list, BlockNumber block,
					int ordinal)
{
	LsmKeySpace *ks = c->ks;
	const uint8 *p = entry->key;
	const uint8 *end = p + entry->keylen;
	uint8	   *again = palloc(MAXALIGN(LSM_MAX_ENTRY_SIZE) + entry->keylen);

	for (int i = 0; i < ks->nkeys; i++)
	{
		LsmColumn  *column = &ks->columns[i];
		const uint8 *at = list.p;
		uint64		detail = lsm_detail_next(&list, i);
		const uint8 *from = p;
		Datum		value;
		bool		isnull;

		p = lsm_decode_column(column, p, end, detail, &value, &isnull);
		if (detail == 0)
			continue;
		if (p == NULL || isnull || lsm_encode_detail(column, value) != detail ||
			lsm_encode_size(column, value, false) > LSM_MAX_ENTRY_SIZE ||
			lsm_encode_column(column, value, false, again) - again != p - from ||
			memcmp(again, from, p - from) != 0)
			entry_report(c, block, ordinal, "key and details contradict each other");
		if (lsm_detail_put(again, i, detail) - again != list.p - at ||
			memcmp(again, at, list.p - at) != 0)
			entry_report(c, block, ordinal, "a detail is longer than it must be");
	}
	if (list.p != list.end)
		entry_report(c, block, ordinal, "rest has details of no column");
}

/*
 * Check the rest of an entry with an encoded key.  The rest may be missing only if the key holds
 * all values.
 */
static void
entry_check_rest(LsmCheck *c, const LsmEntry *entry, BlockNumber block, int ordinal)
{
	LsmKeySpace *ks = c->ks;
	LsmDetails	details;
	const uint8 *included;

	if (entry->restlen == 0)
	{
		if (ks->natts > ks->nkeys && ks->encoded)
			entry_report(c, block, ordinal, "included columns are missing");
		return;
	}
	if (!ks->has_rest)
		entry_report(c, block, ordinal, "entry has data after its key");
	if (!lsm_rest_split(ks, entry, &details, &included))
		entry_report(c, block, ordinal, "rest ends within its details");
	if (ks->has_details)
		entry_check_details(c, entry, details, block, ordinal);
	if (ks->rest_desc != NULL)
		entry_check_included(c, entry, included, block, ordinal);
}

/*
 * Check an entry of a leaf or buffer page.  If the index is compared with the table, also adds the
 * entry to the filter, provided that it is live: scans can see it.
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
	if (live && c->filter != NULL)
		lsm_check_heap_add(c, values, isnull, entry->tid);
	MemoryContextSwitchTo(old_context);
}
