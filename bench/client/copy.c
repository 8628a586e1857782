/*
 * copy.c
 *		Transactions of many rows by COPY.
 *
 * The rows of a transaction are made beforehand and handed over in one piece. Sending and waiting are two calls, so that a
 * caller can make the next rows while the server works.
 *
 * Copyright (c) 2026, pg_lsm developers
 */
#include <stdio.h>
#include <string.h>

#include "client.h"

static const char binary_header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";	/* with the final zero: 19 bytes */

void
batch_init(Batch *batch, const RowSource *source, long rows)
{
	batch->data = must_alloc((size_t) rows * source->kind->max_bytes + 64);
	batch->length = 0;
}

void
batch_fill(Batch *batch, const RowSource *source, uint64_t first, long rows)
{
	RowOut		out = {.p = batch->data,.binary = source->binary};

	if (source->binary)
	{
		memcpy(out.p, binary_header, sizeof(binary_header));
		out.p += sizeof(binary_header);
	}
	for (long i = 0; i < rows; i++)
		source->kind->put(&out, source, first + i);
	if (source->binary)
	{
		*out.p++ = (char) 0xff;	/* end of the rows */
		*out.p++ = (char) 0xff;
	}
	batch->length = out.p - batch->data;
}

void
batch_send(PGconn *conn, const Options *o, const Batch *batch)
{
	char		command[256];
	const char *columns = o->source.kind->columns;
	PGresult   *result;

	snprintf(command, sizeof(command), "COPY %s%s%s%s FROM STDIN%s", o->table, columns ? " (" : "", columns ? columns : "",
			 columns ? ")" : "", o->source.binary ? " WITH (FORMAT binary)" : "");
	result = PQexec(conn, command);
	if (PQresultStatus(result) != PGRES_COPY_IN)
		die("%s: %s", command, PQerrorMessage(conn));
	PQclear(result);
	if (PQputCopyData(conn, batch->data, (int) batch->length) != 1 || PQputCopyEnd(conn, NULL) != 1 ||
		PQflush(conn) < 0)
		die("could not send rows: %s", PQerrorMessage(conn));
}

/* Waits until the transaction is committed. */
void
batch_finish(PGconn *conn)
{
	PGresult   *result;

	while ((result = PQgetResult(conn)) != NULL)
	{
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			die("COPY: %s", PQerrorMessage(conn));
		PQclear(result);
	}
}
