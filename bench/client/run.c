/*
 * run.c
 *		Operations in a closed loop: each thread has a connection, executes one operation after the other,
 *		and measures each.
 *
 * Classes of threads, which may run side by side:
 *
 *	lookup	a prepared SELECT by a key that is in the table; finding nothing is an error
 *	range	a prepared statement with a random first key and, as a second parameter, the number of rows, or the last key when
 *			a selectivity is given; keys are int4 over the whole range
 *	insert	a prepared INSERT of one row, a transaction each
 *	copy	transactions of many rows, as "load" does
 *	update	a prepared UPDATE of column k of a row, chosen by column id (rows of kind churn)
 *
 * Operations that begin during the warm-up do not count. A thread that is in an operation when the time is over finishes
 * it, and it counts, with the time that it took, and each thread does at least one that counts: so slow systems have a
 * rate, too. A statement that the server cancels
 * (statement_timeout) counts as one that timed out.
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client.h"

#define INT4_KEYS		4294967296.0

typedef struct Worker
{
	const struct OpClass *op;
	PGconn	   *conn;
	uint64_t	random;
	Batch		batch;			/* of class copy */
	uint64_t	timeouts;
	double		first_s;		/* begin of the first operation that counts */
	double		last_s;			/* end of the last one */
	uint64_t	gap_ns;			/* longest time without an end in its class that one of its own ended */
	pthread_mutex_t lock;		/* for the two histograms */
	Histogram	all;
	Histogram	interval;		/* since the last sample */
	pthread_t	thread;
} Worker;

typedef struct OpClass
{
	const char *name;
	const char *sql;			/* "%s" is the table; NULL: not a prepared statement */
	int			parameters;
	void		(*work) (Worker *worker);
} OpClass;

static const Options *options;
static double start_s,
			count_from_s,
			end_s;
static atomic_uint_fast64_t next_row;	/* number of the next row to insert */
static atomic_uint_fast64_t class_done_ns[MAX_CLASSES];	/* when a class last finished an operation that counts */

static uint64_t
worker_random(Worker *worker)
{
	return mix64(worker->random += UINT64_C(0x9E3779B97F4A7C15));
}

static double
worker_fraction(Worker *worker)
{
	return (double) (worker_random(worker) >> 11) * 0x1p-53;
}

/* Executes the statement and returns the number of rows of its result. */
static int
execute(Worker *worker, int parameters, const char *const *values)
{
	PGresult   *result = PQexecPrepared(worker->conn, "op", parameters, values, NULL, NULL, 0);
	ExecStatusType status = PQresultStatus(result);
	int			rows = PQntuples(result);

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
	{
		const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

		if (state == NULL || strcmp(state, "57014") != 0)
			die("%s: %s", worker->op->name, PQerrorMessage(worker->conn));
		worker->timeouts++;
		rows = -1;
	}
	PQclear(result);
	return rows;
}

static void
work_lookup(Worker *worker)
{
	char		key[KEY_TEXT_MAX];
	const char *values[1] = {key};
	uint64_t	row = worker_random(worker) % options->rows;

	options->source.kind->key(key, &options->source, row);
	if (execute(worker, 1, values) == 0)
		die("lookup: key %s of row %llu was not found", key, (unsigned long long) row);
}

static void
work_range(Worker *worker)
{
	char		low[KEY_TEXT_MAX],
				second[KEY_TEXT_MAX];
	const char *values[2] = {low, second};
	double		share = options->selectivity > 0 ? options->selectivity : (double) options->length / options->rows;
	double		room = share < 1 ? 1 - share : 0;
	double		begin = -INT4_KEYS / 2 + worker_fraction(worker) * room * INT4_KEYS;

	snprintf(low, sizeof(low), "%.0f", begin);
	if (options->selectivity > 0)
	{
		double		last = begin + share * INT4_KEYS - 1;

		snprintf(second, sizeof(second), "%.0f", last < INT4_KEYS / 2 - 1 ? last : INT4_KEYS / 2 - 1);
	}
	else
		snprintf(second, sizeof(second), "%llu", (unsigned long long) options->length);
	execute(worker, 2, values);
}

