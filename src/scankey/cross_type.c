/*
 * cross_type.c
 *	  Converts values for conditions whose type is not the column's, such as int8 = int4.
 *
 * A scan can seek encoded keys only with values of the column's own type.  So the scan converts the
 * value.  An inexact conversion gives a range that contains every column value equal to the value.
 * The operator itself then checks each entry in the range.
 */
#include "postgres.h"

#include <math.h>

#include "access/nbtree.h"
#include "base/compat.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "scankey/scankey_parts.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
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

/* Convert a date, timestamp or timestamptz to microseconds.  Returns false for other types. */
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
 * A date, a timestamp and a timestamptz that compare equal are at most this far apart.  SET
 * timezone accepts an offset of up to 167 hours.  A POSIX zone can add seconds to that, and an hour
 * of daylight saving.  date_from_micros() cuts off part of a day.
 */
#define MARGIN_DAYS 9

/*
 * For a local time, core uses an offset that is in effect at some time within a period.  The period
 * begins a day before the local time, read as UTC, and ends at most one offset after it.
 * OFFSET_DAYS is longer than either part of the period.
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
 * Core compares a timestamp or timestamptz with a date by converting the date, and a timestamptz
 * with a timestamp by converting the timestamp.  So these conversions are exact, except at the ends
 * of the types' ranges.  Returns false at these ends, and for other pairs of types.
 */
static bool
convert_as_core(Oid column_type, Oid value_type, Datum value, Datum *low)
{
	Timestamp	result;
	bool		exact = false;

	if (column_type == TIMESTAMPOID && value_type == DATEOID)
		exact = lsm_date_to_timestamp(DatumGetDateADT(value), &result);
	else if (column_type == TIMESTAMPTZOID && value_type == DATEOID)
		exact = lsm_date_to_timestamptz(DatumGetDateADT(value), &result);
	else if (column_type == TIMESTAMPTZOID && value_type == TIMESTAMPOID)
		exact = lsm_timestamp_to_timestamptz(DatumGetTimestamp(value), &result);
	if (exact)
		*low = TimestampGetDatum(result);
	return exact;
}

/*
 * Find the least and the greatest offset of local time in effect around this time, in microseconds.
 * Returns false if the offsets are not known.
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

/* Convert to days, rounding down. */
static int64
floor_days(int64 micros)
{
	return micros / USECS_PER_DAY - (micros % USECS_PER_DAY < 0);
}

/* Find the values of a date or timestamp column that are equal to one of these local times. */
static LsmConversion
make_local(Oid column_type, int64 from, int64 to, Datum *low, Datum *high)
{
	int64		last_day = floor_days(to);

	if (column_type == TIMESTAMPOID)
	{
		*low = TimestampGetDatum(from);
		*high = TimestampGetDatum(to);
		return from == to ? LSM_CONVERT_EXACT : LSM_CONVERT_RANGE;
	}
	*low = DateADTGetDatum((DateADT) floor_days(from));
	*high = DateADTGetDatum((DateADT) (last_day * USECS_PER_DAY == to ? last_day : last_day + 1));
	if (from != to)
		return LSM_CONVERT_RANGE;
	return last_day * USECS_PER_DAY == to ? LSM_CONVERT_EXACT : LSM_CONVERT_UNEQUAL;
}

/*
 * For the other pairs of types, core converts the column's values by their offsets.  During most of
 * a year, all offsets that may apply are the same.  Returns false if this function cannot convert
 * the value.
 */
static bool
convert_by_offset(Oid column_type, Oid value_type, int64 micros, Datum *low, Datum *high,
				  LsmConversion *result)
{
	int64		least = 0;
	int64		greatest = 0;

	/* Nothing below can overflow within these limits. */
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

/* Convert to a range that is wide enough for all offsets, and for the ends of the types' ranges. */
static LsmConversion
convert_roughly(Oid column_type, int64 micros, Datum *low, Datum *high)
{
	int64		margin = MARGIN_DAYS * USECS_PER_DAY;
	int64		from = TIMESTAMP_NOT_FINITE(micros) ? micros : shift_micros(micros, -margin);
	int64		to = TIMESTAMP_NOT_FINITE(micros) ? micros : shift_micros(micros, margin);

	/*
	 * A date beyond the range of timestamps is above (or below) all timestamps except
	 * infinity.
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

		/*
		 * Encoded names compare as bytes: the longest name with the same beginning sorts before
		 * the text.
		 */
		memcpy(NameStr(*name), string, Min(length, NAMEDATALEN - 1));
		*low = *high = NameGetDatum(name);
		return length < NAMEDATALEN ? LSM_CONVERT_EXACT : LSM_CONVERT_UNEQUAL;
	}
	return LSM_CONVERT_NONE;
}

