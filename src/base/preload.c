/*
 * preload.c
 *	  Guards everything that writes WAL.
 *
 * A custom resource manager can only be registered at server start.  Without
 * it no record of ours could be replayed, so nothing may be written.
 */
#include "postgres.h"

#include "base/preload.h"
#include "utils/rel.h"

#define WHAT_TO_ADD	"Add \"shared_preload_libraries = 'pg_lsm'\" to postgresql.conf and restart the server."

bool		lsm_preloaded = false;

/* way_out, a sentence or empty: what else the user can do. */
void
lsm_require_preload(const char *way_out)
{
	if (likely(lsm_preloaded))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("pg_lsm must be loaded via shared_preload_libraries"),
			 errdetail("Its indexes are protected by write-ahead log records that only a preloaded library can replay."),
			 errhint("%s%s%s", WHAT_TO_ADD, way_out[0] != '\0' ? " " : "", way_out)));
}

/* For what can as well be left out.  True if it has to be. */
bool
lsm_warn_of_preload(Relation index)
{
	if (likely(lsm_preloaded))
		return false;
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" is not cleaned up, since pg_lsm is not loaded via shared_preload_libraries",
					RelationGetRelationName(index)),
			 errhint("%s", WHAT_TO_ADD)));
	return true;
}
