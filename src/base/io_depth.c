/*
 * io_depth.c
 *	  Determines how many reads may be in flight, for the prefetching scan and for reads of indexes.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "base/compat.h"
#include "base/io_depth.h"
#include "base/limits.h"
#include "catalog/pg_tablespace.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

/* Has effective_io_concurrency been set, in the configuration or for this tablespace? */
static bool
concurrency_is_set(Oid tablespace)
{
	Oid			space = OidIsValid(tablespace) ? tablespace : MyDatabaseTableSpace;
	HeapTuple	tuple;
	Datum		options;
	bool		is_null;
	bool		result = false;

	if (!lsm_io_concurrency_is_default())
		return true;
	tuple = SearchSysCache1(TABLESPACEOID, ObjectIdGetDatum(space));
	if (!HeapTupleIsValid(tuple))
		return false;
	options = SysCacheGetAttr(TABLESPACEOID, tuple, Anum_pg_tablespace_spcoptions, &is_null);
	if (!is_null)
	{
		TableSpaceOpts *space_options = (TableSpaceOpts *) tablespace_reloptions(options, false);

		result = space_options != NULL && space_options->effective_io_concurrency >= 0;
		if (space_options != NULL)
			pfree(space_options);
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Returns the tablespace's effective_io_concurrency or maintenance_io_concurrency, but 0 instead of
 * 1: a disk that serves one request at a time gains nothing from prefetching.  Up to release 17,
 * however, 1 is the default of effective_io_concurrency and says nothing about the disk.  If nobody
 * has set it, returns LSM_DEFAULT_READ_DEPTH.
 */
static int
tablespace_reads_in_flight(Oid tablespace, bool maintenance)
{
	int			concurrency;

	concurrency = maintenance ? get_tablespace_maintenance_io_concurrency(tablespace) :
		get_tablespace_io_concurrency(tablespace);
	if (concurrency == 1)
		return maintenance || concurrency_is_set(tablespace) ? 0 : LSM_DEFAULT_READ_DEPTH;
	return concurrency;
}

/*
 * Returns how many reads of a relation in this tablespace may be in flight with PrefetchBuffer, or
 * 0 if prefetching is off.
 */
int
lsm_reads_in_flight(Oid tablespace, bool maintenance)
{
	return lsm_can_prefetch() ? tablespace_reads_in_flight(tablespace, maintenance) : 0;
}

/*
 * Like lsm_reads_in_flight, for the prefetching scan, which can also use a read stream.
 * pg_lsm.prefetch_depth, if set, replaces the tablespace's value.
 */
int
lsm_scan_reads_in_flight(Oid tablespace)
{
	if (!lsm_can_prefetch() && !lsm_can_stream())
		return 0;
	return lsm_prefetch_depth > 0 ? lsm_prefetch_depth :
		tablespace_reads_in_flight(tablespace, false);
}
