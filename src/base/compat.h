/*
 * compat.h
 *	  Differences between the supported server versions, 15 to 19.
 *
 * This is the only file that tests PG_VERSION_NUM (checked in CI).  All other files use the names
 * defined here.
 *
 * The parts are ordered by the version whose end of support simplifies them.  "Drop with 15" means:
 * once 15 is no longer supported, keep only the branch for later versions, or remove the name.
 */
#ifndef LSM_COMPAT_H
#define LSM_COMPAT_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/heapam.h"
#include "access/heapam_xlog.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/rmgr.h"
#include "access/tableam.h"
#include "access/xlog_internal.h"
#include "catalog/pg_class.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "storage/aio.h"
#endif
#include "commands/vacuum.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "postmaster/bgworker.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "storage/lmgr.h"
#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif
#include "storage/standby.h"
#include "utils/acl.h"
#include "utils/date.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error "pg_lsm needs PostgreSQL 15 or later"
#endif

/* --- drop with 15 ------------------------------------------------------------- */

/* Buffer tags, and the physical identity of a relation as in WAL records. */
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

/* For redo: cancel queries whose snapshots may need what the record removes. */
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

/* Advance the horizon so that no older snapshot needs this version of a row. */
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
 * Extend the relation with zeroed pages until it has at least nblocks.  Other processes may extend
 * the relation at the same time.  If `buffered`, the new pages enter shared buffers, so that using
 * them soon, under a lock, needs no I/O.  Otherwise only the file grows, and the new pages evict
 * nothing from shared buffers.
 */
