/*
 * column.h
 *	  A key column: how its values are encoded and compared.
 */
#ifndef LSM_COLUMN_H
#define LSM_COLUMN_H

#include "fmgr.h"

/* Order-preserving encodings of a column. */
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
	LSM_ENC_NAME
} LsmEncoding;

typedef struct LsmColumn
{
	LsmEncoding encoding;
	bool		desc;
	bool		nulls_first;
	int16		typlen;
	bool		typbyval;
	Oid			opcintype;
	Oid			opfamily;
	Oid			collation;
	Oid			index;			/* whose column it is */
	FmgrInfo	cmp;			/* support function 1 of the operator class */
	int			rest_at;		/* encoded keys: its column in rest_desc, or -1 */
} LsmColumn;

#endif							/* LSM_COLUMN_H */
