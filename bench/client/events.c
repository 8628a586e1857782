/*
 * events.c
 *		Rows and operations of experiments 10 and 11.
 *
 * Rows of kind event4 and event7: t(k uuid, at timestamptz, f char(10)); k is of version 4 or 7, "at" ascends.
 *
 *	dated	looks up a row by its key and its time, as one does in a table with partitions by time
 *	span	reads consecutive rows by their time
 *	upsert	INSERT ... ON CONFLICT DO UPDATE of a batch of random keys of type uuid, half of which are there at first
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include "run.h"

#define MS_PER_ROW		216		/* 400,000 rows a day */
#define EVENT_LETTERS	10

static void
put_event(RowOut *out, const RowSource *source, uint64_t i, int version)
{
	row_begin(out, 3);
	row_uuid(out, source, i, version);
	row_time(out, i * MS_PER_ROW);
	row_letters(out, EVENT_LETTERS, row_random(source, i));
	row_end(out);
}

static void
put_event4(RowOut *out, const RowSource *source, uint64_t i)
{
	put_event(out, source, i, 4);
}

static void
put_event7(RowOut *out, const RowSource *source, uint64_t i)
{
	put_event(out, source, i, 7);
}

const RowKind event4_kind = {"event4", 96, true, put_event4, key_uuid4, NULL, NULL};
const RowKind event7_kind = {"event7", 96, true, put_event7, key_uuid7, NULL, NULL};

/* --- operations --- */

static void
time_text(char *text, uint64_t row)
{
	RowOut		out = {.p = text,.first = true};

	row_time(&out, row * MS_PER_ROW);
	*out.p = '\0';
}

void
work_dated(Worker *worker)
{
	char		key[KEY_TEXT_MAX],
				at[KEY_TEXT_MAX];
	const char *values[2] = {key, at};
	uint64_t	row = run_random(worker) % run_options->rows;

	run_options->source.kind->key(key, &run_options->source, row);
	time_text(at, row);
	if (run_execute(worker, 0, 2, values) == 0)
		die("dated: key %s at %s was not found", key, at);
}

void
work_span(Worker *worker)
{
	char		from[KEY_TEXT_MAX],
				to[KEY_TEXT_MAX];
	const char *values[2] = {from, to};
	uint64_t	length = run_options->length < run_options->rows ? run_options->length : run_options->rows,
				row = run_random(worker) % (run_options->rows - length + 1);

	time_text(from, row);
	time_text(to, row + length);
	run_execute(worker, 0, 2, values);
}

static uint64_t
any_row_of_twice_as_many(Worker *worker)
{
	return run_random(worker) % (2 * run_options->rows);
}

void
work_upsert(Worker *worker)
{
	run_execute_batch(worker, any_row_of_twice_as_many);
}
