/*
 * run.c
 *		Operations in a loop: each thread has a connection, executes one operation after another, and
 *		measures each of them.
 *
 * Classes of threads, which may run side by side:
 *
 *	lookup	a prepared SELECT by a key that is in the table; finding nothing is an error
 *	range	a prepared statement with a random first key and, as a second parameter, the number of rows, or the last key when
 *			a selectivity is given; keys are int4 over the whole range
 *	insert	a prepared INSERT of one row, a transaction each
 *	copy	transactions of many rows, as "load" does
 *	update	a prepared UPDATE of column k of a row, chosen by column id (rows of kind churn)
 *	trim, window, point, reprice	see sales.c
 *	dated, span, upsert				see events.c
 *
 * With a rate, each transaction of copy and trim is due at a fixed time. Its latency counts from that time, even if the
 * thread is late because the previous transaction took too long. Without a rate, copy and trim wait for each other so
 * that the table keeps its size.
 *
 * Operations that begin during the warm-up do not count. When the time is over, each thread finishes its current
 * operation, which counts with its whole duration. Threads that need not keep a rate execute at least one operation
 * that counts, so that slow systems have a result, too. An operation counts even if the server cancels its statement.
 * The results also say how many statements timed out (statement_timeout), and how many conflicted with replay on a
 * standby.
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run.h"

#define TRIM_LAG		10			/* batches that trim may be behind copy */
#define INT4_KEYS		4294967296.0
#define LONGEST_NAP_S	0.05		/* of the thread that prints samples */

const Options *run_options;

static double start_s,
			count_from_s,
			end_s;
static atomic_int working;		/* threads that have not ended */
static atomic_uint_fast64_t next_row;	/* number of the next row to insert */
static atomic_uint_fast64_t oldest_row; /* number of the next row to delete */
static atomic_uint_fast64_t turns[MAX_CLASSES]; /* of a class that keeps a rate: transactions that threads have taken */

/* Of classes copy and trim, if both run and have no rate. */
static struct
{
	pthread_mutex_t lock;		/* for all that follows */
	pthread_cond_t changed;
	bool		is_used;
	uint64_t	copied;			/* batches */
	uint64_t	trimmed;
}			pair = {.lock = PTHREAD_MUTEX_INITIALIZER,.changed = PTHREAD_COND_INITIALIZER};

static atomic_uint_fast64_t class_done_ns[MAX_CLASSES];	/* when a class last finished an operation that counts */

uint64_t
run_random(Worker *worker)
{
	return mix64(worker->random += UINT64_C(0x9E3779B97F4A7C15));
}

static double
random_fraction(Worker *worker)
{
	return (double) (run_random(worker) >> 11) * 0x1p-53;
}

int
run_execute(Worker *worker, int statement, int parameters, const char *const *values)
{
	char		name[] = {'o', 'p', '0' + statement, 0};
	PGresult   *result = PQexecPrepared(worker->conn, name, parameters, values, NULL, NULL, 0);
	ExecStatusType status = PQresultStatus(result);
	int			rows = PQntuples(result);

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
	{
		const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

		if (state != NULL && strcmp(state, "57014") == 0)
			worker->timeouts++;
		else if (state != NULL && strcmp(state, "40001") == 0)
			worker->conflicts++;
		else
			die("%s: %s", worker->op->name, PQerrorMessage(worker->conn));
		rows = -1;
	}
	PQclear(result);
	return rows;
}

void
run_execute_batch(Worker *worker, uint64_t (*choose) (Worker *worker))
{
	char	   *keys = must_alloc((size_t) run_options->batch * KEY_TEXT_MAX + 2),
			   *p = keys;
	const char *values[1] = {keys};

	for (long i = 0; i < run_options->batch; i++)
	{
		*p++ = i == 0 ? '{' : ',';
		run_options->source.kind->key(p, &run_options->source, choose(worker));
		p += strlen(p);
	}
	*p++ = '}';
	*p = '\0';
	run_execute(worker, 0, 1, values);
	free(keys);
}

static void
work_lookup(Worker *worker)
{
	char		key[KEY_TEXT_MAX];
	const char *values[1] = {key};
	uint64_t	row = run_random(worker) % run_options->rows;

	run_options->source.kind->key(key, &run_options->source, row);
	if (run_execute(worker, 0, 1, values) == 0)
		die("lookup: key %s of row %llu was not found", key, (unsigned long long) row);
}

static void
work_range(Worker *worker)
{
	char		low[KEY_TEXT_MAX],
				second[KEY_TEXT_MAX];
	const char *values[2] = {low, second};
	double		share = run_options->selectivity > 0 ? run_options->selectivity : (double) run_options->length / run_options->rows;
	double		room = share < 1 ? 1 - share : 0;
	double		begin = -INT4_KEYS / 2 + random_fraction(worker) * room * INT4_KEYS;

	snprintf(low, sizeof(low), "%.0f", begin);
	if (run_options->selectivity > 0)
	{
		double		last = begin + share * INT4_KEYS - 1;

		snprintf(second, sizeof(second), "%.0f", last < INT4_KEYS / 2 - 1 ? last : INT4_KEYS / 2 - 1);
	}
	else
		snprintf(second, sizeof(second), "%llu", (unsigned long long) run_options->length);
	run_execute(worker, 0, 2, values);
}

