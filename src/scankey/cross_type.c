/*
 * cross_type.c
 *	  Values of one type as values of another of the same operator family.
 *
 * Encoded keys can only be sought with values of the column's own type.  A
 * comparison with another type, such as int8 = int4, is therefore turned into
 * a value of the column's type, or, where that is not exact, into a range that
 * surely contains every column value equal to it; the operator itself then
 * decides about each entry.
 */
#include "postgres.h"

#include <math.h>

#include "scankey/scankey.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/timestamp.h"

static Datum
make_int(Oid type, int64 value)
{
	switch (type)
	{
		case INT2OID:
			return Int16GetDatum((int16) value);
		case INT4OID:
			return Int32GetDatum((int32) value);
		default:
			return Int64GetDatum(value);
	}
}

static bool
get_int(Oid type, Datum value, int64 *result)
{
	switch (type)
	{
		case INT2OID:
			*result = DatumGetInt16(value);
			return true;
		case INT4OID:
			*result = DatumGetInt32(value);
			return true;
		case INT8OID:
			*result = DatumGetInt64(value);
			return true;
		default:
			return false;
	}
}

static LsmConversion
convert_int(Oid column_type, int64 value, Datum *low, Datum *high)
{
	int64		least = column_type == INT2OID ? PG_INT16_MIN :
		column_type == INT4OID ? PG_INT32_MIN : PG_INT64_MIN;
	int64		most = column_type == INT2OID ? PG_INT16_MAX :
		column_type == INT4OID ? PG_INT32_MAX : PG_INT64_MAX;

	*low = *high = make_int(column_type, Min(Max(value, least), most));
	return value >= least && value <= most ? LSM_CONVERT_EXACT : LSM_CONVERT_UNEQUAL;
}

static LsmConversion
convert_float(Oid column_type, Oid value_type, Datum value, Datum *low, Datum *high)
{
	float8		v;
	float4		f;

	if (column_type == FLOAT8OID && value_type == FLOAT4OID)
	{
		*low = Float8GetDatum((float8) DatumGetFloat4(value));
		return LSM_CONVERT_EXACT;
	}
	if (column_type != FLOAT4OID || value_type != FLOAT8OID)
		return LSM_CONVERT_NONE;
	v = DatumGetFloat8(value);
	f = (float4) v;
	*low = Float4GetDatum(f);
	if (isnan(v) || (float8) f == v)
		return LSM_CONVERT_EXACT;
	*low = Float4GetDatum(nextafterf(f, -INFINITY));
	*high = Float4GetDatum(nextafterf(f, INFINITY));
	return LSM_CONVERT_UNEQUAL;
}

/* Dates and timestamps, with and without time zone, in microseconds. */
static bool
get_micros(Oid type, Datum value, int64 *result)
{
	if (type == DATEOID)
	{
		DateADT		date = DatumGetDateADT(value);

		if (DATE_IS_NOBEGIN(date))
			*result = DT_NOBEGIN;
		else if (DATE_IS_NOEND(date))
			*result = DT_NOEND;
		else if (date >= PG_INT64_MAX / USECS_PER_DAY)
			*result = PG_INT64_MAX - 1;
		else if (date <= PG_INT64_MIN / USECS_PER_DAY)
			*result = PG_INT64_MIN + 1;
		else
			*result = (int64) date * USECS_PER_DAY;
		return true;
	}
	if (type == TIMESTAMPOID || type == TIMESTAMPTZOID)
	{
		*result = DatumGetTimestamp(value);
		return true;
	}
	return false;
}

/*
 * How far apart date, timestamp and timestamptz can be that compare equal.
 * SET timezone takes up to 167 hours, a POSIX zone seconds more and its
 * daylight saving an hour; date_from_micros() cuts off a part of a day.
 */
#define MARGIN_DAYS 9

/*
 * Core gives a local time the offset that is in effect some time from a day before to as
 * long after it as offsets are: this is longer.
 */
#define OFFSET_DAYS 19

static int64
shift_micros(int64 value, int64 shift)
{
	int64		result;

	if (pg_add_s64_overflow(value, shift, &result))
		return shift < 0 ? PG_INT64_MIN : PG_INT64_MAX;
	return result;
}

