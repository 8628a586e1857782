/*
 * compat.h
 *	  Differences between the supported server versions, 15 to 18.
 *
 * This is the only file that tests PG_VERSION_NUM (checked in CI).  Everything
 * else is written against the names defined here.
 */
#ifndef LSM_COMPAT_H
#define LSM_COMPAT_H

#include "postgres.h"

#include "access/genam.h"
#include "access/heapam_xlog.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/rmgr.h"
#include "access/xlog_internal.h"
#include "catalog/pg_class.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "storage/lmgr.h"
#if PG_VERSION_NUM >= 180000
#include "storage/aio.h"
#endif
#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif
#include "storage/standby.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error "pg_lsm needs PostgreSQL 15 or later"
#endif

/* The physical identity of a relation, as WAL records carry it. */
#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
typedef RelFileLocator LsmLocator;
#define lsm_relation_locator(rel) ((rel)->rd_locator)
#define lsm_buffer_tags_equal(a, b) BufferTagsEqual(a, b)
#define lsm_buffer_tag_init(tag, locator, fork, block) InitBufferTag(tag, &(locator), fork, block)
#else
#include "storage/relfilenode.h"
typedef RelFileNode LsmLocator;
#define lsm_relation_locator(rel) ((rel)->rd_node)
#define lsm_buffer_tags_equal(a, b) BUFFERTAGS_EQUAL(*(a), *(b))
#define lsm_buffer_tag_init(tag, locator, fork, block) INIT_BUFFERTAG(*(tag), locator, fork, block)
#endif

/* Whether VACUUM may cut files of the table, by its storage parameter (from 18 on also by the setting) vacuum_truncate. */
static inline bool
lsm_vacuum_truncates(Relation table)
{
	StdRdOptions *options = (StdRdOptions *) table->rd_options;

#if PG_VERSION_NUM >= 180000
	if (options == NULL || !options->vacuum_truncate_set)
		return vacuum_truncate;
#endif
	return options == NULL || options->vacuum_truncate;
}

/* Redo: cancel queries whose snapshots may need what the record removes. */
static inline void
lsm_resolve_conflict(XLogReaderState *record, TransactionId horizon, bool is_catalog)
{
	LsmLocator	locator;

	XLogRecGetBlockTag(record, 0, &locator, NULL, NULL);
#if PG_VERSION_NUM >= 160000
	ResolveRecoveryConflictWithSnapshot(horizon, is_catalog, locator);
#else
	ResolveRecoveryConflictWithSnapshot(horizon, locator);
#endif
}

/* Let the horizon be such that no older snapshot needs this version of a row. */
static inline void
lsm_advance_horizon(HeapTupleHeader tuple, TransactionId *horizon)
{
#if PG_VERSION_NUM >= 160000
	HeapTupleHeaderAdvanceConflictHorizon(tuple, horizon);
#else
	HeapTupleHeaderAdvanceLatestRemovedXid(tuple, horizon);
#endif
}

/*
 * Has the page in this buffer, which is pinned, been changed since it was read or
 * written?  Without a lock the answer may be old.
 */
static inline bool
lsm_buffer_is_dirty(Buffer buffer)
{
	BufferDesc *desc = BufferIsLocal(buffer) ? GetLocalBufferDescriptor(-buffer - 1) :
		GetBufferDescriptor(buffer - 1);

	return (pg_atomic_read_u32(&desc->state) & BM_DIRTY) != 0;
}

