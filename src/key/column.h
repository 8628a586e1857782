/*
 * column.h
 *	  Declares a key column, and how its values are encoded, compared and hashed.
 */
#ifndef LSM_COLUMN_H
#define LSM_COLUMN_H

#include "fmgr.h"

/* Order-preserving encodings of a column.  The meta page stores these numbers. */
typedef enum LsmEncoding
{
	LSM_ENC_NONE = 0,			/* compared by the support function */
	LSM_ENC_BOOL,
	LSM_ENC_CHAR,				/* "char", unsigned */
	LSM_ENC_INT16,
	LSM_ENC_INT32,				/* int4, date */
	LSM_ENC_INT64,				/* int8, timestamps, time, money */
	LSM_ENC_UINT32,				/* oid */
	LSM_ENC_UINT64,				/* pg_lsn, xid8 */
	LSM_ENC_FLOAT4,
	LSM_ENC_FLOAT8,
	LSM_ENC_FIXED,				/* bytes of fixed length: uuid, macaddr */
	LSM_ENC_TEXT,				/* no zero byte inside */
	LSM_ENC_BYTEA,
	LSM_ENC_NAME,
	LSM_ENC_NUMERIC,
	LSM_ENC_NETWORK,			/* inet, cidr */
	LSM_ENC_INTERVAL,
	LSM_ENC_TIMETZ,
	LSM_ENC_BIT,				/* bit, varbit */
	LSM_ENC_TID,
	LSM_ENC_BPCHAR
} LsmEncoding;

/* How a column's values are hashed, for filters and key locks. */
typedef enum LsmHashKind
{
	LSM_HASH_NONE = 0,			/* not hashed: every value has the hash 0 */
	LSM_HASH_BYTES = 1,			/* the bytes of their encoding */
	LSM_HASH_STANDARD = 2,		/* the 32-bit hash function that belongs to the class's "=" */
	LSM_HASH_EXTENDED = 3		/* the 64-bit hash function, with seed 0 */
} LsmHashKind;

typedef struct LsmColumn
{
	LsmEncoding encoding;
	bool		desc;
	bool		nulls_first;
	int16		typlen;
	bool		typbyval;
	Oid			type;			/* of the column */
	Oid			opcintype;
	Oid			opfamily;
	Oid			collation;
	Oid			index;			/* the index of the column */
	FmgrInfo	cmp;			/* support function 1 of the operator class */
	bool		keeps_details;	/* values may have details; see encode.c */
	uint16		expected;		/* what decoding assumes about a value without a detail; see LsmKeyCoding */
	LsmHashKind hash_kind;
	bool		hash_may_change;	/* hashes depend on composite types, which ALTER TYPE changes */
	FmgrInfo	hash;			/* LSM_HASH_STANDARD and LSM_HASH_EXTENDED */
	struct SortSupportData *sort;	/* tuple keys: compares faster than cmp, or NULL */
	bool		runs_user_code; /* tuple keys: comparing may run code that users wrote */
	bool		asked_for_abbreviation; /* this and the next field belong to sort_support.c */
	struct SortSupportData *abbreviation;
	bool		hashes_string;	/* `hash` hashes the bytes of a string, */
	bool		hashes_trimmed; /* or its bytes without trailing blanks */
} LsmColumn;

#endif							/* LSM_COLUMN_H */
