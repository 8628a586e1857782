/*
 * rows.c
 *		Makes rows of all kinds except those of lineitem.c, sales.c and events.c.
 *
 * The key is column k, or columns k1 to k8.  The other columns except id are filler:
 *
 *	int4_seq, int4_random, lowcard, zipf	t(k int4, f char(10))
 *	int8_seq, int8_desc						t(k int8, f char(10))
 *	uuid4, uuid7							t(k uuid, f char(10))
 *	text									t(k text, f char(10)): 12 random letters
 *	include8								t(k int8, v1 .. v8 int8): all random
 *	wide									t(k1 .. k8 int4): all random
 *	churn									t(id int4, k int4, f char(10)): id ascends, k is random
 *	fat										t(k int4, f text): 300 bytes of data
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rows.h"

#define FILLER			10
#define LOWCARD_VALUES	1000
#define ZIPF_VALUES		1000000
#define ZIPF_THETA		0.99
#define FAT_FILLER		292
#define UUID7_EPOCH_MS	UINT64_C(1767225600000)	/* 2026-01-01 */
#define UUID7_ROWS_PER_MS	256
#define FIRST_DAY		20454	/* 2026-01-01, in days since 1970 */
#define DAY_S			86400

/* --- int4 --- */

static int32_t
random_int4(const RowSource *source, uint64_t i)
{
	return (int32_t) (uint32_t) (row_random(source, i) >> 32);
}

static void
put_int4_key(RowOut *out, int32_t key, uint64_t bits)
{
	row_begin(out, 2);
	row_int4(out, key);
	row_letters(out, FILLER, bits);
	row_end(out);
}

static void
end_key(char *text, int64_t key)
{
	*put_signed(text, key) = '\0';
}

static void
put_int4_seq(RowOut *out, const RowSource *source, uint64_t i)
{
	put_int4_key(out, (int32_t) i, row_random(source, i));
}

static void
put_int4_random(RowOut *out, const RowSource *source, uint64_t i)
{
	put_int4_key(out, random_int4(source, i), row_random(source, i));
}

static int32_t
lowcard_key(const RowSource *source, uint64_t i)
{
	return (int32_t) (row_random(source, i) % LOWCARD_VALUES);
}

static void
put_lowcard(RowOut *out, const RowSource *source, uint64_t i)
{
	put_int4_key(out, lowcard_key(source, i), row_random(source, i));
}

static void
key_seq(char *text, const RowSource *source, uint64_t i)
{
	(void) source;
	end_key(text, (int64_t) i);
}

static void
key_int4_random(char *text, const RowSource *source, uint64_t i)
{
	end_key(text, random_int4(source, i));
}

static void
key_lowcard(char *text, const RowSource *source, uint64_t i)
{
	end_key(text, lowcard_key(source, i));
}

/* --- zipf: ranks by the method of Gray et al., "Quickly generating billion-record synthetic databases" --- */

static struct
{
	double		zeta;
	double		alpha;
	double		eta;
}			zipf;

static void
prepare_zipf(RowSource *source)
{
	double		zeta2 = 1 + pow(0.5, ZIPF_THETA);

	(void) source;
	zipf.zeta = 0;
	for (int r = 1; r <= ZIPF_VALUES; r++)
		zipf.zeta += pow(1.0 / r, ZIPF_THETA);
	zipf.alpha = 1 / (1 - ZIPF_THETA);
	zipf.eta = (1 - pow(2.0 / ZIPF_VALUES, 1 - ZIPF_THETA)) / (1 - zeta2 / zipf.zeta);
}

/* Returns a key.  Frequent keys are scattered over the key range. */
static int32_t
zipf_key(const RowSource *source, uint64_t i)
{
	double		u = (row_random(source, i) >> 11) * 0x1p-53,
				uz = u * zipf.zeta;
	uint64_t	rank;

	if (uz < 1)
		rank = 0;
	else if (uz < 1 + pow(0.5, ZIPF_THETA))
		rank = 1;
	else
		rank = (uint64_t) (ZIPF_VALUES * pow(zipf.eta * u - zipf.eta + 1, zipf.alpha));
	return (int32_t) (uint32_t) mix64(rank + 1);
}

