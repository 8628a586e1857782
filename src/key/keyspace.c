/*
 * keyspace.c
 *	  Forms, compares and deforms the keys of an index.
 *
 * In an encoded keyspace, a key consists of the codes of the columns (encode.c).  The rest of an
 * entry has the information that the key lacks:
 *
 *		uint8		number of details; only if there are included columns, and key
 *					columns whose encodings keep details
 *		details		see details.h; without that number, the details end where the rest ends
 *		tuple		an index tuple of the included columns, without its TID and the zero
 *					bytes at its end; only if there are included columns
 *
 * A tuple keyspace's key is an index tuple of all columns with a zero TID, without the zero
 * bytes at its end.  Entries have no rest.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/nbtree.h"
#include "access/genam.h"
#include "base/compat.h"
#include "key/comparing.h"
#include "key/details.h"
#include "key/encode.h"
#include "key/keyspace.h"
#include "key/sort_support.h"
#include "utils/lsyscache.h"

#define TUPLE_TID_SIZE sizeof(ItemPointerData)

static void
column_init(LsmColumn *column, Relation index, int i, const LsmKeyCoding *coding)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
	int16		option = index->rd_indoption[i];

	memset(column, 0, sizeof(LsmColumn));
	column->typlen = att->attlen;
	column->typbyval = att->attbyval;
	column->desc = (option & INDOPTION_DESC) != 0;
	column->nulls_first = (option & INDOPTION_NULLS_FIRST) != 0;
	column->type = att->atttypid;
	column->opcintype = index->rd_opcintype[i];
	column->opfamily = index->rd_opfamily[i];
	column->collation = index->rd_indcollation[i];
	column->index = RelationGetRelid(index);
	/* The function may have a new language, so take only the class's options from the cache. */
	fmgr_info(index_getprocid(index, i + 1, BTORDER_PROC), &column->cmp);
	column->cmp.fn_expr = copyObject(index_getprocinfo(index, i + 1, BTORDER_PROC)->fn_expr);
	column->keeps_details = lsm_encoding_keeps_details(coding->encodings[i]);
	column->expected = coding->expected[i];
	/* Tuple keys have no codes, but a column that could be encoded is hashed by its encoding. */
	column->encoding = coding->encoded ? coding->encodings[i] :
		lsm_encoding_for(column->cmp.fn_oid, column->collation);
}

/*
 * Returns the length of the longest possible key.  Keys are short if all columns have a fixed
 * length, and then their buffers are small.
 */
static uint32
longest_key(LsmKeySpace *ks)
{
	uint32		size = 0;

	if (!ks->encoded)
		return LSM_MAX_ENTRY_SIZE;
	for (int i = 0; i < ks->nkeys; i++)
		size += lsm_encoding_most(&ks->columns[i]);
	return Min(size, LSM_MAX_ENTRY_SIZE);
}

/* Returns the length of all keys without nulls, or 0 if their lengths vary. */
static uint32
usual_length(const LsmKeySpace *ks)
{
	uint32		size = 0;

	for (int i = 0; i < ks->nkeys; i++)
	{
		uint32		length = ks->encoded ? lsm_encoded_length(&ks->columns[i]) : 0;

		if (length == 0)
			return 0;
		size += length;
	}
	return size;
}

/* A keyspace may be created to insert a single row, so its buffers are as small as possible. */
static void
make_rooms(LsmKeySpace *ks)
{
	ks->max_keylen = longest_key(ks);
	ks->usual_keylen = usual_length(ks);
	ks->form_key = palloc0(ks->max_keylen + LSM_KEY_PAD + MAXIMUM_ALIGNOF);
	ks->form_rest = ks->form_key;	/* nothing is ever read from there */
	if (ks->has_rest)
		ks->form_rest = palloc0(LSM_MAX_ENTRY_SIZE + LSM_KEY_PAD + MAXIMUM_ALIGNOF);
	if (!ks->encoded)
	{
		ks->compare_a = palloc(MAXALIGN(LSM_MAX_ENTRY_SIZE) + LSM_KEY_PAD);
		ks->compare_b = palloc(MAXALIGN(LSM_MAX_ENTRY_SIZE) + LSM_KEY_PAD);
	}
}

/*
 * Returns what decoding assumes about a column's values, from its type or its domain's base type.
 */
static uint16
expected_of(Relation index, int i, LsmEncoding encoding)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
	int32		typmod = att->atttypmod;

	(void) getBaseTypeAndTypmod(att->atttypid, &typmod);
	return lsm_encoding_expected(encoding, typmod);
}

