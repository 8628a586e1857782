/* core.h -- the part of PostgreSQL that keys and scan keys call, without a server. */
#ifndef CORE_H
#define CORE_H

#include "postgres.h"

/* An array in the form that this deconstruct_array expects: a header and the elements. */
extern Datum core_make_array(Oid type, const Datum *values, const bool *isnull, int count);

/*
 * Functions by number: the comparisons of two types, and the operators. types.c defines what they
 * do.
 */
extern Oid	core_order_function(Oid family, Oid left, Oid right);
extern Datum core_call(Oid function, Oid collation, Datum left, Datum right);

#endif
