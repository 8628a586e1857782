/*
 * order_code.h
 *	  Makes order codes: bytes that decide most comparisons of tuple keys.
 */
#ifndef LSM_ORDER_CODE_H
#define LSM_ORDER_CODE_H

#include "key/keyspace.h"

#define LSM_ORDER_BYTES		16

typedef struct LsmOrderCode
{
	uint32		length;
	uint8		bytes[LSM_ORDER_BYTES];
} LsmOrderCode;

extern bool lsm_has_order_codes(LsmKeySpace *ks);
extern bool lsm_order_add(LsmOrderCode *order, LsmKeySpace *ks, int column, Datum value,
						  bool isnull);

#endif							/* LSM_ORDER_CODE_H */