/*
 * Decide how the keys of a new index are compared and hashed.  Keys are compared as bytes if all
 * columns have an encoding.
 */
void
lsm_keyspace_choose(Relation index, LsmKeyCoding *coding)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	LsmColumn  *columns = palloc(nkeys * sizeof(LsmColumn));

	memset(coding, 0, sizeof(LsmKeyCoding));
	coding->nkeys = nkeys;
	for (int i = 0; i < nkeys; i++)
		column_init(&columns[i], index, i, coding);
	coding->encoded = true;
	for (int i = 0; i < nkeys; i++)
	{
		coding->encodings[i] = columns[i].encoding;
		if (columns[i].encoding == LSM_ENC_NONE)
			coding->encoded = false;
	}
	if (!coding->encoded)
		memset(coding->encodings, LSM_ENC_NONE, sizeof(coding->encodings));

	/*
	 * ALTER TABLE may change a type and reuse the index file.  So the file must keep what decoding
	 * assumes.
	 */
	for (int i = 0; i < coding->nkeys && coding->encoded; i++)
		coding->expected[i] = expected_of(index, i, coding->encodings[i]);
	lsm_hashable_choose(columns, nkeys, coding);
	pfree(columns);
}

/*
 * Is a column stored as it must be?  For tuple keys all encodings are LSM_ENC_NONE, even if this
 * version of pg_lsm has an encoding for the column.
 */
static bool
is_column_coded_right(Relation index, const LsmKeyCoding *coding, int i)
{
	if (!coding->encoded)
		return coding->encodings[i] == LSM_ENC_NONE;
	return coding->encodings[i] != LSM_ENC_NONE &&
		coding->encodings[i] == lsm_encoding_for(index_getprocid(index, i + 1, BTORDER_PROC),
												 index->rd_indcollation[i]);
}

/*
 * Refuse an index whose keys are not coded as its columns now require.  The file may come from a
 * server whose C library has another order for a collation (see collation.c).
 */
static void
check_coding(Relation index, const LsmKeyCoding *coding)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	int			i = 0;

	while (coding->nkeys == nkeys && i < nkeys && is_column_coded_right(index, coding, i))
		i++;
	if (coding->nkeys == nkeys && i == nkeys)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("keys of index \"%s\" are not coded as its operator classes and collations require",
					RelationGetRelationName(index)),
			 coding->nkeys == nkeys ?
			 errdetail("The order of column %d has changed since the index was built.", i + 1) : 0,
			 errhint("Please REINDEX it.")));
}

/* Note what the rest of entries contains. */
static void
describe_rest(LsmKeySpace *ks)
{
	int			included = ks->natts - ks->nkeys;

	if (!ks->encoded)
		return;
	for (int i = 0; i < ks->nkeys; i++)
		ks->has_details |= ks->columns[i].keeps_details;
	ks->has_rest = ks->has_details || included > 0;
	if (included == 0)
		return;
	ks->rest_desc = CreateTemplateTupleDesc(included);
	for (int i = 0; i < included; i++)
		TupleDescCopyEntry(ks->rest_desc, i + 1, ks->desc, ks->nkeys + i + 1);
	TupleDescFinalize(ks->rest_desc);
}

/*
 * Build the keyspace of an index in the current memory context.  Raises an error if the index's
 * operator classes require another coding.
 */
LsmKeySpace *
lsm_keyspace_create(Relation index, const LsmKeyCoding *coding)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	LsmKeySpace *ks = palloc0(offsetof(LsmKeySpace, columns) + nkeys * sizeof(LsmColumn));

	check_coding(index, coding);
	/* Copy these: the relcache entry may be rebuilt while the index is open. */
	ks->desc = CreateTupleDescCopy(RelationGetDescr(index));
	ks->index_name = pstrdup(RelationGetRelationName(index));
	ks->nkeys = nkeys;
	ks->natts = IndexRelationGetNumberOfAttributes(index);
	ks->encoded = coding->encoded;
	for (int i = 0; i < ks->nkeys; i++)
	{
		column_init(&ks->columns[i], index, i, coding);
		if (ks->encoded)
			continue;
		ks->columns[i].sort = lsm_sort_support(&ks->columns[i]);
		ks->columns[i].runs_user_code = lsm_compare_runs_user_code(&ks->columns[i]);
		ks->runs_user_code |= ks->columns[i].runs_user_code;
	}
	lsm_hashable_init(&ks->hashing, ks->columns, nkeys, coding);

	describe_rest(ks);
	make_rooms(ks);
	return ks;
}

