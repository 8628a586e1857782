/* core.h -- the part of PostgreSQL that keys and scan keys call, without a server. */
#ifndef CORE_H
#define CORE_H

#include "postgres.h"

/* An array as deconstruct_array takes it apart here: a header and what it would find. */
extern Datum core_make_array(Oid type, const Datum *values, const bool *isnull, int count);

/*
 * Functions by number: those that compare two types, and the operators.  types.c
 * says what they do.
 */
extern Oid	core_order_function(Oid family, Oid left, Oid right);
extern Datum core_call(Oid function, Oid collation, Datum left, Datum right);

#endif
