/*
 * encode.c
 *	  Encodes single column values, preserving their order.
 *
 * An encoded column is a marker byte and, for a value, its code:
 *
 *		00		null, NULLS FIRST
 *		01		a value; its code follows
 *		02		null, NULLS LAST
 *
 * For DESC, all bytes except the marker are inverted.  Codes compare as the values do, and equal
 * values have the same code.  Within a column, no code is the beginning of another code, so the
 * codes of columns can simply follow each other.  The codes:
 *
 *		bool						a byte, 0 or 1
 *		"char"						the byte
 *		int2, int4, int8, date,		big-endian, sign bit inverted
 *		time, timestamp[tz], money
 *		oid, pg_lsn, xid8			big-endian
 *		float4, float8				big-endian bits; sign bit inverted, or all bits if the value
 *									is negative; -0.0 as 0.0, all NaNs as one
 *		uuid, macaddr, macaddr8		the bytes
 *		text, varchar, name, char(n)	see string_code.c
 *		bytea, bit, varbit			see bytes_code.c
 *		numeric						see numeric_code.c
 *		inet, cidr					see network_code.c
 *		interval, timetz			see time_code.c
 *		tid							block as uint32, offset as uint16, big-endian
 *
 * Equal values can still differ, say in their display scale.  Their code is the same, so we store
 * the difference as a *detail*.  A detail is an integer, and is 0 if decoding the code gives
 * exactly the value.  Entries keep details apart from keys (details.h).
 *
 *		float4, float8				the bits of -0.0 and of NaNs other than core's
 *		numeric						1 + the display scale, if it is not the expected one
 *		interval					months and days, see time_code.c
 *		char(n)						1 + the number of blanks, if it is not the expected one
 */
#include "postgres.h"

#include "base/coding.h"
#include "base/compat.h"
#include "base/limits.h"
#include "key/bytes_code.h"
#include "key/collation.h"
#include "key/encode.h"
#include "key/network_code.h"
#include "key/numeric_code.h"
#include "key/string_code.h"
#include "key/time_code.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/inet.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/xid8.h"

#define MARK_NULL_FIRST 0
#define MARK_NULL_LAST	(LSM_MARK_VALUE + 1)

/*
 * Returns the encoding of a column with this comparison function, or LSM_ENC_NONE.  The choice
 * depends on the function, not on the type, since the function defines the order.
 */
LsmEncoding
lsm_encoding_for(Oid cmp_function, Oid collation)
{
	switch (cmp_function)
	{
		case F_BTBOOLCMP:
			return LSM_ENC_BOOL;
		case F_BTCHARCMP:
			return LSM_ENC_CHAR;
		case F_BTINT2CMP:
			return LSM_ENC_INT16;
		case F_BTINT4CMP:
		case F_DATE_CMP:
			return LSM_ENC_INT32;
		case F_BTINT8CMP:
		case F_TIMESTAMP_CMP:
		case F_TIMESTAMPTZ_CMP:
		case F_TIME_CMP:
		case F_CASH_CMP:
			return LSM_ENC_INT64;
		case F_BTOIDCMP:
			return LSM_ENC_UINT32;
		case F_PG_LSN_CMP:
		case F_XID8CMP:
#ifdef F_BTOID8CMP				/* 19 and later */
		case F_BTOID8CMP:
#endif
			return LSM_ENC_UINT64;
		case F_BTFLOAT4CMP:
			return LSM_ENC_FLOAT4;
		case F_BTFLOAT8CMP:
			return LSM_ENC_FLOAT8;
		case F_UUID_CMP:
		case F_MACADDR_CMP:
		case F_MACADDR8_CMP:
			return LSM_ENC_FIXED;
		case F_NUMERIC_CMP:
			return LSM_ENC_NUMERIC;
		case F_NETWORK_CMP:
			return LSM_ENC_NETWORK;
		case F_INTERVAL_CMP:
			return LSM_ENC_INTERVAL;
		case F_TIMETZ_CMP:
			return LSM_ENC_TIMETZ;
		case F_BITCMP:
		case F_VARBITCMP:
			return LSM_ENC_BIT;
		case F_BTTIDCMP:
			return LSM_ENC_TID;
		case F_BYTEACMP:
			return LSM_ENC_BYTEA;
		case F_BTTEXT_PATTERN_CMP:
			return LSM_ENC_TEXT;
		case F_BTBPCHAR_PATTERN_CMP:
			return LSM_ENC_BPCHAR;
		case F_BTTEXTCMP:
			return lsm_collation_is_bytewise(collation) ? LSM_ENC_TEXT : LSM_ENC_NONE;
		case F_BTNAMECMP:
			return lsm_collation_is_bytewise(collation) ? LSM_ENC_NAME : LSM_ENC_NONE;
		case F_BPCHARCMP:
			return lsm_collation_is_bytewise(collation) ? LSM_ENC_BPCHAR : LSM_ENC_NONE;
		default:
			return LSM_ENC_NONE;
	}
}

