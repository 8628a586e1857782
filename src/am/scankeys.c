/*
 * scankeys.c
 *	  Preparing scan keys: which part of the index to read, and what to check
 *	  of each entry there.
 *
 * Columns are taken from the left.  While each has an equality (a value, IS
 * NULL, or an array that drives the scan) the next one narrows the bounds too;
 * the first without one contributes its range, or a row comparison that begins
 * with it, and ends the bounds.  Keys that the bounds do not imply are filters.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "am/scankeys.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

/* The columns that have to be looked at to check a key. */
static int
columns_of(ScanKey key)
{
	return key->sk_flags & SK_ROW_HEADER ? lsm_rowkey_last_column(key) : key->sk_attno;
}

static void
add_filter(LsmScanKeys *keys, ScanKey key)
{
	keys->filters[keys->filter_count++] = key;
	keys->filter_columns = Max(keys->filter_columns, columns_of(key));
}

/* The family's comparison of two types; false if there is none. */
static bool
find_order(LsmColumn *column, Oid left, Oid right, FmgrInfo *order)
{
	Oid			proc;

	if (!OidIsValid(right))
		right = column->opcintype;
	if (left == column->opcintype && right == column->opcintype)
	{
		*order = column->cmp;
		return true;
	}
	proc = get_opfamily_proc(column->opfamily, left, right, BTORDER_PROC);
	if (!OidIsValid(proc))
		return false;
	fmgr_info(proc, order);
	return true;
}

/*
 * A value in terms of the column: what to seek, from *low to *high, and how to
 * compare.  False if it cannot be sought.
 */
bool
lsm_scankeys_seekable(LsmScanKeys *keys, int column, Oid subtype, Datum value,
					  Datum *low, Datum *high, FmgrInfo **cmp, bool *exact)
{
	LsmColumn  *c = &keys->ks->columns[column];

	*low = *high = value;
	*cmp = &c->cmp;
	*exact = true;
	if (!OidIsValid(subtype) || subtype == c->opcintype)
		return true;
	if (!keys->ks->encoded)
	{
		*cmp = palloc(sizeof(FmgrInfo));
		return find_order(c, c->opcintype, subtype, *cmp);
	}
	switch (lsm_convert_value(c->opcintype, subtype, value, low, high))
	{
		case LSM_CONVERT_EXACT:
			*high = *low;
			return true;
		case LSM_CONVERT_RANGE:
			*exact = false;
			return true;
		default:
			return false;
	}
}

/* Is candidate closer than the end that is there?  low: greater is closer. */
static bool
is_tighter(LsmColumn *c, const LsmRangeEnd *end, Datum value, bool inclusive,
		   FmgrInfo *cmp, bool is_low)
{
	int			order;

	if (!end->present)
		return true;
	/* Cross-type values cannot be compared with each other. */
	if (cmp != &c->cmp || end->cmp != &c->cmp)
		return false;
	order = lsm_column_compare(c, cmp, value, false, end->value, false);
	if (order == 0)
		return end->inclusive && !inclusive;
	return is_low ? order > 0 : order < 0;
}

static void
set_end(LsmRangeEnd *end, Datum value, bool inclusive, FmgrInfo *cmp)
{
	end->present = true;
	end->value = value;
	end->inclusive = inclusive;
	end->cmp = cmp;
}

/*
 * Note an inequality, or an inexact equality, as ends of the column's range.
 * Returns true if the range implies the key.  A key that loses to a tighter
 * one is implied by it.
 */
static bool
note_range(LsmScanKeys *keys, int column, StrategyNumber strategy, Oid subtype, Datum value)
{
	LsmColumn  *c = &keys->ks->columns[column];
	LsmColumnRange *range = &keys->columns[column];
	Datum		low;
	Datum		high;
	FmgrInfo   *cmp;
	bool		exact;
	bool		wants_low = strategy >= BTEqualStrategyNumber;
	bool		wants_high = strategy <= BTEqualStrategyNumber;
	bool		inclusive;

	if (!lsm_scankeys_seekable(keys, column, subtype, value, &low, &high, &cmp, &exact))
		return false;
	inclusive = !exact || (strategy != BTLessStrategyNumber &&
						   strategy != BTGreaterStrategyNumber);

	/* From here on low and high are in index order. */
	if (c->desc)
	{
		Datum		swap = low;
		bool		swap_wants = wants_low;

		low = high;
		high = swap;
		wants_low = wants_high;
		wants_high = swap_wants;
	}
	if (wants_low && is_tighter(c, &range->low, low, inclusive, cmp, true))
		set_end(&range->low, low, inclusive, cmp);
	if (wants_high && is_tighter(c, &range->high, high, inclusive, cmp, false))
		set_end(&range->high, high, inclusive, cmp);

	/* With two comparisons at work one may not imply the other. */
	return exact && cmp == &c->cmp &&
		(!wants_low || range->low.cmp == &c->cmp) &&
		(!wants_high || range->high.cmp == &c->cmp);
}

