/*
 * check_heap.c
 *	  Verifies the index against the table: each row has its entry, and no entry is in the index
 *	  twice.
 *
 * While the verifier reads the segments, it adds each entry's values and TID to a Bloom filter.
 * Then it scans the table as CREATE INDEX CONCURRENTLY does.  If the filter lacks a row's values and
 * TID, the row has no entry.  A false positive can hide a missing entry; the next verification uses
 * another seed and will probably find it.
 *
 * The scan uses a snapshot taken before the first version was read.  If the snapshot sees a
 * transaction, that transaction had inserted its entries before it committed, so the first
 * version has the entries.  VACUUM cannot remove them, so all later versions have them as well.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/tupmacs.h"
#include "access/xact.h"
#include "base/stop_point.h"
#include "catalog/index.h"
#include "common/pg_prng.h"
#include "format/buffer_page.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "read/reader.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/*
 * Returns the registered snapshot for the scan.  Raises an error if the transaction uses one
 * snapshot throughout and may see rows whose entries need not be in the index (see
 * pg_index.indcheckxmin).
 */
Snapshot
lsm_check_heap_snapshot(LsmCheck *c)
{
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());

	if (IsolationUsesXactSnapshot() && c->rel->rd_index->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(c->rel->rd_indextuple->t_data),
							   snapshot->xmin))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("cannot verify index \"%s\" using the snapshot of this transaction",
						RelationGetRelationName(c->rel)),
				 errhint("Verify the index in a new transaction.")));
	return snapshot;
}

/* Create the filter, sized for the entries that the first round's version counts. */
void
lsm_check_heap_begin(LsmCheck *c)
{
	LsmInstant *in = c->instant;
	uint64		entries = 0;

	for (uint32 i = 0; i < in->version.run_count; i++)
	{
		const LsmRunRecord *run = &in->version.runs[i];

		if (in->open_pages[i] != NULL)
			entries += lsm_buffer_page_count(in->open_pages[i]);
		else if (run->state != LSM_RUN_SPENT)
			entries += run->entries;
	}
	c->filter = bloom_create((int64) Min(entries, (uint64) PG_INT64_MAX / 16) + 1,
							 maintenance_work_mem, pg_prng_uint64(&pg_global_prng_state));
	initStringInfo(&c->image);
}

/* Build the identity of an entry in c->image: its TID and its detoasted values. */
static void
heap_make_image(LsmCheck *c, const Datum *values, const bool *isnull, uint64 tid)
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
			/* Use only the bytes of the type, since the other bytes of the Datum may differ. */
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
		/* The length keeps adjacent columns apart. */
		appendBinaryStringInfo(&c->image, (char *) &length, sizeof(length));
		appendBinaryStringInfo(&c->image, bytes, length);
	}
}

/* Add an entry of the index to the filter.  Called in c->scratch. */
void
lsm_check_heap_add(LsmCheck *c, const Datum *values, const bool *isnull, uint64 tid)
{
	heap_make_image(c, values, isnull, tid);
	bloom_add_element(c->filter, (unsigned char *) c->image.data, c->image.len);
}

/* Check that the filter has the entry of a row. */
static void
heap_check_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	LsmCheck   *c = arg;
	MemoryContext old_context = MemoryContextSwitchTo(c->scratch);

	heap_make_image(c, values, isnull, lsm_tid_to_int(tid));
	if (bloom_lacks_element(c->filter, (unsigned char *) c->image.data, c->image.len))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("heap tuple (%u,%u) from table \"%s\" lacks matching index tuple within index \"%s\"",
						ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid),
						RelationGetRelationName(c->heap), RelationGetRelationName(index))));
	c->rows++;
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(c->scratch);
	lsm_check_note_row(c, ItemPointerGetBlockNumber(tid));
}

/* Scan the table, and check that each row has an entry.  Call this after all rounds. */
void
lsm_check_heap_rows(LsmCheck *c, Snapshot snapshot)
{
	IndexInfo  *info = BuildIndexInfo(c->rel);
	TableScanDesc scan = table_beginscan_strat(c->heap, snapshot, 0, NULL, true, true);

	/*
	 * Scan like the first phase of CREATE INDEX CONCURRENTLY: only rows that the snapshot sees,
	 * without waiting for other transactions.
	 */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;

	lsm_check_begin_table(c);
	/* This call also ends the scan. */
	table_index_build_scan(c->heap, c->rel, info, true, false, heap_check_row, c, scan);
	lsm_check_end_table(c);
	ereport(DEBUG1,
			(errmsg_internal("index \"%s\": " INT64_FORMAT " rows have entries, %.2f%% of the filter is set",
							 RelationGetRelationName(c->rel), c->rows,
							 100.0 * bloom_prop_bits_set(c->filter))));
	bloom_free(c->filter);
	c->filter = NULL;
}

static void
report_duplicate(LsmCheck *c, const LsmEntry *entry)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has several entries for heap tuple (%u,%u)",
					RelationGetRelationName(c->rel),
					(uint32) (entry->tid >> 16), (uint32) (entry->tid & 0xFFFF)),
			 errhint("Please REINDEX it.")));
}

/*
 * Check that no entry is in two runs.  A merge takes each entry from one of its inputs, and a TID
 * is not reused before VACUUM has removed its old entries.
 *
 * The check reads the runs as a scan does, so it ignores entries that an input has before its job's
 * frontier, and replaces a stale version with the current one.  The gate prevents false alarms.
 * Without it, VACUUM could remove an entry that we have read in one run, and an insert could
 * reuse its TID before we read the run that gets the new entry (I10).
 */
void
lsm_check_duplicates(LsmCheck *c)
{
	LsmReader  *reader = lsm_reader_acquire(c->index, 0, NULL, true, c->strategy);
	LsmBound	start = {0};
	LsmBound	last = {0};

	lsm_bound_init(&start, 1);
	lsm_reader_refresh(reader);
	lsm_check_begin_reading(c, LSM_CHECK_DUPLICATES, reader);
	lsm_reader_seek(reader, &start, NULL, ForwardScanDirection);
	/* Holds a pin on a gate. */
	LSM_STOP_POINT("check-duplicates");
	while (lsm_reader_is_valid(reader))
	{
		const LsmEntry *entry = lsm_reader_entry(reader);
		MemoryContext old_context = MemoryContextSwitchTo(c->scratch);

		/* The bound after the previous entry must lie before this entry. */
		if (last.is_entry && lsm_bound_compare(c->ks, &last, entry) < 0)
			report_duplicate(c, entry);
		MemoryContextSwitchTo(old_context);
		lsm_bound_set_entry(&last, entry, -1);
		/* VACUUM, or replay on a standby, may be waiting for the gate.  Leave it quickly. */
		if (lsm_reader_must_leave(reader))
			lsm_reader_seek_past(reader, entry);
		else
			lsm_reader_next(reader);
		MemoryContextReset(c->scratch);
		lsm_check_note_blocks(c, reader->cx.counters.pages);
		CHECK_FOR_INTERRUPTS();
	}
	lsm_reader_release(reader);
}
