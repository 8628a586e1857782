/*
 * keyspace.c
 *	  Forming, comparing and deforming the keys of an index.
 *
 * An encoded keyspace codes columns back to back (encode.c) and keeps in the
 * rest of an entry an index tuple, without its TID and padding, of included
 * columns and of floats that the encoding does not keep.  A tuple keyspace's
 * key is an index tuple with a zero TID, without its padding.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/nbtree.h"
#include "access/genam.h"
#include "key/comparing.h"
#include "key/encode.h"
#include "key/keyspace.h"
#include "utils/lsyscache.h"

#define TUPLE_TID_SIZE sizeof(ItemPointerData)

static void
column_init(LsmColumn *column, Relation index, int i)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), i);
	int16		option = index->rd_indoption[i];

	memset(column, 0, sizeof(LsmColumn));
	column->typlen = att->attlen;
	column->typbyval = att->attbyval;
	column->desc = (option & INDOPTION_DESC) != 0;
	column->nulls_first = (option & INDOPTION_NULLS_FIRST) != 0;
	column->opcintype = index->rd_opcintype[i];
	column->opfamily = index->rd_opfamily[i];
	column->collation = index->rd_indcollation[i];
	column->rest_at = -1;
	column->index = RelationGetRelid(index);
	fmgr_info_copy(&column->cmp, index_getprocinfo(index, i + 1, BTORDER_PROC),
				   CurrentMemoryContext);
	column->encoding = lsm_encoding_for(column->cmp.fn_oid, column->collation);
}

/* Where all columns have a fixed length keys are short, and so is what they need. */
static uint32
longest_key(LsmKeySpace *ks)
{
	uint32		size = 0;

	if (!ks->encoded)
		return LSM_MAX_ENTRY_SIZE;
	for (int i = 0; i < ks->nkeys; i++)
	{
		LsmColumn  *column = &ks->columns[i];

		if (column->encoding == LSM_ENC_TEXT || column->encoding == LSM_ENC_BYTEA)
			return LSM_MAX_ENTRY_SIZE;
		size += lsm_encode_size(column, (Datum) 0, false);
	}
	return Min(size, LSM_MAX_ENTRY_SIZE);
}

/* The length of all keys without nulls, or 0 if they have several. */
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

/* An insert of a single row creates a keyspace, so its buffers are as small as possible. */
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
 * Decide how the keys of a new index are compared: as bytes, if all its columns
 * have an encoding.
 */
void
lsm_keyspace_choose(Relation index, LsmKeyCoding *coding)
{
	memset(coding, 0, sizeof(LsmKeyCoding));
	coding->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	coding->encoded = true;
	for (int i = 0; i < coding->nkeys; i++)
	{
		LsmEncoding encoding = lsm_encoding_for(index_getprocid(index, i + 1, BTORDER_PROC),
												index->rd_indcollation[i]);

		coding->encodings[i] = encoding;
		if (encoding == LSM_ENC_NONE)
			coding->encoded = false;
	}
	if (!coding->encoded)
		memset(coding->encodings, LSM_ENC_NONE, sizeof(coding->encodings));
}

/* Is this how the index was written, as far as this version knows? */
static void
check_coding(Relation index, const LsmKeyCoding *coding)
{
	bool		ok = coding->nkeys == IndexRelationGetNumberOfKeyAttributes(index);

	/* Where keys are tuples, all encodings are LSM_ENC_NONE, whatever there is today. */
	for (int i = 0; i < coding->nkeys && ok; i++)
		ok = (coding->encodings[i] != LSM_ENC_NONE) == coding->encoded &&
			(!coding->encoded ||
			 coding->encodings[i] == lsm_encoding_for(index_getprocid(index, i + 1, BTORDER_PROC),
													  index->rd_indcollation[i]));
	if (!ok)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("keys of index \"%s\" are not coded as its operator classes ask for",
						RelationGetRelationName(index)),
				 errhint("Please REINDEX it.")));
}

