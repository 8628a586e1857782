/*
 * t_keys.c
 *	  Properties of keys: keys sort like the columns' types, and decoding returns the values that
 *	  were encoded.
 */
#include "backend.h"
#include "props.h"
#include "tap.h"

#include "key/encode.h"
#include "key/hash.h"
#include "key/tuple.h"

enum
{
	ORDER, EQUALITY, CODES, LENGTHS, DAMAGE, DEFORM, TUPLES, SEPARATORS, PREFIXES, HASHES, BOUND_HASHES
};

static const char *const names[] = {
	"entries sort by their columns, then by TID",
	"keys are equal if and only if the columns are",
	"codes sort like their values, and none is a prefix of another",
	"codes have the predicted length, and tell where they end",
	"a damaged code is detected or decodes to some value",
	"the columns decoded from an entry are equal to the originals, bit for bit",
	"so are those of the tuple of an index-only scan",
	"a separator is greater than the left entry and not greater than the right one",
	"keys begin with the same bytes as far as their columns are equal, and tell how many these are",
	"keys have the same hash of their first columns if these are equal, and only then if all are hashed",
	"both bounds of a key share its columns and have its hash; bounds of two keys share no unequal one",
};

static TestIndex the_index;
static TestRow rows[40];

static void
check_order(const TestRow *a, const TestRow *b)
{
	int			order = rows_compare(&the_index, a, b);
	bool		equal = rows_compare_columns(&the_index, a, b, the_index.nkeys) == 0;

	props_expect(ORDER, sign_of(lsm_key_compare(the_index.ks, &a->entry, &b->entry)) == order,
				 "rows %d and %d of %s", (int) (a - rows), (int) (b - rows),
				 rows_describe(&the_index));
	props_expect(EQUALITY, lsm_key_equal(the_index.ks, &a->entry, &b->entry) == equal,
				 "rows %d and %d of %s", (int) (a - rows), (int) (b - rows),
				 rows_describe(&the_index));
}

/*
 * Encode into a buffer of the requested size, so that the sanitizer notices an access to the next
 * byte.
 */
static uint8 *
encode(LsmColumn *column, Datum value, bool isnull, uint32 *len)
{
	uint32		size = lsm_encode_size(column, value, isnull);
	uint8	   *code = palloc(size);

	*len = lsm_encode_column(column, value, isnull, code) - code;
	return memcpy(palloc(*len), code, *len);
}

static void
check_code(LsmColumn *column, const TestRow *row, int i)
{
	uint32		len;
	uint8	   *code = encode(column, row->values[i], row->isnull[i], &len);
	uint32		usual = lsm_encoded_length(column);
	uint32		short_len = pick(len);
	uint8	   *damaged = memcpy(palloc(short_len), code, short_len);
	const uint8 *end;
	Datum		value;
	bool		isnull;

	props_expect(LENGTHS, lsm_encoded_is_null(code) == row->isnull[i] &&
				 lsm_encoded_column_length(column, code, code + len) == len &&
				 (usual == 0 || row->isnull[i] || usual == len) &&
				 lsm_decode_column(column, code, code + len, 0, &value, &isnull) == code + len,
				 "column %d of %s", i, rows_describe(&the_index));

	end = damaged + short_len;
	props_expect(DAMAGE, lsm_decode_column(column, damaged, end, 0, &value, &isnull) == NULL &&
				 lsm_encoded_column_length(column, damaged, end) == 0,
				 "column %d of %s, cut to %u of %u bytes", i, rows_describe(&the_index),
				 short_len, len);
	code[pick(len)] = (uint8) pick_bits();
	end = lsm_decode_column(column, code, code + len, chance(2) ? 0 : pick_bits() >> pick(64), &value,
							&isnull);
	props_expect(DAMAGE, end == NULL || (end > code && end <= code + len), "column %d of %s", i,
				 rows_describe(&the_index));
}

