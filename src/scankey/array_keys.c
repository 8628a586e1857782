/*
 * array_keys.c
 *	  Scan keys of the form column = ANY (array).
 *
 * We sort the elements of an array, and drop NULLs and duplicates.  combinations.c lets one array
 * per column drive the scan, if the scan can seek all elements of the array.  The elements of a
 * driving array are in index order, and encoded if keys are encoded.  Other arrays are filters.
 * Their elements are in ascending order.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_type.h"
#include "key/encode.h"
#include "scankey/scankey.h"
#include "scankey/scankey_parts.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* Convert a date or timestamp to timestamptz.  Returns false if the result is out of range. */
static bool
convert_to_timestamptz(Oid type, Datum value, TimestampTz *result)
{
	Datum		low;
	Datum		high;
	bool		is_exact = lsm_convert_value(TIMESTAMPTZOID, type, value, &low, &high) == LSM_CONVERT_EXACT;

	*result = DatumGetTimestampTz(low);
	return is_exact;
}

/*
 * Compare two elements in the order that the column's comparisons imply.  For a timestamptz column,
 * local times that the clock skips when daylight saving begins sort after the first times that
 * follow them.  If a time zone skips a day, two dates are equal.
 */
static int
compare_elements(const void *a, const void *b, void *arg)
{
	LsmArrayKey *array = arg;
	const Datum *x = a;
	const Datum *y = b;
	TimestampTz t;
	TimestampTz u;

	if (OidIsValid(array->local_type) && convert_to_timestamptz(array->local_type, *x, &t) &&
		convert_to_timestamptz(array->local_type, *y, &u))
		return timestamp_cmp_internal(t, u);
	return DatumGetInt32(FunctionCall2Coll(array->element_order, array->key->sk_collation, *x, *y));
}

/* Sort values and drop duplicates.  Returns how many are left. */
static int
sort_unique(Datum *values, int count, qsort_arg_comparator compare, void *arg)
{
	int			unique = 0;

	qsort_arg(values, count, sizeof(Datum), compare, arg);
	for (int i = 0; i < count; i++)
	{
		if (unique == 0 || compare(&values[unique - 1], &values[i], arg) != 0)
			values[unique++] = values[i];
	}
	return unique;
}

/* Deconstruct an array, and drop its NULLs.  Returns the number of elements. */
static int
deconstruct_without_nulls(ScanKey key, Datum **elements)
{
	ArrayType  *array = DatumGetArrayTypeP(key->sk_argument);
	Oid			type = ARR_ELEMTYPE(array);
	int16		typlen;
	bool		typbyval;
	char		typalign;
	bool	   *isnull;
	int			count;
	int			kept = 0;

	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	deconstruct_array(array, type, typlen, typbyval, typalign, elements, &isnull, &count);
	for (int i = 0; i < count; i++)
	{
		if (!isnull[i])
			(*elements)[kept++] = (*elements)[i];
	}
	return kept;
}

/* Make an array key from a scan key.  If the array has no elements, no row can match. */
void
lsm_arraykey_init(LsmScanKeys *keys, LsmArrayKey *array, ScanKey key)
{
	LsmColumn  *column = &keys->ks->columns[key->sk_attno - 1];
	Oid			subtype = OidIsValid(key->sk_subtype) ? key->sk_subtype : column->opcintype;

	memset(array, 0, sizeof(LsmArrayKey));
	array->key = key;
	array->column = key->sk_attno - 1;
	array->count = deconstruct_without_nulls(key, &array->elements);
	if (array->count == 0)
		return;
	array->element_order = lsm_convert_find_order(column, subtype, subtype);
	array->order = lsm_convert_find_order(column, column->opcintype, subtype);
	if (array->element_order == NULL || array->order == NULL)
		elog(ERROR, "missing support function %d(%u,%u) for attribute %d of index \"%s\"",
			 BTORDER_PROC, column->opcintype, subtype, key->sk_attno, keys->ks->index_name);
	if (column->opcintype == TIMESTAMPTZOID && (subtype == TIMESTAMPOID || subtype == DATEOID))
		array->local_type = subtype;

	array->count = sort_unique(array->elements, array->count, compare_elements, array);
}

