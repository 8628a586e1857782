/*
 * numeric_code.c
 *	  Encodes numeric values, preserving their order.
 *
 * A code is a lead byte, sometimes an exponent, and digits of base 100.  For some values the code
 * is only a lead byte:
 *
 *		02		-Infinity
 *		80		0
 *		FD		Infinity
 *		FE		NaN, which is greater than all other values
 *
 * Every other value is 0.DDDD... * 100^e, and neither the first nor the last digit D is 0.  If the
 * value is positive, its code is
 *
 *		lead		82 to FB: 0x98 + e, for e from -22 to 99; 81: e is smaller; FC: larger
 *		exponent	uint16, big-endian: after 81, e + 65536; after FC, e - 100
 *		digits		a byte each: 2 * digit, plus 1 if another digit follows
 *
 * The code of a negative value is the code of its absolute value with all bits inverted.
 *
 * This is the order of numeric_cmp: lead and exponent are in the order of e, and then the digits
 * decide.  If a value's digits are the beginning of another value's digits, the byte of the shorter
 * value's last digit is less.  The byte of the last digit is the only even one, so no code is the
 * beginning of another code.
 *
 * Equal values have equal codes, so the display scale is not in the code.  Decoding assumes the
 * scale of the column's type, or, if the type has none, the least scale that shows all digits.  If
 * the value has another scale, its detail is that scale plus 1.
 *
 * The layout of stored numerics is private to core (numeric.c).  But core cannot change the layout,
 * since pg_upgrade keeps tables as they are.  A value is a header of one or two uint16 and digits
 * of base 10000, each an int16.
 */
#include "postgres.h"

#include "base/coding.h"
#include "base/compat.h"
#include "key/numeric_code.h"

/* The first uint16 of the header. */
#define KIND_MASK			0xC000
#define KIND_SHORT			0x8000	/* of the header; otherwise an int16 follows, the weight */
#define KIND_SPECIAL		0xC000
#define LONG_NEGATIVE		0x4000
#define LONG_SCALE_MASK		0x3FFF
#define SHORT_NEGATIVE		0x2000
#define SHORT_SCALE_SHIFT	7
#define SHORT_SCALE_MASK	0x3F
#define SHORT_WEIGHT_MASK	0x007F	/* with its sign */
#define SHORT_WEIGHT_SIGN	0x0040
#define SPECIAL_NAN			0xC000
#define SPECIAL_INFINITY	0xD000
#define SPECIAL_MINUS		0xF000	/* -Infinity */

#define LEAD_MINUS_INFINITY	0x02
#define LEAD_ZERO			0x80
#define LEAD_SMALL			0x81
#define LEAD_BASE			0x98
#define LEAD_LARGE			0xFC
#define LEAD_INFINITY		0xFD
#define LEAD_NAN			0xFE

#define LEAST_EXPONENT		(-22)
#define MOST_EXPONENT		99
#define SMALL_BIAS			65536

/* A stored value. Its value is the sum of digit i * 10000^(weight - i). */
typedef struct StoredNumeric
{
	uint16		special;		/* SPECIAL_*, or 0 */
	bool		negative;
	int			scale;			/* digits that are shown after the point */
	int			weight;
	int			count;			/* of digits; neither the first nor the last digit is 0 */
	const char *digits;			/* perhaps not aligned */
} StoredNumeric;

static inline int
digit_at(const StoredNumeric *n, int i)
{
	int16		digit;

	memcpy(&digit, n->digits + i * sizeof(int16), sizeof(int16));
	return digit;
}

/* Core stores no zero digits at the ends, but its comparisons do not rely on that. */
static void
strip_zeros(StoredNumeric *n)
{
	while (n->count > 0 && digit_at(n, 0) == 0)
	{
		n->digits += sizeof(int16);
		n->weight--;
		n->count--;
	}
	while (n->count > 0 && digit_at(n, n->count - 1) == 0)
		n->count--;
}

static void
read_numeric(Datum value, StoredNumeric *n)
{
	const char *p = VARDATA_ANY(DatumGetPointer(value));
	const char *end = p + VARSIZE_ANY_EXHDR(DatumGetPointer(value));
	uint16		header;

	memset(n, 0, sizeof(StoredNumeric));
	memcpy(&header, p, sizeof(uint16));
	p += sizeof(uint16);
	if ((header & KIND_MASK) == KIND_SPECIAL)
	{
		n->special = header;
		return;
	}
	if (header & KIND_SHORT)
	{
		n->negative = (header & SHORT_NEGATIVE) != 0;
		n->scale = (header >> SHORT_SCALE_SHIFT) & SHORT_SCALE_MASK;
		n->weight = header & SHORT_WEIGHT_MASK;
		if (n->weight & SHORT_WEIGHT_SIGN)
			n->weight -= SHORT_WEIGHT_MASK + 1;
	}
	else
	{
		int16		weight;

		memcpy(&weight, p, sizeof(int16));
		p += sizeof(int16);
		n->negative = (header & LONG_NEGATIVE) != 0;
		n->scale = header & LONG_SCALE_MASK;
		n->weight = weight;
	}
	n->digits = p;
	n->count = (end - p) / sizeof(int16);
	strip_zeros(n);
}

