/*
 * last_statement.c
 *	  What the session's last statement has read: lsm_last_statement().
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "inspect/inspect.h"

PG_FUNCTION_INFO_V1(lsm_last_statement);

#define COLUMNS 10

/*
 * lsm_last_statement(): a row for each lsm index that the session's last top-level
 * statement has scanned, of those before this one that have scanned any.
 */
Datum
lsm_last_statement(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	const LsmStatementReads *reads;
	int			count;

	InitMaterializedSRF(fcinfo, 0);
	reads = lsm_statement_reads_last(&count);
	for (int i = 0; i < count; i++)
	{
		const LsmReadCounters *c = &reads[i].counters;
		Datum		values[COLUMNS];
		bool		nulls[COLUMNS] = {false};

		values[0] = ObjectIdGetDatum(reads[i].index);
		values[1] = Int64GetDatum(c->seeks);
		values[2] = Int64GetDatum(c->runs);
		values[3] = Int64GetDatum(c->segments);
		values[4] = Int64GetDatum(c->pages);
		values[5] = Int64GetDatum(c->entries);
		values[6] = Int64GetDatum(c->restarts);
		values[7] = Int64GetDatum(c->removed);
		values[8] = Int64GetDatum(c->filter_checks);
		values[9] = Int64GetDatum(c->filter_skips);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
