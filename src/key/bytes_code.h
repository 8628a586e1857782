/*
 * bytes_code.h
 *	  Encodes bytea, bit and varbit values, preserving their order.
 */
#ifndef LSM_BYTES_CODE_H
#define LSM_BYTES_CODE_H

#include "postgres.h"

/* The last byte of a code is between 1 and this number. */
#define LSM_BYTEA_LAST	1
#define LSM_BIT_LAST	9

extern uint32 lsm_bytea_size(Datum value);
extern uint8 *lsm_bytea_encode(Datum value, uint8 *out);
extern Datum lsm_bytea_decode(const uint8 *code, uint32 len);

extern uint32 lsm_bit_size(Datum value);
extern uint8 *lsm_bit_encode(Datum value, uint8 *out);
extern Datum lsm_bit_decode(const uint8 *code, uint32 len);

extern uint32 lsm_bytes_length(const uint8 *p, const uint8 *end, uint8 flip, int most);

#endif							/* LSM_BYTES_CODE_H */
