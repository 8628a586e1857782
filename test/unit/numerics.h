/*
 * numerics.h
 *	  Stored numerics for the property tests: made, read and compared digit by digit.
 */
#ifndef NUMERICS_H
#define NUMERICS_H

#include "postgres.h"

#define NUMERIC_MOST_DIGITS 240

typedef enum NumericKind
{
	MINUS_INFINITY, FINITE, PLUS_INFINITY, NOT_A_NUMBER	/* in their order */
} NumericKind;

/* 0.DDDD... * 10^exponent. The first and last digit are not 0. The value 0 has no digits. */
typedef struct Decimal
{
	NumericKind kind;
	bool		negative;
	int			exponent;
	int			scale;
	int			count;
	uint8		digits[NUMERIC_MOST_DIGITS];
} Decimal;

/* Drop zeros at both ends. */
extern void numerics_normalize(Decimal *d);
/* Returns false if core could not store the value. */
extern bool numerics_can_store(const Decimal *d);
extern Datum numerics_store(const Decimal *d);
extern void numerics_read(Datum value, Decimal *d);
extern int	numerics_compare(Datum x, Datum y);

extern Datum numerics_value(void);
extern Datum numerics_value_near(Datum value);
extern int32 numerics_typmod(void);

#endif
