/*
 * string_code.h
 *	  Encodes text, name and char(n) values, preserving their order.
 */
#ifndef LSM_STRING_CODE_H
#define LSM_STRING_CODE_H

#include "postgres.h"

extern uint8 *lsm_text_encode(Datum value, uint8 *out);
extern Datum lsm_text_decode(const uint8 *code, uint32 len);

extern uint8 *lsm_name_encode(Datum value, uint8 *out);
extern Datum lsm_name_decode(const uint8 *code, uint32 len);

extern uint8 *lsm_bpchar_encode(Datum value, uint8 *out);
extern uint32 lsm_bpchar_size(Datum value);
extern uint32 lsm_bpchar_blanks(Datum value);
extern uint16 lsm_bpchar_expected(int32 typmod);
extern uint64 lsm_bpchar_detail(Datum value, uint16 expected);
extern Datum lsm_bpchar_decode(const uint8 *code, uint32 len, uint64 detail, uint16 expected);

extern uint32 lsm_string_length(const uint8 *p, const uint8 *end, uint8 flip);

#endif							/* LSM_STRING_CODE_H */
