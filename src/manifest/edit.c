/*
 * edit.c
 *	  Changing the manifest: edits, sealing, adding runs, the fixed pages, the
 *	  gates.
 *
 * Each function here is one atomic change, one WAL record (I1).  Lock order:
 * meta page, buffer page, map pages.
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "format/buffer_page.h"
#include "format/wal.h"
#include "manifest/manifest.h"
#include "manifest/meta_buffer.h"
#include "miscadmin.h"
#include "run/run.h"
#include "storage/buffers.h"
#include "storage/space.h"

/*
 * Write the four fixed pages into an empty fork.  The init fork is logged even
 * though the relation is not.
 */
void
lsm_manifest_create(Relation rel, ForkNumber fork)
{
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
			lsm_meta_init(page);
		else if (block == LSM_BLOCK_MAP)
			lsm_map_page_init(page, block);
		else
		{
			lsm_page_init(page, LSM_PAGE_GATE, LSM_OWNER_FREE, block);
			lsm_page_set_crc(page);
		}
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(rel) || fork == INIT_FORKNUM)
			log_newpage_buffer(buffer, true);
		END_CRIT_SECTION();
		UnlockReleaseBuffer(buffer);
	}
}

/* Would the edit fit the manifest?  Checked before anything is changed. */
static void
check_edit(Relation rel, LsmMeta *meta, const LsmEdit *edit)
{
	int			count = meta->run_count;

	for (uint32 i = 0; i < edit->count; i++)
	{
		const LsmEditOp *op = &edit->ops[i];
		bool		found = lsm_meta_find(meta, op->run.run_id) != NULL;

		if (op->kind == LSM_EDIT_PUT && !found)
			count++;
		if (op->kind == LSM_EDIT_REMOVE)
			count--;
		if (count > LSM_MAX_RUNS ||
			(!found && (op->kind == LSM_EDIT_REMOVE || op->kind == LSM_EDIT_SET_JOB)))
			elog(ERROR, "edit does not fit the manifest of index \"%s\"",
				 RelationGetRelationName(rel));
	}
}

/* Apply and log an edit on the locked meta page. */
static void
edit_locked(Relation rel, Buffer buffer, const LsmEdit *edit)
{
	Page		page = BufferGetPage(buffer);

	check_edit(rel, lsm_meta(page), edit);
	START_CRIT_SECTION();
	if (!lsm_meta_apply(page, edit))
		elog(PANIC, "pg_lsm: edit was checked but did not fit");
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
	{
		XLogRecPtr	lsn;

		XLogBeginInsert();
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		XLogRegisterBufData(0, (char *) edit, lsm_edit_size(edit));
		lsn = XLogInsert(LSM_RMGR_ID, XLOG_LSM_EDIT);
		PageSetLSN(page, lsn);
	}
	END_CRIT_SECTION();
}

void
lsm_manifest_edit(Relation rel, const LsmEdit *edit)
{
	Buffer		buffer = lsm_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE);

	edit_locked(rel, buffer, edit);
	UnlockReleaseBuffer(buffer);
}

/*
 * Add a run under construction, give it an id, and mark its inputs.  The
 * caller has filled in level, state and flags.
 */
void
lsm_manifest_begin_run(Relation rel, LsmRunRecord *run, const uint64 *inputs, int input_count)
{
	Buffer		buffer = lsm_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE);
	LsmEdit    *edit = palloc(sizeof(LsmEdit));

	run->run_id = lsm_meta(BufferGetPage(buffer))->next_run_id;
	lsm_edit_init(edit);
	lsm_edit_put(edit, run);
	for (int i = 0; i < input_count; i++)
		lsm_edit_set_job(edit, inputs[i], run->run_id);
	edit_locked(rel, buffer, edit);
	UnlockReleaseBuffer(buffer);
	pfree(edit);
}

/*
 * Apply an edit that moves the frontier of a job: add its part to the edit, with
 * an id if it has none yet.
 */
void
lsm_manifest_put_part(Relation rel, LsmEdit *edit, LsmRunRecord *part)
{
	Buffer		buffer = lsm_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE);

	if (part->run_id == 0)
		part->run_id = lsm_meta(BufferGetPage(buffer))->next_run_id;
	lsm_edit_put(edit, part);
	edit_locked(rel, buffer, edit);
	UnlockReleaseBuffer(buffer);
}

/* A seal, and what it works on.  Either page may be missing, but not both. */
typedef struct Seal
{
	Buffer		meta;
	Buffer		old;			/* page that is sealed */
	Buffer		new;			/* page that is opened */
	LsmSpacePlan plan;			/* of the new page's block */
	LsmEdit    *edit;
} Seal;

