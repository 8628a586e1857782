/*
 * other_types.h
 *	  Intervals, addresses, bit strings and the like for the property tests.
 */
#ifndef OTHER_TYPES_H
#define OTHER_TYPES_H

#include "types.h"

extern Datum others_value(const TestType *type);
extern Datum others_value_near(const TestType *type, Datum value);
extern int32 others_typmod(const TestType *type);
extern int	others_compare(const TestType *type, Datum x, Datum y);

#endif