/*
 * Copy a keyspace for another scan, merge or batch, into the current memory context.  Makes no
 * catalog lookups.  The copy must not outlive the original.
 */
LsmKeySpace *
lsm_keyspace_copy(LsmKeySpace *from)
{
	Size		size = offsetof(LsmKeySpace, columns) + from->nkeys * sizeof(LsmColumn);
	LsmKeySpace *ks = memcpy(palloc(size), from, size);

	for (int i = 0; i < ks->nkeys; i++)
	{
		LsmColumn  *column = &from->columns[i];

		fmgr_info_copy(&ks->columns[i].cmp, &column->cmp, CurrentMemoryContext);
		if (column->hash_kind == LSM_HASH_STANDARD || column->hash_kind == LSM_HASH_EXTENDED)
			fmgr_info_copy(&ks->columns[i].hash, &column->hash, CurrentMemoryContext);
	}
	lsm_hashable_copy(&ks->hashing, ks->columns);
	make_rooms(ks);
	return ks;
}

static void
report_too_large(LsmKeySpace *ks, Size size, ItemPointer tid)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size %zu exceeds lsm maximum %zu for index \"%s\"",
					size, (Size) LSM_MAX_ENTRY_SIZE, ks->index_name),
			 errdetail("Index row references tuple (%u,%u).",
					   ItemPointerGetBlockNumberNoCheck(tid),
					   ItemPointerGetOffsetNumberNoCheck(tid)),
			 errhint("Values larger than 1/3 of a buffer page cannot be indexed.\n"
					 "Consider a function index of an MD5 hash of the value.")));
}

/* Returns the size of an index tuple without up to 7 zero bytes at its end. */
static uint32
unpadded_size(const char *tuple, uint32 size)
{
	uint32		least = size - Min(size, LSM_KEY_PAD - 1);

	while (size > least && tuple[size - 1] == 0)
		size--;
	return size;
}

static void
form_tuple_key(LsmKeySpace *ks, Datum *values, bool *isnull, ItemPointer tid, LsmEntry *entry)
{
	IndexTuple	tuple = index_form_tuple(ks->desc, values, isnull);
	Size		size = IndexTupleSize(tuple);

	if (size > LSM_MAX_ENTRY_SIZE)
		report_too_large(ks, size, tid);
	memset(&tuple->t_tid, 0, sizeof(ItemPointerData));
	entry->keylen = unpadded_size((char *) tuple, size);
	memcpy(ks->form_key, tuple, entry->keylen);
	memset(ks->form_key + entry->keylen, 0, LSM_KEY_PAD);
	pfree(tuple);
}

/* Append the included columns to a rest that ends at p.  Returns its new end. */
static uint8 *
put_included(LsmKeySpace *ks, Datum *values, bool *isnull, ItemPointer tid, const LsmEntry *entry,
			 uint8 *p)
{
	IndexTuple	tuple = index_form_tuple(ks->rest_desc, values + ks->nkeys, isnull + ks->nkeys);
	Size		size = entry->keylen + (p - ks->form_rest) + IndexTupleSize(tuple);
	uint32		len;

	if (size > LSM_MAX_ENTRY_SIZE)
		report_too_large(ks, size, tid);
	len = unpadded_size((char *) tuple, IndexTupleSize(tuple)) - TUPLE_TID_SIZE;
	memcpy(p, (char *) tuple + TUPLE_TID_SIZE, len);
	pfree(tuple);
	return p + len;
}

/*
 * Form an entry from column values. Its parts are in ks->form_key and form_rest until the
 * next call. Raises an error if the entry is too large.
 */