static void
check_codes(LsmColumn *column, const TestRow *a, const TestRow *b, int i)
{
	uint32		a_len;
	uint32		b_len;
	uint8	   *a_code = encode(column, a->values[i], a->isnull[i], &a_len);
	uint8	   *b_code = encode(column, b->values[i], b->isnull[i], &b_len);
	int			order = rows_compare_value(&the_index.columns[i], a->values[i], a->isnull[i],
										   the_index.columns[i].type, b->values[i], b->isnull[i]);

	/* If one code begins with the other, the values and the lengths must be equal. */
	props_expect(CODES, sign_of(memcmp(a_code, b_code, Min(a_len, b_len))) == order &&
				 (order != 0 || a_len == b_len), "column %d of %s", i, rows_describe(&the_index));
}

/* What filters with prefixes, and lookups in them, rely on. */
static void
check_prefixes(const LsmEntry *a, const LsmEntry *b, const TestRow *a_row, const TestRow *b_row)
{
	LsmKeySpace *ks = the_index.ks;
	uint32		common = lsm_common_prefix(a->key, a->keylen, b->key, b->keylen);
	int			equal = 0;

	for (int n = 1; n <= the_index.nkeys; n++)
	{
		uint32		a_len = lsm_encoded_prefix_length(ks->columns, a->key, a->keylen, n);
		uint32		b_len = lsm_encoded_prefix_length(ks->columns, b->key, b->keylen, n);
		bool		same = rows_compare_columns(&the_index, a_row, b_row, n) == 0;

		props_expect(PREFIXES, same == (a_len == b_len && memcmp(a->key, b->key, a_len) == 0) &&
					 lsm_encoded_columns(ks->columns, a->key, a_len, the_index.nkeys) == n &&
					 lsm_encoded_columns(ks->columns, a->key, a_len - 1, the_index.nkeys) == n - 1,
					 "%d columns of %s", n, rows_describe(&the_index));
		equal += same;
	}
	props_expect(PREFIXES, lsm_encoded_columns(ks->columns, a->key, common, the_index.nkeys) == equal,
				 "%s", rows_describe(&the_index));
}

/* Are the first columns all hashed? */
static bool
are_hashed(int columns)
{
	for (int i = 0; i < columns; i++)
	{
		if (!the_index.ks->encoded && the_index.ks->columns[i].hash_kind == LSM_HASH_NONE)
			return false;
	}
	return true;
}

static void
check_hashes(const TestRow *a, const TestRow *b)
{
	LsmKeySpace *ks = the_index.ks;

	for (int n = 1; n <= the_index.nkeys; n++)
	{
		bool		equal = rows_compare_columns(&the_index, a, b, n) == 0;
		bool		same = lsm_hash_key(ks, &a->entry, n) == lsm_hash_key(ks, &b->entry, n);

		props_expect(HASHES, same || !equal, "%d equal columns of %s", n, rows_describe(&the_index));
		props_expect(HASHES, equal || !same || !are_hashed(n), "%d columns of %s", n,
					 rows_describe(&the_index));
	}
	props_expect(HASHES, lsm_hash_for_lock(ks, &a->entry) == lsm_hash_for_lock(ks, &b->entry) ||
				 rows_compare_columns(&the_index, a, b, the_index.nkeys) != 0,
				 "lock of %s", rows_describe(&the_index));
}