/* The old run becomes a sealed one. */
static void
seal_old(Seal *seal, Relation rel, const LsmRunRecord *old)
{
	LsmRunRecord run = *old;

	seal->old = lsm_buffer_read(rel, old->root, LSM_KIND(LSM_PAGE_BUFFER), old->run_id,
								BUFFER_LOCK_EXCLUSIVE, NULL);
	run.state = LSM_RUN_SEALED;
	run.entries = lsm_buffer_page_count(BufferGetPage(seal->old));
	lsm_edit_put(seal->edit, &run);
	seal->edit->seals = 1;
}

/* A block and a record for a new run, which is open. */
static void
open_new(Seal *seal, Relation rel, Relation heap, uint64 run_id)
{
	LsmRunRecord run;

	lsm_space_plan_alloc(&seal->plan, rel, heap, run_id, 1, 1, InvalidBlockNumber);
	seal->new = ReadBufferExtended(rel, MAIN_FORKNUM, seal->plan.start, RBM_ZERO_AND_LOCK, NULL);
	memset(&run, 0, sizeof(run));
	run.run_id = run_id;
	run.state = LSM_RUN_OPEN;
	run.root = run.first_leaf = run.last_leaf = seal->plan.start;
	run.end_block = seal->plan.start + 1;
	run.leaves = run.blocks = 1;
	run.next_block = run.extent_end = InvalidBlockNumber;
	lsm_edit_put(seal->edit, &run);
}

static XLogRecPtr
log_seal(Seal *seal)
{
	xl_lsm_seal xlrec;

	memset(&xlrec, 0, sizeof(xlrec));
	xlrec.block = InvalidBlockNumber;
	if (BufferIsValid(seal->new))
	{
		LsmPageOpaque *opaque = lsm_page_opaque(BufferGetPage(seal->new));

		xlrec.space = seal->plan.wal;
		xlrec.page_flags = opaque->flags;
		xlrec.run_id = opaque->run_id;
		xlrec.block = opaque->self;
	}
	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, sizeof(xlrec));
	XLogRegisterBuffer(0, seal->meta, REGBUF_STANDARD);
	XLogRegisterBufData(0, (char *) seal->edit, lsm_edit_size(seal->edit));
	if (BufferIsValid(seal->old))
		XLogRegisterBuffer(1, seal->old, REGBUF_STANDARD);
	if (BufferIsValid(seal->new))
	{
		XLogRegisterBuffer(2, seal->new, REGBUF_STANDARD | REGBUF_WILL_INIT);
		lsm_space_plan_register(&seal->plan);
	}
	return XLogInsert(LSM_RMGR_ID, XLOG_LSM_SEAL);
}

/* All is locked, and fits. */
static void
apply_seal(Seal *seal, Relation rel, uint64 new_run_id, bool has_rest)
{
	Buffer		changed[] = {seal->meta, seal->old, seal->new};
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	START_CRIT_SECTION();
	if (BufferIsValid(seal->new))
	{
		Page		page = BufferGetPage(seal->new);

		lsm_page_init(page, LSM_PAGE_BUFFER, new_run_id, seal->plan.start);
		lsm_page_opaque(page)->flags = LSM_PAGE_OPEN | (has_rest ? LSM_PAGE_HAS_REST : 0);
		lsm_space_plan_apply(&seal->plan);
	}
	if (BufferIsValid(seal->old))
		lsm_buffer_page_seal(BufferGetPage(seal->old));
	if (!lsm_meta_apply(BufferGetPage(seal->meta), seal->edit))
		elog(PANIC, "pg_lsm: edit was checked but did not fit");
	for (int i = 0; i < lengthof(changed); i++)
	{
		if (BufferIsValid(changed[i]))
			MarkBufferDirty(changed[i]);
	}
	if (RelationNeedsWAL(rel))
	{
		lsn = log_seal(seal);
		for (int i = 0; i < lengthof(changed); i++)
		{
			if (BufferIsValid(changed[i]))
				PageSetLSN(BufferGetPage(changed[i]), lsn);
		}
	}
	END_CRIT_SECTION();
	if (BufferIsValid(seal->new))
	{
		lsm_space_plan_finish(&seal->plan, lsn);
		UnlockReleaseBuffer(seal->new);
	}
	if (BufferIsValid(seal->old))
		UnlockReleaseBuffer(seal->old);
}

/*
 * Seal the open page of a run (0: none), and open a new one unless at least
 * `pages` others are open.  LSM_SEAL_RACED: the run is not open any more, or
 * there was nothing to do.  *seals is the number of pages that came in so far,
 * this one included.
 */
