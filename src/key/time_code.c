/*
 * time_code.c
 *	  Encodes interval and timetz values, preserving their order.
 *
 * Intervals compare by the sum of their months of 30 days, their days of 24 hours, and their time
 * (interval_cmp).  An interval's code is this sum, its span:
 *
 *		int40		days, rounded down; big-endian, 2^39 added
 *		uint40		microseconds within the day, big-endian
 *
 * The infinite intervals of PostgreSQL 17 and later have the least or the greatest value in all
 * three fields, so they come first and last.
 *
 * Many intervals have the same span.  Decoding assumes that the interval has no months, that its
 * days and its time have the same sign, and that its time is less than a day.  (If the days do not
 * fit their field, decoding assumes months.  If the months do not fit either, decoding assumes a
 * longer time.)  If the interval differs, its detail has the months and days, and the time is the
 * remainder of the span:
 *
 *		bits 0-1	0: days are as assumed for these months; 1: no days; 2: other days
 *		bits 2-33	months minus the assumed months, modulo 2^32
 *		bits 34-63	after 2: days minus the assumed days (less than 2^28, since otherwise the time
 *					would not fit its field)
 *
 * Differences are folded, so that numbers near 0 take few bits: n becomes 2n if n >= 0, and -2n - 1
 * otherwise.
 *
 * A timetz compares by its time in UTC, and then by its zone (timetz_cmp):
 *
 *		int64		time + zone, in microseconds; big-endian, sign bit inverted
 *		int32		zone, in seconds west of UTC; big-endian, sign bit inverted
 */
#include "postgres.h"

#include "base/coding.h"
#include "common/int.h"
#include "key/time_code.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#define DAY_BYTES		5
#define DAYS_MASK		3		/* of a detail */
#define DAYS_EXPECTED	0
#define DAYS_NONE		1
#define DAYS_OTHER		2
#define MONTHS_SHIFT	2
#define DAYS_SHIFT		34
#define DAY_BIAS		(INT64CONST(1) << 39)

/* A span of time: days, rounded down, and microseconds within the day. */
typedef struct Span
{
	int64		days;
	int64		micros;			/* 0 to USECS_PER_DAY - 1 */
} Span;

static Span
span_of(const Interval *interval)
{
	Span		span;

	span.days = interval->time / USECS_PER_DAY;
	span.micros = interval->time % USECS_PER_DAY;
	if (span.micros < 0)
	{
		span.micros += USECS_PER_DAY;
		span.days--;
	}
	span.days += interval->month * INT64CONST(30) + interval->day;
	return span;
}

/* Append the code of an interval.  Returns its end. */
uint8 *
lsm_interval_encode(Datum value, uint8 *out)
{
	Span		span = span_of(DatumGetIntervalP(value));

	out = lsm_put_big_endian(out, (uint64) (span.days + DAY_BIAS), DAY_BYTES);
	return lsm_put_big_endian(out, (uint64) span.micros, DAY_BYTES);
}

static uint32
fold_sign(int32 n)
{
	return (uint32) n << 1 ^ (n < 0 ? PG_UINT32_MAX : 0);
}

static int32
unfold_sign(uint32 n)
{
	return (int32) (n >> 1 ^ (n & 1 ? PG_UINT32_MAX : 0));
}

static int32
clamp_to_int32(int64 n)
{
	return (int32) Min(Max(n, PG_INT32_MIN), PG_INT32_MAX);
}

/* Returns the months that decoding assumes. */
static int32
expected_months(const Span *span)
{
	return span->days == clamp_to_int32(span->days) ? 0 : clamp_to_int32(span->days / 30);
}

/* Returns the days that decoding assumes for an interval with these months. */
static int32
expected_days(const Span *span, int32 months)
{
	int64		days = span->days - months * INT64CONST(30);

	return clamp_to_int32(days < 0 && span->micros > 0 ? days + 1 : days);
}

/* Arithmetic modulo 2^32. */
static int32
add_mod32(int32 a, int32 b)
{
	return (int32) ((uint32) a + (uint32) b);
}

static int32
subtract_mod32(int32 a, int32 b)
{
	return (int32) ((uint32) a - (uint32) b);
}

/* Returns the detail of an interval. */
uint64
lsm_interval_detail(Datum value)
{
	const Interval *interval = DatumGetIntervalP(value);
	Span		span = span_of(interval);
	uint32		months = fold_sign(subtract_mod32(interval->month, expected_months(&span)));
	uint32		days = fold_sign(subtract_mod32(interval->day,
												expected_days(&span, interval->month)));
	int			kind = days == 0 ? DAYS_EXPECTED : interval->day == 0 ? DAYS_NONE : DAYS_OTHER;

	return kind | (uint64) months << MONTHS_SHIFT |
		(uint64) (kind == DAYS_OTHER ? days : 0) << DAYS_SHIFT;
}

/* Decode an interval.  Returns 0 if the code or the detail is damaged. */
Datum
lsm_interval_decode(const uint8 *code, uint64 detail)
{
	Interval   *interval = palloc0(sizeof(Interval));
	Span		span;
	int64		days;
	int64		time;

	span.days = (int64) lsm_get_big_endian(code, DAY_BYTES) - DAY_BIAS;
	span.micros = (int64) lsm_get_big_endian(code + DAY_BYTES, DAY_BYTES);
	interval->month = add_mod32(expected_months(&span),
								unfold_sign((uint32) (detail >> MONTHS_SHIFT)));
	if ((detail & DAYS_MASK) != DAYS_NONE)
		interval->day = add_mod32(expected_days(&span, interval->month),
								  unfold_sign((uint32) (detail >> DAYS_SHIFT)));

	/* Avoid a product that is out of range although the sum is not. */
	days = span.days - interval->month * INT64CONST(30) - interval->day;
	if (days < 0)
	{
		days++;
		span.micros -= USECS_PER_DAY;
	}
	if (pg_mul_s64_overflow(days, USECS_PER_DAY, &time) ||
		pg_add_s64_overflow(time, span.micros, &time))
		return (Datum) 0;
	interval->time = time;
	return PointerGetDatum(interval);
}

/* Append the code of a timetz.  Returns its end. */
uint8 *
lsm_timetz_encode(Datum value, uint8 *out)
{
	const TimeTzADT *timetz = DatumGetTimeTzADTP(value);
	int64		utc = timetz->time + timetz->zone * USECS_PER_SEC;

	out = lsm_put_big_endian(out, (uint64) utc ^ UINT64CONST(0x8000000000000000), 8);
	return lsm_put_big_endian(out, (uint32) timetz->zone ^ 0x80000000u, 4);
}

Datum
lsm_timetz_decode(const uint8 *code)
{
	TimeTzADT  *timetz = palloc0(sizeof(TimeTzADT));
	uint64		utc = lsm_get_big_endian(code, 8) ^ UINT64CONST(0x8000000000000000);

	timetz->zone = (int32) ((uint32) lsm_get_big_endian(code + 8, 4) ^ 0x80000000u);
	timetz->time = (TimeADT) (utc - (uint64) (timetz->zone * USECS_PER_SEC));
	return TimeTzADTPGetDatum(timetz);
}
