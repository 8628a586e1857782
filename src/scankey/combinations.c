/*
 * combinations.c
 *	  Enumerates the combinations of values of the leading columns, for array keys and skip scans.
 *
 * The driving columns are those up to the last column with an equality or an array, and those
 * before the last column with a range.  A driving column has one value, the elements of an array,
 * or all values that exist within its range: then it is skipped.  A combination has a value for
 * each driving column.  Within a combination, the range of the column after the driving ones bounds
 * the entries.
 *
 * lsm_combination_place finds the combination of an entry.  If there is none, the first combination
 * after the entry becomes the current one.  So combinations without entries cost nothing, and the
 * result depends only on the entry, not on the previous combination.  A skipped column takes its
 * values from the entries: after the last entry with a value, the scan seeks whatever comes next.
 *
 * Encoded keys compare as bytes, so the current combination is a prefix of keys.  See
 * docs/design/scan-keys.md.
 */
#include "postgres.h"

#include "key/encode.h"
#include "scankey/scankey.h"
#include "scankey/scankey_parts.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* A column of the entry that is being placed. */
typedef struct PlacedColumn
{
	const uint8 *key;			/* encoded: where the column begins */
	uint32		left;			/* bytes from there to the end of the key */
	Datum		value;			/* tuple keys */
	bool		isnull;
} PlacedColumn;

/* --- the current combination ------------------------------------------------ */

/* Put the code of column i after the codes of the columns before it. */
static void
put_code(LsmScanKeys *keys, int i, const uint8 *code, uint32 len)
{
	uint32		at = i > 0 ? keys->drivers[i - 1].end : 0;

	if (at + len > keys->prefix_room)
	{
		keys->prefix_room = 2 * (at + len) + 64;
		keys->prefix = keys->prefix == NULL ?
			MemoryContextAlloc(keys->context, keys->prefix_room) :
			repalloc(keys->prefix, keys->prefix_room);
	}
	memcpy(keys->prefix + at, code, len);
	keys->drivers[i].end = at + len;
}

/* Set column i to its only value, or to the current element of its array. */
static void
set_fixed_value(LsmScanKeys *keys, int i)
{
	LsmDriver  *d = &keys->drivers[i];
	LsmArrayKey *array = keys->columns[i].array;

	keys->known = i + 1;
	keys->past = false;
	if (array != NULL)
	{
		if (keys->ks->encoded)
			put_code(keys, i, array->codes + array->code_ends[array->current],
					 array->code_ends[array->current + 1] - array->code_ends[array->current]);
		else
			d->value.value = array->elements[array->current];
	}
	else if (keys->ks->encoded)
		put_code(keys, i, d->code, d->code_len);
}

/* Set a skipped column to the entry's value. */
static void
set_skipped_value(LsmScanKeys *keys, int i, const PlacedColumn *placed)
{
	LsmColumn  *column = &keys->ks->columns[i];
	LsmDriver  *d = &keys->drivers[i];

	keys->known = i + 1;
	keys->past = false;
	if (keys->ks->encoded)
	{
		uint32		len = lsm_encoded_column_length(column, placed->key,
													placed->key + placed->left);

		if (len == 0)
			lsm_keyspace_report_entry(keys->ks);
		put_code(keys, i, placed->key, len);
	}
	else
	{
		MemoryContext old = MemoryContextSwitchTo(keys->context);

		if (d->owns_value)
			pfree(DatumGetPointer(d->value.value));
		d->owns_value = false;
		d->value.isnull = placed->isnull;
		if (!placed->isnull)
		{
			d->value.value = datumCopy(placed->value, column->typbyval, column->typlen);
			d->owns_value = !column->typbyval;
		}
		MemoryContextSwitchTo(old);
	}
}

/*
 * Set column i and the columns after it to their first values in the direction of the scan.  Stops
 * at a skipped column, whose values come from entries.
 */
static void
reset_columns_from(LsmScanKeys *keys, int i, bool forward)
{
	keys->past = false;
	for (; i < keys->driving; i++)
	{
		LsmColumnRange *range = &keys->columns[i];

		if (range->equal == NULL && range->array == NULL)
		{
			keys->known = i;
			return;
		}
		if (range->array != NULL)
			range->array->current = forward ? 0 : range->array->count - 1;
		set_fixed_value(keys, i);
	}
}

