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

#include "key/keyspace.h"

#include "base/compat.h"
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

/* The length of a column's values as they are encoded, marker included, or 0 if it varies. */
uint32
lsm_encoded_length(const LsmColumn *column)
{
	switch (column->encoding)
	{
		case LSM_ENC_BOOL:
		case LSM_ENC_CHAR:
			return 1 + 1;
		case LSM_ENC_INT16:
			return 1 + 2;
		case LSM_ENC_INT32:
		case LSM_ENC_UINT32:
		case LSM_ENC_FLOAT4:
			return 1 + 4;
		case LSM_ENC_INT64:
		case LSM_ENC_UINT64:
		case LSM_ENC_FLOAT8:
			return 1 + 8;
		case LSM_ENC_FIXED:
			return 1 + column->typlen;
		default:
			return 0;
	}
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

/* Length of an encoded value at p, without the marker, or 0 if damaged. */
static uint32
encoded_length(LsmColumn *column, const uint8 *p, const uint8 *end)
{
	uint8		flip = column->desc ? 0xFF : 0;
	uint32		fixed = 0;

	switch (column->encoding)
	{
		case LSM_ENC_BOOL:
		case LSM_ENC_CHAR:
			fixed = 1;
			break;
		case LSM_ENC_INT16:
			fixed = 2;
			break;
		case LSM_ENC_INT32:
		case LSM_ENC_UINT32:
		case LSM_ENC_FLOAT4:
			fixed = 4;
			break;
		case LSM_ENC_INT64:
		case LSM_ENC_UINT64:
		case LSM_ENC_FLOAT8:
			fixed = 8;
			break;
		case LSM_ENC_FIXED:
			fixed = column->typlen;
			break;
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
		case LSM_ENC_NONE:
			return 0;
	}
	return fixed <= end - p ? fixed : 0;
}

/* The length of an encoded column, marker included, or 0 if it is damaged. */
uint32
lsm_encoded_column_length(LsmColumn *column, const uint8 *p, const uint8 *end)
{
	uint32		len;

	if (p < end && *p != MARK_VALUE)
		return 1;
	len = p < end ? encoded_length(column, p + 1, end) : 0;
	return len > 0 ? 1 + len : 0;
}

/* How many whole columns, `most` of them at most, a part of a key begins with; they have *bytes. */
static int
walk_columns(LsmKeySpace *ks, const uint8 *key, uint32 length, int most, uint32 *bytes)
{
	int			columns = 0;

	for (*bytes = 0; columns < most; columns++)
	{
		uint32		len = lsm_encoded_column_length(&ks->columns[columns], key + *bytes,
													key + length);

		if (len == 0)
			break;
		*bytes += len;
	}
	return columns;
}

/* How many whole columns, `most` of them at most, a part of a key begins with. */
int
lsm_encoded_columns(LsmKeySpace *ks, const uint8 *key, uint32 length, int most)
{
	uint32		bytes;

	return walk_columns(ks, key, length, most, &bytes);
}

/*
 * The length of the first columns of a key, or 0 if it is damaged.  Keys whose first
 * columns are equal begin with the same bytes, up to there, and others do not.
 */
uint32
lsm_encoded_prefix_length(LsmKeySpace *ks, const uint8 *key, uint32 keylen, int columns)
{
	uint32		bytes;

	return walk_columns(ks, key, keylen, columns, &bytes) == columns ? bytes : 0;
}

bool
lsm_encoded_is_null(const uint8 *p)
{
	return *p != MARK_VALUE;
}

/*
 * Decode one column; returns its end, or NULL if the bytes are damaged.  Values
 * by reference are palloc'd.
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
	len = encoded_length(column, p, end);
	if (len == 0)
		return NULL;

	v = p;
	if (column->desc && len <= sizeof(room))
	{
		for (uint32 i = 0; i < len; i++)
			room[i] = ~p[i];
		v = room;
	}
	else if (column->desc)
	{
		uint8	   *copy = palloc(len);

		for (uint32 i = 0; i < len; i++)
			copy[i] = ~p[i];
		v = copy;
	}
	switch (column->encoding)
	{
		case LSM_ENC_BOOL:
			*value = BoolGetDatum(v[0] != 0);
			break;
		case LSM_ENC_CHAR:
			*value = CharGetDatum((char) v[0]);
			break;
		case LSM_ENC_INT16:
			*value = Int16GetDatum((int16) ((uint16) get_be(v, 2) ^ 0x8000));
			break;
		case LSM_ENC_INT32:
			*value = Int32GetDatum((int32) ((uint32) get_be(v, 4) ^ 0x80000000u));
			break;
		case LSM_ENC_INT64:
			*value = Int64GetDatum((int64) (get_be(v, 8) ^ UINT64CONST(0x8000000000000000)));
			break;
		case LSM_ENC_UINT32:
			*value = UInt32GetDatum((uint32) get_be(v, 4));
			break;
		case LSM_ENC_UINT64:
			*value = UInt64GetDatum(get_be(v, 8));
			break;
		case LSM_ENC_FLOAT4:
			*value = Float4GetDatum(float4_from_bits((uint32) get_be(v, 4)));
			break;
		case LSM_ENC_FLOAT8:
			*value = Float8GetDatum(float8_from_bits(get_be(v, 8)));
			break;
		case LSM_ENC_FIXED:
			{
				uint8	   *copy = palloc(len);

				memcpy(copy, v, len);
				*value = PointerGetDatum(copy);
				break;
			}
		case LSM_ENC_TEXT:
			*value = PointerGetDatum(cstring_to_text_with_len((const char *) v, len - 1));
			break;
		case LSM_ENC_NAME:
			{
				char	   *name = palloc0(NAMEDATALEN);

				memcpy(name, v, Min(len - 1, NAMEDATALEN - 1));
				*value = PointerGetDatum(name);
				break;
			}
		case LSM_ENC_BYTEA:
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
				*value = PointerGetDatum(result);
				break;
			}
		case LSM_ENC_NONE:
			return NULL;
	}
	return p + len;
}
