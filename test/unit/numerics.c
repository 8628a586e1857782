/*
 * numerics.c
 *	  Makes stored numerics for the property tests, as the comments of core's numeric.c describe
 *	  them: a header, and digits of base 10000.
 */
#include "postgres.h"

#include "numerics.h"
#include "props.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

void
numerics_normalize(Decimal *d)
{
	int			zeros = 0;

	while (d->count > 0 && d->digits[d->count - 1] == 0)
		d->count--;
	while (zeros < d->count && d->digits[zeros] == 0)
		zeros++;
	memmove(d->digits, d->digits + zeros, d->count - zeros);
	d->count -= zeros;
	d->exponent -= zeros;
	if (d->count == 0)
	{
		d->exponent = 0;
		d->negative = false;
	}
}

/* Returns the weight of the first digit of base 10000: the digit counts for 10000^weight. */
static int
weight_of(const Decimal *d)
{
	int			at = d->exponent - 1;	/* the first digit counts for 10^at */

	return d->count == 0 ? 0 : at >= 0 ? at / 4 : -((-at + 3) / 4);
}

bool
numerics_can_store(const Decimal *d)
{
	int			weight = weight_of(d);

	return weight >= -16383 / 4 && weight <= PG_INT16_MAX && d->scale >= 0 && d->scale <= 0x3FFF;
}

Datum
numerics_store(const Decimal *d)
{
	int			weight = weight_of(d);
	int			skip = d->count == 0 ? 0 : 4 * weight + 4 - d->exponent;	/* zeros before the first digit */
	int			count = (skip + d->count + 3) / 4;
	bool		is_short = d->scale <= 63 && weight >= -64 && weight <= 63;
	int16		words[NUMERIC_MOST_DIGITS + 2];
	int			n = 0;
	uint32		len;
	char	   *result;
	bool		packed;

	if (d->kind != FINITE)
		words[n++] = d->kind == NOT_A_NUMBER ? 0xC000 : d->kind == PLUS_INFINITY ? 0xD000 : 0xF000;
	else
	{
		if (is_short)
			words[n++] = 0x8000 | (d->negative ? 0x2000 : 0) | d->scale << 7 |
				(weight < 0 ? 0x40 : 0) | (weight & 0x3F);
		else
		{
			words[n++] = (d->negative ? 0x4000 : 0) | d->scale;
			words[n++] = weight;
		}
		for (int i = 0; i < count; i++)
		{
			words[n] = 0;
			for (int j = 4 * i - skip; j < 4 * i - skip + 4; j++)
				words[n] = 10 * words[n] + (j >= 0 && j < d->count ? d->digits[j] : 0);
			n++;
		}
	}
	len = n * sizeof(int16);
	packed = len < 100 && chance(2);
	result = palloc((packed ? VARHDRSZ_SHORT : VARHDRSZ) + len);
	if (packed)
		SET_VARSIZE_SHORT(result, VARHDRSZ_SHORT + len);
	else
		SET_VARSIZE(result, VARHDRSZ + len);
	memcpy(VARDATA_ANY(result), words, len);
	return PointerGetDatum(result);
}

void
numerics_read(Datum value, Decimal *d)
{
	const char *p = VARDATA_ANY(DatumGetPointer(value));
	int			n = VARSIZE_ANY_EXHDR(DatumGetPointer(value)) / sizeof(int16);
	uint16		head;
	int16		word;
	int			weight;

	memset(d, 0, sizeof(Decimal));
	memcpy(&head, p, sizeof(head));
	d->kind = head == 0xC000 ? NOT_A_NUMBER : head == 0xD000 ? PLUS_INFINITY :
		head == 0xF000 ? MINUS_INFINITY : FINITE;
	if (d->kind != FINITE)
		return;
	p += 2;
	n--;
	if (head & 0x8000)
	{
		d->negative = (head & 0x2000) != 0;
		d->scale = (head & 0x1FFF) >> 7;
		weight = (head & 0x3F) - (head & 0x40);
	}
	else
	{
		d->negative = (head & 0x4000) != 0;
		d->scale = head & 0x3FFF;
		memcpy(&word, p, sizeof(word));
		weight = word;
		p += 2;
		n--;
	}
	d->exponent = 4 * weight + 4;
	for (int i = 0; i < n; i++)
	{
		int			divisor = 1000;

		memcpy(&word, p + 2 * i, sizeof(word));
		for (int j = 0; j < 4; j++, divisor /= 10)
			d->digits[d->count++] = word / divisor % 10;
	}
	numerics_normalize(d);
}

