/*
 * values.c
 *	  Random values for the property tests: small ones and those at the edges of
 *	  bytes, types and special cases more often than others.
 */
#include "postgres.h"

#include <math.h>

#include "numerics.h"
#include "other_types.h"
#include "props.h"
#include "utils/date.h"
#include "utils/timestamp.h"

/* Small ones, the least and the greatest, powers of two and what is next to them, and any. */
static uint64
pick_integer(int bits)
{
	uint64		value = 0;

	switch (pick(5))
	{
		case 0:
			return (uint64) pick(5) - 2;
		case 1:
			return (UINT64CONST(1) << (bits - 1)) - pick(2);
		case 2:
			value = pick_bits();
			return value >> pick(64);
		case 3:
			value = UINT64CONST(1) << pick(bits);
			break;
		default:
			value = ~UINT64CONST(0) << pick(bits);
			break;
	}
	return value + pick(3) - 1;
}

static double
pick_double(void)
{
	static const double special[] = {0, 0, 1, 0.5, 1.5, 1e300, 1e38, 3.4028234663852886e38, 1e-40,
	1e-310, 5e-324, INFINITY, 1 + 1.1920928955078125e-07};
	double		value;

	if (chance(4))
	{
		uint64		bits = pick_bits() | (chance(2) ? UINT64CONST(0x7FF0) << 48 : 0);

		memcpy(&value, &bits, sizeof(value));
		return value;
	}
	value = chance(3) ? (double) pick(5) : special[pick(lengthof(special))];
	if (chance(4))
		value = nextafter(value, chance(2) ? INFINITY : -INFINITY);
	return chance(2) ? -value : value;
}

static Datum
pick_float(const TestType *type)
{
	if (type->length == 8)
		return Float8GetDatum(pick_double());
	if (chance(4))
	{
		uint32		bits = (uint32) pick_bits() | (chance(2) ? 0x7F800000 : 0);
		float4		value;

		memcpy(&value, &bits, sizeof(value));
		return Float4GetDatum(value);
	}
	return Float4GetDatum((float4) pick_double());
}

static Datum
pick_string(const TestType *type)
{
	static const uint8 letters[] = {'a', 'A', 'b', 1, 2, 0x7F, 0x80, 0xFE, 0xFF};
	static const uint8 bytes[] = {0, 0, 1, 1, 2, 0x7F, 0x80, 0xFE, 0xFF};
	const uint8 *from = type->kind == BYTEA || type->kind == FIXED ? bytes : letters;
	uint32		common = chance(2) ? 0 : pick(chance(4) ? 150 : 16);
	uint32		len = type->kind == FIXED ? type->length : common + pick(5);
	uint8		value[160];

	for (uint32 i = 0; i < len; i++)
		value[i] = i < common ? from[2] : from[pick(lengthof(letters))];
	return types_from_bytes(type, value, len);
}

#define FIRST_DATE ((int64) DATETIME_MIN_JULIAN - POSTGRES_EPOCH_JDATE)
#define LAST_DATE ((int64) DATE_END_JULIAN - POSTGRES_EPOCH_JDATE - 1)

/* Within some days of 2000 and of both ends, and any. */
static int64
pick_instant(int64 least, int64 most, int64 day)
{
	int64		near = (int64) pick(9) * day / 2 + (chance(2) ? 0 : pick_bits() % day);

	switch (pick(8))
	{
		case 0:
			return most - near;
		case 1:
			return least + near;
		case 2:
			return least / 2 + (int64) (pick_bits() % (uint64) (most / 2 - least / 2));
		default:
			return near - 2 * day;
	}
}

Datum
types_value(const TestType *type)
{
	switch (type->kind)
	{
		case SIGNED:
		case UNSIGNED:
			return types_from_integer(type, pick_integer(8 * type->length));
		case FLOAT:
			return pick_float(type);
		case DATE:
			if (chance(10))
				return DateADTGetDatum(chance(2) ? DATEVAL_NOBEGIN : DATEVAL_NOEND);
			return DateADTGetDatum((DateADT) pick_instant(FIRST_DATE, LAST_DATE, 1));
		case LOCAL_TIME:
		case UTC_TIME:
			if (chance(10))
				return TimestampGetDatum(chance(2) ? DT_NOBEGIN : DT_NOEND);
			return TimestampGetDatum(pick_instant(MIN_TIMESTAMP, END_TIMESTAMP - 1, USECS_PER_DAY));
		case NUMERIC:
			return numerics_value();
		case INTERVAL:
		case TIMETZ:
		case INET:
		case BITS:
		case TID:
		case BLANKS:
			return others_value(type);
		default:
			return pick_string(type);
	}
}

Datum
types_value_near(const TestType *type, const TestType *other, Datum value)
{
	uint32		len;
	const uint8 *bytes;
	Instant		t;

	if (chance(8))
		return types_value(type);
	if (type->kind == NUMERIC)
		return numerics_value_near(value);
	if (type->kind >= INTERVAL)
		return others_value_near(type, value);
	if (type == other)
		return value;
	switch (type->kind)
	{
		case SIGNED:
			/* Just outside the range of a shorter type, or near the value. */
			if (type->length > other->length && chance(4))
				return types_from_integer(type, (chance(2) ? UINT64CONST(1) : ~UINT64CONST(0)) <<
										  (8 * other->length - pick(2)));
			return types_from_integer(type, types_to_signed(other, value) + pick(3) - 1);
		case FLOAT:
			{
				double		d = types_to_double(other, value);

				if (type->length == 4)
					return Float4GetDatum((float4) d);
				return Float8GetDatum(chance(3) ? nextafter(d, chance(2) ? INFINITY : -INFINITY) : d);
			}
		case DATE:
		case LOCAL_TIME:
		case UTC_TIME:
			t = types_instant(other, value, false);
			if (type->kind == DATE)
				t = (t - (t < 0 ? USECS_PER_DAY - 1 : 0)) / USECS_PER_DAY;
			else if (chance(2))
				t += types_zone;
			if (t < (type->kind == DATE ? FIRST_DATE : MIN_TIMESTAMP) ||
				t > (type->kind == DATE ? LAST_DATE : END_TIMESTAMP - 1))
				return types_value(type);
			return type->kind == DATE ? DateADTGetDatum((DateADT) t) : TimestampGetDatum((int64) t);
		default:
			bytes = types_to_bytes(other, value, &len);
			return types_from_bytes(type, bytes, len);
	}
}