/* Returns an upper bound on the size of a value's code. */
uint32
lsm_numeric_size(Datum value)
{
	return 3 + VARSIZE_ANY_EXHDR(DatumGetPointer(value));
}

static uint8 *
put_exponent(uint8 *out, int exponent, uint8 flip)
{
	uint16		extra;

	if (exponent >= LEAST_EXPONENT && exponent <= MOST_EXPONENT)
	{
		*out++ = (uint8) (LEAD_BASE + exponent) ^ flip;
		return out;
	}
	*out++ = (exponent < LEAST_EXPONENT ? LEAD_SMALL : LEAD_LARGE) ^ flip;
	extra = exponent < LEAST_EXPONENT ? exponent + SMALL_BIAS : exponent - MOST_EXPONENT - 1;
	*out++ = (extra >> 8) ^ flip;
	*out++ = (extra & 0xFF) ^ flip;
	return out;
}

/* Append the code of a value.  Returns its end. */
uint8 *
lsm_numeric_encode(Datum value, uint8 *out)
{
	StoredNumeric n;
	uint8		flip;

	read_numeric(value, &n);
	if (n.special != 0)
	{
		*out++ = n.special == SPECIAL_INFINITY ? LEAD_INFINITY :
			n.special == SPECIAL_MINUS ? LEAD_MINUS_INFINITY : LEAD_NAN;
		return out;
	}
	if (n.count == 0)
	{
		*out++ = LEAD_ZERO;
		return out;
	}
	flip = n.negative ? 0xFF : 0;
	out = put_exponent(out, 2 * n.weight + (digit_at(&n, 0) >= 100 ? 2 : 1), flip);
	for (int i = 0; i < n.count; i++)
	{
		int			digit = digit_at(&n, i);
		int			high = digit / 100;

		if (i > 0 || high > 0)
			*out++ = (uint8) (2 * high + 1) ^ flip;
		*out++ = (uint8) (2 * (digit - 100 * high) + 1) ^ flip;
	}
	if ((out[-1] ^ flip) == 1)
		out--;					/* the last digit is 0 */
	out[-1] ^= 1;
	return out;
}

/* Returns the length of the code at p, or 0 if the code is damaged.  `flip` inverts its bits. */
uint32
lsm_numeric_length(const uint8 *p, const uint8 *end, uint8 flip)
{
	const uint8 *q = p;
	uint8		lead;

	if (p >= end)
		return 0;
	lead = *q++ ^ flip;
	if (lead == LEAD_MINUS_INFINITY || lead == LEAD_ZERO || lead == LEAD_INFINITY || lead == LEAD_NAN)
		return 1;
	if (lead < LEAD_ZERO)
	{
		lead ^= 0xFF;
		flip ^= 0xFF;
	}
	if (lead < LEAD_SMALL || lead > LEAD_LARGE)
		return 0;
	if (lead == LEAD_SMALL || lead == LEAD_LARGE)
		q += 2;
	for (; q < end; q++)
	{
		uint8		digit = *q ^ flip;

		if (digit >= 2 * 100)
			return 0;
		if ((digit & 1) == 0)
			return q + 1 - p;
	}
	return 0;
}

/*
 * Returns what decoding assumes for a column with this type modifier: 1 + the display scale, or 0.
 */
uint16
lsm_numeric_expected(int32 typmod)
{
	int			scale;

	if (typmod < (int32) VARHDRSZ)
		return 0;
	scale = (((typmod - VARHDRSZ) & 0x7FF) ^ 1024) - 1024;
	return 1 + Max(scale, 0);
}

/*
 * Returns the least scale that shows all `digits` digits of base 100, where `last` is the last one.
 */
static int
least_scale(int exponent, int digits, int last)
{
	return Max(2 * (digits - exponent) - (last % 10 == 0), 0);
}

