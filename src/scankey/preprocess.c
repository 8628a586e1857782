/*
 * preprocess.c
 *	  Prepares scan keys: decides which part of the index to read, and which conditions to check on
 *	  each entry.
 *
 * Each scan key becomes a fact about its column.  The column equals a value, NULL, or an element of
 * an array; it has a range; or a row comparison begins with it. combinations.c turns these facts
 * into bounds.  Keys that the bounds do not imply are filters.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "scankey/scankey_parts.h"

/* Returns how many leading columns a check of the key must decode. */
static int
columns_to_check(ScanKey key)
{
	return key->sk_flags & SK_ROW_HEADER ? lsm_rowkey_last_column(key) : key->sk_attno;
}

static void
add_filter(LsmScanKeys *keys, ScanKey key)
{
	keys->filters[keys->filter_count++] = key;
	keys->filter_columns = Max(keys->filter_columns, columns_to_check(key));
}

/*
 * Note a row comparison.  The comparison stays a filter, since NULLs in its later columns lie
 * within its bound but do not match.
 */
static void
note_row_key(LsmScanKeys *keys, ScanKey header)
{
	int			column = header->sk_attno - 1;
	LsmColumnRange *range = &keys->columns[column];
	LsmRowKey  *row = lsm_rowkey_create(keys, header);
	LsmRowKey **best;

	add_filter(keys, header);
	range->not_null = true;
	if (row == NULL)
	{
		keys->impossible = true;
		return;
	}
	best = row->is_low ? &range->low_row : &range->high_row;
	if (row->used > 0 &&
		(*best == NULL || lsm_rowkey_is_tighter(&keys->ks->columns[column], row, *best)))
		*best = row;
}

/* Note a scalar key. */
static void
note_key(LsmScanKeys *keys, ScanKey key)
{
	int			column = key->sk_attno - 1;
	LsmColumnRange *range = &keys->columns[column];
	Datum		low;
	Datum		high;
	FmgrInfo   *cmp;

	/* drop_implied_filters removes the filter again if the bounds imply it. */
	add_filter(keys, key);
	if (key->sk_flags & SK_SEARCHNULL)
	{
		if (range->equal == NULL)
		{
			range->equal = key;
			range->is_null = true;
			range->cmp = &keys->ks->columns[column].cmp;
		}
		return;
	}
	range->not_null = true;
	if (key->sk_flags & SK_SEARCHNOTNULL)
		return;
	if (key->sk_strategy == BTEqualStrategyNumber && range->equal == NULL &&
		lsm_convert_for_column(keys, column, key->sk_subtype, key->sk_argument,
							 &low, &high, &cmp) == LSM_CONVERT_EXACT)
	{
		range->equal = key;
		range->value = low;
		range->cmp = cmp;
		return;
	}
	(void) lsm_range_note(keys, column, key->sk_strategy, key->sk_subtype, key->sk_argument);
}

/* Note a condition such as column < ANY (array).  Only the extreme element counts. */
static void
note_array_inequality(LsmScanKeys *keys, LsmArrayKey *array)
{
	ScanKey		key = palloc(sizeof(ScanKeyData));
	bool		wants_greatest = array->key->sk_strategy < BTEqualStrategyNumber;

	*key = *array->key;
	key->sk_flags &= ~SK_SEARCHARRAY;
	key->sk_argument = array->elements[wants_greatest ? array->count - 1 : 0];
	note_key(keys, key);
}

/* Note an array key.  Returns whether the key is an equality, which needs the array. */
static bool
note_array(LsmScanKeys *keys, ScanKey key, LsmArrayKey *array)
{
	lsm_arraykey_init(keys, array, key);
	keys->columns[array->column].not_null = true;
	if (array->count == 0)
		keys->impossible = true;
	else if (key->sk_strategy != BTEqualStrategyNumber)
		note_array_inequality(keys, array);
	else
	{
		keys->filter_columns = Max(keys->filter_columns, key->sk_attno);
		return true;
	}
	return false;
}

/* Do all entries within the bounds, and in a combination, pass this filter? */
static bool
bounds_imply_filter(LsmScanKeys *keys, ScanKey key)
{
	int			column = key->sk_attno - 1;
	LsmColumnRange *range = &keys->columns[column];

	if (column > keys->driving)
		return false;
	if (column < keys->driving && (range->equal != NULL || range->array != NULL))
		return key == range->equal;
	if (key->sk_flags & SK_SEARCHNOTNULL)
		return true;
	return !(key->sk_flags & (SK_SEARCHNULL | SK_ROW_HEADER)) &&
		key->sk_strategy != BTEqualStrategyNumber &&
		lsm_range_note(keys, column, key->sk_strategy, key->sk_subtype, key->sk_argument);
}

