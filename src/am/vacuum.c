/*
 * vacuum.c
 *	  ambulkdelete and amvacuumcleanup.
 *
 * See "VACUUM" in src/README.md for the phases and why they suffice (I11).
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "am/am.h"
#include "base/preload.h"
#include "commands/vacuum.h"
#include "compact/compact.h"
#include "format/buffer_page.h"
#include "format/wal.h"
#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "storage/space.h"

/*
 * Merges go on while we visit what they have written.  When they have written
 * less than that meanwhile, the rest is visited under the compaction lock; or
 * after so many attempts, if they are faster than we are.
 */
#define FEW_LEAVES	64
#define MOST_ROUNDS	10

/* What VACUUM has seen of a run. */
typedef struct RunTally
{
	uint64		run_id;
	uint64		removed;		/* entries, not counting an open page's */
	uint32		empty_leaves;	/* of a packed run, found in phase 1 */
	BlockNumber empty_to;		/* last leaf, if all of them are; or invalid */
} RunTally;

typedef struct VacuumState
{
	Relation	rel;
	Relation	heap;			/* or NULL */
	BufferAccessStrategy strategy;
	IndexBulkDeleteResult *stats;
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	LsmVersion *seen;			/* all its runs have been visited */
	bool		first_phase;	/* each block is visited once in it */
	bool		locked;			/* nobody can merge: make haste */
	int			tally_count;
	RunTally	tallies[2 * LSM_MAX_RUNS];
	LsmGroup	group;
	uint16		dead[LSM_MAX_PAGE_ENTRIES];
} VacuumState;

static RunTally *
get_tally(VacuumState *v, uint64 run_id)
{
	RunTally   *tally;

	for (int i = 0; i < v->tally_count; i++)
	{
		if (v->tallies[i].run_id == run_id)
			return &v->tallies[i];
	}
	if (v->tally_count == lengthof(v->tallies))
		return NULL;			/* only the statistics suffer */
	tally = &v->tallies[v->tally_count++];
	memset(tally, 0, sizeof(RunTally));
	tally->run_id = run_id;
	tally->empty_to = InvalidBlockNumber;
	return tally;
}

static inline bool
is_dead(VacuumState *v, uint64 tid)
{
	ItemPointerData ip;

	lsm_int_to_tid(tid, &ip);
	return v->callback(&ip, v->callback_state);
}

/*
 * Collect the ordinals of dead entries of a checked page in v->dead; returns
 * their number and the number of entries.
 */
static int
find_dead(VacuumState *v, Page page, BlockNumber block, int *total)
{
	int			dead = 0;
	int			ordinal = 0;

	if (lsm_page_opaque(page)->kind == LSM_PAGE_BUFFER)
	{
		for (; ordinal < lsm_buffer_page_count(page); ordinal++)
		{
			LsmEntry	entry;

			if (!lsm_buffer_page_get(page, ordinal, &entry))
				lsm_report_corruption(v->rel, block, "item is out of bounds");
			if (is_dead(v, entry.tid))
				v->dead[dead++] = ordinal;
		}
	}
	else
	{
		for (int g = 0; g < lsm_leaf_group_count(page); g++)
		{
			if (!lsm_leaf_decode_group(page, g, &v->group))
				lsm_report_corruption(v->rel, block, "entries cannot be decoded");
			for (int i = 0; i < v->group.count; i++, ordinal++)
			{
				if (is_dead(v, v->group.entries[i].tid))
					v->dead[dead++] = ordinal;
			}
		}
	}
	Assert(dead <= LSM_MAX_PAGE_ENTRIES);
	*total = ordinal;
	return dead;
}

