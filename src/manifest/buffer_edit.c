/*
 * buffer_edit.c
 *	  Edits that add entries: create an index, open and seal pages of the write buffer, add
 *	  a batch.
 *
 * Each edit is atomic and writes one WAL record (I1).  Inserting an entry into an open page is
 * not an edit; see ingest/write_buffer.c.
 */
#include "postgres.h"

#include "base/stop_point.h"
#include "format/buffer_page.h"
#include "format/leaf_mode.h"
#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "storage/emit.h"

/*
 * Write the four fixed pages into an empty fork.  The init fork of an unlogged index is
 * logged.
 */
void
lsm_manifest_create(LsmIndex *index, ForkNumber fork)
{
	Relation	rel = index->rel;

	for (BlockNumber block = 0; block < LSM_FIXED_BLOCKS; block++)
	{
		Buffer		buffer;
		Page		page;

		LockRelationForExtension(rel, ExclusiveLock);
		buffer = ReadBufferExtended(rel, fork, P_NEW, RBM_NORMAL, NULL);
		UnlockRelationForExtension(rel, ExclusiveLock);
		if (BufferGetBlockNumber(buffer) != block)
			elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(rel));
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		page = BufferGetPage(buffer);

		START_CRIT_SECTION();
		if (block == LSM_BLOCK_META)
			lsm_meta_init(page, &index->coding);
		else if (block == LSM_BLOCK_MAP)
		{
			lsm_map_page_init(page, block);
			lsm_page_set_crc(page);
		}
		else
		{
			lsm_page_init(page, LSM_PAGE_GATE, 0, block);
			lsm_page_set_crc(page);
		}
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(rel) || fork == INIT_FORKNUM)
			lsm_wal_new_page(buffer);
		END_CRIT_SECTION();
		UnlockReleaseBuffer(buffer);
	}
}

/* Fill in the fields of the run's record that describe the entries of its sealed page. */
static void
describe_sealed_page(LsmIndex *index, LsmChangedPage *page, LsmRunRecord *run)
{
	LsmLeafMode mode;
	int			count = lsm_buffer_page_count(page->copy);

	lsm_mode_init(&mode);
	for (int i = 0; i < count; i++)
	{
		LsmEntry	entry;

		if (!lsm_buffer_page_get(page->copy, i, &entry))
			lsm_report_corruption(index->rel, page->block, "item is out of bounds");
		lsm_mode_add(&mode, &entry);
	}
	run->entries = count;
	run->heap_low = mode.base_block;
	run->heap_high = mode.last_block;
	run->keylen = mode.keylen;
	run->offset_bits = mode.offset_bits;
}

/* Seal the page of an open run. */
static void
seal_open_page(LsmChange *change, const LsmRunRecord *old)
{
	LsmRunRecord run = *old;
	LsmChangedPage *page = lsm_change_page(change, old->start, LSM_PAGE_BUFFER, old->run_id);

	run.state = LSM_RUN_SEALED;
	describe_sealed_page(change->index, page, &run);
	lsm_change_op(change, page, LSM_OP_SEAL, NULL, 0);
	lsm_edit_put(&change->edit, &run);
	change->edit.seals++;
}

/* Add a new open run: take a block for its page, and add its record to the edit. */
static void
open_new_page(LsmChange *change)
{
	LsmOpenInit init;
	LsmSegment	segment;
	LsmRunRecord run;
	LsmChangedPage *page;

	memset(&init, 0, sizeof(init));
	lsm_space_take(change, 1, 1, false, &init.self);
	init.segment_id = change->edit.next_id++;
	init.flags = LSM_PAGE_OPEN | (change->index->ks->has_rest ? LSM_PAGE_HAS_REST : 0);
	page = lsm_change_new_page(change, init.self);
	lsm_change_op(change, page, LSM_OP_OPEN, &init, sizeof(init));

	memset(&segment, 0, sizeof(segment));
	segment.id = init.segment_id;
	segment.start = init.self;
	segment.blocks = segment.leaves = 1;
	segment.heap_low = InvalidBlockNumber;
	segment.keylen = LSM_KEYLEN_NONE;
	segment.offset_bits = 1;
	lsm_run_init_single(&run, &segment, 0, LSM_RUN_OPEN);
	lsm_edit_put(&change->edit, &run);
}

