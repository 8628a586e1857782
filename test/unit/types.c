/*
 * types.c
 *	  Types for the property tests: how values are stored, in which order they are,
 *	  and the functions that core would call.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "core.h"
#include "numerics.h"
#include "other_types.h"
#include "props.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* Operator families; the numbers mean nothing. */
enum
{
	OTHER = 1, INTEGERS, FLOATS, STRINGS, PATTERNS, FOLDEDS, TIMES
};

/* Types that can be compared with others come first. */
const TestType test_types[] = {
	{"int4", INT4OID, INTEGERS, F_BTINT4CMP, 0, true, SIGNED, 4, true, 'i'},
	{"int8", INT8OID, INTEGERS, F_BTINT8CMP, 0, true, SIGNED, 8, true, 'd'},
	{"int2", INT2OID, INTEGERS, F_BTINT2CMP, 0, true, SIGNED, 2, true, 's'},
	{"text", TEXTOID, STRINGS, F_BTTEXTCMP, C_COLLATION_OID, true, STRING, -1, false, 'i'},
	{"name", NAMEOID, STRINGS, F_BTNAMECMP, C_COLLATION_OID, true, NAME, NAMEDATALEN, false, 'c'},
	{"float8", FLOAT8OID, FLOATS, F_BTFLOAT8CMP, 0, true, FLOAT, 8, true, 'd'},
	{"float4", FLOAT4OID, FLOATS, F_BTFLOAT4CMP, 0, true, FLOAT, 4, true, 'i'},
	{"timestamptz", TIMESTAMPTZOID, TIMES, F_TIMESTAMPTZ_CMP, 0, true, UTC_TIME, 8, true, 'd'},
	{"timestamp", TIMESTAMPOID, TIMES, F_TIMESTAMP_CMP, 0, true, LOCAL_TIME, 8, true, 'd'},
	{"date", DATEOID, TIMES, F_DATE_CMP, 0, true, DATE, 4, true, 'i'},
	{"bytea", BYTEAOID, OTHER, F_BYTEACMP, 0, true, BYTEA, -1, false, 'i'},
	{"bool", BOOLOID, OTHER, F_BTBOOLCMP, 0, true, UNSIGNED, 1, true, 'c'},
	{"\"char\"", CHAROID, OTHER, F_BTCHARCMP, 0, true, UNSIGNED, 1, true, 'c'},
	{"oid", OIDOID, OTHER, F_BTOIDCMP, 0, true, UNSIGNED, 4, true, 'i'},
	{"pg_lsn", PG_LSNOID, OTHER, F_PG_LSN_CMP, 0, true, UNSIGNED, 8, true, 'd'},
	{"xid8", XID8OID, OTHER, F_XID8CMP, 0, true, UNSIGNED, 8, true, 'd'},
	{"time", TIMEOID, OTHER, F_TIME_CMP, 0, true, SIGNED, 8, true, 'd'},
	{"numeric", NUMERICOID, OTHER, F_NUMERIC_CMP, 0, true, NUMERIC, -1, false, 'i'},
	{"interval", INTERVALOID, OTHER, F_INTERVAL_CMP, 0, true, INTERVAL, 16, false, 'd'},
	{"timetz", TIMETZOID, OTHER, F_TIMETZ_CMP, 0, true, TIMETZ, 12, false, 'd'},
	{"inet", INETOID, OTHER, F_NETWORK_CMP, 0, true, INET, -1, false, 'i'},
	{"bit", BITOID, OTHER, F_BITCMP, 0, true, BITS, -1, false, 'i'},
	{"varbit", VARBITOID, OTHER, F_VARBITCMP, 0, true, BITS, -1, false, 'i'},
	{"bpchar", BPCHAROID, OTHER, F_BPCHARCMP, C_COLLATION_OID, true, BLANKS, -1, false, 'i'},
	{"bpchar_pattern", BPCHAROID, OTHER, F_BTBPCHAR_PATTERN_CMP, DEFAULT_COLLATION_OID, true, BLANKS,
	-1, false, 'i'},
	{"tid", TIDOID, OTHER, F_BTTIDCMP, 0, true, TID, 6, false, 's'},
	{"money", MONEYOID, OTHER, F_CASH_CMP, 0, true, SIGNED, 8, true, 'd'},
	{"uuid", UUIDOID, OTHER, F_UUID_CMP, 0, true, FIXED, 16, false, 'c'},
	{"macaddr", MACADDROID, OTHER, F_MACADDR_CMP, 0, true, FIXED, 6, false, 'i'},
	{"macaddr8", MACADDR8OID, OTHER, F_MACADDR8_CMP, 0, true, FIXED, 8, false, 'i'},
	{"text_pattern", TEXTOID, PATTERNS, F_BTTEXT_PATTERN_CMP, DEFAULT_COLLATION_OID, true, STRING,
	-1, false, 'i'},
	{"caseless", TEXTOID, FOLDEDS, F_BTTEXTCMP, DEFAULT_COLLATION_OID, false, FOLDED,
	-1, false, 'i'},
};

