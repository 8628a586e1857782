/*
 * encode.c
 *	  Order-preserving encodings of single column values.
 *
 * An encoded column is a marker byte and, for a value, its encoding:
 *	  null first 0, value 1, null last 2
 * Integers are big-endian with the sign bit inverted; floats likewise, with
 * all bits inverted when negative; text ends with a zero byte; bytea has its
 * zero bytes escaped as 00 FF and ends with 00 01.  All bytes but the marker
 * are inverted for DESC.  No encoding is a prefix of another one of the same
 * column, so columns can simply follow each other.
 */
#include "postgres.h"

#include "base/compat.h"
#include "key/encode.h"
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
#define MARK_VALUE		1
#define MARK_NULL_LAST	2

/*
 * The encoding of a column with this comparison function, or LSM_ENC_NONE.
 * Going by the function, not the type, makes the choice exact: it is what
 * defines the order.
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
			return LSM_ENC_UINT64;
		case F_BTFLOAT4CMP:
			return LSM_ENC_FLOAT4;
		case F_BTFLOAT8CMP:
			return LSM_ENC_FLOAT8;
		case F_UUID_CMP:
		case F_MACADDR_CMP:
		case F_MACADDR8_CMP:
			return LSM_ENC_FIXED;
		case F_BYTEACMP:
			return LSM_ENC_BYTEA;
		case F_BTTEXT_PATTERN_CMP:
			return LSM_ENC_TEXT;
		case F_BTTEXTCMP:
			return OidIsValid(collation) && lsm_collation_is_c(collation) ?
				LSM_ENC_TEXT : LSM_ENC_NONE;
		case F_BTNAMECMP:
			return OidIsValid(collation) && lsm_collation_is_c(collation) ?
				LSM_ENC_NAME : LSM_ENC_NONE;
		default:
			return LSM_ENC_NONE;
	}
}

static uint32
count_zero_bytes(Datum value)
{
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(DatumGetPointer(value));
	uint32		len = VARSIZE_ANY_EXHDR(DatumGetPointer(value));
	uint32		zeros = 0;

	for (uint32 i = 0; i < len; i++)
		zeros += bytes[i] == 0;
	return zeros;
}

/* An upper bound of the encoded size in bytes, with the marker. */
uint32
lsm_encode_size(LsmColumn *column, Datum value, bool isnull)
{
	if (isnull)
		return 1;
	switch (column->encoding)
	{
		case LSM_ENC_FIXED:
			return 1 + column->typlen;
		case LSM_ENC_TEXT:
			return 2 + VARSIZE_ANY_EXHDR(DatumGetPointer(value));
		case LSM_ENC_BYTEA:
			return 3 + VARSIZE_ANY_EXHDR(DatumGetPointer(value)) + count_zero_bytes(value);
		case LSM_ENC_NAME:
			return 2 + NAMEDATALEN;
		default:
			return 1 + sizeof(uint64);
	}
}

/* The width of a column's encoded values, without the marker; 0 if it varies. */
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
			return column->typlen;
		default:
			return 0;
	}
}

/* The length of a column's encoded values, with the marker; 0 if it varies. */
uint32
lsm_encoded_length(const LsmColumn *column)
{
	uint32		width = fixed_width(column);

	return width > 0 ? 1 + width : 0;
}

static uint8 *
put_be(uint8 *p, uint64 value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--)
	{
		p[i] = (uint8) value;
		value >>= 8;
	}
	return p + bytes;
}

static uint64
get_be(const uint8 *p, int bytes)
{
	uint64		value = 0;

	for (int i = 0; i < bytes; i++)
		value = (value << 8) | p[i];
	return value;
}

/* Bits of a float such that they compare as unsigned integers. */
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

/* Does decoding give back exactly this value?  Not for -0.0 and odd NaNs. */
bool
lsm_encoding_is_exact(LsmColumn *column, Datum value)
{
	if (column->encoding == LSM_ENC_FLOAT4)
	{
		float4		v = DatumGetFloat4(value);
		float4		back = float4_from_bits(float4_to_bits(v));

		return memcmp(&v, &back, sizeof(v)) == 0;
	}
	if (column->encoding == LSM_ENC_FLOAT8)
	{
		float8		v = DatumGetFloat8(value);
		float8		back = float8_from_bits(float8_to_bits(v));

		return memcmp(&v, &back, sizeof(v)) == 0;
	}
	return true;
}

