/*
 * run.h
 *		What the operations of the load generator share with the loop that executes them.
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <pthread.h>

#include "client.h"

#define MAX_STATEMENTS	3

struct WorkClass;

typedef struct Worker
{
	const struct WorkClass *op;
	PGconn	   *conn;
	uint64_t	random;
	Batch		batch;			/* of class copy */
	uint64_t	timeouts;
	uint64_t	conflicts;		/* with replay, on a standby */
	double		first_s;		/* start of the first operation that counts */
	double		last_s;			/* end of the last one */
	uint64_t	gap_ns;			/* longest time in which the class finished nothing, until this worker did */
	pthread_mutex_t lock;		/* for the two histograms */
	Histogram	all;
	Histogram	interval;		/* since the last sample */
	pthread_t	thread;
} Worker;

typedef struct WorkClass
{
	const char *name;
	void		(*work) (Worker *worker);
	bool		is_paced;		/* keeps the rate of option -a, if there is one */
	const char *sql[MAX_STATEMENTS];	/* prepared; "%s" is the table */
} WorkClass;

extern const Options *run_options;

/* Executes a statement of the class. Returns the number of rows of its result, or -1 if the server canceled it. */
extern int	run_execute(Worker *worker, int statement, int parameters, const char *const *values);
/* Executes the class's first statement, with an array of the keys of a batch of rows that `choose` picks. */
extern void run_execute_batch(Worker *worker, uint64_t (*choose) (Worker *worker));
extern uint64_t run_random(Worker *worker);

/* Takes the oldest batch of rows, which the caller must delete. Returns the number of its first row. */
extern uint64_t run_take_oldest(void);
/* Returns a random row of the table. It may just have been deleted, or may not be committed yet. */
extern uint64_t run_any_row(Worker *worker);

/* --- sales.c --- */

extern void work_trim(Worker *worker);
extern void work_window(Worker *worker);
extern void work_point(Worker *worker);
extern void work_reprice(Worker *worker);

/* --- events.c --- */

extern void work_dated(Worker *worker);
extern void work_span(Worker *worker);
extern void work_upsert(Worker *worker);

#endif