/* Is a column of an entry before (-1), within (0) or after (1) the range of column i? */
static int
compare_with_range(LsmScanKeys *keys, int i, const PlacedColumn *placed)
{
	LsmColumn  *column = &keys->ks->columns[i];
	LsmColumnRange *range = &keys->columns[i];
	bool		isnull = keys->ks->encoded ? lsm_encoded_is_null(placed->key) : placed->isnull;

	if (isnull)
		return !range->not_null ? 0 : column->nulls_first ? -1 : 1;
	for (int side = -1; side <= 1; side += 2)
	{
		LsmRangeEnd *end = side < 0 ? &range->low : &range->high;
		int			c;

		if (!end->present)
			continue;
		if (keys->ks->encoded)
			c = memcmp(placed->key, end->code, Min(placed->left, end->code_len));
		else
			c = lsm_column_compare(column, end->cmp, placed->value, false, end->value, false);
		if (c == 0 ? !end->inclusive : (c < 0) == (side < 0))
			return side;
	}
	return 0;
}

/*
 * Set a skipped column to the next value of its type.  This saves a seek if there are entries with
 * that value.  Codes of a fixed length are incremented as numbers.  If the next value is not known,
 * sets keys->past.  Returns false if the next value is not within the range.
 */
static bool
advance_skipped_value(LsmScanKeys *keys, int i, bool forward)
{
	uint32		start = i > 0 ? keys->drivers[i - 1].end : 0;
	uint32		len = keys->drivers[i].end - start;
	uint8	   *code = keys->prefix + start;
	uint32		at = len - 1;
	PlacedColumn column = {code, len, (Datum) 0, false};

	keys->known = i + 1;
	keys->past = true;
	if (!keys->ks->encoded || lsm_encoded_is_null(code) ||
		len != lsm_encoded_length(&keys->ks->columns[i]))
		return true;
	while (at >= 1 && code[at] == (forward ? 0xFF : 0))
		at--;
	if (at == 0)
		return true;
	code[at] += forward ? 1 : -1;
	memset(code + at + 1, forward ? 0 : 0xFF, len - 1 - at);
	keys->past = false;
	return compare_with_range(keys, i, &column) == 0;
}

/* Advance to the next combination after the values of the columns up to i. */
static LsmPlace
advance_from(LsmScanKeys *keys, int i, bool forward)
{
	for (; i >= 0; i--)
	{
		LsmColumnRange *range = &keys->columns[i];

		if (range->array != NULL)
		{
			int			next = range->array->current + (forward ? 1 : -1);

			if (next < 0 || next >= range->array->count)
				continue;
			range->array->current = next;
			set_fixed_value(keys, i);
		}
		else if (range->equal != NULL || !advance_skipped_value(keys, i, forward))
			continue;
		if (!keys->past)
			reset_columns_from(keys, i + 1, forward);
		return LSM_PLACE_BEFORE;
	}
	return LSM_PLACE_END;
}

/* Returns the number of the current combination.  REQUIRES: no column is skipped. */
uint64
lsm_combination_number(const LsmScanKeys *keys)
{
	uint64		number = 0;

	for (int i = 0; i < keys->driving; i++)
	{
		const LsmArrayKey *array = keys->columns[i].array;

		if (array != NULL)
			number = number * array->count + array->current;
	}
	return number;
}

/*
 * Advance to the next combination.
 *
 * REQUIRES: the current one has a value for each driving column.
 */
LsmPlace
lsm_combination_next(LsmScanKeys *keys, ScanDirection direction)
{
	keys->has_ends = false;
	return advance_from(keys, keys->driving - 1, ScanDirectionIsForward(direction));
}

/* --- placing entries -------------------------------------------------------- */

static int
compare_element(LsmScanKeys *keys, int i, LsmArrayKey *array, int n, const PlacedColumn *placed)
{
	if (keys->ks->encoded)
	{
		uint32		from = array->code_ends[n];

		return memcmp(placed->key, array->codes + from,
					  Min(placed->left, array->code_ends[n + 1] - from));
	}
	return lsm_column_compare(&keys->ks->columns[i], array->order, placed->value,
							  placed->isnull, array->elements[n], false);
}