/* Remove v->dead[0..count) from the locked page. */
static void
remove_dead(VacuumState *v, Buffer buffer, int count)
{
	Page		page = BufferGetPage(buffer);

	START_CRIT_SECTION();
	if (lsm_page_opaque(page)->kind == LSM_PAGE_BUFFER)
		lsm_buffer_page_delete(page, v->dead, count);
	else if (!lsm_leaf_delete(page, v->dead, count, &v->group))
		elog(PANIC, "pg_lsm: checked page cannot be decoded");
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(v->rel))
	{
		xl_lsm_delete xlrec;
		XLogRecPtr	lsn;

		xlrec.count = count;
		XLogBeginInsert();
		XLogRegisterData((char *) &xlrec, sizeof(xlrec));
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		XLogRegisterBufData(0, (char *) v->dead, count * sizeof(uint16));
		lsn = XLogInsert(LSM_RMGR_ID, XLOG_LSM_DELETE);
		PageSetLSN(page, lsn);
	}
	END_CRIT_SECTION();
}

/*
 * Visit one block if it is a leaf or buffer page of a run in `version` (and of
 * run_id unless that is 0).  VACUUM holds back no horizon, so a block may have
 * been recycled: its own word counts (I4).  *next is the right neighbour.
 */
static bool
visit_block(VacuumState *v, BlockNumber block, LsmVersion *version, uint64 run_id,
			BlockNumber *next)
{
	Buffer		buffer;
	Page		page;
	LsmPageOpaque *opaque;
	RunTally   *tally;
	const char *wrong;
	bool		missed;
	int			dead;
	int			total;

	if (v->locked)
		CHECK_FOR_INTERRUPTS();
	else
		lsm_vacuum_delay_point();
	missed = lsm_buffer_read_counted(v->rel, block, v->strategy, &buffer);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	page = BufferGetPage(buffer);
	if (PageIsNew(page) || PageGetSpecialSize(page) != sizeof(LsmPageOpaque))
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	opaque = lsm_page_opaque(page);
	if ((opaque->kind != LSM_PAGE_LEAF && opaque->kind != LSM_PAGE_BUFFER) ||
		(run_id != 0 && opaque->run_id != run_id) ||
		lsm_version_find(version, opaque->run_id) == NULL)
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	wrong = lsm_buffer_verify(v->rel, buffer, missed);
	if (wrong != NULL)
		lsm_report_corruption(v->rel, block, wrong);

	tally = get_tally(v, opaque->run_id);
	dead = find_dead(v, page, block, &total);
	if (dead > 0)
	{
		remove_dead(v, buffer, dead);
		v->stats->tuples_removed += dead;
		/* The count of an open page is taken when it is sealed. */
		if (tally != NULL && !(opaque->flags & LSM_PAGE_OPEN))
			tally->removed += dead;
	}
	if (tally != NULL && dead == total && v->first_phase && opaque->kind == LSM_PAGE_LEAF &&
		lsm_version_find(version, opaque->run_id)->state == LSM_RUN_PACKED)
		tally->empty_leaves++;
	*next = opaque->next;
	UnlockReleaseBuffer(buffer);
	return true;
}

/* Phase 1: everything, in physical order. */
static void
visit_all(VacuumState *v)
{
	BlockNumber end;
	BlockNumber next;

	/* In this order: all blocks of the version's runs are below `end`. */
	v->seen = lsm_version_read(v->rel, NULL);
	end = RelationGetNumberOfBlocks(v->rel);
	v->first_phase = true;
	for (BlockNumber block = LSM_FIXED_BLOCKS; block < end; block++)
		visit_block(v, block, v->seen, 0, &next);
	v->first_phase = false;
}

/*
 * Visit what `seen` does not cover: runs with new ids, and leaves that a run
 * has got since, under construction or appended to.  Leaves are followed by
 * their links.  Returns about how many they were.
 */