const int	test_type_count = lengthof(test_types);

const TestType *
types_find(Oid family, Oid oid)
{
	for (int i = 0; i < test_type_count; i++)
	{
		if (test_types[i].family == family && test_types[i].oid == oid)
			return &test_types[i];
	}
	return NULL;
}

const TestType *
types_pick(void)
{
	return &test_types[pick(chance(2) ? 10 : test_type_count)];
}

const TestType *
types_pick_other(const TestType *type)
{
	const TestType *other = type;

	if (type->family != OTHER && chance(3))
	{
		do
			other = types_pick();
		while (other->family != type->family);
	}
	return other;
}

/* --- representation ----------------------------------------------------------- */

Datum
types_from_integer(const TestType *type, uint64 value)
{
	switch (type->length)
	{
		case 1:
			return type->oid == BOOLOID ? BoolGetDatum(value & 1) : CharGetDatum((char) value);
		case 2:
			return Int16GetDatum((int16) value);
		case 4:
			return Int32GetDatum((int32) value);
		default:
			return Int64GetDatum((int64) value);
	}
}

int64
types_to_signed(const TestType *type, Datum value)
{
	return type->length == 2 ? DatumGetInt16(value) :
		type->length == 4 ? DatumGetInt32(value) : DatumGetInt64(value);
}

static uint64
to_unsigned(const TestType *type, Datum value)
{
	return type->length == 1 ? (uint8) DatumGetChar(value) :
		type->length == 4 ? DatumGetUInt32(value) : DatumGetUInt64(value);
}

double
types_to_double(const TestType *type, Datum value)
{
	return type->length == 4 ? DatumGetFloat4(value) : DatumGetFloat8(value);
}

const uint8 *
types_to_bytes(const TestType *type, Datum value, uint32 *len)
{
	const char *p = DatumGetPointer(value);

	*len = type->length;
	if (type->kind == NAME)
		*len = strlen(p);
	else if (type->length == -1)
	{
		*len = VARSIZE_ANY_EXHDR(p);
		p = VARDATA_ANY(p);
	}
	return (const uint8 *) p;
}

Datum
types_from_bytes(const TestType *type, const uint8 *bytes, uint32 len)
{
	char	   *result;

	if (type->kind == NAME)
		return PointerGetDatum(memcpy(palloc0(NAMEDATALEN), bytes, Min(len, NAMEDATALEN - 1)));
	if (type->length > 0)
		return PointerGetDatum(memcpy(palloc(type->length), bytes, type->length));
	result = palloc(VARHDRSZ + len);
	if (len < 100 && chance(2))
	{
		SET_VARSIZE_SHORT(result, VARHDRSZ_SHORT + len);
		memcpy(VARDATA_SHORT(result), bytes, len);
	}
	else
	{
		SET_VARSIZE(result, VARHDRSZ + len);
		memcpy(VARDATA(result), bytes, len);
	}
	return PointerGetDatum(result);
}

/* --- order ----------------------------------------------------------------------- */

