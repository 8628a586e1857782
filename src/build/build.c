/*
 * build.c
 *	  CREATE INDEX: the table's rows, sorted once, become a single packed run.
 *
 * Several processes can read and sort (build_parallel.c); one writes.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/tableam.h"
#include "build/build.h"
#include "unique/unique.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/preload.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "commands/progress.h"
#include "compact/compact.h"
#include "key/merge.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* Phases, as pg_stat_progress_create_index shows them; 1 is core's. */
#define PHASE_SCAN	2
#define PHASE_SORT	3
#define PHASE_WRITE 4

/* TRUNCATE and what rewrites a table come here, too. */
#define BUILD_WAY_OUT "To empty or rewrite a table without that, use DROP INDEX on its lsm indexes first."

/* What an entry takes beside its key and rest, about. */
#define ENTRY_OVERHEAD	4

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
 * Rows that are dead, but that old snapshots still see, do not count as duplicates.
 * They are few, or should be.
 */
static LsmSorter *
get_dead(LsmBuildState *build)
{
	if (build->dead == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(build->sorter));

		build->dead = lsm_sorter_begin(build->ks, (Size) work_mem * 1024);
		MemoryContextSwitchTo(old);
	}
	return build->dead;
}

/* Called for each row of the table. */
void
lsm_build_add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	LsmBuildState *build = arg;
	MemoryContext old = MemoryContextSwitchTo(build->context);
	LsmEntry	entry;

	lsm_keyspace_form(build->ks, values, isnull, tid, &entry);
	lsm_sorter_add(build->unique && !alive ? get_dead(build) : build->sorter, &entry);
	lsm_mode_add(&build->mode, &entry);
	build->rows++;
	build->bytes += entry.keylen + entry.restlen + ENTRY_OVERHEAD;
	MemoryContextSwitchTo(old);
	MemoryContextReset(build->context);
}

/*
 * Blocks of the next segment: a job would have about as many as there are by then;
 * and no more than are left to be written.
 */
static uint32
next_blocks(const LsmBuildState *build, uint32 written)
{
	bool		if_worth;
	int			prefixes = lsm_filter_prefix(build->index->rel, build->ks->nkeys, &if_worth);
	double		filter = build->rows * lsm_filter_bits(build->index->rel) / 8 * (prefixes > 0 ? 2 : 1);
	double		left = (build->bytes * 1.1 + filter) / LSM_LEAF_CAPACITY + LSM_LEAST_EXTENT - written;
	uint32		want = Min(Max(written, LSM_MIN_SEGMENT_BLOCKS),
						   lsm_segment_size((uint64) written * 2));

	return (uint32) Min((double) want, Max(left, (double) LSM_LEAST_EXTENT));
}

/* All entries in their order.  *live: where those come from that count. */
static LsmCursor *
sorted_entries(LsmBuildState *build, LsmCursor **live)
{
	LsmCursor **children;
	LsmCursor  *both;

	*live = lsm_sorter_finish(build->sorter);
	if (build->dead == NULL)
		return *live;
	children = palloc(2 * sizeof(LsmCursor *));
	children[0] = *live;
	children[1] = lsm_sorter_finish(build->dead);
	both = lsm_merge_create(build->ks, false, true);
	lsm_merge_set(both, children, 2);
	return both;
}

/* A row that counts comes next: is it the second one with its key? */
static void
check_unique(LsmBuildState *build, const LsmEntry *entry)
{
	MemoryContext old;

	if (build->last_key == NULL)
		build->last_key = palloc(MAXALIGN(LSM_MAX_ENTRY_SIZE) + LSM_KEY_PAD);
	else
	{
		old = MemoryContextSwitchTo(build->context);
		if (lsm_key_equal(build->ks, &build->last, entry) && !lsm_key_may_repeat(build->ks, build->index->rel, &build->last))
			lsm_unique_report_build(build->index->rel, build->heap, build->ks, &build->last);
		MemoryContextSwitchTo(old);
		MemoryContextReset(build->context);
	}
	build->last = *entry;
	memcpy(build->last_key, entry->key, entry->keylen);
	memset(build->last_key + entry->keylen, 0, LSM_KEY_PAD);
	build->last.key = build->last_key;
	build->last.aligned = true;
	build->last.restlen = 0;
}

/*
 * Write the sorted entries as the index's only run: a job without inputs, segment
 * by segment.
 */