/*
 * Convert a value for a seek.  EXACT: *low compares with the column as the value does.  RANGE:
 * every column value equal to the value lies within [*low, *high].  Smaller column values are not
 * above *high, and greater column values are not below *low.  UNEQUAL: as RANGE, and no column
 * value is equal to the value.
 *
 * Where time zones matter, the result holds until the setting TimeZone changes.
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

/* --- for a column of the index ------------------------------------------------ */

/*
 * Returns the family's comparison function for two types, or NULL.  For the column's own type we
 * return the column's own FmgrInfo.  With a copy, comparisons of records and arrays would look up
 * their types again for each scan, and leave the results in memory that outlives the scan.
 */
FmgrInfo *
lsm_convert_find_order(LsmColumn *column, Oid left, Oid right)
{
	FmgrInfo   *order;
	Oid			proc;

	if (!OidIsValid(right))
		right = column->opcintype;
	if (left == column->opcintype && right == column->opcintype)
		return &column->cmp;
	proc = get_opfamily_proc(column->opfamily, left, right, BTORDER_PROC);
	if (!OidIsValid(proc))
		return NULL;
	order = palloc(sizeof(FmgrInfo));
	fmgr_info(proc, order);
	return order;
}

/*
 * Do the column's comparisons with this type imply an order other than the index's?  As
 * timestamptz, local times that the clock skips when daylight saving begins are later than the
 * first times after them.  If a time zone skips a day, two dates are equal.
 */
static inline bool
compares_in_other_order(const LsmColumn *column, Oid subtype)
{
	return subtype == TIMESTAMPTZOID &&
		(column->opcintype == TIMESTAMPOID || column->opcintype == DATEOID);
}

/*
 * Must values of this type be converted to the column's type?  Other values are compared as they
 * are.  For tuple keys, too, values are converted if the column has an encoding: filters know only
 * values of the column's own type.
 */
bool
lsm_convert_is_needed(const LsmScanKeys *keys, int column, Oid subtype)
{
	const LsmColumn *c = &keys->ks->columns[column];

	return OidIsValid(subtype) && subtype != c->opcintype &&
		(c->encoding != LSM_ENC_NONE || compares_in_other_order(c, subtype));
}

/* Find the function, if any, that compares the column with unconverted values of this type. */
static LsmConversion
compare_unconverted(LsmColumn *column, Oid subtype, FmgrInfo **cmp)
{
	*cmp = lsm_convert_find_order(column, column->opcintype, subtype);
	return *cmp != NULL ? LSM_CONVERT_EXACT : LSM_CONVERT_NONE;
}

/*
 * Find the range to seek for a value in this column, from *low to *high, and the comparison
 * function.  See lsm_convert_value.
 */
LsmConversion
lsm_convert_for_column(LsmScanKeys *keys, int column, Oid subtype, Datum value,
					 Datum *low, Datum *high, FmgrInfo **cmp)
{
	LsmColumn  *c = &keys->ks->columns[column];
	LsmConversion result;

	*low = *high = value;
	*cmp = &c->cmp;
	if (!OidIsValid(subtype) || subtype == c->opcintype)
	{
		/* Each bound encodes the value; detoast it only once. */
		if (keys->ks->encoded && c->typlen == -1)
			*low = *high = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
		return LSM_CONVERT_EXACT;
	}
	if (!lsm_convert_is_needed(keys, column, subtype))
		return compare_unconverted(c, subtype, cmp);
	result = lsm_convert_value(c->opcintype, subtype, value, low, high);
	if (result == LSM_CONVERT_EXACT)
		*high = *low;
	if (result == LSM_CONVERT_NONE && !keys->ks->encoded)
		return compare_unconverted(c, subtype, cmp);
	return result;
}