/*
 * Append the encoding of a value; returns its end.  There is room for
 * lsm_encode_size.  Varlenas come detoasted (packed).
 */
uint8 *
lsm_encode_column(LsmColumn *column, Datum value, bool isnull, uint8 *out)
{
	uint8	   *from;

	if (isnull)
	{
		*out++ = column->nulls_first ? MARK_NULL_FIRST : MARK_NULL_LAST;
		return out;
	}
	*out++ = MARK_VALUE;
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
			out = put_be(out, (uint16) DatumGetInt16(value) ^ 0x8000, 2);
			break;
		case LSM_ENC_INT32:
			out = put_be(out, (uint32) DatumGetInt32(value) ^ 0x80000000u, 4);
			break;
		case LSM_ENC_INT64:
			out = put_be(out, (uint64) DatumGetInt64(value) ^ UINT64CONST(0x8000000000000000), 8);
			break;
		case LSM_ENC_UINT32:
			out = put_be(out, DatumGetUInt32(value), 4);
			break;
		case LSM_ENC_UINT64:
			out = put_be(out, DatumGetUInt64(value), 8);
			break;
		case LSM_ENC_FLOAT4:
			out = put_be(out, float4_to_bits(DatumGetFloat4(value)), 4);
			break;
		case LSM_ENC_FLOAT8:
			out = put_be(out, float8_to_bits(DatumGetFloat8(value)), 8);
			break;
		case LSM_ENC_FIXED:
			memcpy(out, DatumGetPointer(value), column->typlen);
			out += column->typlen;
			break;
		case LSM_ENC_TEXT:
			{
				uint32		len = VARSIZE_ANY_EXHDR(DatumGetPointer(value));

				memcpy(out, VARDATA_ANY(DatumGetPointer(value)), len);
				out += len;
				*out++ = 0;
				break;
			}
		case LSM_ENC_NAME:
			{
				uint32		len = strnlen(NameStr(*DatumGetName(value)), NAMEDATALEN);

				memcpy(out, NameStr(*DatumGetName(value)), len);
				out += len;
				*out++ = 0;
				break;
			}
		case LSM_ENC_BYTEA:
			{
				uint32		len = VARSIZE_ANY_EXHDR(DatumGetPointer(value));
				const uint8 *bytes = (const uint8 *) VARDATA_ANY(DatumGetPointer(value));

				for (uint32 i = 0; i < len; i++)
				{
					*out++ = bytes[i];
					if (bytes[i] == 0)
						*out++ = 0xFF;
				}
				*out++ = 0;
				*out++ = 1;
				break;
			}
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

/* The length of the encoded value at p, without the marker; 0 if it is damaged. */
static uint32
value_length(const LsmColumn *column, const uint8 *p, const uint8 *end)
{
	uint8		flip = column->desc ? 0xFF : 0;
	uint32		width;

	switch (column->encoding)
	{
		case LSM_ENC_TEXT:
		case LSM_ENC_NAME:
			{
				const uint8 *stop = memchr(p, flip, end - p);

				return stop ? stop - p + 1 : 0;
			}
		case LSM_ENC_BYTEA:
			for (const uint8 *q = p; q + 1 < end; q++)
			{
				if (*q != flip)
					continue;
				if ((q[1] ^ flip) == 1)
					return q - p + 2;
				q++;
			}
			return 0;
		default:
			width = fixed_width(column);
			return width <= end - p ? width : 0;
	}
}

/* The length of the encoded column at p, with the marker; 0 if it is damaged. */
uint32
lsm_encoded_column_length(const LsmColumn *column, const uint8 *p, const uint8 *end)
{
	uint32		len;

	if (p >= end)
		return 0;
	if (*p != MARK_VALUE)
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

/* How many whole columns, up to `most`, the first `length` bytes of a key hold. */
int
lsm_encoded_columns(const LsmColumn *columns, const uint8 *key, uint32 length, int most)
{
	uint32		bytes;

	return walk_columns(columns, key, length, most, &bytes);
}

/*
 * The length of a key's first `count` columns, or 0 if the key is damaged.  Two keys
 * have equal values in these columns exactly if they agree in these bytes.
 */
uint32
lsm_encoded_prefix_length(const LsmColumn *columns, const uint8 *key, uint32 keylen, int count)
{
	uint32		bytes;

	return walk_columns(columns, key, keylen, count, &bytes) == count ? bytes : 0;
}

bool
lsm_encoded_is_null(const uint8 *p)
{
	return *p != MARK_VALUE;
}

/* Undo the inversion of a DESC column, in `room` if the value fits there. */
static const uint8 *
uninvert(const uint8 *p, uint32 len, uint8 *room, uint32 room_size)
{
	uint8	   *copy = len <= room_size ? room : palloc(len);

	for (uint32 i = 0; i < len; i++)
		copy[i] = ~p[i];
	return copy;
}

static Datum
decode_name(const uint8 *v, uint32 len)
{
	char	   *name = palloc0(NAMEDATALEN);

	memcpy(name, v, Min(len - 1, NAMEDATALEN - 1));
	return PointerGetDatum(name);
}

static Datum
decode_bytea(const uint8 *v, uint32 len)
{
	bytea	   *result = palloc(VARHDRSZ + len);
	uint8	   *out = (uint8 *) VARDATA(result);

	for (uint32 i = 0; i + 2 < len; i++)
	{
		*out++ = v[i];
		if (v[i] == 0)
			i++;
	}
	SET_VARSIZE(result, (char *) out - (char *) result);
	return PointerGetDatum(result);
}

/* Decode a value that value_length has accepted. */
static inline Datum
decode_value(LsmEncoding encoding, const uint8 *v, uint32 len)
{
	switch (encoding)
	{
		case LSM_ENC_BOOL:
			return BoolGetDatum(v[0] != 0);
		case LSM_ENC_CHAR:
			return CharGetDatum((char) v[0]);
		case LSM_ENC_INT16:
			return Int16GetDatum((int16) ((uint16) get_be(v, 2) ^ 0x8000));
		case LSM_ENC_INT32:
			return Int32GetDatum((int32) ((uint32) get_be(v, 4) ^ 0x80000000u));
		case LSM_ENC_INT64:
			return Int64GetDatum((int64) (get_be(v, 8) ^ UINT64CONST(0x8000000000000000)));
		case LSM_ENC_UINT32:
			return UInt32GetDatum((uint32) get_be(v, 4));
		case LSM_ENC_UINT64:
			return UInt64GetDatum(get_be(v, 8));
		case LSM_ENC_FLOAT4:
			return Float4GetDatum(float4_from_bits((uint32) get_be(v, 4)));
		case LSM_ENC_FLOAT8:
			return Float8GetDatum(float8_from_bits(get_be(v, 8)));
		case LSM_ENC_FIXED:
			return PointerGetDatum(memcpy(palloc(len), v, len));
		case LSM_ENC_TEXT:
			return PointerGetDatum(cstring_to_text_with_len((const char *) v, len - 1));
		case LSM_ENC_NAME:
			return decode_name(v, len);
		case LSM_ENC_BYTEA:
			return decode_bytea(v, len);
		case LSM_ENC_NONE:
			break;
	}
	elog(ERROR, "column has no byte encoding");
	return (Datum) 0;
}

/*
 * Decode the column at p.  Returns its end, or NULL if the bytes are damaged.
 * A value by reference is palloc'd.
 */
const uint8 *
lsm_decode_column(LsmColumn *column, const uint8 *p, const uint8 *end,
				  Datum *value, bool *isnull)
{
	uint8		room[16];
	const uint8 *v;
	uint32		len;

	*isnull = true;
	*value = (Datum) 0;
	if (p >= end)
		return NULL;
	if (*p++ != MARK_VALUE)
		return p;
	*isnull = false;
	len = value_length(column, p, end);
	if (len == 0)
		return NULL;
	v = column->desc ? uninvert(p, len, room, sizeof(room)) : p;
	*value = decode_value(column->encoding, v, len);
	return p + len;
}
