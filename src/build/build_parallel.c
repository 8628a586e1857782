/*
 * build_parallel.c
 *	  CREATE INDEX with the help of parallel workers.
 *
 * All processes read the table, each the blocks that it gets from a parallel
 * scan, and sort what they have found.  Workers leave their sorted entries in
 * temporary files.  When they have ended, the leader merges these with its own
 * and writes the index, as if it had sorted them all (sort/sorter.c).
 *
 * What a worker has to say is in a slot of its own, which the leader reads when
 * the worker has ended.  So nothing here needs a lock.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "build/build.h"
#include "catalog/index.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/sharedfileset.h"
#include "tcop/tcopprot.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Keys of what is in shared memory. */
#define KEY_SHARED		UINT64CONST(0x4C534D0000000001)
#define KEY_SCAN		UINT64CONST(0x4C534D0000000002)
#define KEY_QUERY		UINT64CONST(0x4C534D0000000003)

/* What a worker has done. */
typedef struct WorkerResult
{
	double		heap_rows;
	double		rows;
	double		bytes;
	LsmLeafMode mode;
	bool		broken_chain;	/* see ii_BrokenHotChain */
	LsmSortedShare share;
	BufferUsage buffer_usage;
	WalUsage	wal_usage;
} WorkerResult;

typedef struct SharedBuild
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	Size		memory;			/* for each process */
	SharedFileSet files;
	WorkerResult results[FLEXIBLE_ARRAY_MEMBER];
} SharedBuild;

struct LsmParallelBuild
{
	ParallelContext *context;
	SharedBuild *shared;
	ParallelTableScanDesc scan;
	Snapshot	snapshot;
};

extern PGDLLEXPORT void lsm_build_worker_main(dsm_segment *segment, shm_toc *toc);

/* Give up, or end: the workers have ended, or there are none. */
static void
leave(LsmParallelBuild *p)
{
	if (IsMVCCSnapshot(p->snapshot))
		UnregisterSnapshot(p->snapshot);
	DestroyParallelContext(p->context);
	ExitParallelMode();
	pfree(p);
}

static void
fill_shared_memory(LsmParallelBuild *p, Relation heap, Relation index, IndexInfo *info,
				   Size scan_size, Size shared_size)
{
	ParallelContext *context = p->context;

	p->shared = shm_toc_allocate(context->toc, shared_size);
	memset(p->shared, 0, shared_size);
	p->shared->heap = RelationGetRelid(heap);
	p->shared->index = RelationGetRelid(index);
	p->shared->concurrent = info->ii_Concurrent;
	p->shared->memory = (Size) maintenance_work_mem * 1024 / (context->nworkers + 1);
	SharedFileSetInit(&p->shared->files, context->seg);
	shm_toc_insert(context->toc, KEY_SHARED, p->shared);
	p->scan = shm_toc_allocate(context->toc, scan_size);
	table_parallelscan_initialize(heap, p->scan, p->snapshot);
	shm_toc_insert(context->toc, KEY_SCAN, p->scan);
	if (debug_query_string != NULL)
	{
		char	   *text = shm_toc_allocate(context->toc, strlen(debug_query_string) + 1);

		strcpy(text, debug_query_string);
		shm_toc_insert(context->toc, KEY_QUERY, text);
	}
}

/*
 * Start workers, if the planner wants some and there are any.  NULL: none.  Until
 * lsm_parallel_build_end the process is in parallel mode.
 */