LsmSealResult
lsm_manifest_seal(Relation rel, Relation heap, bool has_rest,
				  uint64 run_id, uint32 pages, uint64 *seals)
{
	Seal		seal = {lsm_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE), InvalidBuffer, InvalidBuffer};
	LsmMeta    *meta = lsm_meta(BufferGetPage(seal.meta));
	const LsmRunRecord *old = NULL;
	uint32		others = 0;
	bool		opens;

	Assert(pages <= LSM_MAX_OPEN_RUNS);
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
		UnlockReleaseBuffer(seal.meta);
		return LSM_SEAL_RACED;
	}
	if (opens && meta->run_count + LSM_RUNS_RESERVE >= LSM_MAX_RUNS)
	{
		UnlockReleaseBuffer(seal.meta);
		return LSM_SEAL_NO_ROOM;
	}

	seal.edit = palloc(sizeof(LsmEdit));
	lsm_edit_init(seal.edit);
	if (old != NULL)
		seal_old(&seal, rel, old);
	if (opens)
		open_new(&seal, rel, heap, meta->next_run_id);
	check_edit(rel, meta, seal.edit);
	if (RelationNeedsWAL(rel))
		XLogEnsureRecordSpace(LSM_WAL_MAP_BLOCK + LSM_WAL_MAP_PAGES, 20);
	apply_seal(&seal, rel, meta->next_run_id, has_rest);
	*seals = meta->seals;
	UnlockReleaseBuffer(seal.meta);
	pfree(seal.edit);
	return LSM_SEALED;
}

static XLogRecPtr
log_run(Buffer meta, Buffer *pages, int count, const LsmEdit *edit, LsmSpacePlan *plan)
{
	XLogBeginInsert();
	XLogRegisterData((char *) &plan->wal, sizeof(xl_lsm_space));
	XLogRegisterBuffer(0, meta, REGBUF_STANDARD);
	XLogRegisterBufData(0, (char *) edit, lsm_edit_size(edit));
	lsm_space_plan_register(plan);
	for (int i = 0; i < count; i++)
		XLogRegisterBuffer(LSM_WAL_IMAGE_BLOCK + i, pages[i], REGBUF_STANDARD | REGBUF_FORCE_IMAGE);
	return XLogInsert(LSM_RMGR_ID, XLOG_LSM_BATCH);
}

/* Write a run that has its place, and install it.  All is locked. */
static XLogRecPtr
write_run(Relation rel, Buffer meta, const LsmRunImage *image, Buffer *pages, int count,
		  const LsmEdit *edit, LsmSpacePlan *plan)
{
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	START_CRIT_SECTION();
	for (int i = 0; i < count; i++)
	{
		memcpy(BufferGetPage(pages[i]), lsm_run_image_page(image, i), BLCKSZ);
		MarkBufferDirty(pages[i]);
	}
	if (!lsm_meta_apply(BufferGetPage(meta), edit))
		elog(PANIC, "pg_lsm: edit was checked but did not fit");
	MarkBufferDirty(meta);
	lsm_space_plan_apply(plan);
	if (RelationNeedsWAL(rel))
	{
		lsn = log_run(meta, pages, count, edit, plan);
		PageSetLSN(BufferGetPage(meta), lsn);
		for (int i = 0; i < count; i++)
			PageSetLSN(BufferGetPage(pages[i]), lsn);
	}
	END_CRIT_SECTION();
	return lsn;
}

/*
 * Add a small run to the index: its pages, its place in the space map and its
 * record in the manifest with one WAL record.  *seals is the number of pages
 * that came in so far, these included.
 */
LsmSealResult
lsm_manifest_add_run(Relation rel, Relation heap, LsmRunImage *image, int level, uint64 *seals)
{
	Buffer		meta_buffer = lsm_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE);
	LsmMeta    *meta = lsm_meta(BufferGetPage(meta_buffer));
	int			count = lsm_run_image_page_count(image);
	Buffer		pages[LSM_IMAGE_PAGES];
	LsmRunRecord run;
	LsmSpacePlan plan;
	LsmEdit    *edit;
	XLogRecPtr	lsn;

	if (meta->run_count + LSM_RUNS_RESERVE >= LSM_MAX_RUNS)
	{
		UnlockReleaseBuffer(meta_buffer);
		return LSM_SEAL_NO_ROOM;
	}
	lsm_space_plan_alloc(&plan, rel, heap, meta->next_run_id, count, count, InvalidBlockNumber);
	memset(&run, 0, sizeof(run));
	run.state = LSM_RUN_PACKED;
	run.level = level;
	lsm_run_image_place(image, meta->next_run_id, plan.start, &run);
	for (int i = 0; i < count; i++)
		pages[i] = ReadBufferExtended(rel, MAIN_FORKNUM, plan.start + i, RBM_ZERO_AND_LOCK, NULL);
	edit = palloc(sizeof(LsmEdit));
	lsm_edit_init(edit);
	lsm_edit_put(edit, &run);
	edit->seals = image->leaves;
	check_edit(rel, meta, edit);
	if (RelationNeedsWAL(rel))
		XLogEnsureRecordSpace(LSM_WAL_IMAGE_BLOCK + count - 1, 20);

	lsn = write_run(rel, meta_buffer, image, pages, count, edit, &plan);
	*seals = meta->seals;
	lsm_space_plan_finish(&plan, lsn);
	for (int i = 0; i < count; i++)
		UnlockReleaseBuffer(pages[i]);
	UnlockReleaseBuffer(meta_buffer);
	pfree(edit);
	return LSM_SEALED;
}