static uint64
visit_news(VacuumState *v)
{
	LsmVersion *version = lsm_version_read(v->rel, NULL);
	uint64		leaves = 0;

	for (uint32 i = 0; i < version->run_count; i++)
	{
		LsmRunRecord *run = &version->runs[i];
		LsmRunRecord *before = lsm_version_find(v->seen, run->run_id);
		BlockNumber block = run->first_leaf;
		bool		complete = false;

		/* A part's pages are those of the run under construction. */
		if (run->leaves == 0 || run->state == LSM_RUN_PART)
			continue;
		if (before != NULL && before->state != LSM_RUN_BUILDING &&
			before->last_leaf == run->last_leaf)
			continue;
		/* A part may have taken that leaf since: then it is free, or used again. */
		if (before != NULL && before->leaves > 0 && !(run->flags & LSM_RUN_CUT))
			block = before->last_leaf;
		for (uint32 n = 0; BlockNumberIsValid(block) && n <= run->leaves && !complete; n++)
		{
			BlockNumber here = block;

			if (!visit_block(v, here, version, run->run_id, &block))
				break;
			complete = here == run->last_leaf;
			leaves++;
		}
		/* A frontier passed us: see all of it the next time. */
		if (!complete)
		{
			leaves += run->leaves;
			run->leaves = 0;
			run->last_leaf = InvalidBlockNumber;
		}
	}
	pfree(v->seen);
	v->seen = version;
	return leaves;
}

/*
 * Are all leaves of a packed run empty?  Counting is not enough: a step that
 * failed may have left other pages with its id that look like leaves.  A run
 * that a merge has replaced meanwhile is not, whatever its blocks hold by now.
 */
static bool
is_empty(VacuumState *v, const LsmRunRecord *run)
{
	BlockNumber block = run->first_leaf;

	for (uint32 n = 0; n < run->leaves && BlockNumberIsValid(block); n++)
	{
		Buffer		buffer;
		Page		page;
		const char *wrong;
		bool		missed;
		bool		empty;
		bool		last = block == run->last_leaf;

		lsm_vacuum_delay_point();
		missed = lsm_buffer_read_counted(v->rel, block, v->strategy, &buffer);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		empty = lsm_page_check_header(page, block) == NULL &&
			lsm_page_opaque(page)->kind == LSM_PAGE_LEAF &&
			lsm_page_opaque(page)->run_id == run->run_id && lsm_leaf_group_count(page) == 0;
		if (empty)
		{
			wrong = lsm_buffer_verify(v->rel, buffer, missed);
			if (wrong != NULL)
				lsm_report_corruption(v->rel, block, wrong);
			block = lsm_page_opaque(page)->next;
		}
		UnlockReleaseBuffer(buffer);
		if (!empty || last)
			return empty;
	}
	return false;
}

/*
 * Note which runs are empty.  Reading all of one takes its time, so that is
 * done before others have to wait; nothing is added to a run but at its end.
 */
static void
note_empty(VacuumState *v)
{
	for (int i = 0; i < v->tally_count; i++)
	{
		RunTally   *tally = &v->tallies[i];
		LsmRunRecord *run = lsm_version_find(v->seen, tally->run_id);

		if (run != NULL && run->job_id == 0 && run->state == LSM_RUN_PACKED &&
			tally->empty_leaves >= run->leaves && is_empty(v, run))
			tally->empty_to = run->last_leaf;
	}
}

/*
 * Keep the manifest's entry counts, and drop packed runs whose leaves are all
 * empty: nothing can be added to them.
 *
 * REQUIRES: the compaction lock, so that no job takes the runs meanwhile.
 */
static void
update_manifest(VacuumState *v)
{
	LsmEdit    *edit = palloc(sizeof(LsmEdit));

	lsm_edit_init(edit);
	for (int i = 0; i < v->tally_count; i++)
	{
		RunTally   *tally = &v->tallies[i];
		LsmRunRecord *run = lsm_version_find(v->seen, tally->run_id);

		if (run == NULL)
			continue;
		if (run->job_id == 0 && run->state == LSM_RUN_PACKED &&
			BlockNumberIsValid(tally->empty_to) && tally->empty_to == run->last_leaf)
			lsm_edit_remove(edit, run->run_id);
		else if (tally->removed > 0 && run->state != LSM_RUN_OPEN)
		{
			const LsmRunRecord *part = lsm_version_part(v->seen, run->run_id);

			lsm_edit_deduct(edit, run->run_id, tally->removed);
			/* A part's pages are those of the run under construction. */
			if (part != NULL)
				lsm_edit_deduct(edit, part->run_id, tally->removed);
		}
	}
	if (edit->count > 0)
		lsm_manifest_edit(v->rel, edit);
	pfree(edit);
}

