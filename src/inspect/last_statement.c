/*
 * last_statement.c
 *	  What the session's last statement has read: lsm_last_statement().
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "inspect/inspect.h"

PG_FUNCTION_INFO_V1(lsm_last_statement);

#define COLUMNS (1 + LSM_READ_COLUMNS)

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
		Datum		values[COLUMNS];
		bool		nulls[COLUMNS] = {false};

		values[0] = ObjectIdGetDatum(reads[i].index);
		for (int k = 0; k < LSM_READ_COLUMNS; k++)
			values[1 + k] = Int64GetDatum((int64) lsm_read_count(&reads[i].counters, k));
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
