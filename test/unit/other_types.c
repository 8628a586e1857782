/*
 * other_types.c
 *	  Makes intervals, addresses, bit strings and the like for the property tests, as core stores
 *	  them, and compares them by simple definitions of their order.
 */
#include "other_types.h"

#include <sys/socket.h>

#include "props.h"
#include "storage/itemptr.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/timestamp.h"
#include "utils/varbit.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

static int
compare(Instant a, Instant b)
{
	return a < b ? -1 : a > b;
}

/* Returns a small number, a number at the limits of this many bits, or any number. */
static int64
pick_signed(int bits)
{
	int64		most = (int64) ((UINT64CONST(1) << (bits - 1)) - 1);

	switch (pick(6))
	{
		case 0:
			return most - pick(2);
		case 1:
			return -most - 1 + pick(2);
		case 2:
			return (int64) (pick_bits() << (64 - bits)) >> (64 - bits);
		default:
			return (int64) pick(7) - 3;
	}
}

/* --- interval: months have 30 days, days 24 hours -------------------------------- */

static Datum
make_interval(int32 months, int32 days, int64 micros)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->month = months;
	interval->day = days;
	interval->time = micros;
	return PointerGetDatum(interval);
}

static Datum
pick_interval(void)
{
	int64		micros;

	/* Infinity, which exists since 17. */
	if (chance(10))
		return chance(2) ? make_interval(PG_INT32_MIN, PG_INT32_MIN, PG_INT64_MIN) :
			make_interval(PG_INT32_MAX, PG_INT32_MAX, PG_INT64_MAX);
	micros = chance(2) ? ((int64) pick(7) - 3) * USECS_PER_DAY / 2 : pick_signed(chance(2) ? 38 : 64);
	return make_interval(chance(2) ? 0 : (int32) pick_signed(32), chance(2) ? 0 : (int32) pick_signed(32),
						 micros);
}

/* Often a different interval of the same length: 30 days for a month, or 24 hours for a day. */
static Datum
near_interval(const Interval *interval)
{
	Interval	near = *interval;
	int			by = (int) pick(3) - 1;

	if (chance(3) && near.month < PG_INT32_MAX && near.month > PG_INT32_MIN &&
		near.day < PG_INT32_MAX - 30 && near.day > PG_INT32_MIN + 30)
	{
		near.month += by;
		near.day -= 30 * by;
	}
	if (chance(3) && near.day < PG_INT32_MAX && near.day > PG_INT32_MIN &&
		near.time < PG_INT64_MAX - USECS_PER_DAY && near.time > PG_INT64_MIN + USECS_PER_DAY)
	{
		near.day += by;
		near.time -= by * USECS_PER_DAY;
	}
	if (chance(4) && near.time < PG_INT64_MAX && near.time > PG_INT64_MIN)
		near.time += by;
	return make_interval(near.month, near.day, near.time);
}

static Instant
span_of(const Interval *interval)
{
	return ((Instant) interval->month * 30 + interval->day) * USECS_PER_DAY + interval->time;
}

/* --- timetz: by the time in UTC, then the zone -------------------------------------- */

static Datum
make_timetz(int64 micros, int32 zone)
{
	TimeTzADT  *timetz = palloc0(sizeof(TimeTzADT));

	timetz->time = micros;
	timetz->zone = zone;
	return PointerGetDatum(timetz);
}

static Datum
pick_timetz(void)
{
	int64		micros = chance(3) ? pick_bits() % (USECS_PER_DAY + 1) : pick(25) * USECS_PER_HOUR;

	return make_timetz(micros, chance(3) ? (int32) pick(115199) - 57599 : ((int32) pick(31) - 15) * 3600);
}

static Datum
near_timetz(const TimeTzADT *timetz)
{
	int32		hours = (int32) pick(3) - 1;

	return make_timetz(timetz->time + hours * USECS_PER_HOUR, timetz->zone - hours * 3600);
}

/* --- inet: family, bits that both netmasks have, netmasks, all bits ------------------- */

static Datum
make_inet(const inet_struct *address)
{
	int			size = offsetof(inet_struct, ipaddr) + (address->family == PGSQL_AF_INET ? 4 : 16);
	bool		packed = chance(2);
	char	   *result = palloc0(VARHDRSZ + size);

	if (packed)
		SET_VARSIZE_SHORT(result, VARHDRSZ_SHORT + size);
	else
		SET_VARSIZE(result, VARHDRSZ + size);
	memcpy(VARDATA_ANY(result), address, size);
	return PointerGetDatum(result);
}

static void
pick_netmask(inet_struct *address)
{
	int			most = address->family == PGSQL_AF_INET ? 32 : 128;

	address->bits = chance(2) ? most : chance(2) ? most - pick(10) : pick(most + 1);
}