/* Returns the detail of a value. */
uint64
lsm_numeric_detail(Datum value, uint16 expected)
{
	StoredNumeric n;
	int			scale = 0;

	read_numeric(value, &n);
	if (n.special != 0)
		return 0;
	if (expected > 0)
		scale = expected - 1;
	else if (n.count > 0)
	{
		int			last = digit_at(&n, n.count - 1);
		bool		odd = last % 100 == 0;

		/*
		 * Count the first stored digit as two digits of base 100, even if the first of the two is
		 * 0.
		 */
		scale = least_scale(2 * n.weight + 2, 2 * n.count - odd, odd ? last / 100 : last % 100);
	}
	return n.scale == scale ? 0 : (uint64) n.scale + 1;
}

/* Make a value with this header and room for digits. */
static char *
make_numeric(const StoredNumeric *n, char **digits)
{
	bool		is_short = n->special != 0 ||
		(n->scale <= SHORT_SCALE_MASK && n->weight >= -SHORT_WEIGHT_SIGN &&
		 n->weight < SHORT_WEIGHT_SIGN);
	Size		head = VARHDRSZ + (is_short ? 1 : 2) * sizeof(uint16);
	char	   *result = palloc0(head + n->count * sizeof(int16));
	uint16		header = n->special;
	int16		weight = n->weight;

	SET_VARSIZE(result, head + n->count * sizeof(int16));
	if (n->special == 0 && is_short)
		header = KIND_SHORT | (n->negative ? SHORT_NEGATIVE : 0) |
			n->scale << SHORT_SCALE_SHIFT | (weight & SHORT_WEIGHT_MASK);
	else if (n->special == 0)
		header = n->scale | (n->negative ? LONG_NEGATIVE : 0);
	memcpy(result + VARHDRSZ, &header, sizeof(uint16));
	if (!is_short)
		memcpy(result + VARHDRSZ + sizeof(uint16), &weight, sizeof(int16));
	*digits = result + head;
	return result;
}

/*
 * Read the lead and exponent of a code that lsm_numeric_length has accepted.  Returns the digits.
 */
static const uint8 *
read_exponent(const uint8 *code, uint8 flip, int *exponent)
{
	uint8		lead = code[0] ^ flip;
	int			extra;

	*exponent = lead - LEAD_BASE;
	if (lead != LEAD_SMALL && lead != LEAD_LARGE)
		return code + 1;
	extra = (uint8) (code[1] ^ flip) << 8 | (uint8) (code[2] ^ flip);
	*exponent = lead == LEAD_SMALL ? extra - SMALL_BIAS : extra + MOST_EXPONENT + 1;
	return code + 3;
}

/* Returns the special value of a lead byte, or 0. */
static uint16
special_of(uint8 lead)
{
	return lead == LEAD_NAN ? SPECIAL_NAN : lead == LEAD_INFINITY ? SPECIAL_INFINITY :
		lead == LEAD_MINUS_INFINITY ? SPECIAL_MINUS : 0;
}

/*
 * Decode a code that lsm_numeric_length has accepted.  Returns 0 if the code or the detail is
 * damaged.
 */
Datum
lsm_numeric_decode(const uint8 *code, uint32 len, uint64 detail, uint16 expected)
{
	StoredNumeric n = {0};
	uint8		flip = code[0] < LEAD_ZERO ? 0xFF : 0;
	const uint8 *from = code + len;
	int			exponent = 0;
	int			count = 0;		/* of digits of base 100 */
	int			last = 0;
	int			at;
	char	   *result;
	char	   *digits;

	n.special = special_of(code[0]);
	if (n.special == 0 && code[0] != LEAD_ZERO)
	{
		n.negative = flip != 0;
		from = read_exponent(code, flip, &exponent);
		count = code + len - from;
		last = (uint8) (code[len - 1] ^ flip) / 2;
		n.weight = exponent % 2 == 0 ? exponent / 2 - 1 : (exponent - 1) / 2;
		n.count = (count + (exponent % 2 != 0) + 1) / 2;
	}
	if (n.special == 0)
		n.scale = detail > 0 ? (int) Min(detail - 1, PG_INT16_MAX) : expected > 0 ? expected - 1 :
			least_scale(exponent, count, last);
	if (n.weight < PG_INT16_MIN || n.weight > PG_INT16_MAX || n.scale > LONG_SCALE_MASK)
		return (Datum) 0;

	result = make_numeric(&n, &digits);
	at = exponent % 2 != 0;		/* the first digit is the low half of a stored digit */
	for (; from < code + len; from++, at++)
	{
		char	   *to = digits + at / 2 * sizeof(int16);
		int16		digit;

		memcpy(&digit, to, sizeof(int16));
		digit += (uint8) (*from ^ flip) / 2 * (at % 2 == 0 ? 100 : 1);
		memcpy(to, &digit, sizeof(int16));
	}
	return PointerGetDatum(result);
}