/*
 * Move the array to its first element that is not before the entry's column, in the direction of
 * the scan.  Returns 0 if the element is equal, -1 if it comes after the column, and 1 if there
 * is no such element.
 */
static int
seek_element(LsmScanKeys *keys, int i, bool forward, const PlacedColumn *placed)
{
	LsmArrayKey *array = keys->columns[i].array;
	int			low = 0;
	int			high = array->count;
	int			n = array->current;

	/* Try the current element and its neighbor first. */
	for (int try = 0; low < high; try++)
	{
		int			c = compare_element(keys, i, array, n, placed);

		if (c == 0)
		{
			array->current = n;
			return 0;
		}
		if (c > 0)
			low = n + 1;
		else
			high = n;
		n = try == 0 && low < high ? (c > 0 ? low : high - 1) : (low + high) / 2;
	}
	/* Element `low` and all later elements are greater. */
	n = forward ? low : low - 1;
	if (n < 0 || n >= array->count)
		return 1;
	array->current = n;
	return -1;
}

/*
 * Place one column of an entry.  Returns -1 if the entry is before the combination in the direction
 * of the scan, 1 if it is after, and 0 if the columns placed so far agree with the combination.
 */
static int
place_column(LsmScanKeys *keys, int i, bool forward, const PlacedColumn *placed)
{
	LsmColumnRange *range = &keys->columns[i];
	LsmDriver  *d = &keys->drivers[i];
	int			c;

	if (range->array != NULL)
		return seek_element(keys, i, forward, placed);
	if (range->equal == NULL)
		c = compare_with_range(keys, i, placed);
	else if (keys->ks->encoded)
		c = memcmp(placed->key, d->code, Min(placed->left, d->code_len));
	else
		c = lsm_column_compare(&keys->ks->columns[i], d->value.cmp, placed->value,
							   placed->isnull, d->value.value, d->value.isnull);
	c = c < 0 ? -1 : c > 0;
	return forward ? c : -c;
}

/* Make the bounds of the current combination, unless they are known. */
static void
make_ends(LsmScanKeys *keys)
{
	if (keys->has_ends)
		return;
	lsm_combination_bound(keys, &keys->first, true);
	lsm_combination_bound(keys, &keys->last, false);
	keys->has_ends = true;
}

/*
 * Place an entry that has the values of the current combination, judging by the range of the column
 * after the driving ones.
 */
static LsmPlace
place_in_range(LsmScanKeys *keys, const LsmEntry *entry, bool forward)
{
	bool		low;
	bool		high;

	if (!keys->has_range)
		return LSM_PLACE_IN;
	make_ends(keys);
	low = lsm_bound_compare(keys->ks, &keys->first, entry) < 0;
	high = lsm_bound_compare(keys->ks, &keys->last, entry) > 0;
	if (forward ? high : low)
	{
		keys->has_ends = false;
		return advance_from(keys, keys->driving - 1, forward);
	}
	return low || high ? LSM_PLACE_BEFORE : LSM_PLACE_IN;
}

/* Does the entry have the values of the current combination? */
static bool
has_current_values(LsmScanKeys *keys, const LsmEntry *entry, const Datum *values, const bool *isnull)
{
	if (keys->known < keys->driving || keys->past)
		return false;
	if (keys->ks->encoded)
	{
		uint32		len = keys->drivers[keys->driving - 1].end;

		return entry->keylen >= len && memcmp(entry->key, keys->prefix, len) == 0;
	}
	for (int i = keys->driving - 1; i >= 0; i--)
	{
		LsmBoundColumn *value = &keys->drivers[i].value;

		if (lsm_column_compare(&keys->ks->columns[i], value->cmp, values[i], isnull[i],
							   value->value, value->isnull) != 0)
			return false;
	}
	return true;
}

