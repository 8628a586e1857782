/*
 * preload.c
 *	  Refuses to run on a server with another block size, and to write unless the library is
 *	  preloaded.
 *
 * A custom resource manager can only be registered at server start.  Without our resource manager,
 * our WAL records cannot be replayed, so nothing may write such records.
 */
#include "postgres.h"

#include "base/preload.h"
#include "utils/rel.h"

#define WHAT_TO_ADD	"Add \"shared_preload_libraries = 'pg_lsm'\" to postgresql.conf and restart the server."

bool		lsm_preloaded = false;

/*
 * Raise an error if the server's block size, in bytes, is not the one that the library was built
 * for.  The server's own check of a library does not compare block sizes.
 */
void
lsm_require_block_size(int server_size)
{
	if (server_size != BLCKSZ)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_lsm was built for another block size"),
				 errdetail("The library uses blocks of %d bytes, but the server uses blocks of %d bytes.",
						   BLCKSZ, server_size),
				 errhint("Build pg_lsm with the pg_config of this server.")));
}

/*
 * Raise an error unless the library is preloaded.  way_out is empty, or a sentence for the hint
 * that says what else the user can do.
 */
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

/*
 * For optional cleanup.  Returns true, with a warning, if the caller must skip the cleanup because
 * the library is not preloaded.
 */
bool
lsm_warn_of_preload(Relation index)
{
	if (likely(lsm_preloaded))
		return false;
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("skipping cleanup of index \"%s\" because pg_lsm is not loaded via shared_preload_libraries",
					RelationGetRelationName(index)),
			 errhint("%s", WHAT_TO_ADD)));
	return true;
}
