/*
 * network_code.h
 *	  Encodes inet and cidr values, preserving their order.
 */
#ifndef LSM_NETWORK_CODE_H
#define LSM_NETWORK_CODE_H

#include "postgres.h"

/* The most bytes of a code. */
#define LSM_NETWORK_MOST (1 + 16 + 1 + 16)

extern uint8 *lsm_network_encode(Datum value, uint8 *out);
extern uint32 lsm_network_length(const uint8 *p, const uint8 *end, uint8 flip);
extern Datum lsm_network_decode(const uint8 *code, uint32 len);

#endif							/* LSM_NETWORK_CODE_H */