/*
 * Note a row comparison.  It stays a filter: NULLs of its later columns lie
 * within its bound, but do not match.
 */
static void
note_row(LsmScanKeys *keys, ScanKey header)
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
	bool		exact;

	/* Every key is a filter until the bounds are known to imply it. */
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
		lsm_scankeys_seekable(keys, column, key->sk_subtype, key->sk_argument, &low, &high, &cmp, &exact) &&
		exact)
	{
		range->equal = key;
		range->value = low;
		range->cmp = cmp;
		return;
	}
	(void) note_range(keys, column, key->sk_strategy, key->sk_subtype, key->sk_argument);
}

static int
compare_elements(const void *a, const void *b, void *arg)
{
	LsmArrayKey *array = arg;
	const Datum *x = a;
	const Datum *y = b;

	return DatumGetInt32(FunctionCall2Coll(&array->element_order, array->key->sk_collation, *x, *y));
}

/* Take an array apart, without its NULLs.  Returns the number of elements. */
static int
get_elements(ScanKey key, Datum **elements, Oid *type)
{
	ArrayType  *array = DatumGetArrayTypeP(key->sk_argument);
	int16		typlen;
	bool		typbyval;
	char		typalign;
	bool	   *isnull;
	int			count;
	int			kept = 0;

	*type = ARR_ELEMTYPE(array);
	get_typlenbyvalalign(*type, &typlen, &typbyval, &typalign);
	deconstruct_array(array, *type, typlen, typbyval, typalign, elements, &isnull, &count);
	for (int i = 0; i < count; i++)
	{
		if (!isnull[i])
			(*elements)[kept++] = (*elements)[i];
	}
	return kept;
}

/*
 * The subtype of an array key as operators see it: polymorphic operator
 * classes have their own input type.
 */
static Oid
element_subtype(LsmColumn *column, ScanKey key, Oid element_type)
{
	if (OidIsValid(key->sk_subtype))
		return key->sk_subtype;
	return column->opcintype;
}

/* col < ANY (array) and its kin: only the extreme element counts. */
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

/* Note an array key.  `array` is kept if it is an equality. */
static bool
note_array(LsmScanKeys *keys, ScanKey key, LsmArrayKey *array)
{
	LsmColumn  *column = &keys->ks->columns[key->sk_attno - 1];
	Oid			type;
	Oid			subtype;
	int			unique = 0;

	memset(array, 0, sizeof(LsmArrayKey));
	array->key = key;
	array->column = key->sk_attno - 1;
	array->count = get_elements(key, &array->elements, &type);
	keys->columns[array->column].not_null = true;
	if (array->count == 0)
	{
		keys->impossible = true;
		return false;
	}
	subtype = element_subtype(column, key, type);
	if (!find_order(column, subtype, subtype, &array->element_order) ||
		!find_order(column, column->opcintype, subtype, &array->order))
		elog(ERROR, "missing support function %d(%u,%u) for attribute %d of index \"%s\"",
			 BTORDER_PROC, column->opcintype, subtype, key->sk_attno, keys->ks->index_name);

	qsort_arg(array->elements, array->count, sizeof(Datum), compare_elements, array);
	for (int i = 0; i < array->count; i++)
	{
		if (unique == 0 ||
			compare_elements(&array->elements[unique - 1], &array->elements[i], array) != 0)
			array->elements[unique++] = array->elements[i];
	}
	array->count = unique;
	if (key->sk_strategy != BTEqualStrategyNumber)
	{
		note_array_inequality(keys, array);
		return false;
	}
	keys->filter_columns = Max(keys->filter_columns, key->sk_attno);
	return true;
}