static void
put_zipf(RowOut *out, const RowSource *source, uint64_t i)
{
	put_int4_key(out, zipf_key(source, i), row_random(source, i));
}

static void
key_zipf(char *text, const RowSource *source, uint64_t i)
{
	end_key(text, zipf_key(source, i));
}

/* --- other types --- */

static void
put_int8_seq(RowOut *out, const RowSource *source, uint64_t i)
{
	row_begin(out, 2);
	row_int8(out, (int64_t) i);
	row_letters(out, FILLER, row_random(source, i));
	row_end(out);
}

static void
put_int8_desc(RowOut *out, const RowSource *source, uint64_t i)
{
	row_begin(out, 2);
	row_int8(out, -(int64_t) i);
	row_letters(out, FILLER, row_random(source, i));
	row_end(out);
}

static void
key_desc(char *text, const RowSource *source, uint64_t i)
{
	(void) source;
	end_key(text, -(int64_t) i);
}

static void
make_uuid4(const RowSource *source, uint64_t i, uint64_t uuid[2])
{
	uuid[0] = row_random(source, i);
	uuid[1] = mix64(uuid[0] + 1);
	uuid[0] = (uuid[0] & ~UINT64_C(0xF000)) | 0x4000;
	uuid[1] = (uuid[1] >> 2) | UINT64_C(0x8000000000000000);
}

static void
make_uuid7(const RowSource *source, uint64_t i, uint64_t uuid[2])
{
	make_uuid4(source, i, uuid);
	uuid[0] = ((UUID7_EPOCH_MS + i / UUID7_ROWS_PER_MS) << 16) | 0x7000 | (uuid[0] & 0xFFF);
}

static char *
put_uuid_text(char *p, const uint64_t uuid[2])
{
	for (int nibble = 0; nibble < 32; nibble++)
	{
		if (nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20)
			*p++ = '-';
		*p++ = "0123456789abcdef"[(uuid[nibble / 16] >> (60 - 4 * (nibble % 16))) & 15];
	}
	return p;
}

void
row_uuid(RowOut *out, const RowSource *source, uint64_t i, int version)
{
	uint64_t	uuid[2];

	if (version == 7)
		make_uuid7(source, i, uuid);
	else
		make_uuid4(source, i, uuid);
	row_column(out, 16);
	if (out->binary)
		for (int j = 0; j < 4; j++)
			out->p = put_be32(out->p, (uint32_t) (uuid[j / 2] >> (j % 2 ? 0 : 32)));
	else
		out->p = put_uuid_text(out->p, uuid);
}

static void
put_uuid_row(RowOut *out, const RowSource *source, uint64_t i, int version)
{
	row_begin(out, 2);
	row_uuid(out, source, i, version);
	row_letters(out, FILLER, row_random(source, i));
	row_end(out);
}

static void
put_uuid4(RowOut *out, const RowSource *source, uint64_t i)
{
	put_uuid_row(out, source, i, 4);
}

static void
put_uuid7(RowOut *out, const RowSource *source, uint64_t i)
{
	put_uuid_row(out, source, i, 7);
}

void
key_uuid4(char *text, const RowSource *source, uint64_t i)
{
	uint64_t	uuid[2];

	make_uuid4(source, i, uuid);
	*put_uuid_text(text, uuid) = '\0';
}

void
key_uuid7(char *text, const RowSource *source, uint64_t i)
{
	uint64_t	uuid[2];

	make_uuid7(source, i, uuid);
	*put_uuid_text(text, uuid) = '\0';
}

static void
put_text(RowOut *out, const RowSource *source, uint64_t i)
{
	uint64_t	bits = row_random(source, i);

	row_begin(out, 2);
	row_letters(out, 12, bits);
	row_letters(out, FILLER, bits >> 7);
	row_end(out);
}