/* Does this collation sort like strcmp? */
static inline bool
lsm_collation_is_c(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

static inline void
lsm_vacuum_delay_point(void)
{
#if PG_VERSION_NUM >= 180000
	vacuum_delay_point(false);
#else
	vacuum_delay_point();
#endif
}

/*
 * Extend the relation with zeroed pages until it has at least nblocks, page by
 * page or nearly so: others can extend it at the same time.
 */
static inline void
lsm_relation_extend_to(Relation rel, BlockNumber nblocks)
{
#if PG_VERSION_NUM >= 160000
	if (RelationGetNumberOfBlocks(rel) < nblocks)
		ReleaseBuffer(ExtendBufferedRelTo(BMR_REL(rel), MAIN_FORKNUM, NULL, 0, nblocks,
										  RBM_NORMAL));
#else
	while (RelationGetNumberOfBlocks(rel) < nblocks)
	{
		Buffer		buffer = InvalidBuffer;

		LockRelationForExtension(rel, ExclusiveLock);
		if (RelationGetNumberOfBlocks(rel) < nblocks)
			buffer = ReadBufferExtended(rel, MAIN_FORKNUM, P_NEW, RBM_NORMAL, NULL);
		UnlockRelationForExtension(rel, ExclusiveLock);
		if (BufferIsValid(buffer))
			ReleaseBuffer(buffer);
	}
#endif
}

/* Arguments of ExecutorRun, to be declared and to be passed on. */
#if PG_VERSION_NUM >= 180000
#define LSM_EXECUTOR_RUN_ARGS	QueryDesc *query, ScanDirection direction, uint64 count
#define LSM_EXECUTOR_RUN_PASS	query, direction, count
#else
#define LSM_EXECUTOR_RUN_ARGS \
	QueryDesc *query, ScanDirection direction, uint64 count, bool once
#define LSM_EXECUTOR_RUN_PASS	query, direction, count, once
#endif

/*
 * Processes that are to help with CREATE INDEX.  From 17 on core asks the planner,
 * if the method can be built in parallel; before, only for btree.
 */
static inline int
lsm_build_workers(Relation heap, Relation index, IndexInfo *info)
{
#if PG_VERSION_NUM >= 170000
	(void) heap;
	(void) index;
	return info->ii_ParallelWorkers;
#else
	/* TRUNCATE comes here, too, and wants nobody's help. */
	if (!IsNormalProcessingMode() || RelationGetNumberOfBlocks(heap) == 0)
		return 0;
	info->ii_ParallelWorkers = plan_create_index_workers(RelationGetRelid(heap),
														 RelationGetRelid(index));
	return info->ii_ParallelWorkers;
#endif
}

/* Arguments of amestimateparallelscan, and where what it asked for is. */
#if PG_VERSION_NUM >= 180000
#define LSM_ESTIMATE_PARALLEL_ARGS	Relation index, int nkeys, int norderbys
#elif PG_VERSION_NUM >= 170000
#define LSM_ESTIMATE_PARALLEL_ARGS	int nkeys, int norderbys
#else
#define LSM_ESTIMATE_PARALLEL_ARGS	void
#endif

static inline void *
lsm_parallel_area(IndexScanDesc scan)
{
#if PG_VERSION_NUM >= 180000
	return OffsetToPointer(scan->parallel_scan, scan->parallel_scan->ps_offset_am);
#else
	return OffsetToPointer(scan->parallel_scan, scan->parallel_scan->ps_offset);
#endif
}

/* "Index Searches" of EXPLAIN ANALYZE. */
static inline void
lsm_count_search(IndexScanDesc scan)
{
#if PG_VERSION_NUM >= 180000
	if (scan->instrument != NULL)
		scan->instrument->nsearches++;
#else
	(void) scan;
#endif
}

/* Begin the scan of an index(-only) scan node, whose keys are not given yet. */
static inline IndexScanDesc
lsm_begin_index_scan(ScanState *node, Relation index, int key_count)
{
	return index_beginscan(node->ss_currentRelation, index, node->ps.state->es_snapshot,
#if PG_VERSION_NUM >= 180000
						   IsA(node, IndexOnlyScanState) ?
						   &((IndexOnlyScanState *) node)->ioss_Instrument :
						   &((IndexScanState *) node)->iss_Instrument,
#endif
						   key_count, 0);
}

/* A path is as much forbidden by enable_... settings as this one. */
static inline void
lsm_copy_disabled(Path *path, const Path *from)
{
#if PG_VERSION_NUM >= 180000
	path->disabled_nodes = from->disabled_nodes;
#else
	(void) path;				/* the costs say it */
	(void) from;
#endif
}

/* In a list of paths, would this one stand before the other? */
static inline bool
lsm_path_is_cheaper(const Path *path, const Path *other)
{
#if PG_VERSION_NUM >= 180000
	if (path->disabled_nodes != other->disabled_nodes)
		return path->disabled_nodes < other->disabled_nodes;
#endif
	return path->total_cost < other->total_cost;
}

/* Does PrefetchBuffer do anything? */
static inline bool
lsm_can_prefetch(void)
{
#ifndef USE_PREFETCH
	return false;
#elif PG_VERSION_NUM >= 160000
	return (io_direct_flags & IO_DIRECT_DATA) == 0;
#else
	return true;
#endif
}

/*
 * Do read streams keep several reads in flight without PrefetchBuffer, because other
 * processes read, or the kernel?  (With io_method sync, and those of 17, do not.)
 */
static inline bool
lsm_can_stream(void)
{
#if PG_VERSION_NUM >= 180000
	return io_method != IOMETHOD_SYNC;
#else
	return false;
#endif
}

/* Before 17 there are no read streams.  Who asks lsm_can_stream needs none. */
#if PG_VERSION_NUM < 170000
#define READ_STREAM_DEFAULT 0x00

typedef struct ReadStream ReadStream;
typedef BlockNumber (*ReadStreamBlockNumberCB) (ReadStream *, void *, void *);

static inline ReadStream *
read_stream_begin_relation(int flags, BufferAccessStrategy strategy, Relation rel, ForkNumber fork,
						   ReadStreamBlockNumberCB callback, void *argument, size_t size)
{
	elog(ERROR, "there are no read streams before PostgreSQL 17");
	return NULL;
}

static inline Buffer
read_stream_next_buffer(ReadStream *stream, void **data)
{
	return InvalidBuffer;
}

static inline void
read_stream_reset(ReadStream *stream)
{
}

static inline void
read_stream_end(ReadStream *stream)
{
}
#endif

/* Has nobody set effective_io_concurrency? */
static inline bool
lsm_io_concurrency_is_default(void)
{
	static struct config_generic *setting = NULL;

	if (setting == NULL)
	{
#if PG_VERSION_NUM >= 160000
		setting = find_option("effective_io_concurrency", false, true, ERROR);
#else
		struct config_generic **settings = get_guc_variables();

		for (int i = 0; i < GetNumConfigOptions() && setting == NULL; i++)
		{
			if (strcmp(settings[i]->name, "effective_io_concurrency") == 0)
				setting = settings[i];
		}
#endif
	}
	return setting == NULL || setting->source == PGC_S_DEFAULT;
}

/* Try to lock a tuple tag; 18 can also log a failure, which is none here. */
static inline bool
lsm_conditional_lock_tuple(Relation rel, ItemPointer tid, LOCKMODE mode)
{
#if PG_VERSION_NUM >= 180000
	return ConditionalLockTuple(rel, tid, mode, false);
#else
	return ConditionalLockTuple(rel, tid, mode);
#endif
}

/*
 * Must a scan under this snapshot fail because of old_snapshot_threshold?  The
 * feature is gone since 17.  NULL: not a scan.
 */
static inline void
lsm_test_old_snapshot(Snapshot snapshot, Relation rel, Page page)
{
#if PG_VERSION_NUM < 170000
	TestForOldSnapshot(snapshot, rel, page);
#else
	(void) snapshot;
	(void) rel;
	(void) page;
#endif
}

/* Does old_snapshot_threshold let VACUUM pass over rows that a snapshot still sees? */
static inline bool
lsm_old_snapshots_fail(void)
{
#if PG_VERSION_NUM < 170000
	return old_snapshot_threshold >= 0;
#else
	return false;
#endif
}

/* The same for a page that had this LSN when it was read. */
static inline void
lsm_test_old_snapshot_at(Snapshot snapshot, Relation rel, XLogRecPtr lsn)
{
#if PG_VERSION_NUM < 170000
	if (old_snapshot_threshold >= 0 && snapshot != NULL && IsMVCCSnapshot(snapshot) &&
		!XLogRecPtrIsInvalid(snapshot->lsn) && lsn > snapshot->lsn)
		TestForOldSnapshot_impl(snapshot, rel);
#else
	(void) snapshot;
	(void) rel;
	(void) lsn;
#endif
}

/* A trusted search_path for code that runs as somebody else. */
static inline void
lsm_restrict_search_path(void)
{
#if PG_VERSION_NUM >= 170000
	RestrictSearchPath();
#else
	set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
					  PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
#endif
}

#if PG_VERSION_NUM >= 170000
#include "storage/procnumber.h"
#else
#include "storage/backendid.h"
#endif

/* A small number that no other backend has now. */
static inline uint32
lsm_backend_number(void)
{
#if PG_VERSION_NUM >= 170000
	return (uint32) MyProcNumber;
#else
	return (uint32) MyBackendId;
#endif
}

/* Fields of IndexAmRoutine and callback signatures that came later. */
#if PG_VERSION_NUM >= 180000
#define LSM_HAS_COMPARE_TYPE 1
#define LSM_HAS_EXPLAIN_OPTIONS 1	/* of extensions */
#define LSM_BTREE_COSTS_SKIP_SCANS 1	/* btcostestimate does */
#define LSM_EXECUTOR_TAKES_ROWS 1	/* row comparisons as keys of any ordered index */
#define LSM_SPECULATION_TAKES_ALL 1 /* ON CONFLICT works with unique indexes of any method */
#define LSM_AM_SUPPORT_PROCS 6
#include "access/cmptype.h"
#else
#define LSM_AM_SUPPORT_PROCS 5
#endif
#if PG_VERSION_NUM >= 170000
#define LSM_HAS_BUILD_PARALLEL_FLAG 1
#endif

/* Was its file made by the current transaction? */
static inline bool
lsm_relation_is_new(Relation rel)
{
#if PG_VERSION_NUM >= 160000
	return rel->rd_createSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
#else
	return rel->rd_createSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilenodeSubid != InvalidSubTransactionId;
#endif
}

/* A wait event of our own; before 17 all extensions share one. */
static inline uint32
lsm_wait_event(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	(void) name;
	return PG_WAIT_EXTENSION;
#endif
}

/* How many elements will an array have, as the planner sees it? */
static inline double
lsm_array_length(PlannerInfo *root, Node *array)
{
#if PG_VERSION_NUM >= 170000
	return estimate_array_length(root, array);
#else
	(void) root;
	return estimate_array_length(array);
#endif
}

/* Does the role, or one that it is a member of, own this relation? */
static inline bool
lsm_owns_relation(Oid relation, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(RelationRelationId, relation, role);
#else
	return pg_class_ownercheck(relation, role);
#endif
}

#endif							/* LSM_COMPAT_H */
