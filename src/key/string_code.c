/*
 * string_code.c
 *	  Encodes text, name and char(n) values, preserving their order.
 *
 * A code is the bytes of the string, and a zero byte.  The string itself contains no zero byte.
 *
 * Trailing blanks of a char(n) value do not count in comparisons, and are not in the code.
 * Decoding pads the value with blanks to the length of the column's type, or adds none if the type
 * has no length.  If a value has another number of blanks, its detail is that number plus 1.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "base/compat.h"
#include "key/string_code.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

/* Returns the length of the code at p, or 0 if the code is damaged.  `flip` inverts its bits. */
uint32
lsm_string_length(const uint8 *p, const uint8 *end, uint8 flip)
{
	const uint8 *stop = memchr(p, flip, end - p);

	return stop ? stop - p + 1 : 0;
}

static uint8 *
put_string(uint8 *out, const char *string, uint32 len)
{
	memcpy(out, string, len);
	out += len;
	*out++ = 0;
	return out;
}

/* --- text and name --------------------------------------------------------------- */

uint8 *
lsm_text_encode(Datum value, uint8 *out)
{
	return put_string(out, VARDATA_ANY(DatumGetPointer(value)),
					  VARSIZE_ANY_EXHDR(DatumGetPointer(value)));
}

Datum
lsm_text_decode(const uint8 *code, uint32 len)
{
	return PointerGetDatum(cstring_to_text_with_len((const char *) code, len - 1));
}

uint8 *
lsm_name_encode(Datum value, uint8 *out)
{
	const char *name = NameStr(*DatumGetName(value));

	return put_string(out, name, strnlen(name, NAMEDATALEN));
}

Datum
lsm_name_decode(const uint8 *code, uint32 len)
{
	char	   *name = palloc0(NAMEDATALEN);

	memcpy(name, code, Min(len - 1, NAMEDATALEN - 1));
	return PointerGetDatum(name);
}

/* --- char(n) ------------------------------------------------------------------------ */

/* Returns the length of a value in bytes, without trailing blanks. */
static uint32
trimmed_length(Datum value)
{
	const char *string = VARDATA_ANY(DatumGetPointer(value));
	uint32		len = VARSIZE_ANY_EXHDR(DatumGetPointer(value));

	while (len > 0 && string[len - 1] == ' ')
		len--;
	return len;
}

uint32
lsm_bpchar_size(Datum value)
{
	return trimmed_length(value) + 1;
}

uint8 *
lsm_bpchar_encode(Datum value, uint8 *out)
{
	return put_string(out, VARDATA_ANY(DatumGetPointer(value)), trimmed_length(value));
}

/* Returns the number of trailing blanks of a value. */
uint32
lsm_bpchar_blanks(Datum value)
{
	return VARSIZE_ANY_EXHDR(DatumGetPointer(value)) - trimmed_length(value);
}

/* Returns what decoding assumes for this type modifier: the length in characters, or 0. */
uint16
lsm_bpchar_expected(int32 typmod)
{
	int32		length = typmod - (int32) VARHDRSZ;

	return length > 0 && length <= PG_UINT16_MAX ? length : 0;
}

/* Returns the number of blanks that decoding adds to a string. */
static uint32
expected_blanks(const char *string, uint32 len, uint16 expected)
{
	int			length = expected > 0 ? pg_mbstrlen_with_len(string, len) : 0;

	return Max((int) expected - length, 0);
}

/* Returns the detail of a value. */
uint64
lsm_bpchar_detail(Datum value, uint16 expected)
{
	uint32		blanks = lsm_bpchar_blanks(value);

	return blanks == expected_blanks(VARDATA_ANY(DatumGetPointer(value)), trimmed_length(value),
									 expected) ? 0 : (uint64) blanks + 1;
}

/* Decode a code that lsm_string_length has accepted.  Returns 0 if the detail is damaged. */
Datum
lsm_bpchar_decode(const uint8 *code, uint32 len, uint64 detail, uint16 expected)
{
	uint64		blanks = detail > 0 ? detail - 1 :
		expected_blanks((const char *) code, len - 1, expected);
	char	   *result;

	/* An index tuple of at most 8 kB holds far fewer blanks, even compressed. */
	if (blanks > MaxAttrSize)
		return (Datum) 0;
	result = palloc(VARHDRSZ + len - 1 + blanks);
	SET_VARSIZE(result, VARHDRSZ + len - 1 + blanks);
	memcpy(VARDATA(result), code, len - 1);
	memset(VARDATA(result) + len - 1, ' ', blanks);
	return PointerGetDatum(result);
}