static void
key_text(char *text, const RowSource *source, uint64_t i)
{
	uint64_t	bits = row_random(source, i);

	for (int j = 0; j < 12; j++, bits >>= 4)
		*text++ = 'a' + (bits & 15);
	*text = '\0';
}

/* --- times --- */

static void
put_two_digits(RowOut *out, char before, uint64_t v)
{
	*out->p++ = before;
	*out->p++ = '0' + v / 10 % 10;
	*out->p++ = '0' + v % 10;
}

void
row_time(RowOut *out, uint64_t ms)
{
	uint64_t	second = ms / 1000 % DAY_S;

	row_date(out, FIRST_DAY + (int) (ms / 1000 / DAY_S));
	put_two_digits(out, ' ', second / 3600);
	put_two_digits(out, ':', second / 60 % 60);
	put_two_digits(out, ':', second % 60);
	put_two_digits(out, '.', ms % 1000 / 10);
	*out->p++ = '0' + ms % 10;
}

/* --- several columns --- */

static void
put_include8(RowOut *out, const RowSource *source, uint64_t i)
{
	uint64_t	r = row_random(source, i);

	row_begin(out, 9);
	row_int8(out, (int64_t) r);
	for (int j = 0; j < 8; j++)
		row_int8(out, (int64_t) (r = mix64(r + 1)));
	row_end(out);
}

static void
key_include8(char *text, const RowSource *source, uint64_t i)
{
	end_key(text, (int64_t) row_random(source, i));
}

static void
put_wide(RowOut *out, const RowSource *source, uint64_t i)
{
	uint64_t	r = row_random(source, i);

	row_begin(out, 8);
	for (int j = 0; j < 8; j++)
		row_int4(out, (int32_t) (uint32_t) (r = mix64(r + 1)));
	row_end(out);
}

static void
put_churn(RowOut *out, const RowSource *source, uint64_t i)
{
	row_begin(out, 3);
	row_int4(out, (int32_t) i);
	row_int4(out, random_int4(source, i));
	row_letters(out, FILLER, row_random(source, i));
	row_end(out);
}

static void
put_fat(RowOut *out, const RowSource *source, uint64_t i)
{
	row_begin(out, 2);
	row_int4(out, random_int4(source, i));
	row_letters(out, FAT_FILLER, row_random(source, i));
	row_end(out);
}

static const RowKind kinds[] = {
	{"int4_seq", 40, false, put_int4_seq, key_seq, NULL, NULL},
	{"int4_random", 40, false, put_int4_random, key_int4_random, NULL, NULL},
	{"lowcard", 40, false, put_lowcard, key_lowcard, NULL, NULL},
	{"zipf", 40, false, put_zipf, key_zipf, prepare_zipf, NULL},
	{"int8_seq", 48, false, put_int8_seq, key_seq, NULL, NULL},
	{"int8_desc", 48, false, put_int8_desc, key_desc, NULL, NULL},
	{"uuid4", 64, false, put_uuid4, key_uuid4, NULL, NULL},
	{"uuid7", 64, false, put_uuid7, key_uuid7, NULL, NULL},
	{"text", 48, false, put_text, key_text, NULL, NULL},
	{"include8", 208, false, put_include8, key_include8, NULL, NULL},
	{"wide", 128, false, put_wide, NULL, NULL, NULL},
	{"churn", 64, false, put_churn, key_seq, NULL, NULL},
	{"fat", FAT_FILLER + 40, false, put_fat, key_int4_random, NULL, NULL},
};

static const RowKind *const other_kinds[] = {&lineitem_kind, &sales_kind, &event4_kind, &event7_kind};

const RowKind *
find_kind(const char *name)
{
	for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (strcmp(kinds[k].name, name) == 0)
			return &kinds[k];
	for (unsigned k = 0; k < sizeof(other_kinds) / sizeof(other_kinds[0]); k++)
		if (strcmp(other_kinds[k]->name, name) == 0)
			return other_kinds[k];
	return NULL;
}
