/*
 * library.c
 *	  Checks whether the library and the SQL objects of a database match.
 *
 * They may not.  A preloaded library stays in memory until the server restarts, whatever is
 * installed, and ALTER EXTENSION UPDATE is run in each database at some other time.  The first
 * statement of the SQL scripts refuses a library that is older than the script.  A library that is
 * newer than the SQL objects works with them, except for functions whose columns have changed.
 */
#include "postgres.h"

#include "base/limits.h"
#include "fmgr.h"
#include "funcapi.h"
#include "inspect/inspect.h"
#include "utils/builtins.h"
#include "utils/regproc.h"

PG_FUNCTION_INFO_V1(lsm_library_version);

/* lsm_library_version(): the version of the library that serves this session. */
Datum
lsm_library_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(LSM_VERSION));
}

/* Raise an error unless the called function is declared to return this many columns. */
static void
require_columns(FunctionCallInfo fcinfo, TupleDesc desc, int columns)
{
	if (desc->natts == columns)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("function %s and the library are of different versions of pg_lsm",
					format_procedure(fcinfo->flinfo->fn_oid)),
			 errdetail("The function is declared with %d columns, but version %s of the library returns %d.",
					   desc->natts, LSM_VERSION, columns),
			 errhint("Restart the server if it has not been restarted since pg_lsm was installed. "
					 "Then run ALTER EXTENSION pg_lsm UPDATE in this database.")));
}

/* Begin the result of a function that returns a set of rows with this many columns. */
void
lsm_init_set(FunctionCallInfo fcinfo, int columns)
{
	InitMaterializedSRF(fcinfo, 0);
	require_columns(fcinfo, ((ReturnSetInfo *) fcinfo->resultinfo)->setDesc, columns);
}

/* Returns the type of the result of a function that returns a row with this many columns. */
TupleDesc
lsm_row_type(FunctionCallInfo fcinfo, int columns)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "function %s does not return a row", format_procedure(fcinfo->flinfo->fn_oid));
	require_columns(fcinfo, desc, columns);
	return BlessTupleDesc(desc);
}