/* May values with this encoding have details? */
bool
lsm_encoding_keeps_details(LsmEncoding encoding)
{
	return encoding == LSM_ENC_FLOAT4 || encoding == LSM_ENC_FLOAT8 ||
		encoding == LSM_ENC_NUMERIC || encoding == LSM_ENC_INTERVAL || encoding == LSM_ENC_BPCHAR;
}

/* Returns what decoding assumes about values with this type modifier; see LsmKeyCoding. */
uint16
lsm_encoding_expected(LsmEncoding encoding, int32 typmod)
{
	return encoding == LSM_ENC_NUMERIC ? lsm_numeric_expected(typmod) :
		encoding == LSM_ENC_BPCHAR ? lsm_bpchar_expected(typmod) : 0;
}

/* Returns the width of a column's encoded values, without the marker, or 0 if widths vary. */
static inline uint32
fixed_width(const LsmColumn *column)
{
	switch (column->encoding)
	{
		case LSM_ENC_BOOL:
		case LSM_ENC_CHAR:
			return 1;
		case LSM_ENC_INT16:
			return 2;
		case LSM_ENC_INT32:
		case LSM_ENC_UINT32:
		case LSM_ENC_FLOAT4:
			return 4;
		case LSM_ENC_INT64:
		case LSM_ENC_UINT64:
		case LSM_ENC_FLOAT8:
			return 8;
		case LSM_ENC_FIXED:
		case LSM_ENC_TID:
			return column->typlen;
		case LSM_ENC_INTERVAL:
			return LSM_INTERVAL_WIDTH;
		case LSM_ENC_TIMETZ:
			return LSM_TIMETZ_WIDTH;
		default:
			return 0;
	}
}

/* Returns an upper bound on the encoded size in bytes, with the marker. */
uint32
lsm_encode_size(const LsmColumn *column, Datum value, bool isnull)
{
	if (isnull)
		return 1;
	switch (column->encoding)
	{
		case LSM_ENC_TEXT:
			return 2 + VARSIZE_ANY_EXHDR(DatumGetPointer(value));
		case LSM_ENC_BYTEA:
			return 1 + lsm_bytea_size(value);
		case LSM_ENC_BIT:
			return 1 + lsm_bit_size(value);
		case LSM_ENC_NAME:
			return 2 + NAMEDATALEN;
		case LSM_ENC_BPCHAR:
			return 1 + lsm_bpchar_size(value);
		case LSM_ENC_NUMERIC:
			return 1 + lsm_numeric_size(value);
		case LSM_ENC_NETWORK:
			return 1 + LSM_NETWORK_MOST;
		default:
			return 1 + fixed_width(column);
	}
}

/* Returns an upper bound on the encoded size of any value, or LSM_MAX_ENTRY_SIZE. */
uint32
lsm_encoding_most(const LsmColumn *column)
{
	switch (column->encoding)
	{
		case LSM_ENC_TEXT:
		case LSM_ENC_BPCHAR:
		case LSM_ENC_BYTEA:
		case LSM_ENC_BIT:
		case LSM_ENC_NUMERIC:
			return LSM_MAX_ENTRY_SIZE;
		default:
			return lsm_encode_size(column, (Datum) 0, false);
	}
}

/* Returns the length of a column's encoded values, with the marker, or 0 if lengths vary. */
uint32
lsm_encoded_length(const LsmColumn *column)
{
	uint32		width = fixed_width(column);

	return width > 0 ? 1 + width : 0;
}

