/*
 * load.c
 *		Loads random rows into a table t(k int4, f char(10)) by COPY, each so many rows in a transaction of its own, and
 *		says how fast.
 *
 *	load [option]... CONNINFO TABLE ROWS
 *
 *	-b N	rows in a transaction (default 1000)
 *	-s N	seed of the random keys (default 1)
 *	-e N	print a sample every N rows (default 100000)
 *	-t S	stop after S seconds (default: no limit)
 *	-x		COPY in binary format instead of text
 *	-n		only make the data, without a server: the speed of this program
 *
 * A sample is a line "rows,seconds,worst_ms": rows loaded and seconds gone by since the start, and the longest
 * transaction since the last sample, in milliseconds. The last line is always a sample of the end.
 *
 * The program must not be what limits the load. It makes the rows of the next transaction while the server works on the
 * last one, and hands them over in one piece.
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#define FILLER_LENGTH	10
#define ROW_MAX			32		/* more than a row takes in either format */

typedef struct Options
{
	const char *conninfo;
	const char *table;
	long		rows;
	long		batch;
	long		sample_every;
	double		limit_s;
	uint64_t	seed;
	bool		binary;
	bool		dry;
} Options;

/* The rows of one transaction, as COPY wants them. */
typedef struct Batch
{
	char	   *data;
	size_t		length;
} Batch;

static const char binary_header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";	/* with the final zero: 19 bytes */

static double
now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* splitmix64: one multiplication chain a number, and any seed will do. */
static uint64_t
next_random(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static char *
put_filler(char *p, uint64_t bits)
{
	for (int i = 0; i < FILLER_LENGTH; i++, bits >>= 3)
		*p++ = 'a' + (bits & 7);
	return p;
}

static char *
put_text_row(char *p, int32_t key, uint64_t bits)
{
	char		digits[12];
	int			n = 0;
	uint32_t	u = key < 0 ? 0u - (uint32_t) key : (uint32_t) key;

	if (key < 0)
		*p++ = '-';
	do
		digits[n++] = '0' + u % 10;
	while ((u /= 10) != 0);
	while (n > 0)
		*p++ = digits[--n];
	*p++ = '\t';
	p = put_filler(p, bits);
	*p++ = '\n';
	return p;
}

static char *
put_int32(char *p, uint32_t v)
{
	*p++ = (char) (v >> 24);
	*p++ = (char) (v >> 16);
	*p++ = (char) (v >> 8);
	*p++ = (char) v;
	return p;
}

static char *
put_binary_row(char *p, int32_t key, uint64_t bits)
{
	*p++ = 0;
	*p++ = 2;					/* columns */
	p = put_int32(p, 4);
	p = put_int32(p, (uint32_t) key);
	p = put_int32(p, FILLER_LENGTH);
	return put_filler(p, bits);
}

static void
fill_batch(Batch *batch, const Options *o, long rows, uint64_t *state)
{
	char	   *p = batch->data;

	if (o->binary)
	{
		memcpy(p, binary_header, sizeof(binary_header));
		p += sizeof(binary_header);
	}
	for (long i = 0; i < rows; i++)
	{
		uint64_t	r = next_random(state);
		int32_t		key = (int32_t) (uint32_t) (r >> 32);

		p = o->binary ? put_binary_row(p, key, r) : put_text_row(p, key, r);
	}
	if (o->binary)
	{
		*p++ = (char) 0xff;		/* end of the rows */
		*p++ = (char) 0xff;
	}
	batch->length = p - batch->data;
}

static void
fail(PGconn *conn, const char *what)
{
	fprintf(stderr, "%s: %s", what, PQerrorMessage(conn));
	exit(1);
}

static void
begin_copy(PGconn *conn, const char *command)
{
	PGresult   *result = PQexec(conn, command);

	if (PQresultStatus(result) != PGRES_COPY_IN)
		fail(conn, command);
	PQclear(result);
}

static void
send_batch(PGconn *conn, const Batch *batch)
{
	if (PQputCopyData(conn, batch->data, (int) batch->length) != 1 || PQputCopyEnd(conn, NULL) != 1 ||
		PQflush(conn) < 0)
		fail(conn, "sending rows");
}

/* Waits until the transaction is committed. */
static void
finish_copy(PGconn *conn)
{
	PGresult   *result;

	while ((result = PQgetResult(conn)) != NULL)
	{
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			fail(conn, "COPY");
		PQclear(result);
	}
}

static long
batch_rows(const Options *o, long done)
{
	return o->rows - done < o->batch ? o->rows - done : o->batch;
}

static void
run(const Options *o)
{
	PGconn	   *conn = NULL;
	Batch		batch;
	char		command[256];
	uint64_t	state = o->seed;
	long		done = 0,
				next_sample = o->sample_every;
	double		start,
				last,
				worst_s = 0;

	batch.data = malloc(o->batch * ROW_MAX + 64);
	if (batch.data == NULL)
	{
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	if (!o->dry)
	{
		conn = PQconnectdb(o->conninfo);
		if (PQstatus(conn) != CONNECTION_OK)
			fail(conn, "connecting");
	}
	snprintf(command, sizeof(command), "COPY %s FROM STDIN%s", o->table, o->binary ? " WITH (FORMAT binary)" : "");
	setvbuf(stdout, NULL, _IOLBF, 0);

	start = last = now_s();
	fill_batch(&batch, o, batch_rows(o, 0), &state);
	while (done < o->rows && (o->limit_s <= 0 || last - start < o->limit_s))
	{
		double		now;

		if (!o->dry)
		{
			begin_copy(conn, command);
			send_batch(conn, &batch);
		}
		done += batch_rows(o, done);
		fill_batch(&batch, o, batch_rows(o, done), &state);
		if (!o->dry)
			finish_copy(conn);

		now = now_s();
		if (now - last > worst_s)
			worst_s = now - last;
		last = now;
		if (done >= next_sample)
		{
			printf("%ld,%.4f,%.2f\n", done, now - start, worst_s * 1000);
			next_sample = done + o->sample_every;
			worst_s = 0;
		}
	}
	if (next_sample != done + o->sample_every)
		printf("%ld,%.4f,%.2f\n", done, last - start, worst_s * 1000);
	PQfinish(conn);
	free(batch.data);
}

int
main(int argc, char **argv)
{
	Options		o = {.batch = 1000,.sample_every = 100000,.seed = 1};
	int			c;

	while ((c = getopt(argc, argv, "b:s:e:t:xn")) != -1)
	{
		switch (c)
		{
			case 'b':
				o.batch = atol(optarg);
				break;
			case 's':
				o.seed = strtoull(optarg, NULL, 10);
				break;
			case 'e':
				o.sample_every = atol(optarg);
				break;
			case 't':
				o.limit_s = atof(optarg);
				break;
			case 'x':
				o.binary = true;
				break;
			case 'n':
				o.dry = true;
				break;
			default:
				return 2;
		}
	}
	if (argc - optind != 3)
	{
		fprintf(stderr, "usage: load [-b batch] [-s seed] [-e every] [-t seconds] [-x] [-n] CONNINFO TABLE ROWS\n");
		return 2;
	}
	o.conninfo = argv[optind];
	o.table = argv[optind + 1];
	o.rows = atol(argv[optind + 2]);
	if (o.rows <= 0 || o.batch <= 0 || o.sample_every <= 0)
	{
		fprintf(stderr, "rows, batch and sample must be positive\n");
		return 2;
	}
	run(&o);
	return 0;
}
