/*
 * client.h
 *		Shared by the files of the load generator: options, the clock, random numbers and latency
 *		histograms.
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <libpq-fe.h>

#include "rows.h"

#define MAX_CLASSES		12
#define MAX_THREADS		256

typedef struct Options
{
	const char *conninfo;
	const char *table;
	RowSource	source;			/* which rows: kind, seed, format */
	uint64_t	rows;			/* load: rows to load; run: rows in the table */
	uint64_t	first_row;		/* number of the first row */
	long		batch;			/* rows per transaction */
	int			clients;		/* load: connections */
	double		rate;			/* load, classes copy and trim: rows per second; 0: no limit */
	uint64_t	sample_every;	/* load: rows between two samples */
	double		interval_s;		/* run: seconds between two samples; 0: no samples */
	double		limit_s;		/* load: stop after this time; run: measure for this time */
	double		warmup_s;		/* run: warm up for this time before measuring */
	uint64_t	max_ops;		/* run: most operations per thread; 0: no limit */
	uint64_t	length;			/* run: rows in a range */
	double		selectivity;	/* run: share of all keys that a range covers, instead of length */
	const char *sql;			/* run: statement to use instead of the built-in one */
	bool		dry;			/* load: only make the rows, without a server */
	const char *classes[MAX_CLASSES];	/* run: "name:threads" */
	int			class_count;
} Options;

/* --- util.c --- */

#define NS_PER_S		1000000000.0

/* Latencies: counts of values in logarithmic buckets that are 1/64 of a power of two wide. Not thread-safe. */
#define HISTOGRAM_SUB_BITS	6
#define HISTOGRAM_BUCKETS	(48 << HISTOGRAM_SUB_BITS)

typedef struct Histogram
{
	uint64_t	counts[HISTOGRAM_BUCKETS];
	uint64_t	total;
	uint64_t	max_ns;
} Histogram;

extern double now_s(void);
extern void sleep_until(double s);
extern void histogram_add(Histogram *histogram, uint64_t ns);
extern void histogram_merge(Histogram *into, const Histogram *from);
extern double histogram_us(const Histogram *histogram, double percentile);
extern void *must_alloc(size_t size);
extern void die(const char *format,...) __attribute__((noreturn, format(printf, 1, 2)));
extern PGconn *must_connect(const char *conninfo);
extern void print_cpu(double wall_s);

/* --- copy.c: one transaction of rows --- */

typedef struct Batch
{
	char	   *data;
	size_t		length;
} Batch;

extern void batch_init(Batch *batch, const RowSource *source, long rows);
extern void batch_fill(Batch *batch, const RowSource *source, uint64_t first, long rows);
extern void batch_send(PGconn *conn, const Options *o, const Batch *batch);
extern void batch_finish(PGconn *conn);

/* --- load.c, run.c --- */

extern void load(const Options *o);
extern void run(const Options *o);

#endif