static void
check_bound_hashes(const TestRow *a, const TestRow *b)
{
	LsmKeySpace *ks = the_index.ks;
	LsmBound	from = {0};
	LsmBound	limit = {0};
	int			shared;

	lsm_bound_set_key(ks, &from, &a->entry, 1);
	lsm_bound_set_key(ks, &limit, &a->entry, -1);
	props_expect(BOUND_HASHES, lsm_hash_shared_columns(ks, &from, &limit, ks->nkeys) == ks->nkeys,
				 "%s", rows_describe(&the_index));
	for (int n = 1; n <= ks->nkeys; n++)
		props_expect(BOUND_HASHES, lsm_hash_bound(ks, &limit, n) == lsm_hash_key(ks, &a->entry, n),
					 "%d columns of %s", n, rows_describe(&the_index));
	lsm_bound_set_key(ks, &limit, &b->entry, -1);
	shared = lsm_hash_shared_columns(ks, &from, &limit, ks->nkeys);
	props_expect(BOUND_HASHES, rows_compare_columns(&the_index, a, b, shared) == 0,
				 "%d columns of %s", shared, rows_describe(&the_index));
	lsm_bound_set_entry(&limit, &b->entry, -1);
	shared = lsm_hash_shared_columns(ks, &from, &limit, ks->nkeys);
	props_expect(BOUND_HASHES, rows_compare_columns(&the_index, a, b, shared) == 0,
				 "%d columns of %s", shared, rows_describe(&the_index));
}

static bool
same_columns(const TestRow *row, const Datum *values, const bool *isnull, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (isnull[i] != row->isnull[i] ||
			(!isnull[i] && !types_identical(the_index.columns[i].type, row->values[i], values[i])))
			return false;
	}
	return true;
}

static void
check_columns(LsmTupleMaker *maker, const TestRow *row)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	int			count = 1 + pick(the_index.natts);
	IndexTuple	tuple;

	/* The values of tuple keys and rests are within the entry. */
	lsm_keyspace_deform(the_index.ks, &row->entry, count, values, isnull);
	props_expect(DEFORM, same_columns(row, values, isnull, count), "%s", rows_describe(&the_index));

	tuple = lsm_tuple_make(maker, &row->entry);
	for (int i = 0; i < the_index.natts; i++)
		values[i] = index_getattr(tuple, i + 1, the_index.ks->desc, &isnull[i]);
	props_expect(TUPLES, same_columns(row, values, isnull, the_index.natts) &&
				 lsm_tid_to_int(&tuple->t_tid) == row->entry.tid, "%s", rows_describe(&the_index));
}

static void
check_separator(const LsmEntry *left, const LsmEntry *right)
{
	LsmEntry	separator = *right;

	/* As builder.c makes the rests. */
	separator.aligned = false;
	if (the_index.ks->encoded && !lsm_key_equal(the_index.ks, left, right))
	{
		separator.keylen = lsm_separator_length(the_index.ks, left, right);
		separator.tid = 0;
	}
	props_expect(SEPARATORS, separator.keylen <= right->keylen &&
				 lsm_key_compare(the_index.ks, left, &separator) < 0 &&
				 lsm_key_compare(the_index.ks, &separator, right) <= 0, "%s",
				 rows_describe(&the_index));
}

static void
round_of_rows(void)
{
	LsmTupleMaker *maker;
	int			count = lengthof(rows);

	rows_index(&the_index, 4);
	rows_make(&the_index, rows, count);
	maker = lsm_tuple_maker_create(the_index.ks);
	for (int i = 0; i < count; i++)
	{
		for (int j = 0; j < count; j++)
			check_order(&rows[i], &rows[j]);
		for (int j = 0; j < count; j++)
			check_hashes(&rows[i], &rows[j]);
		check_bound_hashes(&rows[i], &rows[pick(count)]);
		for (int j = 0; j < count && the_index.ks->encoded; j++)
			check_prefixes(&rows[i].entry, &rows[j].entry, &rows[i], &rows[j]);
		check_columns(maker, &rows[i]);
		for (int c = 0; c < the_index.nkeys && the_index.ks->encoded; c++)
		{
			check_code(&the_index.ks->columns[c], &rows[i], c);
			check_codes(&the_index.ks->columns[c], &rows[i], &rows[pick(count)], c);
		}
	}
	count = rows_sort(&the_index, rows, count);
	for (int i = 1; i < count; i++)
		check_separator(&rows[i - 1].entry, &rows[i].entry);
}

int
main(void)
{
	return props_run(400, round_of_rows, names, lengthof(names));
}
