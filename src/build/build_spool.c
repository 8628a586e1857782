/*
 * build_spool.c
 *	  CREATE INDEX: collects the rows that one process reads, and sorts their entries.
 *
 * The sorter writes to temporary files when its memory is full (sort/sorter.c).
 */
#include "postgres.h"

#include "build/build_spool.h"
#include "format/leaf_mode.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Estimated bytes of an entry besides its key and rest. */
#define ENTRY_OVERHEAD	4

/* The numbers of a worker's temporary files. */
#define LIVE_FILE(worker)	(2 * (worker))
#define DEAD_FILE(worker)	(2 * (worker) + 1)

/* Begin to collect entries.  The sorter may use `memory` bytes. */
void
lsm_spool_begin(LsmBuildSpool *spool, LsmIndex *index, bool unique, Size memory)
{
	memset(spool, 0, sizeof(LsmBuildSpool));
	spool->index = index;
	spool->ks = lsm_index_keyspace(index);
	spool->unique = unique;
	spool->sorter = lsm_sorter_begin(spool->ks, memory);
	spool->context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm build",
										   ALLOCSET_DEFAULT_SIZES);
	lsm_mode_init(&spool->mode);
}

/*
 * Returns the sorter of dead rows that old snapshots still see.  These rows do not count as
 * duplicates.  There should be few, so work_mem is enough.
 */
static LsmSorter *
get_dead_sorter(LsmBuildSpool *spool)
{
	if (spool->dead == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(spool->sorter));

		spool->dead = lsm_sorter_begin(spool->ks, (Size) work_mem * 1024);
		if (spool->files != NULL)
			lsm_sorter_share(spool->dead, spool->files, DEAD_FILE(spool->worker));
		MemoryContextSwitchTo(old);
	}
	return spool->dead;
}

/* The callback of table_index_build_scan: `arg` is the spool. */
void
lsm_spool_add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	LsmBuildSpool *spool = arg;
	MemoryContext old = MemoryContextSwitchTo(spool->context);
	LsmEntry	entry;

	lsm_keyspace_form(spool->ks, values, isnull, tid, &entry);
	lsm_sorter_add(spool->unique && !alive ? get_dead_sorter(spool) : spool->sorter, &entry);
	lsm_mode_add(&spool->mode, &entry);
	spool->rows++;
	spool->bytes += entry.keylen + entry.restlen + ENTRY_OVERHEAD;
	MemoryContextSwitchTo(old);
	MemoryContextReset(spool->context);
}

/* In a worker, before the first row: let the leader take the entries. */
void
lsm_spool_share(LsmBuildSpool *spool, SharedFileSet *files, int worker)
{
	spool->files = files;
	spool->worker = worker;
	lsm_sorter_share(spool->sorter, files, LIVE_FILE(worker));
}

/*
 * In a worker, after the last row: export the sorted entries.  After that, the worker can only end
 * the spool.
 */
void
lsm_spool_export(LsmBuildSpool *spool, LsmSpoolShare *share)
{
	lsm_sorter_export(spool->sorter, &share->live);
	if (spool->dead != NULL)
		lsm_sorter_export(spool->dead, &share->dead);
}

/* In the leader: add the entries of a worker that has ended. */
void
lsm_spool_import(LsmBuildSpool *spool, SharedFileSet *files, int worker, const LsmSpoolShare *share)
{
	lsm_sorter_import(spool->sorter, files, LIVE_FILE(worker), &share->live);
	if (share->dead.batch_count > 0)
		lsm_sorter_import(get_dead_sorter(spool), files, DEAD_FILE(worker), &share->dead);
}

void
lsm_spool_end(LsmBuildSpool *spool)
{
	if (spool->dead != NULL)
		lsm_sorter_end(spool->dead);
	lsm_sorter_end(spool->sorter);
	MemoryContextDelete(spool->context);
}