/*
 * Has VACUUM closed this gate?  Read without a lock: who misses the mark sees
 * it at the next call, and VACUUM waits for the pin in any case.
 */
bool
lsm_gate_is_closed(Buffer gate)
{
	return (lsm_page_opaque(BufferGetPage(gate))->flags & LSM_PAGE_CLOSED) != 0;
}

/* The block of the gate that is not the current one. */
BlockNumber
lsm_gate_other(Relation rel)
{
	Buffer		meta = lsm_meta_lock(rel, BUFFER_LOCK_SHARE);
	uint32		epoch = lsm_meta(BufferGetPage(meta))->gate_epoch;

	UnlockReleaseBuffer(meta);
	return LSM_BLOCK_GATE + (epoch + 1) % 2;
}

/*
 * Make the other gate the current one.
 *
 * REQUIRES: nobody holds the other gate: it has been drained.  Returns the block of the gate that was
 * closed, to be drained.
 */
BlockNumber
lsm_gate_flip(Relation rel)
{
	Buffer		meta = lsm_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE);
	uint32		epoch = lsm_meta(BufferGetPage(meta))->gate_epoch;
	Buffer		old = lsm_buffer_read(rel, LSM_BLOCK_GATE + epoch % 2, LSM_KIND(LSM_PAGE_GATE),
									  0, BUFFER_LOCK_EXCLUSIVE, NULL);
	Buffer		new = lsm_buffer_read(rel, LSM_BLOCK_GATE + (epoch + 1) % 2,
									  LSM_KIND(LSM_PAGE_GATE), 0, BUFFER_LOCK_EXCLUSIVE, NULL);
	BlockNumber closed = BufferGetBlockNumber(old);

	START_CRIT_SECTION();
	lsm_meta_flip_gate(BufferGetPage(meta));
	lsm_gate_set_closed(BufferGetPage(old), true);
	lsm_gate_set_closed(BufferGetPage(new), false);
	MarkBufferDirty(meta);
	MarkBufferDirty(old);
	MarkBufferDirty(new);
	if (RelationNeedsWAL(rel))
	{
		XLogRecPtr	lsn;

		XLogBeginInsert();
		XLogRegisterBuffer(0, meta, REGBUF_STANDARD);
		XLogRegisterBuffer(1, old, REGBUF_STANDARD);
		XLogRegisterBuffer(2, new, REGBUF_STANDARD);
		lsn = XLogInsert(LSM_RMGR_ID, XLOG_LSM_GATE_FLIP);
		PageSetLSN(BufferGetPage(meta), lsn);
		PageSetLSN(BufferGetPage(old), lsn);
		PageSetLSN(BufferGetPage(new), lsn);
	}
	END_CRIT_SECTION();
	UnlockReleaseBuffer(new);
	UnlockReleaseBuffer(old);
	UnlockReleaseBuffer(meta);
	return closed;
}

/*
 * Wait until nobody uses a closed gate any more, here and, through WAL, on
 * standbys.
 */
void
lsm_gate_drain(Relation rel, BlockNumber gate)
{
	Buffer		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, gate, RBM_NORMAL, NULL);
	const char *wrong;

	LockBufferForCleanup(buffer);
	wrong = lsm_buffer_verify(rel, buffer, false);
	if (wrong != NULL)
		lsm_report_corruption(rel, gate, wrong);
	START_CRIT_SECTION();
	lsm_page_unmark(BufferGetPage(buffer));
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
	{
		XLogRecPtr	lsn;

		XLogBeginInsert();
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		lsn = XLogInsert(LSM_RMGR_ID, XLOG_LSM_GATE_DRAIN);
		PageSetLSN(BufferGetPage(buffer), lsn);
	}
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}
