/*
 * build_parallel.c
 *	  CREATE INDEX with parallel workers.
 *
 * A parallel scan of the table assigns blocks to all processes.  Each process sorts its own
 * entries.  Workers leave their entries in temporary files (sort/sorter.c).  When the workers have
 * ended, the leader merges these files with its own entries, checks for duplicates, and writes the
 * index.
 *
 * Each worker fills a WorkerResult, which the leader reads after the worker has ended.  So
 * nothing here needs a lock.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "build/build_parallel.h"
#include "catalog/index.h"
#include "executor/instrument.h"
#include "format/leaf_mode.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/sharedfileset.h"
#include "tcop/tcopprot.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Keys of the table of contents in shared memory. */
#define KEY_SHARED		UINT64CONST(0x4C534D0000000001)
#define KEY_SCAN		UINT64CONST(0x4C534D0000000002)
#define KEY_QUERY		UINT64CONST(0x4C534D0000000003)

/* The results of one worker.  Only that worker writes them. */
typedef struct WorkerResult
{
	double		heap_rows;
	double		rows;
	double		bytes;
	LsmLeafMode mode;
	bool		broken_chain;	/* see ii_BrokenHotChain */
	LsmSpoolShare share;
	BufferUsage buffer_usage;
	WalUsage	wal_usage;
} WorkerResult;

typedef struct SharedBuild
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	bool		unique;			/* the leader's ii_Unique, which CLUSTER clears to skip the check */
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

/* Clean up after the workers have ended, or if none were started. */
void
lsm_parallel_build_end(LsmParallelBuild *p)
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
	p->shared->unique = info->ii_Unique;
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
 * Start workers.  Returns NULL if the planner wants none or none could be started.  Otherwise the
 * process is in parallel mode until lsm_parallel_build_end.
 */
LsmParallelBuild *
lsm_parallel_build_begin(Relation heap, Relation index, IndexInfo *info)
{
	int			workers = lsm_build_workers(heap, index, info);
	LsmParallelBuild *p;
	Size		scan_size;
	Size		shared_size;

	if (workers <= 0)
		return NULL;
	p = palloc0(sizeof(LsmParallelBuild));
	EnterParallelMode();
	p->context = CreateParallelContext("pg_lsm", "lsm_build_worker_main", workers);
	/*
	 * CREATE INDEX CONCURRENTLY indexes the rows that are visible now.  Any other build must index
	 * every row that some snapshot may see.
	 */
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
		lsm_parallel_build_end(p);
		return NULL;
	}
	fill_shared_memory(p, heap, index, info, scan_size, shared_size);
	LaunchParallelWorkers(p->context);
	if (p->context->nworkers_launched == 0)
	{
		WaitForParallelWorkersToFinish(p->context);
		lsm_parallel_build_end(p);
		return NULL;
	}
	ereport(DEBUG1,
			(errmsg_internal("%d workers help to build index \"%s\"",
							 p->context->nworkers_launched, RelationGetRelationName(index))));
	return p;
}

/* Returns how many processes share maintenance_work_mem. */
int
lsm_parallel_build_processes(const LsmParallelBuild *p)
{
	return p != NULL ? p->context->nworkers + 1 : 1;
}

/* Read a share of the table into the spool.  Returns the number of rows read. */
static double
scan_share(ParallelTableScanDesc shared_scan, LsmBuildSpool *spool, Relation heap,
		   Relation index, IndexInfo *info, bool progress)
{
	TableScanDesc scan = lsm_beginscan_parallel(heap, shared_scan);

	return table_index_build_scan(heap, index, info, true, progress, lsm_spool_add_row, spool,
								  scan);
}

/*
 * Read the table together with the workers.  Returns the number of its rows.  Afterwards, the spool
 * has the entries of all processes.
 */
double
lsm_parallel_build_scan(LsmParallelBuild *p, LsmBuildSpool *spool, Relation heap,
						Relation index, IndexInfo *info)
{
	double		heap_rows = scan_share(p->scan, spool, heap, index, info, true);

	WaitForParallelWorkersToFinish(p->context);
	for (int i = 0; i < p->context->nworkers_launched; i++)
	{
		WorkerResult *result = &p->shared->results[i];

		heap_rows += result->heap_rows;
		spool->rows += result->rows;
		spool->bytes += result->bytes;
		if (result->rows > 0)
			lsm_mode_join(&spool->mode, &result->mode);
		info->ii_BrokenHotChain |= result->broken_chain;
		lsm_spool_import(spool, &p->shared->files, i, &result->share);
		InstrAccumParallelQuery(&result->buffer_usage, &result->wal_usage);
	}
	return heap_rows;
}

/* The main function of a worker: reads and sorts a share of the table. */
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
	LsmBuildSpool spool;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	SharedFileSetAttach(&shared->files, segment);

	/* The leader holds the same locks. */
	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	InstrStartParallelQuery();
	info = BuildIndexInfo(index);
	info->ii_Concurrent = shared->concurrent;
	lsm_spool_begin(&spool, lsm_index_open(index), shared->unique, shared->memory);
	lsm_spool_share(&spool, &shared->files, ParallelWorkerNumber);
	result->heap_rows = scan_share(shm_toc_lookup(toc, KEY_SCAN, false), &spool, heap, index,
								   info, false);
	result->rows = spool.rows;
	result->bytes = spool.bytes;
	result->mode = spool.mode;
	result->broken_chain = info->ii_BrokenHotChain;
	lsm_spool_export(&spool, &result->share);
	lsm_spool_end(&spool);
	InstrEndParallelQuery(&result->buffer_usage, &result->wal_usage);
	index_close(index, index_lock);
	table_close(heap, heap_lock);
}
