/*
 * time_code.h
 *	  Encodes interval and timetz values, preserving their order.
 */
#ifndef LSM_TIME_CODE_H
#define LSM_TIME_CODE_H

#include "postgres.h"

#define LSM_INTERVAL_WIDTH	10
#define LSM_TIMETZ_WIDTH	12

extern uint8 *lsm_interval_encode(Datum value, uint8 *out);
extern uint64 lsm_interval_detail(Datum value);
extern Datum lsm_interval_decode(const uint8 *code, uint64 detail);

extern uint8 *lsm_timetz_encode(Datum value, uint8 *out);
extern Datum lsm_timetz_decode(const uint8 *code);

#endif							/* LSM_TIME_CODE_H */