static Datum
pick_inet(void)
{
	static const uint8 often[] = {0, 0, 10, 127, 128, 255};
	inet_struct address;

	memset(&address, 0, sizeof(address));
	address.family = chance(2) ? PGSQL_AF_INET : PGSQL_AF_INET6;
	pick_netmask(&address);
	for (int i = 0; i < lengthof(address.ipaddr); i++)
		address.ipaddr[i] = chance(8) ? pick(256) : i < 2 ? 10 : often[pick(lengthof(often))];
	return make_inet(&address);
}

/* Change the netmask, or one bit. In cidr all bits after the netmask are zero. */
static Datum
near_inet(Datum value)
{
	inet_struct address;
	int			most;

	memset(&address, 0, sizeof(address));
	memcpy(&address, VARDATA_ANY(DatumGetPointer(value)), VARSIZE_ANY_EXHDR(DatumGetPointer(value)));
	most = address.family == PGSQL_AF_INET ? 32 : 128;
	if (chance(2))
		pick_netmask(&address);
	else
	{
		int			bit = pick(most);

		address.ipaddr[bit / 8] ^= 0x80 >> bit % 8;
	}
	for (int bit = address.bits; bit < most && chance(2); bit++)
		address.ipaddr[bit / 8] &= ~(0x80 >> bit % 8);
	return make_inet(&address);
}

static int
compare_bits(const uint8 *a, const uint8 *b, int count)
{
	for (int i = 0; i < count; i++)
	{
		int			x = a[i / 8] >> (7 - i % 8) & 1;
		int			y = b[i / 8] >> (7 - i % 8) & 1;

		if (x != y)
			return x - y;
	}
	return 0;
}

static int
compare_inet(inet *a, inet *b)
{
	int			order;

	if (ip_family(a) != ip_family(b))
		return ip_family(a) == PGSQL_AF_INET ? -1 : 1;
	order = compare_bits(ip_addr(a), ip_addr(b), Min(ip_bits(a), ip_bits(b)));
	if (order == 0)
		order = compare(ip_bits(a), ip_bits(b));
	return order != 0 ? order : compare_bits(ip_addr(a), ip_addr(b), ip_maxbits(a));
}

/* --- bit strings: bit by bit, then the length in bits ---------------------------------- */

typedef struct Bits
{
	int			count;
	uint8		bytes[20];
} Bits;

static void
get_bits(Datum value, Bits *bits)
{
	const char *p = VARDATA_ANY(DatumGetPointer(value));
	int32		count;

	memset(bits, 0, sizeof(Bits));
	memcpy(&count, p, sizeof(int32));
	bits->count = count;
	memcpy(bits->bytes, p + sizeof(int32), VARSIZE_ANY_EXHDR(DatumGetPointer(value)) - sizeof(int32));
}

static Datum
make_bits(Bits *bits)
{
	int32		count = bits->count;
	int			size = (count + 7) / 8;
	char	   *result = palloc0(VARHDRSZ + sizeof(int32) + size);

	if (count % 8 != 0)
		bits->bytes[size - 1] &= 0xFF << (8 - count % 8);
	if (chance(2))
		SET_VARSIZE_SHORT(result, VARHDRSZ_SHORT + sizeof(int32) + size);
	else
		SET_VARSIZE(result, VARHDRSZ + sizeof(int32) + size);
	memcpy(VARDATA_ANY(result), &count, sizeof(int32));
	memcpy(VARDATA_ANY(result) + sizeof(int32), bits->bytes, size);
	return PointerGetDatum(result);
}

static Datum
pick_bit_string(void)
{
	static const uint8 often[] = {0, 0, 0, 1, 0x80, 0xFE, 0xFF};
	Bits		bits;

	memset(&bits, 0, sizeof(bits));
	bits.count = chance(4) ? pick(150) : chance(2) ? 8 * pick(4) : pick(20);
	for (int i = 0; i < (bits.count + 7) / 8; i++)
		bits.bytes[i] = chance(4) ? pick(256) : often[pick(lengthof(often))];
	return make_bits(&bits);
}

/* Longer, shorter, or with one bit changed. */
static Datum
near_bit_string(Datum value)
{
	Bits		bits;
	int			bit;
	int			count;

	get_bits(value, &bits);
	bit = pick(bits.count + 1);
	count = bits.count + (int) pick(19) - 9;
	if (chance(2))
		bits.count = Min(Max(count, 0), 150);
	else
		bits.bytes[bit / 8] ^= 0x80 >> bit % 8;
	return make_bits(&bits);
}

/* Core pads bit strings with zeros. */
static int
compare_bit_strings(Datum x, Datum y)
{
	Bits		a;
	Bits		b;
	int			order;

	get_bits(x, &a);
	get_bits(y, &b);
	order = compare_bits(a.bytes, b.bytes, 8 * Min((a.count + 7) / 8, (b.count + 7) / 8));
	return order != 0 ? order : compare(a.count, b.count);
}