static void
work_insert(Worker *worker)
{
	char		key[KEY_TEXT_MAX];
	const char *values[2] = {key, "abcdefghij"};

	options->source.kind->key(key, &options->source, atomic_fetch_add(&next_row, 1));
	execute(worker, 2, values);
}

static void
work_copy(Worker *worker)
{
	batch_fill(&worker->batch, &options->source, atomic_fetch_add(&next_row, (uint64_t) options->batch), options->batch);
	batch_send(worker->conn, options, &worker->batch);
	batch_finish(worker->conn);
}

static void
work_update(Worker *worker)
{
	char		id[KEY_TEXT_MAX],
				key[KEY_TEXT_MAX];
	const char *values[2] = {id, key};

	*put_digits(id, worker_random(worker) % options->rows) = '\0';
	*put_signed(key, (int32_t) (uint32_t) worker_random(worker)) = '\0';
	execute(worker, 2, values);
}

static const OpClass op_classes[] = {
	{"lookup", "SELECT * FROM %s WHERE k = $1", 1, work_lookup},
	{"range", "SELECT count(*) FROM (SELECT k FROM %s WHERE k >= $1 ORDER BY k LIMIT $2) s", 2, work_range},
	{"insert", "INSERT INTO %s VALUES ($1, $2)", 2, work_insert},
	{"copy", NULL, 0, work_copy},
	{"update", "UPDATE %s SET k = $2 WHERE id = $1", 2, work_update},
};

_Static_assert(sizeof(op_classes) / sizeof(op_classes[0]) == MAX_CLASSES, "each class may be named once");

static void
prepare_statement(Worker *worker)
{
	char		text[2048];
	const char *sql = worker->op->sql;
	PGresult   *result;

	if (sql == NULL)
		return;
	/* A statement given by the caller is for the reading class. */
	if (options->sql != NULL && (worker->op->work == work_lookup || worker->op->work == work_range))
		sql = options->sql;
	if (strstr(sql, "%s") != NULL)
	{
		const char *mark = strstr(sql, "%s");

		snprintf(text, sizeof(text), "%.*s%s%s", (int) (mark - sql), sql, options->table, mark + 2);
		sql = text;
	}
	result = PQprepare(worker->conn, "op", sql, 0, NULL);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		die("%s: %s", sql, PQerrorMessage(worker->conn));
	PQclear(result);
}

/* An operation has ended at now_ns. Others of the class may have noted a later time already. */
static void
note_gap(Worker *worker, uint64_t now_ns)
{
	uint64_t	before_ns = atomic_exchange(&class_done_ns[worker->op - op_classes], now_ns);

	if (before_ns != 0 && now_ns > before_ns && now_ns - before_ns > worker->gap_ns)
		worker->gap_ns = now_ns - before_ns;
}

static void *
worker_thread(void *argument)
{
	Worker	   *worker = argument;
	uint64_t	counted = 0;

	for (;;)
	{
		double		begin = now_s(),
					end;

		if ((begin >= end_s && counted > 0) || (options->max_ops > 0 && counted >= options->max_ops))
			break;
		worker->op->work(worker);
		if (begin < count_from_s)
			continue;
		end = now_s();
		if (counted++ == 0)
			worker->first_s = begin;
		worker->last_s = end;
		note_gap(worker, (uint64_t) (end * NS_A_S));
		pthread_mutex_lock(&worker->lock);
		histogram_add(&worker->all, (uint64_t) ((end - begin) * NS_A_S));
		histogram_add(&worker->interval, (uint64_t) ((end - begin) * NS_A_S));
		pthread_mutex_unlock(&worker->lock);
	}
	return NULL;
}

/* --- output --- */

/* One line for each class: what was done since the last sample. */
static void
print_samples(Worker *workers, int count, double now)
{
	static Histogram sum;

	for (unsigned c = 0; c < sizeof(op_classes) / sizeof(op_classes[0]); c++)
	{
		bool		any = false;

		memset(&sum, 0, sizeof(sum));
		for (int w = 0; w < count; w++)
			if (workers[w].op == &op_classes[c])
			{
				any = true;
				pthread_mutex_lock(&workers[w].lock);
				histogram_merge(&sum, &workers[w].interval);
				memset(&workers[w].interval, 0, sizeof(Histogram));
				pthread_mutex_unlock(&workers[w].lock);
			}
		if (any)
			printf("sample,%s,%.2f,%llu,%.1f,%.1f,%.1f\n", op_classes[c].name, now - count_from_s,
				   (unsigned long long) sum.total, histogram_us(&sum, 50), histogram_us(&sum, 99),
				   histogram_us(&sum, 100));
	}
}