/* Encode the elements, which are values of the column in index order. */
static void
encode_elements(LsmColumn *column, LsmArrayKey *array)
{
	uint32		size = 0;
	uint8	   *out;

	for (int i = 0; i < array->count; i++)
	{
		if (column->typlen == -1)
			array->elements[i] =
				PointerGetDatum(PG_DETOAST_DATUM_PACKED(array->elements[i]));
		size += lsm_encode_size(column, array->elements[i], false);
	}
	array->codes = out = palloc(size);
	array->code_ends = palloc((array->count + 1) * sizeof(uint32));
	array->code_ends[0] = 0;
	for (int i = 0; i < array->count; i++)
	{
		out = lsm_encode_column(column, array->elements[i], false, out);
		array->code_ends[i + 1] = out - array->codes;
	}
}

/* Compare two values in index order. */
static int
compare_as_column(const void *a, const void *b, void *arg)
{
	LsmColumn  *column = arg;

	return lsm_column_compare(column, &column->cmp, *(const Datum *) a, false,
							  *(const Datum *) b, false);
}

/* Let an array drive the scan.  Its elements need no conversion. */
static void
drive_unconverted(LsmScanKeys *keys, LsmArrayKey *array)
{
	LsmColumn  *column = &keys->ks->columns[array->column];

	for (int i = 0, j = array->count - 1; column->desc && i < j; i++, j--)
	{
		Datum		swap = array->elements[i];

		array->elements[i] = array->elements[j];
		array->elements[j] = swap;
	}
	array->drives = true;
}

/*
 * Convert the elements of an array, and let the array drive the scan if all conversions are exact.
 * If a conversion gives only a range, the least and the greatest element bound the column instead.
 * If an element cannot be converted, the array has no effect on the range of the scan.
 */
static void
drive_converted(LsmScanKeys *keys, LsmArrayKey *array)
{
	LsmColumn  *column = &keys->ks->columns[array->column];
	Datum	   *values = palloc(array->count * sizeof(Datum));
	Datum		first = 0;
	Datum		last = 0;
	bool		exact = true;
	int			count = 0;

	for (int i = 0; i < array->count; i++)
	{
		Datum		low;
		Datum		high;
		FmgrInfo   *cmp;
		LsmConversion conversion = lsm_convert_for_column(keys, array->column, array->key->sk_subtype,
														array->elements[i], &low, &high, &cmp);

		if (conversion == LSM_CONVERT_NONE)
			return;
		if (conversion == LSM_CONVERT_UNEQUAL)
			continue;
		exact &= conversion == LSM_CONVERT_EXACT;
		values[count] = column->desc ? high : low;
		if (count == 0 || compare_as_column(&values[count], &first, column) < 0)
			first = values[count];
		values[count] = column->desc ? low : high;
		if (count == 0 || compare_as_column(&values[count], &last, column) > 0)
			last = values[count];
		count++;
	}
	if (count == 0)
		keys->impossible = true;
	else if (!exact)
		lsm_range_note_ends(keys, array->column, first, last);
	else
	{
		/* The conversion may have changed the order of elements, or made two of them equal. */
		array->count = sort_unique(values, count, compare_as_column, column);
		array->elements = values;
		array->order = &column->cmp;
		array->drives = true;
	}
}

/*
 * Let the array drive the scan if the scan can seek each element exactly.  Returns whether the
 * array drives.  If so, puts its elements in index order, and drops those that equal no value of
 * the column.
 */
bool
lsm_arraykey_drive(LsmScanKeys *keys, LsmArrayKey *array)
{
	LsmColumn  *column = &keys->ks->columns[array->column];

	if (lsm_convert_is_needed(keys, array->column, array->key->sk_subtype))
		drive_converted(keys, array);
	else
		drive_unconverted(keys, array);
	if (array->drives && keys->ks->encoded)
		encode_elements(column, array);
	return array->drives;
}

/*
 * Returns whether a value is an element of an array.
 *
 * REQUIRES: the array does not drive the scan.
 */
bool
lsm_arraykey_contains(LsmArrayKey *array, Datum value)
{
	int			low = 0;
	int			high = array->count;
	Oid			collation = array->key->sk_collation;

	while (low < high)
	{
		int			middle = (low + high) / 2;
		int			c = DatumGetInt32(FunctionCall2Coll(array->order, collation, value,
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

