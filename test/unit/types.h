/*
 * types.h
 *	  Types for the property tests, and random values of them.
 */
#ifndef TYPES_H
#define TYPES_H

#include "postgres.h"

/* How values are stored and ordered. */
typedef enum TestKind
{
	SIGNED,						/* integers of `length` bytes */
	UNSIGNED,
	FLOAT,						/* NaN is above all, and equal to NaN; -0.0 equals 0.0 */
	FIXED,						/* bytes */
	STRING,						/* bytes except zero; the shorter one first */
	FOLDED,						/* strings; case does not count */
	BYTEA,						/* bytes; the shorter one first */
	NAME,						/* a string of up to 63 bytes */
	DATE,						/* by the microsecond in which they begin */
	LOCAL_TIME,
	UTC_TIME,
	NUMERIC,					/* see numerics.h */
	INTERVAL,					/* these: see other_types.h */
	TIMETZ,
	INET,
	BITS,
	TID,
	BLANKS						/* strings; blanks at the end do not count */
} TestKind;

typedef struct TestType
{
	const char *name;
	Oid			oid;
	Oid			family;			/* types of one can be compared with each other */
	Oid			order;			/* its comparison function */
	Oid			collation;
	bool		encoded;		/* are keys of it bytes? */
	TestKind	kind;
	int16		length;
	bool		byval;
	char		align;
} TestType;

extern const TestType test_types[];
extern const int test_type_count;

extern const TestType *types_find(Oid family, Oid oid);
/* Any type; more often one that can be compared with others. */
extern const TestType *types_pick(void);
/* A type that can be compared with this one, mostly the same type. */
extern const TestType *types_pick_other(const TestType *type);

extern int	types_compare(const TestType *left, Datum x, const TestType *right, Datum y);
/* Are they the same, bit for bit? */
extern bool types_identical(const TestType *type, Datum x, Datum y);

/* The operator of a strategy with these types; 0: the comparison. */
extern Oid	types_operator(const TestType *left, const TestType *right, int strategy);
extern bool types_holds(int strategy, int order);

/* Representation. */
extern Datum types_from_integer(const TestType *type, uint64 value);
extern int64 types_to_signed(const TestType *type, Datum value);
extern double types_to_double(const TestType *type, Datum value);
extern Datum types_from_bytes(const TestType *type, const uint8 *bytes, uint32 len);
extern const uint8 *types_to_bytes(const TestType *type, Datum value, uint32 *len);

/* Microseconds since 2000; dates go farther than 64 bits count them. */
typedef __int128 Instant;

#define INFINITE ((Instant) 1 << 100)

extern Instant types_instant(const TestType *type, Datum value, bool in_utc);

/* Local time is ahead of UTC by this many microseconds; perhaps by another number after a jump. */
extern int64 types_zone;
extern void types_pick_zone(bool with_jump);

/* values.c */
extern Datum types_value(const TestType *type);
/* A value near a value of another type of the family. */
extern Datum types_value_near(const TestType *type, const TestType *other, Datum value);

#endif