/* --- tid ----------------------------------------------------------------------------------- */

static Datum
make_tid(uint32 block, uint16 offset)
{
	ItemPointer tid = palloc0(sizeof(ItemPointerData));

	ItemPointerSet(tid, block, offset);
	return PointerGetDatum(tid);
}

static int
compare_tids(ItemPointer a, ItemPointer b)
{
	int			order = compare(ItemPointerGetBlockNumberNoCheck(a), ItemPointerGetBlockNumberNoCheck(b));

	return order != 0 ? order : compare(ItemPointerGetOffsetNumberNoCheck(a),
										ItemPointerGetOffsetNumberNoCheck(b));
}

/* --- char(n) -------------------------------------------------------------------------------- */

/* Bytes of UTF-8: é takes two bytes and is one character. */
static Datum
make_blanks(const TestType *type, const char *string, int len, int blanks)
{
	char		bytes[200];

	memcpy(bytes, string, len);
	memset(bytes + len, ' ', blanks);
	return types_from_bytes(type, (uint8 *) bytes, len + blanks);
}

static Datum
pick_blanks(const TestType *type)
{
	static const char *const letters[] = {"a", "b", " ", "\x01", "~", "\303\251"};
	char		string[100] = "";
	int			count = pick(7);

	for (int i = 0; i < count; i++)
		strcat(string, letters[pick(lengthof(letters))]);
	return make_blanks(type, string, strlen(string), chance(2) ? 0 : pick(chance(4) ? 90 : 8));
}

static int
trimmed(Datum value)
{
	const char *p = VARDATA_ANY(DatumGetPointer(value));
	int			len = VARSIZE_ANY_EXHDR(DatumGetPointer(value));

	while (len > 0 && p[len - 1] == ' ')
		len--;
	return len;
}

/* Returns a string with as many characters as the column has, or with more or fewer. */
static Datum
near_blanks(const TestType *type, Datum value)
{
	return make_blanks(type, VARDATA_ANY(DatumGetPointer(value)), trimmed(value), pick(10));
}

static int
compare_blanks(Datum x, Datum y)
{
	int			a = trimmed(x);
	int			b = trimmed(y);
	int			order = memcmp(VARDATA_ANY(DatumGetPointer(x)), VARDATA_ANY(DatumGetPointer(y)), Min(a, b));

	return order != 0 ? order : compare(a, b);
}

/* The typmod of a column: none, char(4), or one longer than keys. */
int32
others_typmod(const TestType *type)
{
	return type->kind != BLANKS || chance(2) ? -1 : VARHDRSZ + (chance(20) ? 100000 : 4);
}

/* --- all of them ------------------------------------------------------------------------------ */

Datum
others_value(const TestType *type)
{
	switch (type->kind)
	{
		case INTERVAL:
			return pick_interval();
		case TIMETZ:
			return pick_timetz();
		case INET:
			return pick_inet();
		case BITS:
			return pick_bit_string();
		case BLANKS:
			return pick_blanks(type);
		default:
			return make_tid((uint32) pick_signed(32), (uint16) pick_signed(16));
	}
}

Datum
others_value_near(const TestType *type, Datum value)
{
	switch (type->kind)
	{
		case INTERVAL:
			return near_interval((Interval *) DatumGetPointer(value));
		case TIMETZ:
			return near_timetz((TimeTzADT *) DatumGetPointer(value));
		case INET:
			return near_inet(value);
		case BITS:
			return near_bit_string(value);
		case BLANKS:
			return near_blanks(type, value);
		default:
			return make_tid(ItemPointerGetBlockNumberNoCheck((ItemPointer) DatumGetPointer(value)), pick(3));
	}
}

int
others_compare(const TestType *type, Datum x, Datum y)
{
	const TimeTzADT *a = (TimeTzADT *) DatumGetPointer(x);
	const TimeTzADT *b = (TimeTzADT *) DatumGetPointer(y);
	int			order;

	switch (type->kind)
	{
		case INTERVAL:
			return compare(span_of((Interval *) DatumGetPointer(x)), span_of((Interval *) DatumGetPointer(y)));
		case TIMETZ:
			order = compare(a->time + a->zone * USECS_PER_SEC, b->time + b->zone * USECS_PER_SEC);
			return order != 0 ? order : compare(a->zone, b->zone);
		case INET:
			return compare_inet((inet *) DatumGetPointer(x), (inet *) DatumGetPointer(y));
		case BITS:
			return compare_bit_strings(x, y);
		case BLANKS:
			return compare_blanks(x, y);
		default:
			return compare_tids((ItemPointer) DatumGetPointer(x), (ItemPointer) DatumGetPointer(y));
	}
}