/* Does an encoded index keep a column in the rest: an included one, or a float? */
static bool
is_in_rest(const LsmKeySpace *ks, int i)
{
	return i >= ks->nkeys || ks->columns[i].encoding == LSM_ENC_FLOAT4 ||
		ks->columns[i].encoding == LSM_ENC_FLOAT8;
}

/* Describe the tuple in the rest of entries, if there is one. */
static void
describe_rest(LsmKeySpace *ks)
{
	int			count = 0;

	for (int i = 0; i < ks->natts && ks->encoded; i++)
		count += is_in_rest(ks, i);
	if (count == 0)
		return;
	ks->has_rest = true;
	ks->rest_desc = CreateTemplateTupleDesc(count);
	count = 0;
	for (int i = 0; i < ks->natts; i++)
	{
		if (!is_in_rest(ks, i))
			continue;
		if (i < ks->nkeys)
			ks->columns[i].rest_at = count;
		TupleDescCopyEntry(ks->rest_desc, ++count, ks->desc, i + 1);
	}
}

/*
 * Build the keyspace of an index in the current memory context.  Raises an error if
 * its operator classes ask for another coding.
 */
LsmKeySpace *
lsm_keyspace_create(Relation index, const LsmKeyCoding *coding)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	LsmKeySpace *ks = palloc0(offsetof(LsmKeySpace, columns) + nkeys * sizeof(LsmColumn));

	check_coding(index, coding);
	/* Copies: the relcache entry may be rebuilt while the index is open. */
	ks->desc = CreateTupleDescCopy(RelationGetDescr(index));
	ks->index_name = pstrdup(RelationGetRelationName(index));
	ks->nkeys = nkeys;
	ks->natts = IndexRelationGetNumberOfAttributes(index);
	ks->encoded = coding->encoded;
	for (int i = 0; i < ks->nkeys; i++)
		column_init(&ks->columns[i], index, i);

	describe_rest(ks);
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

/* Drop the padding at the end of an index tuple: up to 7 zero bytes. */
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

static void
form_rest_tuple(LsmKeySpace *ks, Datum *values, bool *isnull, ItemPointer tid, LsmEntry *entry)
{
	Datum		rest_values[INDEX_MAX_KEYS];
	bool		rest_isnull[INDEX_MAX_KEYS];
	bool		any = ks->natts > ks->nkeys;
	int			n = 0;
	IndexTuple	tuple;
	Size		size;

	for (int i = 0; i < ks->natts; i++)
	{
		if (i >= ks->nkeys)
		{
			rest_values[n] = values[i];
			rest_isnull[n++] = isnull[i];
		}
		else if (ks->columns[i].rest_at >= 0)
		{
			rest_isnull[n] = isnull[i] || lsm_encoding_is_exact(&ks->columns[i], values[i]);
			rest_values[n] = rest_isnull[n] ? (Datum) 0 : values[i];
			any |= !rest_isnull[n++];
		}
	}
	if (!any)
		return;
	tuple = index_form_tuple(ks->rest_desc, rest_values, rest_isnull);
	size = IndexTupleSize(tuple);
	if (entry->keylen + size > LSM_MAX_ENTRY_SIZE)
		report_too_large(ks, entry->keylen + size, tid);
	entry->restlen = unpadded_size((char *) tuple, size) - TUPLE_TID_SIZE;
	memcpy(ks->form_rest, (char *) tuple + TUPLE_TID_SIZE, entry->restlen);
	pfree(tuple);
}

/*
 * Form an entry from column values. Its parts are in ks->form_key and form_rest until the
 * next call. Raises an error if the entry is too large.
 */
void
lsm_keyspace_form(LsmKeySpace *ks, Datum *values, bool *isnull, ItemPointer tid,
				  LsmEntry *entry)
{
	uint8	   *p = ks->form_key;

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
		if (detoasted)
			pfree(DatumGetPointer(value));
	}
	entry->keylen = p - ks->form_key;
	if (ks->has_rest)
		form_rest_tuple(ks, values, isnull, tid, entry);
}