static void
print_results(Worker *workers, int count)
{
	static Histogram sum;

	for (unsigned c = 0; c < sizeof(op_classes) / sizeof(op_classes[0]); c++)
	{
		const char *name = op_classes[c].name;
		double		rate = 0;
		uint64_t	timeouts = 0,
					gap_ns = 0;
		bool		any = false;

		memset(&sum, 0, sizeof(sum));
		for (int w = 0; w < count; w++)
			if (workers[w].op == &op_classes[c])
			{
				any = true;
				histogram_merge(&sum, &workers[w].all);
				timeouts += workers[w].timeouts;
				if (workers[w].gap_ns > gap_ns)
					gap_ns = workers[w].gap_ns;
				if (workers[w].last_s > workers[w].first_s)
					rate += workers[w].all.total / (workers[w].last_s - workers[w].first_s);
			}
		if (!any)
			continue;
		printf("result,%s,ops,%llu\nresult,%s,rate,%.4f\n", name, (unsigned long long) sum.total, name, rate);
		printf("result,%s,p50_us,%.1f\nresult,%s,p95_us,%.1f\nresult,%s,p99_us,%.1f\nresult,%s,max_us,%.1f\n",
			   name, histogram_us(&sum, 50), name, histogram_us(&sum, 95), name, histogram_us(&sum, 99), name,
			   histogram_us(&sum, 100));
		printf("result,%s,timeouts,%llu\nresult,%s,gap_us,%.1f\n", name, (unsigned long long) timeouts, name,
			   (double) gap_ns / 1000);
	}
}

static void
init_worker(Worker *worker, const OpClass *op, int number)
{
	worker->op = op;
	worker->random = mix64(options->source.seed * 1000003 + (uint64_t) number);
	pthread_mutex_init(&worker->lock, NULL);
	worker->conn = must_connect(options->conninfo);
	prepare_statement(worker);
	if (op->work == work_copy)
		batch_init(&worker->batch, &options->source, options->batch);
}

/* Makes the workers of one "name:threads". */
static int
add_class(Worker *workers, int count, const char *text)
{
	const char *colon = strchr(text, ':');
	int			threads = colon ? atoi(colon + 1) : 1;
	size_t		length = colon ? (size_t) (colon - text) : strlen(text);

	for (unsigned c = 0; c < sizeof(op_classes) / sizeof(op_classes[0]); c++)
		if (strlen(op_classes[c].name) == length && strncmp(op_classes[c].name, text, length) == 0)
		{
			if (threads < 1 || count + threads > MAX_THREADS)
				die("bad number of threads in \"%s\"", text);
			for (int t = 0; t < threads; t++)
				init_worker(&workers[count + t], &op_classes[c], count + t);
			return count + threads;
		}
	die("unknown class of operations \"%s\"", text);
}

void
run(const Options *o)
{
	Worker	   *workers = must_alloc(MAX_THREADS * sizeof(Worker));
	int			count = 0;

	options = o;
	atomic_store(&next_row, o->rows);
	for (int c = 0; c < o->class_count; c++)
		count = add_class(workers, count, o->classes[c]);

	start_s = now_s();
	count_from_s = start_s + o->warmup_s;
	end_s = count_from_s + o->limit_s;
	for (int w = 0; w < count; w++)
		if (pthread_create(&workers[w].thread, NULL, worker_thread, &workers[w]) != 0)
			die("could not start a thread");
	if (o->interval_s > 0)
		for (double next = count_from_s + o->interval_s; next <= end_s + 0.001; next += o->interval_s)
		{
			sleep_until(next);
			print_samples(workers, count, now_s());
		}
	for (int w = 0; w < count; w++)
		pthread_join(workers[w].thread, NULL);
	print_results(workers, count);
	print_cpu(now_s() - start_s);
	for (int w = 0; w < count; w++)
	{
		PQfinish(workers[w].conn);
		free(workers[w].batch.data);
	}
	free(workers);
}