static inline void
lsm_relation_extend_to(Relation rel, BlockNumber nblocks, bool buffered)
{
	BlockNumber at;

#if PG_VERSION_NUM >= 160000
	if (buffered && RelationGetNumberOfBlocks(rel) < nblocks)
		ReleaseBuffer(ExtendBufferedRelTo(BMR_REL(rel), MAIN_FORKNUM, NULL, 0, nblocks,
										  RBM_NORMAL));
#endif
	while (RelationGetNumberOfBlocks(rel) < nblocks)
	{
		LockRelationForExtension(rel, ExclusiveLock);
		at = RelationGetNumberOfBlocks(rel);
		if (at < nblocks)
		{
#if PG_VERSION_NUM >= 160000
			smgrzeroextend(RelationGetSmgr(rel), MAIN_FORKNUM, at, Min(nblocks - at, 64), false);
#else
			PGAlignedBlock zero = {0};

			if (buffered)
				ReleaseBuffer(ReadBufferExtended(rel, MAIN_FORKNUM, P_NEW, RBM_NORMAL, NULL));
			else
				smgrextend(RelationGetSmgr(rel), MAIN_FORKNUM, at, zero.data, false);
#endif
		}
		UnlockRelationForExtension(rel, ExclusiveLock);
	}
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

/* Does effective_io_concurrency have its default value? */
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

/* Was the relation's file created by the current transaction? */
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

/* Does the role, or a role that it is a member of, own this relation? */
static inline bool
lsm_owns_relation(Oid relation, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(RelationRelationId, relation, role);
#else
	return pg_class_ownercheck(relation, role);
#endif
}

/* --- drop with 16 ------------------------------------------------------------- */

/* A collation's ICU locale.  Since 17, the column also has the locale of the builtin provider. */
#if PG_VERSION_NUM < 170000
#define Anum_pg_collation_colllocale Anum_pg_collation_colliculocale
#endif

/* ALTER COLUMN ... SET EXPRESSION rewrites a column, as ALTER COLUMN ... TYPE does. */
#if PG_VERSION_NUM >= 170000
#define LSM_AT_SET_EXPRESSION AT_SetExpression
#else
#define LSM_AT_SET_EXPRESSION AT_AlterColumnType
#endif

/*
 * Returns how many workers CREATE INDEX should request.  Since 17, core asks the planner for each
 * access method that supports parallel builds.  Before 17, core asks only for btree.
 */
static inline int
lsm_build_workers(Relation heap, Relation index, IndexInfo *info)
{
#if PG_VERSION_NUM >= 170000
	(void) heap;
	(void) index;
	return info->ii_ParallelWorkers;
#else
	/* TRUNCATE also builds the index, but needs no workers. */
	if (!IsNormalProcessingMode() || RelationGetNumberOfBlocks(heap) == 0)
		return 0;
	info->ii_ParallelWorkers = plan_create_index_workers(RelationGetRelid(heap),
														 RelationGetRelid(index));
	return info->ii_ParallelWorkers;
#endif
}

/* IndexAmRoutine has amcanbuildparallel. */
#if PG_VERSION_NUM >= 170000
#define LSM_HAS_BUILD_PARALLEL_FLAG 1
#endif

/* Before 17, there are no read streams.  Callers check for that, so these stubs never run. */
#if PG_VERSION_NUM >= 170000
#define LSM_HAS_STREAMS true
#else
#define LSM_HAS_STREAMS false
#define READ_STREAM_DEFAULT 0x00
#define READ_STREAM_MAINTENANCE 0x00
#define READ_STREAM_FULL 0x00

typedef struct ReadStream ReadStream;
typedef BlockNumber (*ReadStreamBlockNumberCB) (ReadStream *, void *, void *);

static inline ReadStream *
read_stream_begin_relation(int flags, BufferAccessStrategy strategy, Relation rel, ForkNumber fork,
						   ReadStreamBlockNumberCB callback, void *argument, size_t size)
{
	elog(ERROR, "there are no read streams before PostgreSQL 17");
	return NULL;
}

#define read_stream_next_buffer(stream, data) InvalidBuffer
#define read_stream_reset(stream) ((void) (stream))
#define read_stream_end(stream) ((void) (stream))
#endif

/*
 * Raise an error if old_snapshot_threshold forbids a scan with this snapshot to read the page.
 * `snapshot` is NULL if the caller is not a scan.  17 removed the feature.
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

/* Like lsm_test_old_snapshot, for a page that had this LSN when it was read. */
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

/* May old_snapshot_threshold let VACUUM remove rows that a snapshot still sees? */
static inline bool
lsm_old_snapshots_fail(void)
{
#if PG_VERSION_NUM < 170000
	return old_snapshot_threshold >= 0;
#else
	return false;
#endif
}

/* Set a safe search_path for code that runs as another user. */
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

/* Returns a small number that is unique among the current backends. */
#if PG_VERSION_NUM >= 170000
#include "storage/procnumber.h"
#else
#include "storage/backendid.h"
#endif

static inline uint32
lsm_backend_number(void)
{
#if PG_VERSION_NUM >= 170000
	return (uint32) MyProcNumber;
#else
	return (uint32) MyBackendId;
#endif
}

/* Returns a wait event of our own.  Before 17, all extensions share one. */
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

/* Returns the planner's estimate of an array's length. */
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

/* --- drop with 17 ------------------------------------------------------------- */

/* Features that core has since 18, and the number of support functions of an operator class. */
#if PG_VERSION_NUM >= 180000
#define LSM_HAS_COMPARE_TYPE 1
#define LSM_HAS_NOT_NULL_CONSTRAINTS 1	/* NOT NULL is a constraint of its own */
#define LSM_HAS_EXPLAIN_OPTIONS 1	/* extensions can add options to EXPLAIN */
#define LSM_BTREE_COSTS_SKIP_SCANS 1	/* btcostestimate knows skip scans */
#define LSM_EXECUTOR_TAKES_ROWS 1	/* row comparisons can be keys of any ordered index */
#define LSM_HAS_STATS_KINDS 1	/* cumulative statistics of extensions */
#define LSM_UNIQUE_TAKES_ALL 1	/* nothing in core demands that a unique index is a B-tree */
#define LSM_AM_SUPPORT_PROCS 6
#define LSM_WITHOUT_OVERLAPS(constraint) ((constraint)->without_overlaps)
#include "access/cmptype.h"
#else
#define LSM_AM_SUPPORT_PROCS 5
#define LSM_WITHOUT_OVERLAPS(constraint) false
#endif

/*
 * The kind of our cumulative statistics, 24, which is for extensions without a reserved number (see
 * RELEASING.md), and how to fetch an entry.  Drop the macro's last branch with 18.
 */
#if PG_VERSION_NUM >= 180000
#define LSM_STATS_KIND		PGSTAT_KIND_EXPERIMENTAL
#if PG_VERSION_NUM >= 190000
#define lsm_fetch_stats(kind, database, object) pgstat_fetch_entry(kind, database, object, NULL)
#else
#define lsm_fetch_stats(kind, database, object) pgstat_fetch_entry(kind, database, object)
#endif
#endif

/* The parameters of ExecutorRun, and the arguments to pass to the next hook. */
#if PG_VERSION_NUM >= 180000
#define LSM_EXECUTOR_RUN_ARGS	QueryDesc *query, ScanDirection direction, uint64 count
#define LSM_EXECUTOR_RUN_PASS	query, direction, count
#else
#define LSM_EXECUTOR_RUN_ARGS \
	QueryDesc *query, ScanDirection direction, uint64 count, bool once
#define LSM_EXECUTOR_RUN_PASS	query, direction, count, once
#endif

/* The parameters of amestimateparallelscan.  Drop the last branch with 16. */
#if PG_VERSION_NUM >= 180000
#define LSM_ESTIMATE_PARALLEL_ARGS	Relation index, int nkeys, int norderbys
#elif PG_VERSION_NUM >= 170000
#define LSM_ESTIMATE_PARALLEL_ARGS	int nkeys, int norderbys
#else
#define LSM_ESTIMATE_PARALLEL_ARGS	void
#endif

/* Returns the access method's area in the shared memory of a parallel scan. */
static inline void *
lsm_parallel_area(IndexScanDesc scan)
{
#if PG_VERSION_NUM >= 180000
	return OffsetToPointer(scan->parallel_scan, scan->parallel_scan->ps_offset_am);
#else
	return OffsetToPointer(scan->parallel_scan, scan->parallel_scan->ps_offset);
#endif
}

/* Count a search for "Index Searches" of EXPLAIN ANALYZE. */
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

/* Begin the scan of an index scan or index-only scan node.  The caller sets the keys later. */
static inline IndexScanDesc
lsm_begin_index_scan(ScanState *node, Relation index, int key_count)
{
#if PG_VERSION_NUM >= 190000
	return index_beginscan(node->ss_currentRelation, index, node->ps.state->es_snapshot,
						   IsA(node, IndexOnlyScanState) ?
						   ((IndexOnlyScanState *) node)->ioss_Instrument :
						   ((IndexScanState *) node)->iss_Instrument,
						   key_count, 0,
						   ScanRelIsReadOnly(node) ? SO_HINT_REL_READ_ONLY : SO_NONE);
#elif PG_VERSION_NUM >= 180000
	return index_beginscan(node->ss_currentRelation, index, node->ps.state->es_snapshot,
						   IsA(node, IndexOnlyScanState) ?
						   &((IndexOnlyScanState *) node)->ioss_Instrument :
						   &((IndexScanState *) node)->iss_Instrument,
						   key_count, 0);
#else
	return index_beginscan(node->ss_currentRelation, index, node->ps.state->es_snapshot, key_count,
						   0);
#endif
}

/* Mark a path as disabled if `from` is.  Before 18, a disabled path has higher costs instead. */
static inline void
lsm_copy_disabled(Path *path, const Path *from)
{
#if PG_VERSION_NUM >= 180000
	path->disabled_nodes = from->disabled_nodes;
#else
	(void) path;				/* its costs say so */
	(void) from;
#endif
}

/* Would the planner sort this path before the other path? */
static inline bool
lsm_path_is_cheaper(const Path *path, const Path *other)
{
#if PG_VERSION_NUM >= 180000
	if (path->disabled_nodes != other->disabled_nodes)
		return path->disabled_nodes < other->disabled_nodes;
#endif
	return path->total_cost < other->total_cost;
}

/*
 * Do read streams keep several reads in flight without PrefetchBuffer?  Since 18, they do unless
 * io_method is sync.
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

/* Try to lock a tuple tag.  18 can log a failure, but for us a failure is normal. */
static inline bool
lsm_conditional_lock_tuple(Relation rel, ItemPointer tid, LOCKMODE mode)
{
#if PG_VERSION_NUM >= 180000
	return ConditionalLockTuple(rel, tid, mode, false);
#else
	return ConditionalLockTuple(rel, tid, mode);
#endif
}

/* Does this collation sort as strcmp does? */
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
 * May VACUUM truncate the table's files?  The storage parameter vacuum_truncate decides.  If the
 * parameter is not set, the setting of the same name decides.  Before 18, there is no such setting.
 */
static inline bool
lsm_vacuum_truncates(Relation table)
{
	StdRdOptions *options = (StdRdOptions *) table->rd_options;

#if PG_VERSION_NUM >= 190000
	if (options == NULL || options->vacuum_truncate == PG_TERNARY_UNSET)
		return vacuum_truncate;
	return options->vacuum_truncate == PG_TERNARY_TRUE;
#elif PG_VERSION_NUM >= 180000
	if (options == NULL || !options->vacuum_truncate_set)
		return vacuum_truncate;
	return options->vacuum_truncate;
#else
	return options == NULL || options->vacuum_truncate;
#endif
}

/* --- drop with 18 ------------------------------------------------------------- */

/* Returns the routine for the handler to return.  Before 19, returns a copy, which core frees. */
static inline const IndexAmRoutine *
lsm_give_routine(const IndexAmRoutine *routine)
{
#if PG_VERSION_NUM >= 190000
	return routine;
#else
	return memcpy(palloc(sizeof(IndexAmRoutine)), routine, sizeof(IndexAmRoutine));
#endif
}

/* The hook that core calls after reading a table's indexes; the hook's parameters and arguments. */
#if PG_VERSION_NUM >= 190000
#include "optimizer/pathnode.h"
typedef build_simple_rel_hook_type LsmRelationHook;
#define lsm_relation_hook		build_simple_rel_hook
#define LSM_RELATION_HOOK_ARGS	PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *entry
#define LSM_RELATION_HOOK_PASS	root, rel, entry
#else
#include "optimizer/plancat.h"
typedef get_relation_info_hook_type LsmRelationHook;
#define lsm_relation_hook		get_relation_info_hook
#define LSM_RELATION_HOOK_ARGS	PlannerInfo *root, Oid relation, bool inherits, RelOptInfo *rel
#define LSM_RELATION_HOOK_PASS	root, relation, inherits, rel
#endif

/*
 * Register a boolean option of EXPLAIN.  Since 19, auto_explain.log_extension_options can also name
 * the option.
 */
#ifdef LSM_HAS_EXPLAIN_OPTIONS
static inline void
lsm_register_explain_option(const char *name, ExplainOptionHandler handler)
{
#if PG_VERSION_NUM >= 190000
	RegisterExtensionExplainOption(name, handler, GUCCheckBooleanExplainOption);
#else
	RegisterExtensionExplainOption(name, handler);
#endif
}
#endif

/* Lets commands that drop, move, rename or copy a database end its background workers. */
#if PG_VERSION_NUM >= 190000
#define LSM_BGWORKER_INTERRUPTIBLE BGWORKER_INTERRUPTIBLE
#else
#define LSM_BGWORKER_INTERRUPTIBLE 0
#define TupleDescFinalize(desc) ((void) (desc))
#endif

static inline TableScanDesc
lsm_beginscan_parallel(Relation heap, ParallelTableScanDesc shared_scan)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan_parallel(heap, shared_scan, SO_NONE);
#else
	return table_beginscan_parallel(heap, shared_scan);
#endif
}

