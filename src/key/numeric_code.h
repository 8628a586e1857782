/*
 * numeric_code.h
 *	  Encodes numeric values, preserving their order.
 */
#ifndef LSM_NUMERIC_CODE_H
#define LSM_NUMERIC_CODE_H

#include "postgres.h"

extern uint32 lsm_numeric_size(Datum value);
extern uint8 *lsm_numeric_encode(Datum value, uint8 *out);
extern uint32 lsm_numeric_length(const uint8 *p, const uint8 *end, uint8 flip);
extern uint16 lsm_numeric_expected(int32 typmod);
extern uint64 lsm_numeric_detail(Datum value, uint16 expected);
extern Datum lsm_numeric_decode(const uint8 *code, uint32 len, uint64 detail, uint16 expected);

#endif							/* LSM_NUMERIC_CODE_H */
