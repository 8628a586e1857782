/*
 * build.c
 *	  CREATE INDEX: writes the table's sorted entries as a single packed run.
 *
 * One or more processes (build_parallel.c) read the table and sort its entries (build_spool.c).
 * One process writes the run.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/tableam.h"
#include "base/counts.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/preload.h"
#include "base/stop_point.h"
#include "build/build.h"
#include "build/build_parallel.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "commands/progress.h"
#include "compact/compact.h"
#include "format/leaf_mode.h"
#include "key/merge.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "unique/unique.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* Phases, as pg_stat_progress_create_index shows them.  Phase 1 is core's. */
#define PHASE_SCAN	2
#define PHASE_SORT	3
#define PHASE_WRITE 4

/* TRUNCATE and commands that rewrite a table also build the index. */
#define BUILD_WAY_OUT "To truncate or rewrite a table without preloading, use DROP INDEX on its lsm indexes first."

/* For a unique index: the last entry of a live row. */
typedef struct LastLive
{
	Relation	heap;
	LsmEntry	entry;
	uint8	   *key;			/* of the entry; NULL if there is no entry yet */
} LastLive;

char *
lsm_am_build_phase_name(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case PHASE_SCAN:
			return "scanning table";
		case PHASE_SORT:
			return "sorting entries";
		case PHASE_WRITE:
			return "writing run";
		default:
			return NULL;
	}
}

/*
 * Returns how many blocks to reserve for the next segment.  As in a job, segments grow with the
 * run.  The last segment takes only what the remaining entries need.
 */
static uint32
next_segment_blocks(const LsmBuildSpool *spool, uint32 written)
{
	bool		if_worth;
	int			prefixes = lsm_filter_prefix(spool->index->rel, spool->ks->nkeys, &if_worth);
	double		filter = spool->rows * lsm_filter_bits(spool->index->rel) / 8 * (prefixes > 0 ? 2 : 1);
	double		left = (spool->bytes * 1.1 + filter) / LSM_LEAF_CAPACITY + LSM_LEAST_EXTENT - written;
	uint32		want = Min(Max(written, LSM_MIN_SEGMENT_BLOCKS),
						   lsm_segment_size((uint64) written * 2));

	return (uint32) Min((double) want, Max(left, (double) LSM_LEAST_EXTENT));
}

/*
 * Returns a cursor over all entries, in order.  Sets *live to the cursor over the entries of live
 * rows.
 */
static LsmCursor *
sorted_entries(LsmBuildSpool *spool, LsmCursor **live)
{
	LsmCursor **children;
	LsmCursor  *both;

	*live = lsm_sorter_finish(spool->sorter);
	if (spool->dead == NULL)
		return *live;
	children = palloc(2 * sizeof(LsmCursor *));
	children[0] = *live;
	children[1] = lsm_sorter_finish(spool->dead);
	both = lsm_merge_create(spool->ks, false, true);
	lsm_merge_set(both, children, 2);
	return both;
}

/* Raise an error if the next entry of a live row has the same key as the previous one. */
static void
check_unique(LsmBuildSpool *spool, LastLive *last, const LsmEntry *entry)
{
	Relation	index = spool->index->rel;

	if (last->key == NULL)
		last->key = palloc(MAXALIGN(LSM_MAX_ENTRY_SIZE) + LSM_KEY_PAD);
	else
	{
		MemoryContext old = MemoryContextSwitchTo(spool->context);

		if (lsm_key_equal(spool->ks, &last->entry, entry) &&
			!lsm_key_may_repeat(spool->ks, index, &last->entry))
			lsm_unique_report_build(index, last->heap, spool->ks, &last->entry);
		MemoryContextSwitchTo(old);
		MemoryContextReset(spool->context);
	}
	last->entry = *entry;
	memcpy(last->key, entry->key, entry->keylen);
	memset(last->key + entry->keylen, 0, LSM_KEY_PAD);
	last->entry.key = last->key;
	last->entry.aligned = true;
	last->entry.restlen = 0;
}

/* Write the sorted entries as the index's only run, in a job without inputs. */
static void
write_run(LsmBuildSpool *spool, Relation heap)
{
	LsmIndex   *index = spool->index;
	LsmCursor  *live;
	LsmCursor  *sorted = sorted_entries(spool, &live);
	LastLive	last = {heap};
	LsmBound	start = {0};
	uint64		job_id;
	uint32		written = 0;
	int64		done = 0;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, (int64) spool->rows);
	lsm_bound_init(&start, 1);
	lsm_cursor_seek(sorted, &start, NULL, ForwardScanDirection);
	/* Estimate the level from the number of rows.  Nobody reads the index before the build ends. */
	if (!lsm_manifest_begin_job(index, NULL, 0,
								lsm_level_for((uint32) (spool->rows / 1000), lsm_fanout(index->rel)),
								&job_id))
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index->rel));
	LSM_STOP_POINT("build-begun");
	while (sorted->valid)
	{
		LsmReservation reservation;
		LsmDirectoryEntry entry;
		LsmBuilder *builder;

		if (!lsm_manifest_reserve(index, job_id, next_segment_blocks(spool, written), LSM_LEAST_EXTENT,
								  &reservation))
			elog(ERROR, "index \"%s\" is being written to by another process",
				 RelationGetRelationName(index->rel));
		builder = lsm_builder_create(index->rel, spool->ks, reservation.segment_id,
									 reservation.start, reservation.length, &spool->mode,
									 lsm_ring(BAS_BULKWRITE));
		lsm_builder_want_filter(builder);
		while (sorted->valid && lsm_builder_add(builder, sorted->entry))
		{
			if (spool->unique && (sorted == live || sorted->source == live))
				check_unique(spool, &last, sorted->entry);
			lsm_cursor_next(sorted);
			if (++done % 10000 == 0)
			{
				pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
				CHECK_FOR_INTERRUPTS();
			}
		}
		lsm_builder_finish(builder);
		lsm_builder_describe(builder, &entry);
		written += entry.segment.blocks;
		LSM_STOP_POINT("build-install");
		lsm_manifest_install(index, job_id, &reservation, &entry, NULL, 0, !sorted->valid);
		lsm_builder_free(builder);
	}
	lsm_cursor_close(sorted);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
}