/*
 * Make this page of the heap the page that an index scan's fetches hold.  Takes over the pin.
 * REQUIRES: the fetches hold no page (lsm_fetch_drop_page), or this one.
 */
static inline void
lsm_fetch_hold_page(IndexFetchHeapData *fetch, Buffer buffer, BlockNumber block)
{
	fetch->xs_cbuf = buffer;
#if PG_VERSION_NUM >= 190000
	fetch->xs_blk = block;
#endif
}

/* Release the page that an index scan's fetches hold, if any. */
static inline void
lsm_fetch_drop_page(IndexFetchHeapData *fetch)
{
	Buffer		buffer = fetch->xs_cbuf;

	lsm_fetch_hold_page(fetch, InvalidBuffer, InvalidBlockNumber);
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
}

/* Prune the page that an index scan's fetches hold, as core does after it reads a page. */
static inline void
lsm_fetch_prune_page(IndexFetchHeapData *fetch)
{
#if PG_VERSION_NUM >= 190000
	heap_page_prune_opt(fetch->xs_base.rel, fetch->xs_cbuf, &fetch->xs_vmbuffer,
						(fetch->xs_base.flags & SO_HINT_REL_READ_ONLY) != 0);
#else
	heap_page_prune_opt(fetch->xs_base.rel, fetch->xs_cbuf);
#endif
}

