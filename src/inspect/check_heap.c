/*
 * check_heap.c
 *	  Verification against the table: no row without its entry, and no entry
 *	  that is in the index twice.
 *
 * While the runs are read, each entry's column values and TID go into a Bloom
 * filter.  Then the table is scanned as CREATE INDEX does it, and a row whose
 * values and TID the filter does not know has no entry.  Now and then a missing
 * one is mistaken for another; a filter with another seed finds it next time.
 *
 * The scan uses a snapshot taken before the version was read.  Whoever the
 * snapshot sees has inserted his entries before he committed, so they are in
 * that version.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/tupmacs.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "common/pg_prng.h"
#include "format/buffer_page.h"
#include "inspect/inspect.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "read/read.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/*
 * The snapshot for the scan.  A transaction that keeps to one snapshot may have
 * one that sees rows from before the index could be used by it; their entries
 * need not be there (see indcheckxmin in the catalog of indexes).
 */
Snapshot
lsm_check_heap_snapshot(LsmCheck *c)
{
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());

	if (IsolationUsesXactSnapshot() && c->index->rd_index->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(c->index->rd_indextuple->t_data),
							   snapshot->xmin))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("index \"%s\" cannot be verified with the snapshot of this transaction",
						RelationGetRelationName(c->index)),
				 errhint("Verify it in a new transaction.")));
	return snapshot;
}

/* Make the filter, for as many entries as the manifest says. */
void
lsm_check_heap_begin(LsmCheck *c)
{
	uint64		entries = 0;

	for (uint32 i = 0; i < c->version->run_count; i++)
		entries += c->open_pages[i] ? lsm_buffer_page_count(c->open_pages[i]) :
			c->version->runs[i].entries;
	c->filter = bloom_create((int64) Min(entries, (uint64) PG_INT64_MAX / 16) + 1,
							 maintenance_work_mem, pg_prng_uint64(&pg_global_prng_state));
	initStringInfo(&c->image);
}

/*
 * Put together what identifies an entry: its values, as they are when neither
 * compressed nor toasted, and its TID.  The result is in c->image.
 */
static void
make_image(LsmCheck *c, const Datum *values, const bool *isnull, uint64 tid)
{
	TupleDesc	desc = c->ks->desc;

	resetStringInfo(&c->image);
	appendBinaryStringInfo(&c->image, (char *) &tid, sizeof(tid));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		char	   *bytes = DatumGetPointer(values[i]);
		int			length = att->attlen;
		char		room[sizeof(Datum)];

		appendStringInfoChar(&c->image, isnull[i] ? 'n' : 'v');
		if (isnull[i])
			continue;
		if (att->attbyval)
		{
			/* Only as many bytes as the type has: the others may differ. */
			store_att_byval(room, values[i], att->attlen);
			bytes = room;
		}
		else if (length == -1)
		{
			struct varlena *plain = PG_DETOAST_DATUM_PACKED(values[i]);

			bytes = VARDATA_ANY(plain);
			length = VARSIZE_ANY_EXHDR(plain);
		}
		else if (length == -2 || att->atttypid == NAMEOID)
			length = strlen(bytes);
		/* The length tells where a column ends. */
		appendBinaryStringInfo(&c->image, (char *) &length, sizeof(length));
		appendBinaryStringInfo(&c->image, bytes, length);
	}
}

/* Note an entry of the index.  Called in c->scratch. */
void
lsm_check_heap_add(LsmCheck *c, const Datum *values, const bool *isnull, uint64 tid)
{
	make_image(c, values, isnull, tid);
	bloom_add_element(c->filter, (unsigned char *) c->image.data, c->image.len);
}

/* A row of the table: its entry must have been noted. */
static void
check_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	LsmCheck   *c = arg;
	MemoryContext old_context = MemoryContextSwitchTo(c->scratch);

	make_image(c, values, isnull, lsm_tid_to_int(tid));
	if (bloom_lacks_element(c->filter, (unsigned char *) c->image.data, c->image.len))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("heap tuple (%u,%u) from table \"%s\" lacks matching index tuple within index \"%s\"",
						ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid),
						RelationGetRelationName(c->heap), RelationGetRelationName(index))));
	c->rows++;
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(c->scratch);
}

/* Scan the table, after all runs have been read. */
void
lsm_check_heap_rows(LsmCheck *c, Snapshot snapshot)
{
	IndexInfo  *info = BuildIndexInfo(c->index);
	TableScanDesc scan = table_beginscan_strat(c->heap, snapshot, 0, NULL, true, true);

	/*
	 * As in the first scan of CREATE INDEX CONCURRENTLY: rows that the snapshot
	 * sees, without waiting for anybody.
	 */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;

	/* This also ends the scan. */
	table_index_build_scan(c->heap, c->index, info, true, false, check_row, c, scan);
	ereport(DEBUG1,
			(errmsg_internal("index \"%s\": " INT64_FORMAT " rows have entries, %.2f%% of the filter is set",
							 RelationGetRelationName(c->index), c->rows,
							 100.0 * bloom_prop_bits_set(c->filter))));
	bloom_free(c->filter);
	c->filter = NULL;
}

/*
 * No entry is in two runs: merging keeps each once, and a TID is not used again
 * before VACUUM has removed its old entries.  The open run is left out: it is
 * being added to, so an entry may arrive there after its predecessor was read
 * from another run and removed from it.
 */
void
lsm_check_duplicates(LsmCheck *c)
{
	LsmCursor **children = palloc(Max(1, c->version->run_count) * sizeof(LsmCursor *));
	LsmCursor  *merged;
	LsmBound	start = {0};
	LsmBound	last = {0};
	int			count = 0;

	for (uint32 i = 0; i < c->version->run_count; i++)
	{
		const LsmRunRecord *run = &c->version->runs[i];

		if (run->state != LSM_RUN_OPEN && run->state != LSM_RUN_BUILDING)
			children[count++] = lsm_read_run(c->index, c->ks, c->version, run, c->strategy);
	}
	merged = lsm_merge_create(c->ks, children, count);
	lsm_bound_init(&start, 1);
	lsm_cursor_seek(merged, &start, NULL, ForwardScanDirection);
	while (merged->valid)
	{
		const LsmEntry *entry = merged->entry;
		MemoryContext old_context = MemoryContextSwitchTo(c->scratch);

		/* A bound after an entry has all later ones behind it, and no others. */
		if (last.is_entry && lsm_bound_compare(c->ks, &last, entry) < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("index \"%s\" has several entries for heap tuple (%u,%u)",
							RelationGetRelationName(c->index),
							(uint32) (entry->tid >> 16), (uint32) (entry->tid & 0xFFFF)),
					 errhint("Please REINDEX it.")));
		MemoryContextSwitchTo(old_context);
		lsm_bound_set_entry(&last, entry, -1);
		lsm_cursor_next(merged);
		MemoryContextReset(c->scratch);
		CHECK_FOR_INTERRUPTS();
	}
	lsm_cursor_close(merged);
}