/* Could every element of the array be sought exactly? */
static bool
array_can_drive(LsmScanKeys *keys, LsmArrayKey *array)
{
	LsmColumn  *column = &keys->ks->columns[array->column];
	Oid			subtype = array->key->sk_subtype;
	Datum		low;
	Datum		high;
	FmgrInfo   *cmp;
	bool		exact;

	if (!keys->ks->encoded || !OidIsValid(subtype) || subtype == column->opcintype)
		return true;
	for (int i = 0; i < array->count; i++)
	{
		if (!lsm_scankeys_seekable(keys, array->column, subtype, array->elements[i], &low, &high, &cmp, &exact) ||
			!exact)
			return false;
	}
	return true;
}

/*
 * Decide which arrays drive the scan: those on a prefix of columns that all
 * have equalities.  Driven combinations come in index order, so the order of
 * the whole is kept.  The others are filters.
 */
static void
choose_driving_arrays(LsmScanKeys *keys)
{
	for (int i = 0; i < keys->ks->nkeys; i++)
	{
		LsmColumnRange *range = &keys->columns[i];

		for (int a = 0; a < keys->array_count && range->equal == NULL && range->array == NULL; a++)
		{
			if (keys->arrays[a].column == i && array_can_drive(keys, &keys->arrays[a]))
			{
				range->array = &keys->arrays[a];
				range->array->drives = true;
			}
		}
		if (range->equal == NULL && range->array == NULL)
			break;
	}
}

/*
 * Drop filters that the bounds imply: the equalities of the leading columns,
 * and comparisons and IS NOT NULL on the first column without an equality,
 * when its ends came from the column's own comparison.
 */
static void
drop_implied_filters(LsmScanKeys *keys)
{
	int			column = 0;
	int			kept = 0;

	while (column < keys->ks->nkeys &&
		   (keys->columns[column].equal != NULL || keys->columns[column].array != NULL))
		column++;
	for (int i = 0; i < keys->filter_count; i++)
	{
		ScanKey		key = keys->filters[i];
		bool		implied = false;

		if (key->sk_attno - 1 < column)
			implied = key == keys->columns[key->sk_attno - 1].equal;
		else if (key->sk_attno - 1 == column)
		{
			if (key->sk_flags & SK_SEARCHNOTNULL)
				implied = true;
			else if (!(key->sk_flags & (SK_SEARCHNULL | SK_ROW_HEADER)) &&
					 key->sk_strategy != BTEqualStrategyNumber)
				implied = note_range(keys, column, key->sk_strategy, key->sk_subtype,
									 key->sk_argument);
		}
		if (!implied)
			keys->filters[kept++] = key;
	}
	keys->filter_count = kept;
	keys->filter_columns = 0;
	for (int i = 0; i < kept; i++)
		keys->filter_columns = Max(keys->filter_columns, columns_of(keys->filters[i]));
	for (int a = 0; a < keys->array_count; a++)
	{
		if (!keys->arrays[a].drives)
			keys->filter_columns = Max(keys->filter_columns, keys->arrays[a].column + 1);
	}
}

/*
 * Prepare the keys of a scan.  Allocates in the current memory context, which
 * must live until the next call.
 */
void
lsm_scankeys_prepare(LsmScanKeys *keys, LsmKeySpace *ks, ScanKey scan_keys, int count)
{
	memset(keys, 0, sizeof(LsmScanKeys));
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
			note_row(keys, key);
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
	choose_driving_arrays(keys);
	drop_implied_filters(keys);
}

/* Set the driving arrays to the first combination in this direction. */
void
lsm_scankeys_start_arrays(LsmScanKeys *keys, ScanDirection direction)
{
	for (int i = 0; i < keys->array_count; i++)
	{
		LsmArrayKey *array = &keys->arrays[i];
		bool		first = ScanDirectionIsForward(direction) !=
			keys->ks->columns[array->column].desc;

		array->current = first ? 0 : array->count - 1;
	}
}

