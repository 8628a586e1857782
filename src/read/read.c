/*
 * read.c
 *	  From versions to cursors.
 */
#include "postgres.h"

#include "memtable/memtable.h"
#include "merge/merge.h"
#include "read/read.h"
#include "run/run.h"

/* A cursor over one run, of whatever state. */
LsmCursor *
lsm_read_run(Relation rel, LsmKeySpace *ks, const LsmRunRecord *run,
			 BufferAccessStrategy strategy)
{
	if (run->state == LSM_RUN_OPEN || run->state == LSM_RUN_SEALED)
		return lsm_buffer_cursor_create(rel, ks, run->root, run->run_id);
	return lsm_run_cursor_create(rel, ks, run, strategy);
}

/* All live runs.  A run under construction is read by nobody (I8). */
LsmCursor *
lsm_read_version(Relation rel, LsmKeySpace *ks, const LsmVersion *version)
{
	LsmCursor **children = palloc(Max(1, version->run_count) * sizeof(LsmCursor *));
	int			count = 0;

	for (uint32 i = 0; i < version->run_count; i++)
	{
		if (version->runs[i].state != LSM_RUN_BUILDING)
			children[count++] = lsm_read_run(rel, ks, &version->runs[i], NULL);
	}
	return lsm_merge_create(ks, children, count);
}

/* The inputs of a job. */
LsmCursor *
lsm_read_job(Relation rel, LsmKeySpace *ks, const LsmVersion *version,
			 uint64 job_id, BufferAccessStrategy strategy)
{
	LsmCursor **children = palloc(Max(1, version->run_count) * sizeof(LsmCursor *));
	int			count = 0;

	for (uint32 i = 0; i < version->run_count; i++)
	{
		if (version->runs[i].job_id == job_id)
			children[count++] = lsm_read_run(rel, ks, &version->runs[i], strategy);
	}
	return lsm_merge_create(ks, children, count);
}