static void
fill_stats(Relation rel, IndexBulkDeleteResult *stats)
{
	LsmVersion *version = lsm_version_read(rel, NULL);
	double		entries = 0;
	int			count;
	BlockNumber mapped_end;
	LsmExtent  *extents;

	for (uint32 i = 0; i < version->run_count; i++)
	{
		LsmRunRecord *run = &version->runs[i];

		if (run->state == LSM_RUN_BUILDING)
			continue;
		if (run->state == LSM_RUN_OPEN)
		{
			Buffer		buffer = ReadBuffer(rel, run->root);

			LockBuffer(buffer, BUFFER_LOCK_SHARE);
			if (lsm_page_check_header(BufferGetPage(buffer), run->root) == NULL &&
				lsm_page_opaque(BufferGetPage(buffer))->kind == LSM_PAGE_BUFFER)
				entries += lsm_buffer_page_count(BufferGetPage(buffer));
			UnlockReleaseBuffer(buffer);
		}
		else
			entries += run->entries;
	}
	pfree(version);

	extents = lsm_space_list(rel, &count, &mapped_end);
	stats->pages_free = 0;
	for (int i = 0; i < count; i++)
	{
		if (extents[i].owner == LSM_OWNER_FREE)
			stats->pages_free += extents[i].length;
	}
	pfree(extents);
	stats->num_pages = RelationGetNumberOfBlocks(rel);
	stats->num_index_tuples = entries;
	stats->estimated_count = false;
}

/*
 * Remove all entries whose TIDs the callback calls dead.  When this returns no
 * scan can come upon such a TID any more.
 */
IndexBulkDeleteResult *
lsm_am_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				   IndexBulkDeleteCallback callback, void *state)
{
	VacuumState *v = palloc0(sizeof(VacuumState));
	BlockNumber gate;

	/*
	 * This must not be left out: VACUUM would free the line pointers, and our
	 * entries lead to whatever rows get them next.
	 */
	lsm_require_preload("Until then VACUUM (INDEX_CLEANUP off) leaves the index alone, and the places "
						"of dead rows unused; or use DROP INDEX.");
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	v->rel = info->index;
	v->heap = lsm_vacuum_heap_relation(info);
	v->strategy = info->strategy;
	v->stats = stats;
	v->callback = callback;
	v->callback_state = state;
	lsm_group_init(&v->group, LSM_MAX_ENTRY_SIZE);

	visit_all(v);
	for (int round = 0; round < MOST_ROUNDS && visit_news(v) > FEW_LEAVES; round++)
		;
	note_empty(v);

	/*
	 * A VACUUM that was interrupted after its flip may have left scans under
	 * the gate that is about to become the current one again.
	 */
	lsm_gate_drain(v->rel, lsm_gate_other(v->rel));

	/* Now no step is running: every entry is on some page. */
	lsm_compaction_lock(v->rel, true);
	v->locked = true;
	visit_news(v);
	update_manifest(v);
	gate = lsm_gate_flip(v->rel);
	lsm_compaction_unlock(v->rel);

	lsm_gate_drain(v->rel, gate);
	fill_stats(v->rel, stats);
	lsm_group_free(&v->group);
	pfree(v->seen);
	pfree(v);
	return stats;
}

/* After all bulk deletes: take stock, free what interrupted merges have left. */
IndexBulkDeleteResult *
lsm_am_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	Relation	rel = info->index;

	if (info->analyze_only || lsm_warn_of_preload(rel))
		return stats;
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	if (lsm_compaction_lock(rel, false))
	{
		lsm_job_recover_failed(rel, lsm_vacuum_heap_relation(info));
		lsm_space_reclaim(rel, lsm_vacuum_heap_relation(info));
		lsm_compaction_unlock(rel);
	}
	/* After a restart nobody else may know that a merge was under way. */
	lsm_request_note(rel);
	fill_stats(rel, stats);
	return stats;
}