static int
compare_bytes(const TestType *left, Datum x, const TestType *right, Datum y)
{
	uint32		x_len;
	uint32		y_len;
	const uint8 *a = types_to_bytes(left, x, &x_len);
	const uint8 *b = types_to_bytes(right, y, &y_len);

	for (uint32 i = 0; i < x_len && i < y_len; i++)
	{
		int			p = left->kind == FOLDED ? pg_ascii_tolower(a[i]) : a[i];
		int			q = left->kind == FOLDED ? pg_ascii_tolower(b[i]) : b[i];

		if (p != q)
			return p - q;
	}
	return x_len < y_len ? -1 : x_len > y_len;
}

/* Local time is ahead of UTC by these microseconds, before and after a jump. */
int64		types_zone;
static int64 zone_after;
static int64 zone_jump;

void
types_pick_zone(bool with_jump)
{
	types_zone = ((int64) pick(57) - 28) * USECS_PER_HOUR / 2;
	zone_after = with_jump ? ((int64) pick(57) - 28) * USECS_PER_HOUR / 2 : types_zone;
	zone_jump = ((int64) pick(9) - 4) * USECS_PER_DAY;
}

static Instant
to_utc(Instant local)
{
	return local - (local < zone_jump ? types_zone : zone_after);
}

/* Microseconds since 2000, in local time or in UTC. */
Instant
types_instant(const TestType *type, Datum value, bool in_utc)
{
	Instant		t;

	if (type->kind == DATE)
	{
		int32		date = DatumGetDateADT(value);

		if (DATE_NOT_FINITE(date))
			return DATE_IS_NOEND(date) ? INFINITE : -INFINITE;
		t = (Instant) date * USECS_PER_DAY;
	}
	else
	{
		int64		stamp = DatumGetTimestamp(value);

		if (TIMESTAMP_NOT_FINITE(stamp))
			return TIMESTAMP_IS_NOEND(stamp) ? INFINITE : -INFINITE;
		t = stamp;
	}
	if (in_utc && type->kind != UTC_TIME)
		t = to_utc(t);
	return t;
}

/* As core has them. The zone is that of types_pick_zone. */
int
timestamp_cmp_internal(Timestamp a, Timestamp b)
{
	return a < b ? -1 : a > b;
}

static Timestamp
make_timestamp(Instant t, int *overflow)
{
	*overflow = t < MIN_TIMESTAMP ? -1 : t >= END_TIMESTAMP;
	return *overflow == 0 ? (Timestamp) t : *overflow < 0 ? DT_NOBEGIN : DT_NOEND;
}

TimestampTz
timestamp2timestamptz_opt_overflow(Timestamp timestamp, int *overflow)
{
	*overflow = 0;
	return TIMESTAMP_NOT_FINITE(timestamp) ? timestamp : make_timestamp(to_utc(timestamp), overflow);
}

static Timestamp
date_to_timestamp(DateADT date, bool in_utc, int *overflow)
{
	Instant		t = (Instant) date * USECS_PER_DAY;

	*overflow = 0;
	if (DATE_NOT_FINITE(date))
		return DATE_IS_NOEND(date) ? DT_NOEND : DT_NOBEGIN;
	return make_timestamp(in_utc ? to_utc(t) : t, overflow);
}

Timestamp
date2timestamp_opt_overflow(DateADT date, int *overflow)
{
	return date_to_timestamp(date, false, overflow);
}

TimestampTz
date2timestamptz_opt_overflow(DateADT date, int *overflow)
{
	return date_to_timestamp(date, true, overflow);
}

pg_time_t
timestamptz_to_time_t(TimestampTz time)
{
	return time / USECS_PER_SEC +
		(pg_time_t) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY;
}

pg_tz	   *session_timezone;

/* The zone has one boundary, when it was zone_jump by the time before. */
int
pg_next_dst_boundary(const pg_time_t *at, long *before, int *before_is_dst, pg_time_t *boundary,
					 long *after, int *after_is_dst, const pg_tz *zone)
{
	pg_time_t	jump = timestamptz_to_time_t(zone_jump - types_zone);

	*before_is_dst = *after_is_dst = 0;
	*before = (*at < jump ? types_zone : zone_after) / USECS_PER_SEC;
	if (*at >= jump)
		return 0;
	*boundary = jump;
	*after = zone_after / USECS_PER_SEC;
	return 1;
}