/* Is an entry in the current combination?  REQUIRES: the entry placed last is in it. */
bool
lsm_combination_has(LsmScanKeys *keys, const LsmEntry *entry)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (!keys->ks->encoded)
		lsm_keyspace_deform(keys->ks, entry, keys->driving, values, isnull);
	if (!has_current_values(keys, entry, values, isnull))
		return false;
	if (!keys->has_range)
		return true;
	make_ends(keys);
	return lsm_bound_compare(keys->ks, &keys->first, entry) > 0 &&
		lsm_bound_compare(keys->ks, &keys->last, entry) < 0;
}

/* Do the bounds of the scan imply that entries satisfy the conditions on column i? */
static inline bool
bounds_imply_column(const LsmScanKeys *keys, int i)
{
	return i == 0 && keys->columns[0].equal == NULL && keys->columns[0].array == NULL;
}

/* Does a column of an entry satisfy its conditions? */
static bool
column_passes(LsmScanKeys *keys, int i, const PlacedColumn *placed)
{
	if (bounds_imply_column(keys, i))
		return true;
	return (i < keys->driving ? place_column(keys, i, true, placed) :
			compare_with_range(keys, i, placed)) == 0;
}

static bool
encoded_entry_passes(LsmScanKeys *keys, const LsmEntry *entry, int columns)
{
	PlacedColumn placed = {entry->key, entry->keylen};

	for (int i = 0;; i++)
	{
		uint32		len;

		if (unlikely(placed.left == 0))
			lsm_keyspace_report_entry(keys->ks);
		if (!column_passes(keys, i, &placed))
			return false;
		if (i + 1 == columns)
			return true;
		len = keys->drivers[i].fixed_len;
		if (len == 0 || len > placed.left || lsm_encoded_is_null(placed.key))
			len = lsm_encoded_column_length(&keys->ks->columns[i], placed.key,
											placed.key + placed.left);
		if (unlikely(len == 0))
			lsm_keyspace_report_entry(keys->ks);
		placed.key += len;
		placed.left -= len;
	}
}

static bool
tuple_entry_passes(LsmScanKeys *keys, const LsmEntry *entry, int columns)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	lsm_keyspace_deform(keys->ks, entry, columns, values, isnull);
	for (int i = 0; i < columns; i++)
	{
		PlacedColumn placed = {NULL, 0, values[i], isnull[i]};

		if (!column_passes(keys, i, &placed))
			return false;
	}
	return true;
}

/*
 * Returns the number of the first entry that is in some combination, or `count` if there is none.
 * The entries are `stride` apart.  Costs less than placing them, but leaves no combination current:
 * unless this function is called again, lsm_combination_place must be next.
 *
 * REQUIRES: keys->can_filter, and the entries lie within the bounds of the scan.
 */
int
lsm_combination_find(LsmScanKeys *keys, const LsmEntry *entry, int stride, int count)
{
	int			columns = keys->driving + keys->has_range;

	keys->known = 0;
	keys->has_ends = false;
	for (int n = 0; n < count; n++, entry += stride)
	{
		if (keys->ks->encoded ? encoded_entry_passes(keys, entry, columns) :
			tuple_entry_passes(keys, entry, columns))
			return n;
	}
	return count;
}

/* Get column i of an entry.  REQUIRES: the columns before it have been placed. */
static void
get_placed_column(LsmScanKeys *keys, int i, const LsmEntry *entry, const Datum *values,
		   const bool *isnull, PlacedColumn *placed)
{
	uint32		at = i > 0 ? keys->drivers[i - 1].end : 0;

	if (!keys->ks->encoded)
	{
		placed->value = values[i];
		placed->isnull = isnull[i];
		return;
	}
	if (unlikely(at >= entry->keylen))
		lsm_keyspace_report_entry(keys->ks);
	placed->key = entry->key + at;
	placed->left = entry->keylen - at;
}

/*
 * Place an entry that lies within the bounds of the scan.  Returns LSM_PLACE_IN if the entry is in
 * a combination, which is now current.  Returns LSM_PLACE_BEFORE if it is in no combination; the
 * next combination after the entry is now the current one.  Returns LSM_PLACE_END if no combination
 * comes after the entry.
 */