LsmParallelBuild *
lsm_parallel_build_begin(Relation heap, Relation index, IndexInfo *info)
{
	int			workers = lsm_build_workers(heap, index, info);
	LsmParallelBuild *p;
	Size		scan_size;
	Size		shared_size;

	/* Who looks for duplicates must come upon all entries, and know all that is dead. */
	if (workers <= 0 || info->ii_Unique)
		return NULL;
	p = palloc0(sizeof(LsmParallelBuild));
	EnterParallelMode();
	p->context = CreateParallelContext("pg_lsm", "lsm_build_worker_main", workers);
	/* CONCURRENTLY indexes what is visible now, else all that somebody may see. */
	p->snapshot = info->ii_Concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;

	scan_size = table_parallelscan_estimate(heap, p->snapshot);
	shared_size = offsetof(SharedBuild, results) + mul_size(sizeof(WorkerResult), workers);
	shm_toc_estimate_chunk(&p->context->estimator, scan_size);
	shm_toc_estimate_chunk(&p->context->estimator, shared_size);
	shm_toc_estimate_keys(&p->context->estimator, 2);
	if (debug_query_string != NULL)
	{
		shm_toc_estimate_chunk(&p->context->estimator, strlen(debug_query_string) + 1);
		shm_toc_estimate_keys(&p->context->estimator, 1);
	}
	InitializeParallelDSM(p->context);
	if (p->context->seg == NULL)
	{
		leave(p);
		return NULL;
	}
	fill_shared_memory(p, heap, index, info, scan_size, shared_size);
	LaunchParallelWorkers(p->context);
	if (p->context->nworkers_launched == 0)
	{
		WaitForParallelWorkersToFinish(p->context);
		leave(p);
		return NULL;
	}
	ereport(DEBUG1,
			(errmsg_internal("%d workers help to build index \"%s\"",
							 p->context->nworkers_launched, RelationGetRelationName(index))));
	return p;
}

/* How many share the memory. */
int
lsm_parallel_build_processes(const LsmParallelBuild *p)
{
	return p != NULL ? p->context->nworkers + 1 : 1;
}

/* Read a share of the table.  Returns the rows that there are. */
static double
scan_share(ParallelTableScanDesc shared_scan, LsmBuildState *build, Relation heap,
		   Relation index, IndexInfo *info, bool progress)
{
	TableScanDesc scan = table_beginscan_parallel(heap, shared_scan);

	return table_index_build_scan(heap, index, info, true, progress, lsm_build_add_row, build,
								  scan);
}

/*
 * Read and sort the table together.  Returns the number of its rows; all entries
 * are in `build` then.
 */
double
lsm_parallel_build_scan(LsmParallelBuild *p, LsmBuildState *build, Relation heap,
						Relation index, IndexInfo *info)
{
	double		heap_rows = scan_share(p->scan, build, heap, index, info, true);

	WaitForParallelWorkersToFinish(p->context);
	for (int i = 0; i < p->context->nworkers_launched; i++)
	{
		WorkerResult *result = &p->shared->results[i];

		heap_rows += result->heap_rows;
		build->rows += result->rows;
		build->bytes += result->bytes;
		if (result->rows > 0)
			lsm_mode_join(&build->mode, &result->mode);
		info->ii_BrokenHotChain |= result->broken_chain;
		lsm_sorter_import(build->sorter, &p->shared->files, i, &result->share);
		InstrAccumParallelQuery(&result->buffer_usage, &result->wal_usage);
	}
	return heap_rows;
}

/* The index is written: the files can go. */
void
lsm_parallel_build_end(LsmParallelBuild *p)
{
	leave(p);
}

/* A worker: reads and sorts a share. */
void
lsm_build_worker_main(dsm_segment *segment, shm_toc *toc)
{
	SharedBuild *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	WorkerResult *result = &shared->results[ParallelWorkerNumber];
	LOCKMODE	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	LsmBuildState build;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	SharedFileSetAttach(&shared->files, segment);

	/* The leader has these locks. */
	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	InstrStartParallelQuery();
	info = BuildIndexInfo(index);
	info->ii_Concurrent = shared->concurrent;
	lsm_build_begin(&build, lsm_index_open(index), shared->memory);
	lsm_sorter_share(build.sorter, &shared->files, ParallelWorkerNumber);
	result->heap_rows = scan_share(shm_toc_lookup(toc, KEY_SCAN, false), &build, heap, index,
								   info, false);
	result->rows = build.rows;
	result->bytes = build.bytes;
	result->mode = build.mode;
	result->broken_chain = info->ii_BrokenHotChain;
	lsm_sorter_export(build.sorter, &result->share);
	lsm_build_end(&build);
	InstrEndParallelQuery(&result->buffer_usage, &result->wal_usage);
	index_close(index, index_lock);
	table_close(heap, heap_lock);
}