static int
compare_instants(const TestType *left, Datum x, const TestType *right, Datum y)
{
	bool		in_utc = left->kind == UTC_TIME || right->kind == UTC_TIME;
	Instant		a = types_instant(left, x, in_utc);
	Instant		b = types_instant(right, y, in_utc);

	return a < b ? -1 : a > b;
}

int
types_compare(const TestType *left, Datum x, const TestType *right, Datum y)
{
	switch (left->kind)
	{
		case SIGNED:
			return types_to_signed(left, x) < types_to_signed(right, y) ? -1 :
				types_to_signed(left, x) > types_to_signed(right, y);
		case UNSIGNED:
			return to_unsigned(left, x) < to_unsigned(right, y) ? -1 :
				to_unsigned(left, x) > to_unsigned(right, y);
		case FLOAT:
			{
				double		a = types_to_double(left, x);
				double		b = types_to_double(right, y);

				if (isnan(a) || isnan(b))
					return !!isnan(a) - !!isnan(b);
				return a < b ? -1 : a > b;
			}
		case DATE:
		case LOCAL_TIME:
		case UTC_TIME:
			return compare_instants(left, x, right, y);
		case NUMERIC:
			return numerics_compare(x, y);
		case INTERVAL:
		case TIMETZ:
		case INET:
		case BITS:
		case TID:
		case BLANKS:
			return others_compare(left, x, y);
		default:
			return compare_bytes(left, x, right, y);
	}
}

bool
types_identical(const TestType *type, Datum x, Datum y)
{
	uint32		x_len;
	uint32		y_len;
	const uint8 *a;
	const uint8 *b;

	if (type->byval)
		return type->length == 1 ? (uint8) x == (uint8) y :
			type->length == 2 ? (uint16) x == (uint16) y :
			type->length == 4 ? (uint32) x == (uint32) y : x == y;
	a = types_to_bytes(type, x, &x_len);
	b = types_to_bytes(type, y, &y_len);
	return x_len == y_len && memcmp(a, b, x_len) == 0 &&
		(type->kind != NAME || memcmp(a, b, NAMEDATALEN) == 0);
}

/* --- functions ------------------------------------------------------------------------ */

/* Numbers of functions that do not follow core's: strategy (0: order), then the types. */
#define FIRST_FUNCTION 1000000

static Oid
function_of(const TestType *left, const TestType *right, int strategy)
{
	return FIRST_FUNCTION + 10000 * strategy + 100 * (left - test_types) + (right - test_types);
}

Oid
types_operator(const TestType *left, const TestType *right, int strategy)
{
	return function_of(left, right, strategy);
}

Oid
core_order_function(Oid family, Oid left, Oid right)
{
	const TestType *l = types_find(family, left);
	const TestType *r = types_find(family, right);

	return l != NULL && r != NULL ? function_of(l, r, 0) : InvalidOid;
}

bool
types_holds(int strategy, int order)
{
	return strategy == 1 ? order < 0 : strategy == 2 ? order <= 0 : strategy == 3 ? order == 0 :
		strategy == 4 ? order >= 0 : order > 0;
}

/* An operator returns a boolean, a comparison any integer of the right sign. */
Datum
core_call(Oid function, Oid collation, Datum x, Datum y)
{
	const TestType *left = NULL;
	const TestType *right = NULL;
	int			strategy = 0;
	int			order;

	if (function >= FIRST_FUNCTION)
	{
		left = &test_types[(function - FIRST_FUNCTION) / 100 % 100];
		right = &test_types[(function - FIRST_FUNCTION) % 100];
		strategy = (function - FIRST_FUNCTION) / 10000;
	}
	for (int i = 0; i < test_type_count && left == NULL; i++)
	{
		if (test_types[i].order == function && test_types[i].collation == collation)
			left = right = &test_types[i];
	}
	if (left == NULL || left->collation != collation)
		elog(ERROR, "function %u was called with collation %u", function, collation);
	order = types_compare(left, x, right, y);
	if (strategy > 0)
		return BoolGetDatum(types_holds(strategy, order));
	order = order < 0 ? -1 : order > 0;
	return Int32GetDatum(order < 0 && chance(4) ? PG_INT32_MIN : order * (int) (1 + pick(1000)));
}