static void
work_insert(Worker *worker)
{
	char		key[KEY_TEXT_MAX];
	const char *values[2] = {key, "abcdefghij"};

	run_options->source.kind->key(key, &run_options->source, atomic_fetch_add(&next_row, 1));
	run_execute(worker, 0, 2, values);
}

static void
work_copy(Worker *worker)
{
	batch_fill(&worker->batch, &run_options->source, atomic_fetch_add(&next_row, (uint64_t) run_options->batch),
			   run_options->batch);
	batch_send(worker->conn, run_options, &worker->batch);
	batch_finish(worker->conn);
}

uint64_t
run_take_oldest(void)
{
	return atomic_fetch_add(&oldest_row, (uint64_t) run_options->batch);
}

uint64_t
run_any_row(Worker *worker)
{
	uint64_t	oldest = atomic_load(&oldest_row);

	return oldest + run_random(worker) % (atomic_load(&next_row) - oldest);
}

static void
work_update(Worker *worker)
{
	char		id[KEY_TEXT_MAX],
				key[KEY_TEXT_MAX];
	const char *values[2] = {id, key};

	*put_digits(id, run_random(worker) % run_options->rows) = '\0';
	*put_signed(key, (int32_t) (uint32_t) run_random(worker)) = '\0';
	run_execute(worker, 0, 2, values);
}

static const WorkClass op_classes[] = {
	{"lookup", work_lookup, false, {"SELECT * FROM %s WHERE k = $1"}},
	{"range", work_range, false, {"SELECT count(*) FROM (SELECT k FROM %s WHERE k >= $1 ORDER BY k LIMIT $2) s"}},
	{"insert", work_insert, false, {"INSERT INTO %s VALUES ($1, $2)"}},
	{"copy", work_copy, true, {NULL}},
	{"update", work_update, false, {"UPDATE %s SET k = $2 WHERE id = $1"}},
	{"trim", work_trim, true, {"DELETE FROM %s WHERE id BETWEEN $1 AND $2"}},
	{"window", work_window, false, {
		"SELECT product, customer, price FROM %s WHERE product = $1 AND customer >= $2 ORDER BY product, customer, price LIMIT "
		"10",
		"SELECT till, price, customer FROM %s WHERE till = $1 AND price >= $2 ORDER BY till, price, customer LIMIT 10",
		"SELECT price, at, customer FROM %s WHERE price >= $1 ORDER BY price, at, customer LIMIT 10"}},
	{"point", work_point, false, {"SELECT data FROM %s WHERE id = $1"}},
	{"reprice", work_reprice, false, {"UPDATE %s SET price = 150000 * random() WHERE id = ANY ($1::int8[])"}},
	{"dated", work_dated, false, {"SELECT * FROM %s WHERE k = $1 AND at = $2"}},
	{"span", work_span, false, {"SELECT count(f) FROM %s WHERE at >= $1 AND at < $2"}},
	{"upsert", work_upsert, false, {
		"INSERT INTO %s SELECT DISTINCT k, 'abcdefghij' FROM unnest($1::uuid[]) k "
		"ON CONFLICT (k) DO UPDATE SET f = excluded.f"}},
};

_Static_assert(sizeof(op_classes) / sizeof(op_classes[0]) == MAX_CLASSES, "each class may be named once");

static void
prepare_statement(Worker *worker, int number)
{
	char		text[2048],
				name[] = {'o', 'p', '0' + number, 0};
	const char *sql = worker->op->sql[number];
	PGresult   *result;

	if (sql == NULL)
		return;
	/* The statement of option -q replaces those of lookup and range. */
	if (run_options->sql != NULL && (worker->op->work == work_lookup || worker->op->work == work_range))
		sql = run_options->sql;
	if (strstr(sql, "%s") != NULL)
	{
		const char *mark = strstr(sql, "%s");

		snprintf(text, sizeof(text), "%.*s%s%s", (int) (mark - sql), sql, run_options->table, mark + 2);
		sql = text;
	}
	result = PQprepare(worker->conn, name, sql, 0, NULL);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		die("%s: %s", sql, PQerrorMessage(worker->conn));
	PQclear(result);
}

/* Waits while the class is too far ahead of the other class, but not after the time is over. */
static void
wait_for_pair(Worker *worker)
{
	bool		is_copy = worker->op->work == work_copy;

	pthread_mutex_lock(&pair.lock);
	while (now_s() < end_s && (is_copy ? pair.copied >= pair.trimmed + TRIM_LAG : pair.trimmed >= pair.copied))
	{
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&pair.changed, &pair.lock, &until);
	}
	pthread_mutex_unlock(&pair.lock);
}