static int
compare_absolute(const Decimal *a, const Decimal *b)
{
	if (a->count == 0 || b->count == 0)
		return (a->count > 0) - (b->count > 0);
	if (a->exponent != b->exponent)
		return a->exponent < b->exponent ? -1 : 1;
	for (int i = 0; i < a->count && i < b->count; i++)
	{
		if (a->digits[i] != b->digits[i])
			return a->digits[i] < b->digits[i] ? -1 : 1;
	}
	return a->count < b->count ? -1 : a->count > b->count;
}

int
numerics_compare(Datum x, Datum y)
{
	Decimal		a;
	Decimal		b;

	numerics_read(x, &a);
	numerics_read(y, &b);
	if (a.kind != b.kind || a.kind != FINITE)
		return a.kind < b.kind ? -1 : a.kind > b.kind;
	if (a.negative != b.negative)
		return a.negative ? -1 : 1;
	return a.negative ? compare_absolute(&b, &a) : compare_absolute(&a, &b);
}

/* --- values ---------------------------------------------------------------------- */

/*
 * The smallest scale that shows all digits; a bit more; the scale of the type's columns; any scale.
 */
static void
pick_scale(Decimal *d)
{
	int			least = Max(d->count - d->exponent, 0);

	d->scale = chance(2) ? least : chance(2) ? least + pick(4) : chance(2) ? (int) pick(4) :
		(int) pick(0x4000);
}

static void
pick_digits(Decimal *d)
{
	static const uint8 often[] = {0, 0, 0, 1, 9, 9, 5};

	d->count = chance(3) ? pick(60) : chance(20) ? pick(NUMERIC_MOST_DIGITS - 10) : pick(8);
	for (int i = 0; i < d->count; i++)
		d->digits[i] = chance(2) ? often[pick(lengthof(often))] : pick(10);
}

Datum
numerics_value(void)
{
	Decimal		d;

	do
	{
		memset(&d, 0, sizeof(d));
		d.kind = chance(12) ? (NumericKind) pick(4) : FINITE;
		d.negative = chance(3);
		pick_digits(&d);
		/* Small exponents, those around which the encoding takes more bytes, and any. */
		d.exponent = chance(2) ? (int) pick(8) : chance(2) ? (int) pick(12) - 50 :
			chance(2) ? (int) pick(12) + 192 : (int) pick(160000) - 20000;
		numerics_normalize(&d);
		pick_scale(&d);
		if (d.kind != FINITE)
		{
			d.negative = false;
			d.count = d.scale = d.exponent = 0;
		}
	} while (!numerics_can_store(&d));
	return numerics_store(&d);
}

/* Returns the same value with another scale, or with a digit added, removed, or changed. */
Datum
numerics_value_near(Datum value)
{
	Decimal		d;

	numerics_read(value, &d);
	if (d.kind != FINITE)
		return value;
	switch (pick(5))
	{
		case 0:
			if (d.count > 0)
				d.digits[d.count - 1] = pick(10);
			break;
		case 1:
			if (d.count < NUMERIC_MOST_DIGITS - 10)
				d.digits[d.count++] = pick(10);
			break;
		case 2:
			d.exponent += (int) pick(3) - 1;
			break;
		case 3:
			d.negative = chance(2);
			break;
		default:
			break;
	}
	numerics_normalize(&d);
	pick_scale(&d);
	return numerics_can_store(&d) ? numerics_store(&d) : value;
}

/* Returns the typmod of a column: none, or a precision with a scale of 0 to 3 or a negative scale. */
int32
numerics_typmod(void)
{
	return chance(2) ? -1 : VARHDRSZ + (20 << 16 | (((int) pick(5) - 1) & 0x7FF));
}
