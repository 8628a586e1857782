/*
 * preload.c
 *	  Guards everything that writes WAL.
 *
 * A custom resource manager can only be registered at server start.  Without
 * it no record of ours could be replayed, so nothing may be written.
 */
#include "postgres.h"

#include "base/preload.h"

bool		lsm_preloaded = false;

void
lsm_require_preload(void)
{
	if (likely(lsm_preloaded))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("pg_lsm must be loaded via shared_preload_libraries"),
			 errdetail("Its indexes are protected by write-ahead log records that only a preloaded library can replay."),
			 errhint("Add \"shared_preload_libraries = 'pg_lsm'\" to postgresql.conf and restart the server.")));
}
