/*
 * lineitem.c
 *		Rows like those of TPC-H's lineitem, in random order.
 *
 * Columns, domains and lengths follow the TPC-H specification (section 4.2.3); the values are not
 * those of dbgen.  Seven neighboring orders have 1 to 7 lines each, in varying order, so 28 rows in
 * all.  The line of a row can be computed without a table.  A permutation of all row numbers, a
 * Feistel network with cycle walking, shuffles them.
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include <stdio.h>
#include <string.h>

#include "rows.h"

#define ROWS_PER_GROUP	28
#define ORDERS_PER_GROUP	7
#define FIRST_ORDER_DAY	8035	/* 1992-01-01, in days since 1970 */
#define ORDER_DAYS		2406	/* to 1998-08-02 */
#define CURRENT_DAY		9298	/* 1995-06-17: lines shipped later are still open */
#define COMMENT_MAX		43
#define FEISTEL_ROUNDS	4

static unsigned half_bits;

static void
prepare_lineitem(RowSource *source)
{
	half_bits = 1;
	while ((UINT64_C(1) << (2 * half_bits)) < source->total)
		half_bits++;
}

static uint64_t
shuffle(const RowSource *source, uint64_t i)
{
	uint64_t	mask = (UINT64_C(1) << half_bits) - 1;

	if (i >= source->total)
		return i;
	do
	{
		uint64_t	left = i >> half_bits,
					right = i & mask;

		for (int round = 0; round < FEISTEL_ROUNDS; round++)
		{
			uint64_t	next = left ^ (mix64(right + source->seed * 31 + (uint64_t) round * 977) & mask);

			left = right;
			right = next;
		}
		i = (left << half_bits) | right;
	} while (i >= source->total);
	return i;
}

static void
put_decimal(RowOut *out, uint64_t cents)
{
	row_column(out, 0);
	out->p = put_digits(out->p, cents / 100);
	*out->p++ = '.';
	*out->p++ = '0' + cents / 10 % 10;
	*out->p++ = '0' + cents % 10;
}

/* Days since 1970 to a date, by counting in years that begin in March. */
void
row_date(RowOut *out, int days)
{
	int			z = days + 719468,
				era = z / 146097,
				day_of_era = z % 146097,
				year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365,
				day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100),
				shifted = (5 * day_of_year + 2) / 153,
				day = day_of_year - (153 * shifted + 2) / 5 + 1,
				month = shifted < 10 ? shifted + 3 : shifted - 9,
				year = year_of_era + era * 400 + (month <= 2);

	row_column(out, 0);
	out->p = put_digits(out->p, (uint64_t) year);
	*out->p++ = '-';
	*out->p++ = '0' + month / 10;
	*out->p++ = '0' + month % 10;
	*out->p++ = '-';
	*out->p++ = '0' + day / 10;
	*out->p++ = '0' + day % 10;
}

static void
put_word(RowOut *out, const char *word)
{
	size_t		n = strlen(word);

	row_column(out, 0);
	memcpy(out->p, word, n);
	out->p += n;
}

static void
put_comment(RowOut *out, uint64_t r)
{
	static const char *const words[] = {
		"furiously", "quickly", "deposits", "packages", "ironic", "final", "requests", "accounts",
		"regular", "bold", "even", "silent", "pending", "special", "express", "theodolites"
	};
	int			count = 2 + (int) (r & 3);
	char	   *end;

	row_column(out, 0);
	end = out->p + COMMENT_MAX;
	for (int j = 0; j < count; j++)
	{
		const char *word = words[(r >> (4 * j + 4)) & 15];
		size_t		n = strlen(word);

		if (out->p + n + 1 > end)
			break;
		if (j > 0)
			*out->p++ = ' ';
		memcpy(out->p, word, n);
		out->p += n;
	}
}

/* Finds the order and the line of a row. */
static void
locate(const RowSource *source, uint64_t row, uint64_t *order, int *line)
{
	uint64_t	group = row / ROWS_PER_GROUP;
	int			rest = (int) (row % ROWS_PER_GROUP),
				turn = (int) (mix64(group + source->seed) % ORDERS_PER_GROUP);

	for (int j = 0;; j++)
	{
		int			lines = 1 + (j + turn) % ORDERS_PER_GROUP;

		if (rest < lines)
		{
			*order = group * ORDERS_PER_GROUP + j;
			*line = rest + 1;
			return;
		}
		rest -= lines;
	}
}

static void
put_lineitem(RowOut *out, const RowSource *source, uint64_t i)
{
	static const char *const instructions[] = {"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"};
	static const char *const modes[] = {"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"};
	uint64_t	order,
				row = shuffle(source, i),
				r = row_random(source, row),
				s = mix64(r + 1);
	int			line,
				quantity = 1 + (int) (r % 50),
				order_day,
				ship_day,
				receipt_day;
	uint64_t	part = (r >> 8) % 200000 + 1;

	locate(source, row, &order, &line);
	order_day = FIRST_ORDER_DAY + (int) (mix64(order + source->seed * 7) % ORDER_DAYS);
	ship_day = order_day + 1 + (int) (s % 121);
	receipt_day = ship_day + 1 + (int) ((s >> 8) % 30);

	row_begin(out, 16);
	row_int8(out, (int64_t) ((order / 8) * 32 + order % 8 + 1));	/* 8 of 32 keys are used */
	row_int4(out, (int32_t) part);
	row_int4(out, (int32_t) ((s >> 16) % 10000 + 1));
	row_int4(out, line);
	put_decimal(out, (uint64_t) quantity * 100);
	put_decimal(out, (uint64_t) quantity * (90000 + part / 10 % 20001 + 100 * (part % 1000)));
	put_decimal(out, (s >> 32) % 11);
	put_decimal(out, (s >> 40) % 9);
	put_word(out, receipt_day > CURRENT_DAY ? "N" : (s & 1) ? "R" : "A");
	put_word(out, ship_day > CURRENT_DAY ? "O" : "F");
	row_date(out, ship_day);
	row_date(out, order_day + 30 + (int) ((s >> 48) % 61));
	row_date(out, receipt_day);
	put_word(out, instructions[(s >> 56) & 3]);
	put_word(out, modes[(s >> 58) % 7]);
	put_comment(out, mix64(s));
	row_end(out);
}

const RowKind lineitem_kind = {"lineitem", 320, true, put_lineitem, NULL, prepare_lineitem, NULL};