static void
write_run(LsmBuildState *build)
{
	LsmIndex   *index = build->index;
	LsmCursor  *live;
	LsmCursor  *sorted = sorted_entries(build, &live);
	LsmBound	start = {0};
	uint64		job_id;
	uint32		written = 0;
	int64		done = 0;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, (int64) build->rows);
	lsm_bound_init(&start, 1);
	lsm_cursor_seek(sorted, &start, NULL, ForwardScanDirection);
	/* The record has a level of its own when all is known; nobody reads the index before. */
	if (!lsm_manifest_begin_job(index, NULL, 0,
								lsm_level_for((uint32) (build->rows / 1000), lsm_fanout(index->rel)),
								&job_id))
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index->rel));
	while (sorted->valid)
	{
		LsmReservation reservation;
		LsmDirectoryEntry entry;
		LsmBuilder *builder;
		BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKWRITE);

		if (!lsm_manifest_reserve(index, job_id, next_blocks(build, written), LSM_LEAST_EXTENT,
								  &reservation))
			elog(ERROR, "index \"%s\" is written to by others", RelationGetRelationName(index->rel));
		builder = lsm_builder_create(index->rel, build->ks, reservation.segment_id,
									 reservation.start, reservation.length, &build->mode, strategy);
		lsm_builder_want_filter(builder);
		while (sorted->valid && lsm_builder_add(builder, sorted->entry))
		{
			if (build->unique && (sorted == live || sorted->source == live))
				check_unique(build, sorted->entry);
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
		lsm_manifest_install(index, job_id, &reservation, &entry, NULL, 0, !sorted->valid);
		lsm_builder_free(builder);
		FreeAccessStrategy(strategy);
	}
	lsm_cursor_close(sorted);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
}

/*
 * The pattern operator classes compare bytes, but their "=" is the type's own.
 * Under a nondeterministic collation the two differ.  Core refuses that for
 * btree's classes by name.
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
 * A type of another extension, as citext, has its own class for btree, and may
 * have none for lsm.  Then the default is the class of a type that it can be
 * read as, text, whose operators are not the ones that queries use.
 */
static void
warn_of_class(Relation index, int column)
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

/* Only for a new index: not whenever its file is made anew. */
static void
check_classes(Relation index)
{
	if (index->rd_createSubid == InvalidSubTransactionId && index->rd_index->indisready)
		return;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		warn_of_class(index, i);
}

/* Ready to take rows.  index is set. */
void
lsm_build_begin(LsmBuildState *build, LsmIndex *index, Size memory)
{
	memset(build, 0, sizeof(LsmBuildState));
	build->index = index;
	build->ks = lsm_index_keyspace(build->index);
	build->sorter = lsm_sorter_begin(build->ks, memory);
	build->context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm build",
										   ALLOCSET_DEFAULT_SIZES);
	lsm_mode_init(&build->mode);
}

void
lsm_build_end(LsmBuildState *build)
{
	if (build->dead != NULL)
		lsm_sorter_end(build->dead);
	lsm_sorter_end(build->sorter);
	MemoryContextDelete(build->context);
}

IndexBuildResult *
lsm_am_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result;
	LsmBuildState build;
	LsmIndex   *handle;
	LsmParallelBuild *parallel;
	double		heap_rows;

	lsm_require_preload(BUILD_WAY_OUT);
	check_collations(index);
	check_classes(index);
	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	handle = lsm_index_create(index);
	lsm_looked_for_forget();
	lsm_manifest_create(handle, MAIN_FORKNUM);
	parallel = lsm_parallel_build_begin(heap, index, info);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
	lsm_build_begin(&build, handle,
					(Size) maintenance_work_mem * 1024 / lsm_parallel_build_processes(parallel));
	build.heap = heap;
	build.unique = info->ii_Unique;
	if (parallel != NULL)
		heap_rows = lsm_parallel_build_scan(parallel, &build, heap, index, info);
	else
		heap_rows = table_index_build_scan(heap, index, info, true, true, lsm_build_add_row,
										   &build, NULL);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SORT);
	if (build.rows > 0)
		write_run(&build);
	lsm_manifest_truncate(build.index, 1);
	lsm_build_end(&build);
	if (parallel != NULL)
		lsm_parallel_build_end(parallel);

	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = heap_rows;
	result->index_tuples = build.rows;
	return result;
}

void
lsm_am_build_empty(Relation index)
{
	lsm_require_preload(BUILD_WAY_OUT);
	check_collations(index);
	lsm_manifest_create(lsm_index_create(index), INIT_FORKNUM);
}
