/*
 * driving_columns.c
 *	  Decides which columns drive a scan, and encodes the values that their conditions name.
 */
#include "postgres.h"

#include "key/encode.h"
#include "scankey/scankey_parts.h"

static uint8 *
encode_value(LsmColumn *column, Datum value, bool isnull, uint32 *len)
{
	uint8	   *code;

	if (column->typlen == -1 && !isnull)
		value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
	code = palloc(lsm_encode_size(column, value, isnull));
	*len = lsm_encode_column(column, value, isnull, code) - code;
	return code;
}

static void
encode_end(LsmColumn *column, LsmRangeEnd *end)
{
	if (end->present)
		end->code = encode_value(column, end->value, false, &end->code_len);
}

/* Let the first array on this column that can drive the scan do so.  Returns it, or NULL. */
static LsmArrayKey *
find_array(LsmScanKeys *keys, int column)
{
	for (int a = 0; a < keys->array_count; a++)
	{
		if (keys->arrays[a].column == column && lsm_arraykey_drive(keys, &keys->arrays[a]))
			return &keys->arrays[a];
	}
	return NULL;
}

static void
make_driver(LsmScanKeys *keys, int i)
{
	LsmColumn  *column = &keys->ks->columns[i];
	LsmColumnRange *range = &keys->columns[i];
	LsmDriver  *d = &keys->drivers[i];

	d->value.cmp = &column->cmp;
	if (keys->ks->encoded)
		d->fixed_len = lsm_encoded_length(column);
	if (range->array != NULL)
		d->value.cmp = range->array->order;
	else if (range->equal != NULL)
	{
		d->value.value = range->value;
		d->value.isnull = range->is_null;
		d->value.cmp = range->cmp;
		if (keys->ks->encoded)
			d->code = encode_value(column, range->value, range->is_null, &d->code_len);
	}
	else if (keys->ks->encoded)
	{
		encode_end(column, &range->low);
		encode_end(column, &range->high);
	}
}

/* Decide which columns drive the scan. */
void
lsm_driving_choose(LsmScanKeys *keys)
{
	bool		has_array = false;
	bool		skips = false;
	bool		has_row = false;

	for (int i = 0; i < keys->ks->nkeys; i++)
	{
		LsmColumnRange *range = &keys->columns[i];

		if (range->equal == NULL && keys->array_count > 0)
			range->array = find_array(keys, i);
		if (range->equal != NULL || range->array != NULL)
			keys->driving = i + 1;
		else if (range->low.present || range->high.present ||
				 range->low_row != NULL || range->high_row != NULL)
			keys->driving = i;
		has_array |= range->array != NULL;
	}
	for (int i = 0; i < keys->driving; i++)
		skips |= keys->columns[i].equal == NULL && keys->columns[i].array == NULL;
	if (!has_array && !skips)
		return;
	keys->has_combinations = true;
	keys->are_keys = !skips && keys->driving == keys->ks->nkeys && keys->ks->encoded;
	keys->are_prefixes = !skips && keys->driving < keys->ks->nkeys && keys->ks->encoded;
	keys->context = CurrentMemoryContext;
	keys->drivers = palloc0(keys->driving * sizeof(LsmDriver));
	for (int i = 0; i < keys->driving; i++)
		make_driver(keys, i);
	if (keys->driving < keys->ks->nkeys)
	{
		LsmColumnRange *range = &keys->columns[keys->driving];

		has_row = range->low_row != NULL || range->high_row != NULL;
		keys->has_range = range->not_null || has_row;
		if (skips && keys->ks->encoded)
		{
			encode_end(&keys->ks->columns[keys->driving], &range->low);
			encode_end(&keys->ks->columns[keys->driving], &range->high);
		}
	}
	keys->can_filter = skips && !has_row;
}
