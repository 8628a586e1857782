/*
 * load.c
 *		Fills a table, as fast as the server takes the rows or at a given rate.
 *
 * Each connection has a thread. They take transactions of rows from one common counter, and
 * a thread loads all rows that it has taken. So the table always contains rows 0 to n - 1,
 * even if the time limit ends the load.
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "client.h"

static struct
{
	const Options *o;
	pthread_mutex_t lock;		/* for all that follows */
	uint64_t	taken;			/* rows that threads have taken */
	uint64_t	done;			/* rows that are committed */
	uint64_t	sampled;		/* rows at the last sample */
	uint64_t	next_sample;
	double		start_s;
	double		worst_s;		/* longest transaction since the last sample */
	double		committed_s;	/* when any connection last committed */
	double		gap_s;			/* longest time without a commit since the last sample */
} load_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes rows for a transaction; returns how many, 0 when the load is over. */
static long
take(uint64_t *first)
{
	const Options *o = load_state.o;
	long		rows = 0;

	pthread_mutex_lock(&load_state.lock);
	if (load_state.taken < o->rows && (o->limit_s <= 0 || now_s() - load_state.start_s < o->limit_s))
	{
		uint64_t	left = o->rows - load_state.taken;

		rows = left < (uint64_t) o->batch ? (long) left : o->batch;
		*first = o->first_row + load_state.taken;
		load_state.taken += rows;
	}
	pthread_mutex_unlock(&load_state.lock);
	return rows;
}

/* Caller holds the lock, or is alone. */
static void
print_sample(double now)
{
	printf("sample,load,%llu,%.4f,%.2f,%.2f\n", (unsigned long long) load_state.done, now - load_state.start_s,
		   load_state.worst_s * 1000, load_state.gap_s * 1000);
	load_state.sampled = load_state.done;
	load_state.next_sample = load_state.done + load_state.o->sample_every;
	load_state.worst_s = load_state.gap_s = 0;
}

/* A transaction that began at begin is committed. Returns the time. */
static double
account(long rows, double begin)
{
	double		now;

	pthread_mutex_lock(&load_state.lock);
	now = now_s();
	if (now - load_state.committed_s > load_state.gap_s)
		load_state.gap_s = now - load_state.committed_s;
	load_state.committed_s = now;
	load_state.done += rows;
	if (now - begin > load_state.worst_s)
		load_state.worst_s = now - begin;
	if (load_state.done >= load_state.next_sample)
		print_sample(now);
	pthread_mutex_unlock(&load_state.lock);
	return now;
}

static void *
load_thread(void *argument)
{
	const Options *o = load_state.o;
	PGconn	   *conn = argument;
	Batch		batch;
	uint64_t	first;
	long		rows,
				next;
	double		last = now_s();

	batch_init(&batch, &o->source, o->batch);
	rows = take(&first);
	if (rows > 0)
		batch_fill(&batch, &o->source, first, rows);
	while (rows > 0)
	{
		if (o->rate > 0)
		{
			sleep_until(load_state.start_s + (double) (first - o->first_row) / o->rate);
			last = now_s();
		}
		if (!o->dry)
			batch_send(conn, o, &batch);
		next = take(&first);
		if (next > 0)
			batch_fill(&batch, &o->source, first, next);
		if (!o->dry)
			batch_finish(conn);
		last = account(rows, last);
		rows = next;
	}
	free(batch.data);
	return NULL;
}

void
load(const Options *o)
{
	pthread_t	threads[MAX_THREADS];
	PGconn	   *conns[MAX_THREADS] = {NULL};
	double		end;

	if (!o->dry)
		for (int t = 0; t < o->clients; t++)
			conns[t] = must_connect(o->conninfo);
	load_state.o = o;
	load_state.next_sample = o->sample_every;
	load_state.start_s = load_state.committed_s = now_s();
	for (int t = 0; t < o->clients; t++)
		if (pthread_create(&threads[t], NULL, load_thread, conns[t]) != 0)
			die("could not start a thread");
	for (int t = 0; t < o->clients; t++)
		pthread_join(threads[t], NULL);
	end = now_s();
	if (load_state.sampled != load_state.done)
		print_sample(end);
	printf("result,load,rows,%llu\n", (unsigned long long) load_state.done);
	printf("result,load,seconds,%.4f\n", end - load_state.start_s);
	print_cpu(end - load_state.start_s);
	for (int t = 0; t < o->clients; t++)
		PQfinish(conns[t]);
}
