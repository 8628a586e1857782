/*
 * order_code.c
 *	  Makes order codes: bytes that decide most comparisons of tuple keys.
 *
 * An order code consists of the codes of leading columns that have a code (encode.c), and of the
 * marker and the abbreviation of the column after them (sort_support.c).  A lesser key never has a
 * greater order code.  Different keys may have the same order code.  Order codes depend on the
 * version of the ICU library, so they live in memory only.
 */
#include "postgres.h"

#include "key/encode.h"
#include "key/order_code.h"
#include "key/sort_support.h"
#include "utils/memutils.h"

static bool
is_abbreviated(LsmKeySpace *ks, int column)
{
	return lsm_has_abbreviations(&ks->columns[column], GetMemoryChunkContext(ks->form_key));
}

/* Do the keys of the index have order codes?  Otherwise all order codes are empty. */
bool
lsm_has_order_codes(LsmKeySpace *ks)
{
	return ks->columns[0].encoding != LSM_ENC_NONE || is_abbreviated(ks, 0);
}

static void
append_bytes(LsmOrderCode *order, const uint8 *bytes, uint32 length)
{
	length = Min(length, LSM_ORDER_BYTES - order->length);
	memcpy(order->bytes + order->length, bytes, length);
	order->length += length;
}

static void
append_code(LsmOrderCode *order, const LsmColumn *column, Datum value, bool isnull)
{
	LsmCode		code;

	lsm_code_make(&code, column, value, isnull);
	append_bytes(order, code.bytes, code.length);
	lsm_code_free(&code);
}

/* Append the marker of a null or a value, as in codes, and the abbreviation. */
static void
append_abbreviation(LsmOrderCode *order, LsmColumn *c, Datum value, bool isnull)
{
	uint8		code[1 + sizeof(uint64)];
	uint64		number;

	code[0] = isnull ? (c->nulls_first ? 0 : 2) : 1;
	append_bytes(order, code, 1);
	if (isnull)
		return;
	number = lsm_abbreviate(c, value);
	number = pg_hton64(c->desc ? ~number : number);
	memcpy(code + 1, &number, sizeof(number));
	append_bytes(order, code + 1, sizeof(number));
}

/* Append a column.  Returns false if no column may follow. */
bool
lsm_order_add(LsmOrderCode *order, LsmKeySpace *ks, int column, Datum value, bool isnull)
{
	if (ks->columns[column].encoding != LSM_ENC_NONE)
	{
		append_code(order, &ks->columns[column], value, isnull);
		return order->length < LSM_ORDER_BYTES;
	}
	if (is_abbreviated(ks, column))
		append_abbreviation(order, &ks->columns[column], value, isnull);
	return false;
}

/* lsm_entry_prefix for tuple keys: the first 8 bytes of the order code. */
uint64
lsm_tuple_prefix(LsmKeySpace *ks, const LsmEntry *entry)
{
	LsmOrderCode order;
	IndexTuple	tuple;
	bool		more = true;

	if (!lsm_has_order_codes(ks))
		return 0;
	tuple = lsm_key_as_tuple(entry, ks->compare_a);
	order.length = 0;
	for (int i = 0; i < ks->nkeys && more && order.length < sizeof(uint64); i++)
	{
		bool		isnull;
		Datum		value = index_getattr(tuple, i + 1, ks->desc, &isnull);

		more = lsm_order_add(&order, ks, i, value, isnull);
	}
	return lsm_key_prefix(order.bytes, order.length);
}