/* Returns the bits of a float, changed so that they compare as unsigned integers. */
static uint32
float4_to_bits(float4 value)
{
	uint32		bits;

	if (isnan(value))
		value = get_float4_nan();
	else if (value == 0)
		value = 0;				/* -0.0 equals 0.0 */
	memcpy(&bits, &value, sizeof(bits));
	return (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
}

static uint64
float8_to_bits(float8 value)
{
	uint64		bits;

	if (isnan(value))
		value = get_float8_nan();
	else if (value == 0)
		value = 0;
	memcpy(&bits, &value, sizeof(bits));
	return (bits & UINT64CONST(0x8000000000000000)) ? ~bits :
		bits | UINT64CONST(0x8000000000000000);
}

static float4
float4_from_bits(uint32 bits)
{
	float4		value;

	bits = (bits & 0x80000000u) ? bits & 0x7FFFFFFFu : ~bits;
	memcpy(&value, &bits, sizeof(bits));
	return value;
}

static float8
float8_from_bits(uint64 bits)
{
	float8		value;

	bits = (bits & UINT64CONST(0x8000000000000000)) ?
		bits & UINT64CONST(0x7FFFFFFFFFFFFFFF) : ~bits;
	memcpy(&value, &bits, sizeof(bits));
	return value;
}

/* Returns how many bytes of this value are blanks that the code leaves out. */
uint32
lsm_encode_padding(const LsmColumn *column, Datum value)
{
	return column->encoding == LSM_ENC_BPCHAR ? lsm_bpchar_blanks(value) : 0;
}

/* Returns the detail of a value.  Varlenas must be detoasted (packed). */
uint64
lsm_encode_detail(const LsmColumn *column, Datum value)
{
	switch (column->encoding)
	{
		case LSM_ENC_FLOAT4:
			{
				float4		v = DatumGetFloat4(value);
				float4		back = float4_from_bits(float4_to_bits(v));
				uint32		bits;

				memcpy(&bits, &v, sizeof(bits));
				return memcmp(&v, &back, sizeof(v)) == 0 ? 0 : bits;
			}
		case LSM_ENC_FLOAT8:
			{
				float8		v = DatumGetFloat8(value);
				float8		back = float8_from_bits(float8_to_bits(v));
				uint64		bits;

				memcpy(&bits, &v, sizeof(bits));
				return memcmp(&v, &back, sizeof(v)) == 0 ? 0 : bits;
			}
		case LSM_ENC_NUMERIC:
			return lsm_numeric_detail(value, column->expected);
		case LSM_ENC_INTERVAL:
			return lsm_interval_detail(value);
		case LSM_ENC_BPCHAR:
			return lsm_bpchar_detail(value, column->expected);
		default:
			return 0;
	}
}

/*
 * Append the encoding of a value.  Returns its end.  REQUIRES: room for lsm_encode_size bytes;
 * varlenas are detoasted (packed).
 */
uint8 *
lsm_encode_column(const LsmColumn *column, Datum value, bool isnull, uint8 *out)
{
	uint8	   *from;

	if (isnull)
	{
		*out++ = column->nulls_first ? MARK_NULL_FIRST : MARK_NULL_LAST;
		return out;
	}
	*out++ = LSM_MARK_VALUE;
	from = out;
	switch (column->encoding)
	{
		case LSM_ENC_BOOL:
			*out++ = DatumGetBool(value) ? 1 : 0;
			break;
		case LSM_ENC_CHAR:
			*out++ = (uint8) DatumGetChar(value);
			break;
		case LSM_ENC_INT16:
			out = lsm_put_big_endian(out, (uint16) DatumGetInt16(value) ^ 0x8000, 2);
			break;
		case LSM_ENC_INT32:
			out = lsm_put_big_endian(out, (uint32) DatumGetInt32(value) ^ 0x80000000u, 4);
			break;
		case LSM_ENC_INT64:
			out = lsm_put_big_endian(out, (uint64) DatumGetInt64(value) ^ UINT64CONST(0x8000000000000000), 8);
			break;
		case LSM_ENC_UINT32:
			out = lsm_put_big_endian(out, DatumGetUInt32(value), 4);
			break;
		case LSM_ENC_UINT64:
			out = lsm_put_big_endian(out, DatumGetUInt64(value), 8);
			break;
		case LSM_ENC_FLOAT4:
			out = lsm_put_big_endian(out, float4_to_bits(DatumGetFloat4(value)), 4);
			break;
		case LSM_ENC_FLOAT8:
			out = lsm_put_big_endian(out, float8_to_bits(DatumGetFloat8(value)), 8);
			break;
		case LSM_ENC_FIXED:
			memcpy(out, DatumGetPointer(value), column->typlen);
			out += column->typlen;
			break;
		case LSM_ENC_TEXT:
			out = lsm_text_encode(value, out);
			break;
		case LSM_ENC_NAME:
			out = lsm_name_encode(value, out);
			break;
		case LSM_ENC_BPCHAR:
			out = lsm_bpchar_encode(value, out);
			break;
		case LSM_ENC_BYTEA:
			out = lsm_bytea_encode(value, out);
			break;
		case LSM_ENC_BIT:
			out = lsm_bit_encode(value, out);
			break;
		case LSM_ENC_NETWORK:
			out = lsm_network_encode(value, out);
			break;
		case LSM_ENC_INTERVAL:
			out = lsm_interval_encode(value, out);
			break;
		case LSM_ENC_TIMETZ:
			out = lsm_timetz_encode(value, out);
			break;
		case LSM_ENC_TID:
			out = lsm_put_big_endian(out, lsm_tid_to_int((ItemPointer) DatumGetPointer(value)),
									 6);
			break;
		case LSM_ENC_NUMERIC:
			out = lsm_numeric_encode(value, out);
			break;
		case LSM_ENC_NONE:
			elog(ERROR, "column has no byte encoding");
	}
	if (column->desc)
	{
		while (from < out)
		{
			*from = ~*from;
			from++;
		}
	}
	return out;
}

/* Encode a single value, which may be toasted.  Free the code with lsm_code_free. */
void
lsm_code_make(LsmCode *code, const LsmColumn *column, Datum value, bool isnull)
{
	Datum		plain = value;
	uint32		size;

	if (column->typlen == -1 && !isnull)
		plain = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
	size = lsm_encode_size(column, plain, isnull);
	code->bytes = size > sizeof(code->room) ? palloc(size) : code->room;
	code->length = lsm_encode_column(column, plain, isnull, code->bytes) - code->bytes;
	if (plain != value)
		pfree(DatumGetPointer(plain));
}

void
lsm_code_free(LsmCode *code)
{
	if (code->bytes != code->room)
		pfree(code->bytes);
}

/* Returns the length of the encoded value at p, without the marker, or 0 if the value is damaged. */
static uint32
value_length(const LsmColumn *column, const uint8 *p, const uint8 *end)
{
	uint8		flip = column->desc ? 0xFF : 0;
	uint32		width;

	switch (column->encoding)
	{
		case LSM_ENC_TEXT:
		case LSM_ENC_NAME:
		case LSM_ENC_BPCHAR:
			return lsm_string_length(p, end, flip);
		case LSM_ENC_BYTEA:
			return lsm_bytes_length(p, end, flip, LSM_BYTEA_LAST);
		case LSM_ENC_BIT:
			return lsm_bytes_length(p, end, flip, LSM_BIT_LAST);
		case LSM_ENC_NETWORK:
			return lsm_network_length(p, end, flip);
		case LSM_ENC_NUMERIC:
			return lsm_numeric_length(p, end, flip);
		default:
			width = fixed_width(column);
			return width <= end - p ? width : 0;
	}
}

/* Returns the length of the encoded column at p, with the marker, or 0 if the column is damaged. */
uint32
lsm_encoded_column_length(const LsmColumn *column, const uint8 *p, const uint8 *end)
{
	uint32		len;

	if (p >= end)
		return 0;
	if (*p != LSM_MARK_VALUE)
		return 1;
	len = value_length(column, p + 1, end);
	return len > 0 ? 1 + len : 0;
}

/* Count the whole columns at the beginning of a key, up to `most`; *bytes is their length. */
static int
walk_columns(const LsmColumn *columns, const uint8 *key, uint32 length, int most, uint32 *bytes)
{
	int			count = 0;

	for (*bytes = 0; count < most; count++)
	{
		uint32		len = lsm_encoded_column_length(&columns[count], key + *bytes, key + length);

		if (len == 0)
			break;
		*bytes += len;
	}
	return count;
}

/* Returns how many whole columns, up to `most`, the first `length` bytes of a key contain. */
int
lsm_encoded_columns(const LsmColumn *columns, const uint8 *key, uint32 length, int most)
{
	uint32		bytes;

	return walk_columns(columns, key, length, most, &bytes);
}

/*
 * Returns the length of a key's first `count` columns, or 0 if the key is damaged.  Two keys have
 * equal values in these columns if and only if these bytes are equal.
 */
uint32
lsm_encoded_prefix_length(const LsmColumn *columns, const uint8 *key, uint32 keylen, int count)
{
	uint32		bytes;

	return walk_columns(columns, key, keylen, count, &bytes) == count ? bytes : 0;
}

/* Returns the code of a DESC column's value without the inversion, in `room` if it fits. */
static const uint8 *
uninvert_code(const uint8 *p, uint32 len, uint8 *room, uint32 room_size)
{
	uint8	   *copy = len <= room_size ? room : palloc(len);

	for (uint32 i = 0; i < len; i++)
		copy[i] = ~p[i];
	return copy;
}

static Datum
decode_tid(const uint8 *v)
{
	ItemPointer tid = palloc0(sizeof(ItemPointerData));

	lsm_int_to_tid(lsm_get_big_endian(v, 6), tid);
	return PointerGetDatum(tid);
}

static Datum
float4_from_detail(uint64 detail)
{
	uint32		bits = (uint32) detail;
	float4		value;

	memcpy(&value, &bits, sizeof(value));
	return Float4GetDatum(value);
}

static Datum
float8_from_detail(uint64 detail)
{
	float8		value;

	memcpy(&value, &detail, sizeof(value));
	return Float8GetDatum(value);
}

/*
 * Decode a value that value_length has accepted.  If the bytes are damaged, returns an arbitrary
 * value, or 0 for some types passed by reference.
 */
static inline Datum
decode_value(const LsmColumn *column, const uint8 *v, uint32 len, uint64 detail)
{
	switch (column->encoding)
	{
		case LSM_ENC_BOOL:
			return BoolGetDatum(v[0] != 0);
		case LSM_ENC_CHAR:
			return CharGetDatum((char) v[0]);
		case LSM_ENC_INT16:
			return Int16GetDatum((int16) ((uint16) lsm_get_big_endian(v, 2) ^ 0x8000));
		case LSM_ENC_INT32:
			return Int32GetDatum((int32) ((uint32) lsm_get_big_endian(v, 4) ^ 0x80000000u));
		case LSM_ENC_INT64:
			return Int64GetDatum((int64) (lsm_get_big_endian(v, 8) ^ UINT64CONST(0x8000000000000000)));
		case LSM_ENC_UINT32:
			return UInt32GetDatum((uint32) lsm_get_big_endian(v, 4));
		case LSM_ENC_UINT64:
			return UInt64GetDatum(lsm_get_big_endian(v, 8));
		case LSM_ENC_FLOAT4:
			return detail != 0 ? float4_from_detail(detail) :
				Float4GetDatum(float4_from_bits((uint32) lsm_get_big_endian(v, 4)));
		case LSM_ENC_FLOAT8:
			return detail != 0 ? float8_from_detail(detail) :
				Float8GetDatum(float8_from_bits(lsm_get_big_endian(v, 8)));
		case LSM_ENC_FIXED:
			return PointerGetDatum(memcpy(palloc(len), v, len));
		case LSM_ENC_TEXT:
			return lsm_text_decode(v, len);
		case LSM_ENC_NAME:
			return lsm_name_decode(v, len);
		case LSM_ENC_BPCHAR:
			return lsm_bpchar_decode(v, len, detail, column->expected);
		case LSM_ENC_BYTEA:
			return lsm_bytea_decode(v, len);
		case LSM_ENC_BIT:
			return lsm_bit_decode(v, len);
		case LSM_ENC_NETWORK:
			return lsm_network_decode(v, len);
		case LSM_ENC_INTERVAL:
			return lsm_interval_decode(v, detail);
		case LSM_ENC_TIMETZ:
			return lsm_timetz_decode(v);
		case LSM_ENC_TID:
			return decode_tid(v);
		case LSM_ENC_NUMERIC:
			return lsm_numeric_decode(v, len, detail, column->expected);
		case LSM_ENC_NONE:
			break;
	}
	elog(ERROR, "column has no byte encoding");
	return (Datum) 0;
}

/*
 * Decode the column at p.  `detail` is the detail of its value, or 0.  Returns the column's end, or
 * NULL if the bytes are damaged.  A value passed by reference is palloc'd.
 */
const uint8 *
lsm_decode_column(const LsmColumn *column, const uint8 *p, const uint8 *end, uint64 detail,
				  Datum *value, bool *isnull)
{
	uint8		room[32];
	const uint8 *v;
	uint32		len;

	*isnull = true;
	*value = (Datum) 0;
	if (p >= end)
		return NULL;
	if (*p++ != LSM_MARK_VALUE)
		return p;
	*isnull = false;
	len = value_length(column, p, end);
	if (len == 0)
		return NULL;
	v = column->desc ? uninvert_code(p, len, room, sizeof(room)) : p;
	*value = decode_value(column, v, len, detail);
	if (!column->typbyval && DatumGetPointer(*value) == NULL)
		return NULL;
	return p + len;
}
