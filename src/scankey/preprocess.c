/*
 * preprocess.c
 *	  Preparing scan keys: which part of the index to read, and what to check
 *	  of each entry there.
 *
 * combinations.c makes bounds of what is known of the columns: what they equal
 * (a value, IS NULL, the elements of an array), and the range of one, or a row
 * comparison that begins with it.  Keys that are not implied by that are
 * filters.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "scankey/scankey.h"
#include "catalog/pg_type.h"
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

/*
 * The family's comparison of two types, or NULL if there is none.  Of the column's own
 * type it is the column's own: a copy would find out anew for each scan, in memory
 * that outlives it, what comparisons of records and arrays remember of their types.
 */
FmgrInfo *
lsm_scankeys_find_order(LsmColumn *column, Oid left, Oid right)
{
	FmgrInfo   *order;
	Oid			proc;

	if (!OidIsValid(right))
		right = column->opcintype;
	if (left == column->opcintype && right == column->opcintype)
		return &column->cmp;
	proc = get_opfamily_proc(column->opfamily, left, right, BTORDER_PROC);
	if (!OidIsValid(proc))
		return NULL;
	order = palloc(sizeof(FmgrInfo));
	fmgr_info(proc, order);
	return order;
}

/*
 * Does the index not have the order in which the column compares with this type?  Local
 * times that a clock leaves out when daylight saving begins are, with their zone, later
 * than the first ones after them; and where it leaves out a day two dates are equal.
 */
static inline bool
is_uneven(const LsmColumn *column, Oid subtype)
{
	return subtype == TIMESTAMPTZOID &&
		(column->opcintype == TIMESTAMPOID || column->opcintype == DATEOID);
}

/*
 * Have values of this type to be converted to the column's own?  Else it compares with
 * them as they are.
 */
bool
lsm_scankeys_converts(const LsmScanKeys *keys, int column, Oid subtype)
{
	const LsmColumn *c = &keys->ks->columns[column];

	return OidIsValid(subtype) && subtype != c->opcintype &&
		(keys->ks->encoded || is_uneven(c, subtype));
}

/*
 * A value in terms of the column: what to seek, from *low to *high, and how to
 * compare.  See lsm_convert_value.
 */
LsmConversion
lsm_scankeys_convert(LsmScanKeys *keys, int column, Oid subtype, Datum value,
					 Datum *low, Datum *high, FmgrInfo **cmp)
{
	LsmColumn  *c = &keys->ks->columns[column];
	LsmConversion result;

	*low = *high = value;
	*cmp = &c->cmp;
	if (!OidIsValid(subtype) || subtype == c->opcintype)
	{
		/* Encoded for each bound: once is enough. */
		if (keys->ks->encoded && c->typlen == -1)
			*low = *high = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
		return LSM_CONVERT_EXACT;
	}
	if (!lsm_scankeys_converts(keys, column, subtype))
	{
		*cmp = lsm_scankeys_find_order(c, c->opcintype, subtype);
		return *cmp != NULL ? LSM_CONVERT_EXACT : LSM_CONVERT_NONE;
	}
	result = lsm_convert_value(c->opcintype, subtype, value, low, high);
	if (result == LSM_CONVERT_EXACT)
		*high = *low;
	return result;
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

/* What matches lies, in index order, between these values of the column's own type. */
void
lsm_scankeys_note_ends(LsmScanKeys *keys, int column, Datum first, Datum last)
{
	LsmColumn  *c = &keys->ks->columns[column];
	LsmColumnRange *range = &keys->columns[column];

	if (is_tighter(c, &range->low, first, true, &c->cmp, true))
		set_end(&range->low, first, true, &c->cmp);
	if (is_tighter(c, &range->high, last, true, &c->cmp, false))
		set_end(&range->high, last, true, &c->cmp);
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
	LsmConversion conversion = lsm_scankeys_convert(keys, column, subtype, value, &low, &high, &cmp);
	bool		exact = conversion == LSM_CONVERT_EXACT;
	bool		wants_low = strategy >= BTEqualStrategyNumber;
	bool		wants_high = strategy <= BTEqualStrategyNumber;
	bool		inclusive;

	if (conversion == LSM_CONVERT_NONE)
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
		lsm_scankeys_convert(keys, column, key->sk_subtype, key->sk_argument,
							 &low, &high, &cmp) == LSM_CONVERT_EXACT)
	{
		range->equal = key;
		range->value = low;
		range->cmp = cmp;
		return;
	}
	(void) note_range(keys, column, key->sk_strategy, key->sk_subtype, key->sk_argument);
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

/* Does the place of an entry in a combination, or within the bounds, imply this filter? */
static bool
is_implied(LsmScanKeys *keys, ScanKey key)
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
		note_range(keys, column, key->sk_strategy, key->sk_subtype, key->sk_argument);
}

/*
 * Drop filters that the bounds imply: the equalities of the driving columns, and
 * comparisons and IS NOT NULL on columns that are skipped, and on the one after the
 * driving ones, when the ends of their ranges came from the column's own comparison.
 */
static void
drop_implied_filters(LsmScanKeys *keys)
{
	int			kept = 0;

	for (int i = 0; i < keys->filter_count; i++)
	{
		if (!is_implied(keys, keys->filters[i]))
			keys->filters[kept++] = keys->filters[i];
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

/* A nested loop begins so many scans that clearing unused columns of bounds would tell. */
static void
clear_keys(LsmScanKeys *keys)
{
	memset(keys, 0, offsetof(LsmScanKeys, low));
	lsm_bound_clear(&keys->low);
	lsm_bound_clear(&keys->high);
	lsm_bound_clear(&keys->first);
	lsm_bound_clear(&keys->last);
}

/*
 * Prepare the keys of a scan.  Allocates in the current memory context, which
 * must live until the next call.
 */
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
	lsm_combination_choose(keys);
	drop_implied_filters(keys);
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
			(isnull[array->column] || !lsm_arraykey_contains(array, values[array->column])))
			return false;
	}
	return true;
}