void
lsm_keyspace_form(LsmKeySpace *ks, Datum *values, bool *isnull, ItemPointer tid,
				  LsmEntry *entry)
{
	bool		has_included = ks->natts > ks->nkeys;
	uint8	   *p = ks->form_key;
	uint8	   *rest = ks->form_rest + (ks->has_details && has_included);
	int			details = 0;
	uint64		padding = 0;

	entry->key = ks->form_key;
	entry->rest = ks->form_rest;
	entry->restlen = 0;
	entry->tid = lsm_tid_to_int(tid);
	entry->aligned = true;
	if (!ks->encoded)
	{
		form_tuple_key(ks, values, isnull, tid, entry);
		return;
	}

	for (int i = 0; i < ks->nkeys; i++)
	{
		LsmColumn  *column = &ks->columns[i];
		Datum		value = values[i];
		uint64		detail = 0;
		Size		size;
		bool		detoasted = false;

		if (column->typlen == -1 && !isnull[i])
		{
			value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
			detoasted = value != values[i];
		}
		size = lsm_encode_size(column, value, isnull[i]);
		if ((p - ks->form_key) + size > LSM_MAX_ENTRY_SIZE)
			report_too_large(ks, (p - ks->form_key) + size, tid);
		p = lsm_encode_column(column, value, isnull[i], p);
		if (column->keeps_details && !isnull[i])
		{
			detail = lsm_encode_detail(column, value);
			padding += lsm_encode_padding(column, value);
		}
		if (detail != 0)
		{
			rest = lsm_detail_put(rest, i, detail);
			details++;
		}
		if (detoasted)
			pfree(DatumGetPointer(value));
	}
	entry->keylen = p - ks->form_key;
	if (!ks->has_rest)
		return;
	/*
	 * The key lacks blanks that the tuple of an index-only scan contains.  Form this tuple now.
	 * Forming it raises an error if the tuple is too large even with compressed values.
	 */
	if (padding > LSM_MAX_ENTRY_SIZE)
		pfree(index_form_tuple(ks->desc, values, isnull));
	if (entry->keylen + (rest - ks->form_rest) > LSM_MAX_ENTRY_SIZE)
		report_too_large(ks, entry->keylen + (rest - ks->form_rest), tid);
	if (ks->has_details && has_included)
		ks->form_rest[0] = details;
	if (has_included)
		rest = put_included(ks, values, isnull, tid, entry, rest);
	entry->restlen = rest - ks->form_rest;
}

/*
 * Returns an entry's key as an index tuple.  Copies the key to `room` if it lies in a page,
 * unaligned and without zero bytes after it.
 */
IndexTuple
lsm_key_as_tuple(const LsmEntry *entry, char *room)
{
	if (entry->aligned)
		return (IndexTuple) entry->key;
	memcpy(room, entry->key, entry->keylen);
	memset(room + entry->keylen, 0, LSM_KEY_PAD);
	return (IndexTuple) room;
}

/* Report an entry that does not contain the expected columns. */
void
lsm_keyspace_report_entry(LsmKeySpace *ks)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has an entry that cannot be decoded", ks->index_name),
			 errhint("Please REINDEX it.")));
}

/* Find the details and included columns in an entry's rest.  Returns false if the rest is damaged. */
bool
lsm_rest_split(const LsmKeySpace *ks, const LsmEntry *entry, LsmDetails *details,
			   const uint8 **included)
{
	details->p = entry->rest;
	details->end = *included = entry->rest + entry->restlen;
	if (ks->natts == ks->nkeys || entry->restlen == 0)
		return true;
	*included = entry->rest;
	if (ks->has_details)
	{
		*included = lsm_details_skip(entry->rest + 1, details->end, entry->rest[0]);
		details->p++;
	}
	details->end = *included;
	return *included != NULL;
}

/* Get the included columns from an entry's rest.  Values passed by reference are palloc'd. */
static void
deform_included(LsmKeySpace *ks, const uint8 *bytes, Size len, int count, Datum *values,
				bool *isnull)
{
	char	   *tuple;

	for (int i = 0; i < count; i++)
	{
		values[i] = (Datum) 0;
		isnull[i] = true;
	}
	if (len == 0)
		return;
	tuple = palloc0(MAXALIGN(len + TUPLE_TID_SIZE) + LSM_KEY_PAD);
	memcpy(tuple + TUPLE_TID_SIZE, bytes, len);
	for (int i = 0; i < count; i++)
		values[i] = index_getattr((IndexTuple) tuple, i + 1, ks->rest_desc, &isnull[i]);
}

/*
 * Returns the first ncolumns column values of an entry.  Values passed by reference are palloc'd or
 * point into the entry's key.  Raises an error if the entry is damaged.
 */
