/*
 * bytes_code.c
 *	  Encodes bytea, bit and varbit values, preserving their order.
 *
 *		bytes		of the value; 00 is written as 00 FF
 *		00
 *		uint8		bytea: 1; bit strings: 1 + the number of bits in the last byte (1 to 8,
 *					or 0 if there are no bytes)
 *
 * If a value is the beginning of a longer value, the shorter value is less: its final 00 meets a
 * greater byte, or a 00 followed by FF.  This is also the order of bit_cmp, which compares the
 * bytes of bit strings and then their numbers of bits.
 */
#include "postgres.h"

#include "base/compat.h"
#include "key/bytes_code.h"
#include "utils/varbit.h"

static uint32
count_zero_bytes(const uint8 *bytes, uint32 len)
{
	uint32		zeros = 0;

	for (uint32 i = 0; i < len; i++)
		zeros += bytes[i] == 0;
	return zeros;
}

static uint8 *
put_escaped(uint8 *out, const uint8 *bytes, uint32 len, uint8 last)
{
	for (uint32 i = 0; i < len; i++)
	{
		*out++ = bytes[i];
		if (bytes[i] == 0)
			*out++ = 0xFF;
	}
	*out++ = 0;
	*out++ = last;
	return out;
}

/* Undo the escapes in `len` bytes.  Returns the end. */
static uint8 *
get_escaped(uint8 *out, const uint8 *from, uint32 len)
{
	for (uint32 i = 0; i < len; i++)
	{
		*out++ = from[i];
		if (from[i] == 0)
			i++;
	}
	return out;
}

/* Returns the length of the code at p, or 0 if the code is damaged.  `flip` inverts its bits. */
uint32
lsm_bytes_length(const uint8 *p, const uint8 *end, uint8 flip, int most)
{
	for (const uint8 *q = p; q + 1 < end; q++)
	{
		uint8		next = q[1] ^ flip;

		if (*q != flip)
			continue;
		if (next >= 1 && next <= most)
			return q - p + 2;
		if (next != 0xFF)
			return 0;
		q++;
	}
	return 0;
}

/* --- bytea -------------------------------------------------------------------- */

static inline const uint8 *
bytes_of(Datum value, uint32 *len)
{
	*len = VARSIZE_ANY_EXHDR(DatumGetPointer(value));
	return (const uint8 *) VARDATA_ANY(DatumGetPointer(value));
}

uint32
lsm_bytea_size(Datum value)
{
	uint32		len;
	const uint8 *bytes = bytes_of(value, &len);

	return len + count_zero_bytes(bytes, len) + 2;
}

uint8 *
lsm_bytea_encode(Datum value, uint8 *out)
{
	uint32		len;
	const uint8 *bytes = bytes_of(value, &len);

	return put_escaped(out, bytes, len, LSM_BYTEA_LAST);
}

/* Decode a code that lsm_bytes_length has accepted. */
Datum
lsm_bytea_decode(const uint8 *code, uint32 len)
{
	bytea	   *result = palloc(VARHDRSZ + len);
	uint8	   *end = get_escaped((uint8 *) VARDATA(result), code, len - 2);

	SET_VARSIZE(result, (char *) end - (char *) result);
	return PointerGetDatum(result);
}

/* --- bit strings --------------------------------------------------------------- */

/* Get the bytes of a bit string, which may have a short header, and the last byte of its code. */
static inline const uint8 *
bits_of(Datum value, uint32 *len, uint8 *last)
{
	const uint8 *p = bytes_of(value, len);
	int32		bits;

	memcpy(&bits, p, sizeof(int32));
	*len -= sizeof(int32);
	*last = bits == 0 ? 1 : 2 + (bits - 1) % BITS_PER_BYTE;
	return p + sizeof(int32);
}

uint32
lsm_bit_size(Datum value)
{
	uint32		len;
	uint8		last;
	const uint8 *bytes = bits_of(value, &len, &last);

	return len + count_zero_bytes(bytes, len) + 2;
}

uint8 *
lsm_bit_encode(Datum value, uint8 *out)
{
	uint32		len;
	uint8		last;
	const uint8 *bytes = bits_of(value, &len, &last);

	return put_escaped(out, bytes, len, last);
}

/* Decode a code that lsm_bytes_length has accepted.  Returns 0 if the code is damaged. */
Datum
lsm_bit_decode(const uint8 *code, uint32 len)
{
	VarBit	   *result = palloc0(VARHDRSZ + sizeof(int32) + len);
	uint8	   *end = get_escaped((uint8 *) VARBITS(result), code, len - 2);
	uint32		bytes = end - (uint8 *) VARBITS(result);
	int			last = code[len - 1] - 1;

	if ((last == 0) != (bytes == 0))
		return (Datum) 0;
	SET_VARSIZE(result, VARHDRSZ + sizeof(int32) + bytes);
	VARBITLEN(result) = bytes == 0 ? 0 : (bytes - 1) * BITS_PER_BYTE + last;
	return PointerGetDatum(result);
}