/*
 * Drop filters that the bounds imply: the equalities of the driving columns; IS NOT NULL and
 * inequalities on skipped columns and on the column after the driving ones, if the ends of
 * their ranges come from the column's own comparison.
 */
static void
drop_implied_filters(LsmScanKeys *keys)
{
	int			kept = 0;

	for (int i = 0; i < keys->filter_count; i++)
	{
		if (!bounds_imply_filter(keys, keys->filters[i]))
			keys->filters[kept++] = keys->filters[i];
	}
	keys->filter_count = kept;
	keys->filter_columns = 0;
	for (int i = 0; i < kept; i++)
		keys->filter_columns = Max(keys->filter_columns, columns_to_check(keys->filters[i]));
	for (int a = 0; a < keys->array_count; a++)
	{
		if (!keys->arrays[a].drives)
			keys->filter_columns = Max(keys->filter_columns, keys->arrays[a].column + 1);
	}
}

/*
 * Clear everything except the columns of the bounds, which are large: clearing them would be
 * noticeable in nested loops.
 */
static void
clear_keys(LsmScanKeys *keys)
{
	memset(keys, 0, offsetof(LsmScanKeys, low));
	lsm_bound_clear(&keys->low);
	lsm_bound_clear(&keys->high);
	lsm_bound_clear(&keys->first);
	lsm_bound_clear(&keys->last);
}

/* Prepare the keys of a scan.  The current memory context must live until the next call. */
void
lsm_scankeys_prepare(LsmScanKeys *keys, LsmKeySpace *ks, ScanKey scan_keys, int count)
{
	clear_keys(keys);
	keys->ks = ks;
	keys->columns = palloc0(ks->nkeys * sizeof(LsmColumnRange));
	keys->filters = palloc((count + 1) * sizeof(ScanKey));
	keys->arrays = palloc((count + 1) * sizeof(LsmArrayKey));

	for (int i = 0; i < count; i++)
	{
		ScanKey		key = &scan_keys[i];

		/* Operators of an ordered index are strict: NULL matches nothing. */
		if ((key->sk_flags & SK_ISNULL) &&
			!(key->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL)))
		{
			keys->impossible = true;
			return;
		}
		if (key->sk_flags & SK_ROW_HEADER)
		{
			note_row_key(keys, key);
			if (keys->impossible)
				return;
		}
		else if (key->sk_flags & SK_SEARCHARRAY)
		{
			if (note_array(keys, key, &keys->arrays[keys->array_count]))
				keys->array_count++;
			if (keys->impossible)
				return;
		}
		else
			note_key(keys, key);
	}
	for (int i = 0; i < ks->nkeys; i++)
	{
		if (keys->columns[i].is_null && keys->columns[i].not_null)
			keys->impossible = true;
	}
	lsm_driving_choose(keys);
	drop_implied_filters(keys);
}

/* Does an entry within the bounds satisfy all filters? */
bool
lsm_scankeys_pass(LsmScanKeys *keys, const LsmEntry *entry)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (keys->filter_columns == 0)
		return true;
	lsm_keyspace_deform(keys->ks, entry, keys->filter_columns, values, isnull);
	for (int i = 0; i < keys->filter_count; i++)
	{
		ScanKey		key = keys->filters[i];
		int			column = key->sk_attno - 1;

		if (key->sk_flags & SK_SEARCHNULL)
		{
			if (!isnull[column])
				return false;
		}
		else if (key->sk_flags & SK_SEARCHNOTNULL)
		{
			if (isnull[column])
				return false;
		}
		else if (key->sk_flags & SK_ROW_HEADER)
		{
			if (!lsm_rowkey_pass(key, values, isnull))
				return false;
		}
		else if (isnull[column] ||
				 !DatumGetBool(FunctionCall2Coll(&key->sk_func, key->sk_collation,
												 values[column], key->sk_argument)))
			return false;
	}
	for (int i = 0; i < keys->array_count; i++)
	{
		LsmArrayKey *array = &keys->arrays[i];

		if (!array->drives &&
			(isnull[array->column] || !lsm_arraykey_contains(array, values[array->column])))
			return false;
	}
	return true;
}