/*
 * Define a function that converts as core does when it compares values of the two types.  The
 * function returns false if the result is out of range.
 */
#if PG_VERSION_NUM >= 190000
#include "nodes/miscnodes.h"
#define LSM_CONVERSION(name, core_name, from_type, to_type) \
static inline bool \
name(from_type value, to_type *result) \
{ \
	ErrorSaveContext error = {T_ErrorSaveContext}; \
\
	*result = core_name##_safe(value, (Node *) &error); \
	return !error.error_occurred; \
}
#else
#define LSM_CONVERSION(name, core_name, from_type, to_type) \
static inline bool \
name(from_type value, to_type *result) \
{ \
	int			overflow; \
\
	*result = core_name##_opt_overflow(value, &overflow); \
	return overflow == 0; \
}
#endif

LSM_CONVERSION(lsm_date_to_timestamp, date2timestamp, DateADT, Timestamp)
LSM_CONVERSION(lsm_date_to_timestamptz, date2timestamptz, DateADT, TimestampTz)
LSM_CONVERSION(lsm_timestamp_to_timestamptz, timestamp2timestamptz, Timestamp, TimestampTz)

/* --- similar in all versions, but internal to core ---------------------------- */

/*
 * Has the page in this buffer been changed since it was read or written?  Without a lock on the
 * buffer, the answer may be out of date.
 *
 * REQUIRES: the buffer is pinned.
 */
static inline bool
lsm_buffer_is_dirty(Buffer buffer)
{
	BufferDesc *desc = BufferIsLocal(buffer) ? GetLocalBufferDescriptor(-buffer - 1) :
		GetBufferDescriptor(buffer - 1);

#if PG_VERSION_NUM >= 190000
	return (pg_atomic_read_u64(&desc->state) & BM_DIRTY) != 0;
#else
	return (pg_atomic_read_u32(&desc->state) & BM_DIRTY) != 0;
#endif
}

#endif							/* LSM_COMPAT_H */
