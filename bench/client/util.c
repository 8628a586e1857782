/*
 * util.c
 *		Clock, histograms, and exit after an error.
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "client.h"

double
now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void
die(const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

void *
must_alloc(size_t size)
{
	void	   *p = calloc(1, size);

	if (p == NULL)
		die("out of memory");
	return p;
}

void
sleep_until(double s)
{
	double		left = s - now_s();
	struct timespec t;

	if (left <= 0)
		return;
	t.tv_sec = (time_t) left;
	t.tv_nsec = (long) ((left - (double) t.tv_sec) * NS_PER_S);
	nanosleep(&t, NULL);
}

PGconn *
must_connect(const char *conninfo)
{
	PGconn	   *conn = PQconnectdb(conninfo);

	if (PQstatus(conn) != CONNECTION_OK)
		die("could not connect: %s", PQerrorMessage(conn));
	return conn;
}

/* CPU time of this program, which shows whether it was the bottleneck. */
void
print_cpu(double wall_s)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("result,client,cpu_s,%.4f\n", usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6 +
		   usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6);
	printf("result,client,wall_s,%.4f\n", wall_s);
}

/* --- histograms --- */

/*
 * Values below 2^SUB_BITS have buckets of their own; above, the position of the highest bit and the SUB_BITS bits that
 * follow it name the bucket.
 */
static int
bucket_of(uint64_t v)
{
	int			shift,
				bucket;

	if (v < (1 << HISTOGRAM_SUB_BITS))
		return (int) v;
	shift = 63 - __builtin_clzll(v) - HISTOGRAM_SUB_BITS;
	bucket = ((shift + 1) << HISTOGRAM_SUB_BITS) + (int) ((v >> shift) & ((1 << HISTOGRAM_SUB_BITS) - 1));
	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The middle of a bucket. */
static double
bucket_value(int bucket)
{
	int			shift = (bucket >> HISTOGRAM_SUB_BITS) - 1;
	uint64_t	low = bucket & ((1 << HISTOGRAM_SUB_BITS) - 1);

	if (shift < 0)
		return (double) low;
	return ((double) (low | (1 << HISTOGRAM_SUB_BITS)) + 0.5) * (double) (UINT64_C(1) << shift);
}

void
histogram_add(Histogram *histogram, uint64_t ns)
{
	histogram->counts[bucket_of(ns)]++;
	histogram->total++;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
}

void
histogram_merge(Histogram *into, const Histogram *from)
{
	for (int b = 0; b < HISTOGRAM_BUCKETS; b++)
		into->counts[b] += from->counts[b];
	into->total += from->total;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
}

/* A percentile, in microseconds; 100 is the exact maximum. */
double
histogram_us(const Histogram *histogram, double percentile)
{
	double		wanted = histogram->total * percentile / 100;
	uint64_t	seen = 0;

	if (percentile < 100)
		for (int b = 0; b < HISTOGRAM_BUCKETS; b++)
		{
			seen += histogram->counts[b];
			if (seen > 0 && (double) seen >= wanted)
			{
				double		ns = bucket_value(b);

				return (ns < (double) histogram->max_ns ? ns : (double) histogram->max_ns) / 1000;
			}
		}
	return (double) histogram->max_ns / 1000;
}
