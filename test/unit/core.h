/* core.h -- replaces what keys and scan keys call in PostgreSQL, so that tests need no server. */
#ifndef CORE_H
#define CORE_H

#include "postgres.h"

/* Makes an array for core.c's deconstruct_array. The array points to the caller's elements. */
extern Datum core_make_array(Oid type, const Datum *values, const bool *isnull, int count);

/*
 * Functions have numbers: those that compare two types, and operators. types.c defines what each
 * function does.
 */
extern Oid	core_order_function(Oid family, Oid left, Oid right);
extern Datum core_call(Oid function, Oid collation, Datum left, Datum right);

#endif
