/*
 * sales.c
 *		Rows and operations of the insert benchmark (experiment 9).
 *
 * Rows of kind sales: t(id bigserial, at timestamptz, till int4, customer int4, product int4, price int4, data text).
 * The server makes the ids, so row i has id i + 1 as long as no load failed. Column "at" ascends with the rows, everything
 * else is random.
 *
 *	trim	deletes the oldest rows, as many as class "copy" inserts; a transaction of a batch each
 *	window	ten rows in the order of one of the three secondary indexes, from a random place on; index-only
 *	point	a row by its id
 *	reprice	updates a batch of random rows; the price is in three indexes
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include "run.h"

#define TILLS			1000
#define CUSTOMERS		100000
#define PRODUCTS		10000
#define PRICE_STEPS		50000
#define DATA_LETTERS	10

typedef struct Sale
{
	uint64_t	till;
	uint64_t	customer;
	uint64_t	product;
	uint64_t	price;
} Sale;

static Sale
make_sale(const RowSource *source, uint64_t i)
{
	uint64_t	r = row_random(source, i);
	Sale		sale = {.till = r % TILLS,.customer = (r >> 10) % CUSTOMERS,.product = (r >> 28) % PRODUCTS};

	/* A customer's prices are near each other. */
	sale.price = (r >> 42) % PRICE_STEPS + sale.customer;
	return sale;
}

static void
put_sale(RowOut *out, const RowSource *source, uint64_t i)
{
	Sale		sale = make_sale(source, i);

	row_begin(out, 6);
	row_time(out, i);
	row_int4(out, (int32_t) sale.till);
	row_int4(out, (int32_t) sale.customer);
	row_int4(out, (int32_t) sale.product);
	row_int4(out, (int32_t) sale.price);
	row_letters(out, DATA_LETTERS, row_random(source, i));
	row_end(out);
}

static void
key_sale(char *text, const RowSource *source, uint64_t i)
{
	(void) source;
	*put_digits(text, i + 1) = '\0';
}

const RowKind sales_kind = {"sales", 128, true, put_sale, key_sale, NULL, "at, till, customer, product, price, data"};

/* --- operations --- */

void
work_trim(Worker *worker)
{
	char		first[KEY_TEXT_MAX],
				last[KEY_TEXT_MAX];
	const char *values[2] = {first, last};
	uint64_t	row = run_take_oldest();

	key_sale(first, &run_options->source, row);
	key_sale(last, &run_options->source, row + run_options->batch - 1);
	run_execute(worker, 0, 2, values);
}

void
work_window(Worker *worker)
{
	char		first[KEY_TEXT_MAX],
				second[KEY_TEXT_MAX];
	const char *values[2] = {first, second};
	Sale		sale = make_sale(&run_options->source, run_random(worker));
	int			statement = (int) (run_random(worker) % 3);

	*put_digits(first, statement == 0 ? sale.product : statement == 1 ? sale.till : sale.price) = '\0';
	*put_digits(second, statement == 0 ? sale.customer : sale.price) = '\0';
	run_execute(worker, statement, statement < 2 ? 2 : 1, values);
}

void
work_point(Worker *worker)
{
	char		id[KEY_TEXT_MAX];
	const char *values[1] = {id};

	/* Another thread may just have deleted the row. */
	key_sale(id, &run_options->source, run_any_row(worker));
	run_execute(worker, 0, 1, values);
}

void
work_reprice(Worker *worker)
{
	run_execute_batch(worker, run_any_row);
}