LsmPlace
lsm_combination_place(LsmScanKeys *keys, const LsmEntry *entry, ScanDirection direction)
{
	bool		forward = ScanDirectionIsForward(direction);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (!keys->ks->encoded)
		lsm_keyspace_deform(keys->ks, entry, keys->driving, values, isnull);
	keys->is_same = has_current_values(keys, entry, values, isnull);
	if (keys->is_same)
		return place_in_range(keys, entry, forward);
	keys->has_ends = false;
	for (int i = 0; i < keys->driving; i++)
	{
		LsmColumnRange *range = &keys->columns[i];
		PlacedColumn placed;
		int			c;

		get_placed_column(keys, i, entry, values, isnull, &placed);
		c = place_column(keys, i, forward, &placed);
		if (c > 0)
			return advance_from(keys, i - 1, forward);
		if (c < 0)
		{
			if (range->array != NULL)
				set_fixed_value(keys, i);
			reset_columns_from(keys, range->array != NULL ? i + 1 : i, forward);
			return LSM_PLACE_BEFORE;
		}
		if (range->equal == NULL && range->array == NULL)
			set_skipped_value(keys, i, &placed);
		else
			set_fixed_value(keys, i);
	}
	return place_in_range(keys, entry, forward);
}

/* --- bounds ----------------------------------------------------------------- */

/* Add the low or the high end of a column's range to a bound.  The column has no equality. */
static void
add_range_end(LsmScanKeys *keys, int column, LsmBound *bound, bool is_low)
{
	LsmColumn  *c = &keys->ks->columns[column];
	LsmColumnRange *range = &keys->columns[column];
	LsmRangeEnd *end = is_low ? &range->low : &range->high;
	LsmRowKey  *row = is_low ? range->low_row : range->high_row;

	if (row != NULL && lsm_rowkey_beats(c, row, end))
		lsm_rowkey_add(keys->ks, bound, row);
	else if (end->present)
	{
		lsm_bound_add(keys->ks, bound, end->value, false, end->cmp);
		bound->tie = end->inclusive == is_low ? 1 : -1;
	}
	else if (range->not_null && c->nulls_first == is_low)
	{
		lsm_bound_add(keys->ks, bound, (Datum) 0, true, NULL);
		bound->tie = is_low ? -1 : 1;
	}
}

/* Make the bound before (is_low) or after the current combination, in index order. */
void
lsm_combination_bound(LsmScanKeys *keys, LsmBound *bound, bool is_low)
{
	MemoryContext old = MemoryContextSwitchTo(keys->context);

	lsm_bound_init(bound, is_low ? 1 : -1);
	if (keys->ks->encoded && keys->known > 0)
		lsm_bound_add_encoded(bound, keys->prefix, keys->drivers[keys->known - 1].end,
							  keys->known);
	else
	{
		for (int i = 0; i < keys->known; i++)
		{
			LsmBoundColumn *value = &keys->drivers[i].value;

			lsm_bound_add(keys->ks, bound, value->value, value->isnull, value->cmp);
		}
	}
	if (keys->past)
		bound->tie = -bound->tie;
	else if (keys->known < keys->ks->nkeys)
		add_range_end(keys, keys->known, bound, is_low);
	MemoryContextSwitchTo(old);
}

/* Make the bounds of the scan in the current memory context, and go to its first combination. */
void
lsm_combination_begin(LsmScanKeys *keys, ScanDirection direction)
{
	keys->has_ends = false;
	if (keys->has_combinations)
	{
		reset_columns_from(keys, 0, true);
		lsm_combination_bound(keys, &keys->low, true);
		reset_columns_from(keys, 0, false);
		lsm_combination_bound(keys, &keys->high, false);
		reset_columns_from(keys, 0, ScanDirectionIsForward(direction));
		return;
	}
	lsm_bound_init(&keys->low, 1);
	lsm_bound_init(&keys->high, -1);
	for (int i = 0; i < keys->driving; i++)
	{
		LsmColumnRange *range = &keys->columns[i];

		lsm_bound_add(keys->ks, &keys->low, range->value, range->is_null, range->cmp);
		lsm_bound_add(keys->ks, &keys->high, range->value, range->is_null, range->cmp);
	}
	if (keys->driving < keys->ks->nkeys)
	{
		add_range_end(keys, keys->driving, &keys->low, true);
		add_range_end(keys, keys->driving, &keys->high, false);
	}
}