/*
 * Seal the open page of a run, unless run_id is 0.  Open a new page, unless at least `pages`
 * others are open.  Returns LSM_SEAL_RACED if the run is no longer open, or if there was
 * nothing to do.  Sets *seals to the number of pages that the index has ever received,
 * including this one.
 */
LsmSealResult
lsm_manifest_seal(LsmIndex *index, uint64 run_id, uint32 pages, uint64 *seals)
{
	LsmChange  *change;
	LsmMeta    *meta;
	const LsmRunRecord *old = NULL;
	uint32		others = 0;
	bool		opens;

	Assert(pages <= LSM_MAX_OPEN_RUNS);
	/*
	 * An insert into a unique index may hold the publish lock and a key lock.  Others may seal the
	 * page first.
	 */
	LSM_STOP_POINT(run_id != 0 ? "page-seal" : "page-open");
	lsm_space_prepare(index, 1, false);
	change = lsm_change_begin(index);
	meta = change->meta;
	for (uint32 i = 0; i < meta->run_count; i++)
	{
		if (meta->runs[i].state != LSM_RUN_OPEN)
			continue;
		if (meta->runs[i].run_id == run_id)
			old = &meta->runs[i];
		else
			others++;
	}
	opens = others < pages;
	if (old == NULL && (run_id != 0 || !opens))
	{
		lsm_change_cancel(change);
		return LSM_SEAL_RACED;
	}
	if (opens && meta->run_count + LSM_RUNS_RESERVE >= LSM_MAX_RUNS)
	{
		lsm_change_cancel(change);
		return LSM_SEAL_NO_ROOM;
	}
	if (old != NULL)
		seal_open_page(change, old);
	if (opens)
		open_new_page(change);
	*seals = meta->seals + change->edit.seals;
	lsm_change_commit(change);
	/* Holds the same locks.  The entry that needs room is on no page yet. */
	LSM_STOP_POINT(run_id != 0 ? "page-sealed" : "page-opened");
	return LSM_SEALED;
}

/*
 * Add a finished image to the index as a new run.  One WAL record covers the run's blocks,
 * pages and record in the manifest.  Sets *seals to the number of pages that the index has
 * ever received, including the pages of the image.
 */
LsmSealResult
lsm_manifest_add_batch(LsmIndex *index, LsmBuilder *image, int level, uint64 *seals)
{
	LsmDirectoryEntry entry;
	LsmSegment *segment = &entry.segment;
	LsmChange  *change;
	LsmRunRecord run;
	BlockNumber start;

	lsm_builder_describe(image, &entry);
	lsm_space_prepare(index, segment->blocks, false);
	change = lsm_change_begin(index);
	if (change->meta->run_count + LSM_RUNS_RESERVE >= LSM_MAX_RUNS)
	{
		lsm_change_cancel(change);
		return LSM_SEAL_NO_ROOM;
	}
	lsm_space_take(change, segment->blocks, segment->blocks, false, &start);
	lsm_builder_place(image, change->edit.next_id++, start, segment);
	for (uint32 i = 0; i < segment->blocks; i++)
		lsm_change_image(change, start + i, lsm_builder_page(image, i));
	lsm_run_init_single(&run, segment, level, LSM_RUN_PACKED);
	lsm_edit_put(&change->edit, &run);
	change->edit.seals = segment->leaves;
	*seals = change->meta->seals + segment->leaves;
	lsm_change_commit(change);
	return LSM_SEALED;
}