void
lsm_keyspace_deform(LsmKeySpace *ks, const LsmEntry *entry, int ncolumns,
					Datum *values, bool *isnull)
{
	const uint8 *p = entry->key;
	const uint8 *end = p + entry->keylen;
	LsmDetails	details = {NULL, NULL};
	const uint8 *included = NULL;

	if (!ks->encoded)
	{
		IndexTuple	tuple = lsm_key_as_tuple(entry, entry->aligned ? NULL :
											 palloc(MAXALIGN(entry->keylen) + 2 * LSM_KEY_PAD));

		for (int i = 0; i < ncolumns; i++)
			values[i] = index_getattr(tuple, i + 1, ks->desc, &isnull[i]);
		return;
	}

	if (ks->has_rest && !lsm_rest_split(ks, entry, &details, &included))
		lsm_keyspace_report_entry(ks);
	for (int i = 0; i < Min(ncolumns, ks->nkeys); i++)
	{
		uint64		detail = ks->has_details ? lsm_detail_next(&details, i) : 0;

		p = lsm_decode_column(&ks->columns[i], p, end, detail, &values[i], &isnull[i]);
		if (p == NULL)
			lsm_keyspace_report_entry(ks);
	}
	if (ncolumns > ks->nkeys)
		deform_included(ks, included, entry->rest + entry->restlen - included,
						ncolumns - ks->nkeys, values + ks->nkeys, isnull + ks->nkeys);
}

/* Returns a palloc'd index tuple with the columns and the TID of an entry with an encoded key. */
IndexTuple
lsm_keyspace_index_tuple(LsmKeySpace *ks, const LsmEntry *entry)
{
	IndexTuple	tuple;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	lsm_keyspace_deform(ks, entry, ks->natts, values, isnull);
	tuple = index_form_tuple(ks->desc, values, isnull);
	lsm_int_to_tid(entry->tid, &tuple->t_tid);
	return tuple;
}

/* Compare two values of a column in index order, with its direction and NULL placement. */
int
lsm_column_compare(LsmColumn *column, FmgrInfo *cmp, Datum a, bool a_null,
				   Datum b, bool b_null)
{
	int32		c;

	if (a_null || b_null)
	{
		if (a_null && b_null)
			return 0;
		return a_null == column->nulls_first ? -1 : 1;
	}
	c = lsm_compare_values(column, cmp, a, b);
	if (column->desc)
		return c < 0 ? 1 : c > 0 ? -1 : 0;
	return c;
}

/* lsm_key_compare for tuple keys. */
int
lsm_key_compare_slow(LsmKeySpace *ks, const LsmEntry *a, const LsmEntry *b)
{
	if (a->keylen != b->keylen || memcmp(a->key, b->key, a->keylen) != 0)
	{
		IndexTuple	ta = lsm_key_as_tuple(a, ks->compare_a);
		IndexTuple	tb = lsm_key_as_tuple(b, ks->compare_b);

		for (int i = 0; i < ks->nkeys; i++)
		{
			bool		a_null;
			bool		b_null;
			Datum		va = index_getattr(ta, i + 1, ks->desc, &a_null);
			Datum		vb = index_getattr(tb, i + 1, ks->desc, &b_null);
			int			c = lsm_column_compare(&ks->columns[i], &ks->columns[i].cmp,
											   va, a_null, vb, b_null);

			if (c != 0)
				return c;
		}
	}
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

/*
 * Returns how many bytes of right's key make a separator between the neighboring entries left and
 * right.  Returns the whole length if no shorter beginning separates them, or if keys are tuples.
 * If the keys are equal, the separator also needs right's TID.
 */
uint32
lsm_separator_length(LsmKeySpace *ks, const LsmEntry *left, const LsmEntry *right)
{
	uint32		shared;

	if (!ks->encoded)
		return right->keylen;
	shared = lsm_common_prefix(left->key, left->keylen, right->key, right->keylen);
	return Min(shared + 1, right->keylen);
}

/*
 * Returns whether a unique index may have a key with these nulls more than once. Nulls are
 * distinct unless the index says otherwise.
 */
bool
lsm_nulls_may_repeat(const LsmKeySpace *ks, Relation index, const bool *isnull)
{
	if (index->rd_index->indnullsnotdistinct)
		return false;
	for (int i = 0; i < ks->nkeys; i++)
	{
		if (isnull[i])
			return true;
	}
	return false;
}

/* lsm_nulls_may_repeat for an entry's key. */
bool
lsm_key_may_repeat(LsmKeySpace *ks, Relation index, const LsmEntry *entry)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	lsm_keyspace_deform(ks, entry, ks->nkeys, values, isnull);
	return lsm_nulls_may_repeat(ks, index, isnull);
}