/*
 * An entry's key as an index tuple.  `room` is used when the key lies in a
 * page, unaligned and without zero bytes behind it.
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

/* The index tuple in an entry's rest, palloc'd, or NULL. */
static IndexTuple
rest_as_tuple(const LsmEntry *entry)
{
	char	   *tuple;

	if (entry->restlen == 0)
		return NULL;
	tuple = palloc0(MAXALIGN(entry->restlen + TUPLE_TID_SIZE) + LSM_KEY_PAD);
	memcpy(tuple + TUPLE_TID_SIZE, entry->rest, entry->restlen);
	return (IndexTuple) tuple;
}

/* Report an entry that does not hold the columns it should. */
void
lsm_keyspace_report_entry(LsmKeySpace *ks)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has an entry that cannot be decoded", ks->index_name),
			 errhint("Please REINDEX it.")));
}

/*
 * Returns the first ncolumns column values of an entry. Values by reference are palloc'd or
 * point into the entry's key. Raises an error if the key is damaged.
 */
void
lsm_keyspace_deform(LsmKeySpace *ks, const LsmEntry *entry, int ncolumns,
					Datum *values, bool *isnull)
{
	const uint8 *p = entry->key;
	const uint8 *end = p + entry->keylen;
	IndexTuple	rest = NULL;

	if (!ks->encoded)
	{
		IndexTuple	tuple = lsm_key_as_tuple(entry, entry->aligned ? NULL :
											 palloc(MAXALIGN(entry->keylen) + 2 * LSM_KEY_PAD));

		for (int i = 0; i < ncolumns; i++)
			values[i] = index_getattr(tuple, i + 1, ks->desc, &isnull[i]);
		return;
	}

	if (ks->has_rest)
		rest = rest_as_tuple(entry);
	for (int i = 0; i < ncolumns; i++)
	{
		int			rest_at;

		if (i < ks->nkeys)
		{
			p = lsm_decode_column(&ks->columns[i], p, end, &values[i], &isnull[i]);
			if (p == NULL)
				lsm_keyspace_report_entry(ks);
			rest_at = isnull[i] ? -1 : ks->columns[i].rest_at;
		}
		else
		{
			rest_at = ks->rest_desc->natts - (ks->natts - i);
			values[i] = (Datum) 0;
			isnull[i] = true;
		}
		if (rest_at >= 0 && rest != NULL)
		{
			bool		rest_null;
			Datum		value = index_getattr(rest, rest_at + 1, ks->rest_desc, &rest_null);

			if (i >= ks->nkeys)
			{
				values[i] = value;
				isnull[i] = rest_null;
			}
			else if (!rest_null)
				values[i] = value;
		}
	}
}

/* An index tuple with the entry's columns and TID, palloc'd. */
IndexTuple
lsm_keyspace_index_tuple(LsmKeySpace *ks, const LsmEntry *entry)
{
	IndexTuple	tuple;

	if (!ks->encoded)
	{
		tuple = palloc0(MAXALIGN(entry->keylen) + LSM_KEY_PAD);
		memcpy(tuple, entry->key, entry->keylen);
	}
	else
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];

		lsm_keyspace_deform(ks, entry, ks->natts, values, isnull);
		tuple = index_form_tuple(ks->desc, values, isnull);
	}
	lsm_int_to_tid(entry->tid, &tuple->t_tid);
	return tuple;
}

/* Compare two values of a column in index order: direction, NULL placement. */
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
 * Returns how many bytes of right's key make a separator between left and right, two
 * neighbouring entries. Returns the whole length (and the TID counts) if they do not differ
 * in a way that allows a cut.
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

/* The same for an entry's key. */
bool
lsm_key_may_repeat(LsmKeySpace *ks, Relation index, const LsmEntry *entry)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	lsm_keyspace_deform(ks, entry, ks->nkeys, values, isnull);
	return lsm_nulls_may_repeat(ks, index, isnull);
}