static void
advance_pair(Worker *worker)
{
	pthread_mutex_lock(&pair.lock);
	*(worker->op->work == work_copy ? &pair.copied : &pair.trimmed) += 1;
	pthread_cond_broadcast(&pair.changed);
	pthread_mutex_unlock(&pair.lock);
}

/* An operation has ended at now_ns. Others of the class may have noted a later time already. */
static void
note_gap(Worker *worker, uint64_t now_ns)
{
	uint64_t	before_ns = atomic_exchange(&class_done_ns[worker->op - op_classes], now_ns);

	if (before_ns != 0 && now_ns > before_ns && now_ns - before_ns > worker->gap_ns)
		worker->gap_ns = now_ns - before_ns;
}

/*
 * Waits until the worker may begin its next operation. Returns the time from which its latency counts. If the time is
 * over, that is end_s or later.
 */
static double
next_begin(Worker *worker)
{
	double		due;

	if (!worker->op->is_paced)
		return now_s();
	if (run_options->rate <= 0)
	{
		if (pair.is_used)
			wait_for_pair(worker);
		return now_s();
	}
	due = start_s + (double) atomic_fetch_add(&turns[worker->op - op_classes], 1) * run_options->batch / run_options->rate;
	if (due >= end_s || now_s() >= end_s)
		return end_s;
	sleep_until(due);
	return due;
}

static void *
worker_thread(void *argument)
{
	Worker	   *worker = argument;
	bool		keeps_rate = worker->op->is_paced && run_options->rate > 0;
	uint64_t	counted = 0;

	while (run_options->max_ops == 0 || counted < run_options->max_ops)
	{
		double		begin = next_begin(worker),
					end;

		if (begin >= end_s && (counted > 0 || keeps_rate))
			break;
		worker->op->work(worker);
		if (pair.is_used && worker->op->is_paced)
			advance_pair(worker);
		if (begin < count_from_s)
			continue;
		end = now_s();
		if (counted++ == 0)
			worker->first_s = begin;
		worker->last_s = end;
		note_gap(worker, (uint64_t) (end * NS_PER_S));
		pthread_mutex_lock(&worker->lock);
		histogram_add(&worker->all, (uint64_t) ((end - begin) * NS_PER_S));
		histogram_add(&worker->interval, (uint64_t) ((end - begin) * NS_PER_S));
		pthread_mutex_unlock(&worker->lock);
	}
	atomic_fetch_sub(&working, 1);
	return NULL;
}

/* --- output --- */

/* Waits until that time, or until no worker is left. */
static void
sleep_while_working(double until)
{
	double		now;

	while (atomic_load(&working) > 0 && (now = now_s()) < until)
		sleep_until(now + LONGEST_NAP_S < until ? now + LONGEST_NAP_S : until);
}

/* Prints a line for each class: what it did since the last sample. */
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
					conflicts = 0,
					gap_ns = 0;
		bool		any = false;

		memset(&sum, 0, sizeof(sum));
		for (int w = 0; w < count; w++)
			if (workers[w].op == &op_classes[c])
			{
				any = true;
				histogram_merge(&sum, &workers[w].all);
				timeouts += workers[w].timeouts;
				conflicts += workers[w].conflicts;
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
		printf("result,%s,timeouts,%llu\nresult,%s,conflicts,%llu\nresult,%s,gap_us,%.1f\n", name,
			   (unsigned long long) timeouts, name, (unsigned long long) conflicts, name, (double) gap_ns / 1000);
	}
}

static void
init_worker(Worker *worker, const WorkClass *op, int number)
{
	worker->op = op;
	worker->random = mix64(run_options->source.seed * 1000003 + (uint64_t) number);
	pthread_mutex_init(&worker->lock, NULL);
	worker->conn = must_connect(run_options->conninfo);
	for (int s = 0; s < MAX_STATEMENTS; s++)
		prepare_statement(worker, s);
	if (op->work == work_copy)
		batch_init(&worker->batch, &run_options->source, run_options->batch);
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
	bool		copies = false,
				trims = false;

	run_options = o;
	atomic_store(&next_row, o->first_row + o->rows);
	atomic_store(&oldest_row, o->first_row);
	for (int c = 0; c < o->class_count; c++)
		count = add_class(workers, count, o->classes[c]);

	for (int w = 0; w < count; w++)
	{
		copies |= workers[w].op->work == work_copy;
		trims |= workers[w].op->work == work_trim;
	}
	pair.is_used = copies && trims && o->rate <= 0;

	start_s = now_s();
	count_from_s = start_s + o->warmup_s;
	end_s = count_from_s + o->limit_s;
	atomic_store(&working, count);
	for (int w = 0; w < count; w++)
		if (pthread_create(&workers[w].thread, NULL, worker_thread, &workers[w]) != 0)
			die("could not start a thread");
	if (o->interval_s > 0)
		for (double next = count_from_s + o->interval_s;
			 next <= end_s + 0.001 && atomic_load(&working) > 0; next += o->interval_s)
		{
			sleep_while_working(next);
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