/* Go to the next combination; the last column's array turns fastest. */
bool
lsm_scankeys_advance_arrays(LsmScanKeys *keys, ScanDirection direction)
{
	for (int i = keys->ks->nkeys - 1; i >= 0; i--)
	{
		LsmArrayKey *array = keys->columns[i].array;
		bool		up = ScanDirectionIsForward(direction) != keys->ks->columns[i].desc;

		if (array == NULL)
			continue;
		array->current += up ? 1 : -1;
		if (array->current >= 0 && array->current < array->count)
			return true;
		array->current = up ? 0 : array->count - 1;
	}
	return false;
}

static void
add_to_both(LsmScanKeys *keys, Datum value, bool isnull, FmgrInfo *cmp)
{
	lsm_bound_add(keys->ks, &keys->low, value, isnull, cmp);
	lsm_bound_add(keys->ks, &keys->high, value, isnull, cmp);
}

/* Add the range of the first column without an equality to the bounds. */
static void
add_range(LsmScanKeys *keys, int column)
{
	LsmColumn  *c = &keys->ks->columns[column];
	LsmColumnRange *range = &keys->columns[column];
	bool		skip_nulls = range->not_null;

	if (range->low_row != NULL && lsm_rowkey_beats(c, range->low_row, &range->low))
		lsm_rowkey_add(keys->ks, &keys->low, range->low_row);
	else if (range->low.present)
	{
		lsm_bound_add(keys->ks, &keys->low, range->low.value, false, range->low.cmp);
		keys->low.tie = range->low.inclusive ? 1 : -1;
	}
	else if (skip_nulls && c->nulls_first)
	{
		lsm_bound_add(keys->ks, &keys->low, (Datum) 0, true, NULL);
		keys->low.tie = -1;
	}

	if (range->high_row != NULL && lsm_rowkey_beats(c, range->high_row, &range->high))
		lsm_rowkey_add(keys->ks, &keys->high, range->high_row);
	else if (range->high.present)
	{
		lsm_bound_add(keys->ks, &keys->high, range->high.value, false, range->high.cmp);
		keys->high.tie = range->high.inclusive ? -1 : 1;
	}
	else if (skip_nulls && !c->nulls_first)
	{
		lsm_bound_add(keys->ks, &keys->high, (Datum) 0, true, NULL);
		keys->high.tie = 1;
	}
}

/*
 * Make the bounds of the current combination of array elements.  All that they
 * need is allocated anew, in the current memory context: the caller may have
 * reset it since the last combination.
 */
void
lsm_scankeys_make_bounds(LsmScanKeys *keys)
{
	keys->low.key = keys->high.key = NULL;
	keys->low.key_room = keys->high.key_room = 0;
	lsm_bound_init(&keys->low, 1);
	lsm_bound_init(&keys->high, -1);
	for (int i = 0; i < keys->ks->nkeys; i++)
	{
		LsmColumnRange *range = &keys->columns[i];

		if (range->equal != NULL)
			add_to_both(keys, range->value, range->is_null, range->cmp);
		else if (range->array != NULL)
		{
			Datum		low;
			Datum		high;
			FmgrInfo   *cmp;
			bool		exact;

			if (!lsm_scankeys_seekable(keys, i, range->array->key->sk_subtype,
						  range->array->elements[range->array->current],
						  &low, &high, &cmp, &exact))
				elog(ERROR, "array element cannot be sought");
			add_to_both(keys, low, false, cmp);
		}
		else
		{
			add_range(keys, i);
			break;
		}
	}
}

static bool
array_contains(LsmScanKeys *keys, LsmArrayKey *array, Datum value)
{
	int			low = 0;
	int			high = array->count;
	Oid			collation = array->key->sk_collation;

	while (low < high)
	{
		int			middle = (low + high) / 2;
		int			c = DatumGetInt32(FunctionCall2Coll(&array->order, collation, value,
														array->elements[middle]));

		if (c == 0)
			return true;
		if (c > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* Does an entry within the bounds satisfy all keys? */
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
			(isnull[array->column] || !array_contains(keys, array, values[array->column])))
			return false;
	}
	return true;
}

/* The memory of the bounds is gone: make them anew. */
void
lsm_scankeys_forget_bounds(LsmScanKeys *keys)
{
	memset(&keys->low, 0, sizeof(LsmBound));
	memset(&keys->high, 0, sizeof(LsmBound));
}