/*
 * Refuse tables whose rows are not in blocks, such as Citus columnar tables.  Their TIDs are row
 * numbers, but lsm_check and the look-ahead of ON CONFLICT take TIDs for positions in the table's
 * file.
 */
static void
require_rows_in_blocks(Relation heap)
{
	if (heap->rd_tableam->relation_size != table_block_relation_size)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"lsm\" does not support table \"%s\"",
						RelationGetRelationName(heap)),
				 errdetail("Table access method \"%s\" does not store rows in blocks.",
						   get_am_name(heap->rd_rel->relam)),
				 errhint("Use a B-tree.")));
}

/*
 * Refuse pattern operator classes with nondeterministic collations.  These classes compare bytes,
 * but their "=" is the type's own operator.  Under a nondeterministic collation, the two differ.
 * Core refuses this only for btree's classes, which it knows by OID.
 */
static void
check_collations(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid			cmp = index_getprocid(index, i + 1, BTORDER_PROC);
		Oid			collation = index->rd_indcollation[i];

		if ((cmp == F_BTTEXT_PATTERN_CMP || cmp == F_BTBPCHAR_PATTERN_CMP) &&
			OidIsValid(collation) && !get_collation_isdeterministic(collation))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("nondeterministic collations are not supported for pattern operator classes"),
					 errdetail("Column %d of index \"%s\" has such a class and collation \"%s\".",
							   i + 1, RelationGetRelationName(index),
							   get_collation_name(collation))));
	}
}

/*
 * Warn if the default operator class belongs to another type.  A type of another extension, such as
 * citext, has a class for btree but may have none for lsm.  Then the default for lsm is the class
 * of a type to which citext is binary-coercible: text.  But queries use citext's operators.
 */
static void
warn_of_foreign_class(Relation index, int column)
{
	Oid			used = index->rd_opcintype[column];
	Oid			type = getBaseType(TupleDescAttr(RelationGetDescr(index), column)->atttypid);
	Oid			lsm_default = GetDefaultOpClass(type, index->rd_rel->relam);
	Oid			btree_default = GetDefaultOpClass(type, BTREE_AM_OID);
	HeapTuple	tuple;
	Form_pg_opclass class;
	char	   *name;

	if (!OidIsValid(lsm_default) || !OidIsValid(btree_default) ||
		get_opclass_input_type(btree_default) != type || used == type ||
		get_opclass_input_type(lsm_default) != used ||
		get_opclass_family(lsm_default) != index->rd_opfamily[column])
		return;
	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(btree_default));
	if (!HeapTupleIsValid(tuple))
		return;
	class = (Form_pg_opclass) GETSTRUCT(tuple);
	name = quote_qualified_identifier(get_namespace_name(class->opcnamespace),
									  NameStr(class->opcname));
	ReleaseSysCache(tuple);
	ereport(WARNING,
			(errmsg("column %d of index \"%s\" is of type %s, but is indexed as %s",
					column + 1, RelationGetRelationName(index), format_type_be_qualified(type),
					format_type_be(used)),
			 errdetail("Operator class %s, whose operators queries use, exists for btree only.", name),
			 errhint("Run SELECT lsm_create_opclass(%s), and create the index again.",
					 quote_literal_cstr(name))));
}

/* Check the classes of a new index, but not when REINDEX or TRUNCATE rebuilds it in place. */
static void
warn_of_foreign_classes(Relation index)
{
	if (index->rd_createSubid == InvalidSubTransactionId && index->rd_index->indisready)
		return;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		warn_of_foreign_class(index, i);
}

IndexBuildResult *
lsm_am_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result;
	LsmBuildSpool spool;
	LsmIndex   *handle;
	LsmParallelBuild *parallel;
	double		heap_rows;

	lsm_require_preload(BUILD_WAY_OUT);
	require_rows_in_blocks(heap);
	check_collations(index);
	warn_of_foreign_classes(index);
	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	lsm_stats_create_index(index);
	handle = lsm_index_create(index);
	lsm_looked_for_forget();
	lsm_manifest_create(handle, MAIN_FORKNUM);
	parallel = lsm_parallel_build_begin(heap, index, info);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
	lsm_spool_begin(&spool, handle, info->ii_Unique,
					(Size) maintenance_work_mem * 1024 / lsm_parallel_build_processes(parallel));
	if (parallel != NULL)
		heap_rows = lsm_parallel_build_scan(parallel, &spool, heap, index, info);
	else
		heap_rows = table_index_build_scan(heap, index, info, true, true, lsm_spool_add_row,
										   &spool, NULL);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SORT);
	if (spool.rows > 0)
		write_run(&spool, heap);
	lsm_manifest_truncate(spool.index, 1);
	lsm_spool_end(&spool);
	if (parallel != NULL)
		lsm_parallel_build_end(parallel);

	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = heap_rows;
	result->index_tuples = spool.rows;
	return result;
}

void
lsm_am_build_empty(Relation index)
{
	lsm_require_preload(BUILD_WAY_OUT);
	check_collations(index);
	lsm_manifest_create(lsm_index_create(index), INIT_FORKNUM);
}