static Datum
date_from_micros(int64 micros)
{
	int64		days;

	if (micros == DT_NOBEGIN)
		return DateADTGetDatum(DATEVAL_NOBEGIN);
	if (micros == DT_NOEND)
		return DateADTGetDatum(DATEVAL_NOEND);
	days = micros / USECS_PER_DAY;
	return DateADTGetDatum((DateADT) Min(Max(days, PG_INT32_MIN), PG_INT32_MAX));
}

/*
 * Core compares a timestamp, with or without time zone, with a date by converting that,
 * and a timestamptz with a timestamp by converting this.  So it is exact, but at the ends
 * of what the types hold.
 */
static bool
convert_as_core(Oid column_type, Oid value_type, Datum value, Datum *low)
{
	Timestamp	result;
	int			overflow;

	if (column_type == TIMESTAMPOID && value_type == DATEOID)
		result = date2timestamp_opt_overflow(DatumGetDateADT(value), &overflow);
	else if (column_type == TIMESTAMPTZOID && value_type == DATEOID)
		result = date2timestamptz_opt_overflow(DatumGetDateADT(value), &overflow);
	else if (column_type == TIMESTAMPTZOID && value_type == TIMESTAMPOID)
		result = timestamp2timestamptz_opt_overflow(DatumGetTimestamp(value), &overflow);
	else
		return false;
	*low = TimestampGetDatum(result);
	return overflow == 0;
}

/*
 * The least and the greatest offset of local time, in microseconds, that are in effect
 * about that time.  False if that cannot be told.
 */
static bool
find_offsets(TimestampTz time, int64 *least, int64 *greatest)
{
	pg_time_t	at = timestamptz_to_time_t(time) - OFFSET_DAYS * SECS_PER_DAY;
	pg_time_t	end = at + 2 * OFFSET_DAYS * SECS_PER_DAY;
	long		before;
	long		after;
	int			is_dst;
	pg_time_t	boundary;
	int			found = pg_next_dst_boundary(&at, &before, &is_dst, &boundary, &after, &is_dst,
											 session_timezone);

	if (found < 0)
		return false;
	*least = *greatest = before * USECS_PER_SEC;
	while (found > 0 && boundary <= end)
	{
		*least = Min(*least, after * USECS_PER_SEC);
		*greatest = Max(*greatest, after * USECS_PER_SEC);
		at = boundary;
		found = pg_next_dst_boundary(&at, &before, &is_dst, &boundary, &after, &is_dst,
									 session_timezone);
	}
	return found >= 0;
}

/* Days, rounded down. */
static int64
days_of(int64 micros)
{
	return micros / USECS_PER_DAY - (micros % USECS_PER_DAY < 0);
}

/* A date or timestamp column compares as those do that lie between these local times. */
static LsmConversion
make_local(Oid column_type, int64 from, int64 to, Datum *low, Datum *high)
{
	int64		last_day = days_of(to);

	if (column_type == TIMESTAMPOID)
	{
		*low = TimestampGetDatum(from);
		*high = TimestampGetDatum(to);
		return from == to ? LSM_CONVERT_EXACT : LSM_CONVERT_RANGE;
	}
	*low = DateADTGetDatum((DateADT) days_of(from));
	*high = DateADTGetDatum((DateADT) (last_day * USECS_PER_DAY == to ? last_day : last_day + 1));
	if (from != to)
		return LSM_CONVERT_RANGE;
	return last_day * USECS_PER_DAY == to ? LSM_CONVERT_EXACT : LSM_CONVERT_UNEQUAL;
}

/*
 * The other way round core converts the column's values, by their offsets.  In most of a
 * year all offsets that may count are the same one.
 */
static bool
convert_by_offset(Oid column_type, Oid value_type, int64 micros, Datum *low, Datum *high,
				  LsmConversion *result)
{
	int64		least = 0;
	int64		greatest = 0;

	/* Nothing overflows. */
	if (micros < MIN_TIMESTAMP + 2 * OFFSET_DAYS * USECS_PER_DAY ||
		micros > END_TIMESTAMP - 2 * OFFSET_DAYS * USECS_PER_DAY)
		return false;
	if (column_type == DATEOID ? value_type == DATEOID :
		column_type != TIMESTAMPOID || value_type != TIMESTAMPTZOID)
		return false;
	if (value_type == TIMESTAMPTZOID && !find_offsets(micros, &least, &greatest))
		return false;
	*result = make_local(column_type, micros + least, micros + greatest, low, high);
	return true;
}

