/*
 * encode.h
 *	  Encodes single column values, preserving their order.
 */
#ifndef LSM_ENCODE_H
#define LSM_ENCODE_H

#include "key/column.h"

extern LsmEncoding lsm_encoding_for(Oid cmp_function, Oid collation);
extern bool lsm_encoding_keeps_details(LsmEncoding encoding);
extern uint16 lsm_encoding_expected(LsmEncoding encoding, int32 typmod);
extern uint32 lsm_encoding_most(const LsmColumn *column);

extern uint32 lsm_encode_padding(const LsmColumn *column, Datum value);
extern uint64 lsm_encode_detail(const LsmColumn *column, Datum value);

/* The encoding of a single value. */
typedef struct LsmCode
{
	uint32		length;
	uint8	   *bytes;			/* in `room`, or palloc'd */
	uint8		room[128];		/* enough for most values */
} LsmCode;

extern void lsm_code_make(LsmCode *code, const LsmColumn *column, Datum value, bool isnull);
extern void lsm_code_free(LsmCode *code);
extern uint32 lsm_encode_size(const LsmColumn *column, Datum value, bool isnull);
extern uint8 *lsm_encode_column(const LsmColumn *column, Datum value, bool isnull, uint8 *out);
extern const uint8 *lsm_decode_column(const LsmColumn *column, const uint8 *p, const uint8 *end,
									  uint64 detail, Datum *value, bool *isnull);

extern uint32 lsm_encoded_length(const LsmColumn *column);
extern uint32 lsm_encoded_column_length(const LsmColumn *column, const uint8 *p,
										const uint8 *end);
extern int	lsm_encoded_columns(const LsmColumn *columns, const uint8 *key, uint32 length,
								int most);
extern uint32 lsm_encoded_prefix_length(const LsmColumn *columns, const uint8 *key,
										uint32 keylen, int count);

/* The code of a column begins with a marker: this one for values, others for NULL. */
#define LSM_MARK_VALUE	1

static inline bool
lsm_encoded_is_null(const uint8 *p)
{
	return *p != LSM_MARK_VALUE;
}

#endif							/* LSM_ENCODE_H */
