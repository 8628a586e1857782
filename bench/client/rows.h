/*
 * rows.h
 *		The rows that the load generator can make.
 *
 * Row number i of a source is a pure function of kind, seed, total and i. So any number of
 * connections can share a load, and lookups can recompute the keys in a table instead of
 * remembering them.
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <stdbool.h>
#include <stdint.h>

struct RowKind;

typedef struct RowSource
{
	const struct RowKind *kind;
	uint64_t	seed;
	uint64_t	total;			/* rows of the whole table, for kinds that shuffle */
	bool		binary;
} RowSource;

/* Where one row is written, in COPY format. */
typedef struct RowOut
{
	char	   *p;
	bool		binary;
	bool		first;			/* no column yet */
} RowOut;

typedef struct RowKind
{
	const char *name;
	int			max_bytes;		/* no row takes more in either format */
	bool		text_only;		/* binary is refused, with an error */
	void		(*put) (RowOut *out, const RowSource *source, uint64_t i);
	/* The indexed column of row i as a null-terminated string; NULL if the kind has no lookups. */
	void		(*key) (char *text, const RowSource *source, uint64_t i);
	/* Called once before all others; may be NULL. */
	void		(*prepare) (RowSource *source);
	const char *columns;		/* that COPY names; NULL: all */
} RowKind;

#define KEY_TEXT_MAX	64

extern const RowKind *find_kind(const char *name);
extern const RowKind lineitem_kind;
extern const RowKind sales_kind;
extern const RowKind event4_kind;
extern const RowKind event7_kind;

/* splitmix64's output function, and the random number that belongs to (seed, i). */
static inline uint64_t
mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static inline uint64_t
row_random(const RowSource *source, uint64_t i)
{
	return mix64(source->seed * UINT64_C(0xD1342543DE82EF95) + (i + 1) * UINT64_C(0x9E3779B97F4A7C15));
}

/* --- columns --- */

static inline char *
put_be32(char *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	__builtin_memcpy(p, &v, 4);
	return p + 4;
}

static inline char *
put_digits(char *p, uint64_t v)
{
	char		digits[20];
	int			n = 0;

	do
		digits[n++] = '0' + v % 10;
	while ((v /= 10) != 0);
	while (n > 0)
		*p++ = digits[--n];
	return p;
}

static inline char *
put_signed(char *p, int64_t v)
{
	if (v < 0)
		*p++ = '-';
	return put_digits(p, v < 0 ? 0 - (uint64_t) v : (uint64_t) v);
}

static inline void
row_begin(RowOut *out, int columns)
{
	out->first = true;
	if (out->binary)
	{
		*out->p++ = (char) (columns >> 8);
		*out->p++ = (char) columns;
	}
}

/* Begins a column that takes this many bytes in binary format. */
static inline void
row_column(RowOut *out, int bytes)
{
	if (out->binary)
		out->p = put_be32(out->p, bytes);
	else if (!out->first)
		*out->p++ = '\t';
	out->first = false;
}

static inline void
row_end(RowOut *out)
{
	if (!out->binary)
		*out->p++ = '\n';
}

static inline void
row_int4(RowOut *out, int32_t v)
{
	row_column(out, 4);
	out->p = out->binary ? put_be32(out->p, (uint32_t) v) : put_signed(out->p, v);
}

static inline void
row_int8(RowOut *out, int64_t v)
{
	row_column(out, 8);
	if (out->binary)
	{
		out->p = put_be32(out->p, (uint32_t) ((uint64_t) v >> 32));
		out->p = put_be32(out->p, (uint32_t) v);
	}
	else
		out->p = put_signed(out->p, v);
}

extern void key_uuid4(char *text, const RowSource *source, uint64_t i);
extern void key_uuid7(char *text, const RowSource *source, uint64_t i);
extern void row_uuid(RowOut *out, const RowSource *source, uint64_t i, int version);

/* As text only.  row_time takes milliseconds since 2026, row_date days since 1970. */
extern void row_time(RowOut *out, uint64_t ms);
extern void row_date(RowOut *out, int days);

/* Letters a to p, chosen by the bits. */
static inline void
row_letters(RowOut *out, int n, uint64_t bits)
{
	row_column(out, n);
	for (int j = 0; j < n; j++)
	{
		*out->p++ = 'a' + (bits & 15);
		bits = (bits >> 4) | (bits << 60);
	}
}

#endif