/* Whatever the offsets are, and at the ends of what the types hold. */
static LsmConversion
convert_roughly(Oid column_type, int64 micros, Datum *low, Datum *high)
{
	int64		margin = MARGIN_DAYS * USECS_PER_DAY;
	int64		from = TIMESTAMP_NOT_FINITE(micros) ? micros : shift_micros(micros, -margin);
	int64		to = TIMESTAMP_NOT_FINITE(micros) ? micros : shift_micros(micros, margin);

	/*
	 * Beyond the range of timestamps dates compare by special rules: every
	 * such date is above (or below) all timestamps but infinity.
	 */
	if (micros >= END_TIMESTAMP - margin)
		to = PG_INT64_MAX;
	if (micros <= MIN_TIMESTAMP + margin)
		from = PG_INT64_MIN;
	if (column_type == DATEOID)
	{
		*low = date_from_micros(from);
		*high = date_from_micros(to);
	}
	else
	{
		*low = TimestampGetDatum(from);
		*high = TimestampGetDatum(to);
	}
	return LSM_CONVERT_RANGE;
}

static LsmConversion
convert_time(Oid column_type, Oid value_type, Datum value, Datum *low, Datum *high)
{
	int64		micros;
	LsmConversion result;

	if (!get_micros(value_type, value, &micros) ||
		(column_type != DATEOID && column_type != TIMESTAMPOID && column_type != TIMESTAMPTZOID))
		return LSM_CONVERT_NONE;
	if (convert_as_core(column_type, value_type, value, low))
		return LSM_CONVERT_EXACT;
	if (convert_by_offset(column_type, value_type, micros, low, high, &result))
		return result;
	return convert_roughly(column_type, micros, low, high);
}

static LsmConversion
convert_string(Oid column_type, Oid value_type, Datum value, Datum *low, Datum *high)
{
	if (column_type == TEXTOID && value_type == NAMEOID)
	{
		*low = PointerGetDatum(cstring_to_text(NameStr(*DatumGetName(value))));
		return LSM_CONVERT_EXACT;
	}
	if (column_type == NAMEOID && value_type == TEXTOID)
	{
		char	   *string = text_to_cstring(DatumGetTextPP(value));
		Name		name = palloc0(NAMEDATALEN);
		Size		length = strlen(string);

		/* Names are encoded where they compare as bytes: the longest that begin alike come before it. */
		memcpy(NameStr(*name), string, Min(length, NAMEDATALEN - 1));
		*low = *high = NameGetDatum(name);
		return length < NAMEDATALEN ? LSM_CONVERT_EXACT : LSM_CONVERT_UNEQUAL;
	}
	return LSM_CONVERT_NONE;
}

/*
 * Convert a value for a seek.  EXACT: *low compares with the column as the
 * value does.  RANGE: every column value that is equal to it lies within
 * [*low, *high], the smaller ones are not above *high and the greater ones not
 * below *low.  UNEQUAL: so it is, but that no column value is equal to it.
 *
 * Where time zones come in, the result holds as long as the setting stays as it is.
 */
LsmConversion
lsm_convert_value(Oid column_type, Oid value_type, Datum value, Datum *low, Datum *high)
{
	int64		integer;

	*low = value;
	*high = value;
	if (!OidIsValid(value_type) || value_type == column_type)
		return LSM_CONVERT_EXACT;
	if (get_int(value_type, value, &integer) &&
		(column_type == INT2OID || column_type == INT4OID || column_type == INT8OID))
		return convert_int(column_type, integer, low, high);
	if (value_type == FLOAT4OID || value_type == FLOAT8OID)
		return convert_float(column_type, value_type, value, low, high);
	if (value_type == NAMEOID || value_type == TEXTOID)
		return convert_string(column_type, value_type, value, low, high);
	return convert_time(column_type, value_type, value, low, high);
}
