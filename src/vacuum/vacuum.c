/*
 * vacuum.c
 *	  The callbacks ambulkdelete and amvacuumcleanup.
 *
 * docs/design/vacuum.md has the phases and the proof that they suffice (I9).
 */
#include "postgres.h"

#include "base/preload.h"
#include "base/stop_point.h"
#include "commands/vacuum.h"
#include "format/buffer_page.h"
#include "format/leaf_read.h"
#include "miscadmin.h"
#include "schedule/schedule.h"
#include "storage/block_range.h"
#include "storage/buffers.h"
#include "storage/remove.h"
#include "utils/memutils.h"
#include "vacuum/vacuum.h"

/*
 * While we visit segments, merges write new ones, so we work in rounds.  Once a round ends with at
 * most FEW_LEAVES new leaves, we make merges wait, and visit these leaves and those of the steps
 * that were under way.  Merges may be faster than we are.  So we also make them wait after
 * MOST_ROUNDS rounds, and drop the cost delays after SLOW_ROUNDS.
 */
#define FEW_LEAVES	64
#define MOST_ROUNDS	10
#define SLOW_ROUNDS	3

/* Attempts to read the directories of a version before we lock the meta page to read them. */
#define MOST_ATTEMPTS	8

/* A segment to visit, or a page of the write buffer. */
typedef struct VacuumSegment
{
	uint64		id;
	uint64		run_id;
	BlockNumber start;
	uint32		leaves;
	uint64		entries;		/* by the manifest; 0: an open page, or an input that is
								 * partly merged */
	uint16		kind;			/* of its leaves: LSM_PAGE_* */
	bool		is_missed;		/* the latest visit found a page of another owner */
	bool		in_directory;
	LsmEntry	low;			/* in_directory: its first key, palloc'd */
	LsmBound   *frontier;		/* entries before it have been merged; or NULL */
} VacuumSegment;

/* Ids of segments, ascending. */
typedef struct IdSet
{
	uint64	   *ids;
	Size		count;
	Size		room;
} IdSet;

typedef struct VacuumState
{
	LsmIndex   *index;
	Relation	rel;
	LsmKeySpace *ks;
	BufferAccessStrategy strategy;
	IndexBulkDeleteResult *stats;
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	bool		hurries;		/* no cost delays: merges wait, or are faster than we are */

	LsmVersion *version;
	uint64		run_id;			/* the run whose segments are being listed */
	LsmBound   *frontier;		/* of the job that merges this run, or NULL */
	MemoryContext listing;		/* holds frontiers and keys of the segments */
	VacuumSegment *segments;	/* to be visited */
	Size		segment_count;
	Size		segment_room;
	IdSet		visited;		/* segments */
	IdSet		missed;			/* segments with a page of another owner */
	LsmBlockRange leaves;		/* of the segment being visited */

	LsmGroup	group;
	uint16		dead[LSM_MAX_PAGE_ENTRIES];
} VacuumState;

static bool
is_dead(void *arg, uint64 tid)
{
	VacuumState *v = arg;
	ItemPointerData ip;

	lsm_int_to_tid(tid, &ip);
	return v->callback(&ip, v->callback_state);
}

/* --- listing segments -------------------------------------------------------- */

static int
compare_ids(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

static bool
has_id(const IdSet *set, uint64 id)
{
	return set->count > 0 &&
		bsearch(&id, set->ids, set->count, sizeof(uint64), compare_ids) != NULL;
}

/* Add an id.  The caller sorts the set before it calls has_id. */
static void
add_id(IdSet *set, uint64 id)
{
	if (set->count == set->room)
	{
		set->room = Max(64, 2 * set->room);
		set->ids = set->ids ? repalloc_huge(set->ids, set->room * sizeof(uint64)) :
			palloc(set->room * sizeof(uint64));
	}
	set->ids[set->count++] = id;
}

static void
sort_ids(IdSet *set)
{
	if (set->count > 1)
		qsort(set->ids, set->count, sizeof(uint64), compare_ids);
}

static VacuumSegment *
add_segment(VacuumState *v, uint64 run_id, const LsmSegment *segment, uint16 kind)
{
	VacuumSegment *s;

	if (v->segment_count == v->segment_room)
	{
		v->segment_room = Max(64, 2 * v->segment_room);
		v->segments = v->segments ?
			repalloc_huge(v->segments, v->segment_room * sizeof(VacuumSegment)) :
			palloc(v->segment_room * sizeof(VacuumSegment));
	}
	s = &v->segments[v->segment_count++];
	memset(s, 0, sizeof(VacuumSegment));
	s->id = segment->id;
	s->run_id = run_id;
	s->start = segment->start;
	s->leaves = segment->leaves;
	s->entries = v->frontier == NULL ? segment->entries : 0;
	s->kind = kind;
	s->frontier = v->frontier;
	return s;
}

/* Called for each item of a directory. */
static void
note_directory_item(void *arg, BlockNumber block, Page page, int ordinal, const LsmDirectoryEntry *item)
{
	VacuumState *v = arg;
	VacuumSegment *s;
	uint8	   *key;

	if (item == NULL || item->segment.blocks == 0 || has_id(&v->visited, item->segment.id))
		return;
	s = add_segment(v, v->run_id, &item->segment, LSM_PAGE_LEAF);
	key = MemoryContextAlloc(v->listing, item->low.keylen + LSM_KEY_PAD);
	memcpy(key, item->low.key, item->low.keylen);
	memset(key + item->low.keylen, 0, LSM_KEY_PAD);
	s->in_directory = true;
	s->low = item->low;
	s->low.key = key;
	s->entries = item->segment.entries;
}

/*
 * Find the frontier of the job that merges a run.  Entries before the frontier are also in the
 * job's output, and are counted there.  Returns false if the version is out of date.
 */
static bool
find_job_frontier(VacuumState *v, const LsmRunRecord *run)
{
	LsmRunRecord *output = run->job_id != 0 ? lsm_version_find(v->version, run->job_id) : NULL;
	MemoryContext caller;
	LsmFindResult result;

	v->frontier = NULL;
	if (output == NULL || output->segments == 0)
		return true;
	caller = MemoryContextSwitchTo(v->listing);
	v->frontier = palloc0(sizeof(LsmBound));
	result = lsm_directory_last(v->index, output, v->version->edits, v->frontier);
	MemoryContextSwitchTo(caller);
	return result == LSM_FOUND;
}

/*
 * List the segments of the version that have not been visited.  Returns false if the version is out
 * of date.
 */
static bool
list_segments(VacuumState *v)
{
	v->segment_count = 0;
	MemoryContextReset(v->listing);
	for (uint32 i = 0; i < v->version->run_count; i++)
	{
		const LsmRunRecord *run = &v->version->runs[i];
		LsmSegment	segment;

		if (!lsm_run_is_read(run))
			continue;
		v->run_id = run->run_id;
		if (!find_job_frontier(v, run))
			return false;
		if (!lsm_run_is_single(run))
		{
			if (!lsm_directory_walk(v->index, run, v->version->edits, note_directory_item, v))
				return false;
			continue;
		}
		lsm_run_segment(run, &segment);
		if (!has_id(&v->visited, segment.id))
			add_segment(v, run->run_id, &segment,
						run->state == LSM_RUN_PACKED ? LSM_PAGE_LEAF : LSM_PAGE_BUFFER);
	}
	return true;
}

static int
compare_starts(const void *a, const void *b)
{
	BlockNumber x = ((const VacuumSegment *) a)->start;
	BlockNumber y = ((const VacuumSegment *) b)->start;

	return x < y ? -1 : x > y;
}

/*
 * If a merge has reached this segment, forget the count of its entries. Otherwise the merge may
 * still move the segment.
 */
static void
note_frontier(VacuumState *v, VacuumSegment *s)
{
	if (s->in_directory && s->frontier != NULL && lsm_bound_compare(v->ks, s->frontier, &s->low) <= 0)
		s->entries = 0;
}

/*
 * List the segments of the current version that have not been visited, in the order of their
 * blocks.  Returns the number of their leaves.
 */
static uint64
list_unvisited(VacuumState *v)
{
	uint64		leaves = 0;
	bool		done = false;

	for (int i = 0; i < MOST_ATTEMPTS && !done; i++)
	{
		lsm_version_update(v->index, v->version, NULL);
		done = list_segments(v);
	}
	if (!done)
	{
		Buffer		meta = lsm_meta_lock(v->rel, BUFFER_LOCK_SHARE);

		lsm_version_copy(v->version, lsm_meta(BufferGetPage(meta)));
		/* Nobody changes directories while we hold the meta page. */
		if (!list_segments(v))
			lsm_report_corruption(v->rel, LSM_BLOCK_META,
								  "page is not the directory page that the manifest names");
		UnlockReleaseBuffer(meta);
	}
	for (Size i = 0; i < v->segment_count; i++)
		note_frontier(v, &v->segments[i]);
	qsort(v->segments, v->segment_count, sizeof(VacuumSegment), compare_starts);
	for (Size i = 0; i < v->segment_count; i++)
		leaves += v->segments[i].leaves;
	return leaves;
}

/* --- visiting segments ------------------------------------------------------- */

/*
 * Returns how many of the dead entries a merge has not reached, so that the run's count includes
 * them. The page is a copy from before their removal.
 */
static int
count_dead_past_frontier(VacuumState *v, const VacuumSegment *s, Page page, int dead)
{
	int			counted = 0;
	int			ordinal = 0;
	int			next = 0;

	if (s->kind == LSM_PAGE_BUFFER)
	{
		for (int i = 0; i < dead; i++)
		{
			LsmEntry	entry;

			counted += lsm_buffer_page_get(page, v->dead[i], &entry) &&
				lsm_bound_compare(v->ks, s->frontier, &entry) > 0;
		}
		return counted;
	}
	for (int g = 0; g < lsm_leaf_group_count(page) && next < dead; g++)
	{
		if (!lsm_leaf_decode_group(page, g, &v->group))
			break;
		for (int i = 0; i < v->group.count && next < dead; i++, ordinal++)
		{
			if (v->dead[next] != ordinal)
				continue;
			counted += lsm_bound_compare(v->ks, s->frontier, &v->group.entries[i]) > 0;
			next++;
		}
	}
	return counted;
}

/*
 * Remove the dead entries of a page, and count its entries.  Returns false if the page has another
 * owner.
 */
static bool
visit_page(VacuumState *v, const VacuumSegment *s, uint32 leaf, LsmBound *low,
		   uint64 *found, LsmRemoved *removed)
{
	Buffer		buffer;
	PGAlignedBlock before;
	bool		missed;
	bool		is_counted;
	int			dead;
	int			total;

	if (v->hurries)
		CHECK_FOR_INTERRUPTS();
	else
		lsm_vacuum_delay_point();
	/* Holds no lock, except the merge lock (exclusive) in the last rounds. */
	LSM_STOP_POINT("vacuum-page");
	missed = lsm_block_range_read(&v->leaves, s->start + leaf, &buffer);
	buffer = lsm_buffer_lock_owned(v->rel, buffer, missed, s->kind, s->id, BUFFER_LOCK_EXCLUSIVE);
	if (!BufferIsValid(buffer))
		return false;
	dead = lsm_remove_find(v->rel, buffer, is_dead, v, &v->group, v->dead, &total);
	/* The segment may move to a directory before its counts are noted.  Then `low` locates it. */
	if (low->key == NULL && total > 0 && s->kind == LSM_PAGE_LEAF)
	{
		LsmEntry	first;

		if (lsm_leaf_first_of_group(BufferGetPage(buffer), 0, &first))
			lsm_bound_set_entry(low, &first, 1);
	}
	/* The manifest does not count the entries of a page until the page is sealed (I7). */
	is_counted = (lsm_page_opaque(BufferGetPage(buffer))->flags & LSM_PAGE_OPEN) == 0;
	if (dead > 0)
	{
		if (is_counted && s->frontier != NULL)
			memcpy(before.data, BufferGetPage(buffer), BLCKSZ);
		removed->all += dead;
		lsm_remove(v->rel, buffer, v->dead, dead, InvalidTransactionId, false, &v->group);
		v->stats->tuples_removed += dead;
	}
	removed->empty &= dead == total;
	*found += total;
	UnlockReleaseBuffer(buffer);
	/* Comparing with the frontier may run user code, so the page is unlocked by now. */
	if (dead > 0 && is_counted)
		removed->counted += s->frontier == NULL ? dead :
			count_dead_past_frontier(v, s, before.data, dead);
	return true;
}

/*
 * Visit a segment.  Returns the number of leaves visited.  If some leaves are missing, a merge has
 * put their entries into other segments, which we visit later.
 */
static uint32
visit_segment(VacuumState *v, const VacuumSegment *s)
{
	LsmRemoved	removed = {0, 0, s->kind == LSM_PAGE_LEAF};
	bool		is_there;
	LsmBound	low = {0};
	uint64		found = 0;
	uint32		leaf = 0;

	if (s->in_directory)
		lsm_bound_set_entry(&low, &s->low, 1);
	lsm_block_range_begin(&v->leaves, v->rel, s->start, s->leaves, v->strategy);
	while (leaf < s->leaves && visit_page(v, s, leaf, &low, &found, &removed))
		leaf++;
	lsm_block_range_end(&v->leaves);
	is_there = leaf == s->leaves;
	removed.empty &= is_there;
	/* Scans remove entries without changing the manifest (kill_dead.c). */
	if (is_there && s->entries > found)
	{
		removed.all += s->entries - found;
		removed.counted += s->entries - found;
	}
	if (removed.all > 0 || removed.empty)
		lsm_manifest_note_removed(v->index, v->ks, s->run_id, s->id, &low, &removed);
	if (low.key != NULL)
		pfree(low.key);
	return leaf;
}

/*
 * Visit the listed segments.  Returns false if one was missed.  If the same segment is missed
 * again, the index is damaged, and we raise an error.  Otherwise we would leave dead entries
 * behind, and they would point to any new rows that reuse their TIDs.
 */
static bool
visit_listed(VacuumState *v)
{
	Size		missed = v->missed.count;

	for (Size i = 0; i < v->segment_count; i++)
	{
		VacuumSegment *s = &v->segments[i];
		uint32		leaf = visit_segment(v, s);

		s->is_missed = leaf < s->leaves;
		if (s->is_missed && has_id(&v->missed, s->id))
			lsm_report_corruption(v->rel, s->start + leaf,
								  "page does not belong to the segment that names it");
	}
	for (Size i = 0; i < v->segment_count; i++)
		add_id(v->segments[i].is_missed ? &v->missed : &v->visited, v->segments[i].id);
	sort_ids(&v->visited);
	sort_ids(&v->missed);
	return v->missed.count == missed;
}

/* --- callbacks ------------------------------------------------------------------ */

/* Returns the number of entries on an open page, or 0 if the page has another owner by now. */
static double
count_open_page(LsmIndex *index, const LsmRunRecord *run)
{
	Buffer		buffer = lsm_buffer_read_owned(index->rel, run->start, LSM_PAGE_BUFFER,
											   run->run_id, BUFFER_LOCK_SHARE, NULL);
	double		count = 0;

	if (BufferIsValid(buffer))
	{
		count = lsm_buffer_page_count(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
	}
	return count;
}

static void
fill_stats(LsmIndex *index, IndexBulkDeleteResult *stats)
{
	LsmVersion *version = lsm_version_read(index);
	double		entries = 0;

	for (uint32 i = 0; i < version->run_count; i++)
	{
		const LsmRunRecord *run = &version->runs[i];

		if (run->state == LSM_RUN_OPEN)
			entries += count_open_page(index, run);
		else if (lsm_run_is_read(run))
			entries += run->entries;
	}
	stats->pages_free = version->space.free_blocks;
	stats->num_pages = RelationGetNumberOfBlocks(index->rel);
	stats->num_index_tuples = entries;
	stats->estimated_count = false;
	pfree(version);
}

static VacuumState *
begin_vacuum(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			 IndexBulkDeleteCallback callback, void *callback_state)
{
	VacuumState *v = palloc0(sizeof(VacuumState));

	v->rel = info->index;
	v->index = lsm_index_open(info->index);
	v->ks = lsm_index_keyspace(v->index);
	v->strategy = info->strategy;
	v->stats = stats;
	v->callback = callback;
	v->callback_state = callback_state;
	v->version = palloc0(sizeof(LsmVersion));
	v->listing = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm vacuum",
									   ALLOCSET_DEFAULT_SIZES);
	lsm_group_init(&v->group, LSM_MAX_ENTRY_SIZE);
	return v;
}

static void
end_vacuum(VacuumState *v)
{
	lsm_group_free(&v->group);
	MemoryContextDelete(v->listing);
	if (v->segments)
		pfree(v->segments);
	if (v->visited.ids)
		pfree(v->visited.ids);
	if (v->missed.ids)
		pfree(v->missed.ids);
	pfree(v->version);
	pfree(v);
}

/* ambulkdelete: remove all entries whose TIDs the callback calls dead.  Establishes I9. */
IndexBulkDeleteResult *
lsm_am_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				   IndexBulkDeleteCallback callback, void *state)
{
	VacuumState *v;
	BlockNumber gate;
	LsmOwnerContext saved;

	/*
	 * Unless the library is preloaded, we cannot write, so we must raise an error.  Otherwise
	 * VACUUM would free the line pointers, and our entries would point to any new rows that reuse
	 * them.
	 */
	lsm_require_preload("Until then, VACUUM (INDEX_CLEANUP off) skips the index and does not reuse the "
						"space of dead rows. Or use DROP INDEX.");
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	v = begin_vacuum(info, stats, callback, state);
	lsm_owner_enter_schemas(v->ks, &saved);

	/*
	 * An interrupted VACUUM may have left scans under the gate that our flip makes current again.
	 * Wait for these scans first.  If we waited later, merges would write segments during the wait,
	 * and we would have to visit these segments while merges wait for us.
	 */
	lsm_gate_drain(v->rel, lsm_gate_other(v->rel));

	/* Visit all segments, then those that merges have written in the meantime. */
	list_unvisited(v);
	visit_listed(v);
	for (int round = 0; round < MOST_ROUNDS && list_unvisited(v) > FEW_LEAVES; round++)
	{
		v->hurries = round >= SLOW_ROUNDS;
		visit_listed(v);
	}
	lsm_manifest_drop_empty(v->index);

	/* Now no step runs, so every entry is on some page. */
	lsm_merge_lock(v->rel, ExclusiveLock, true);
	v->hurries = true;
	do
		list_unvisited(v);
	while (!visit_listed(v));
	/* Holds merge lock (exclusive).  No page has a dead entry, but scans may have copies. */
	LSM_STOP_POINT("vacuum-flip");
	gate = lsm_gate_flip(v->rel);
	lsm_merge_unlock(v->rel, ExclusiveLock);

	/* Holds no lock.  The gate that old scans pin is no longer current, but not yet drained. */
	LSM_STOP_POINT("vacuum-drain");
	lsm_gate_drain(v->rel, gate);
	lsm_owner_leave(&saved);
	fill_stats(v->index, stats);
	end_vacuum(v);
	return stats;
}

/* amvacuumcleanup: free spent runs, truncate the file, and fill in the statistics. */
IndexBulkDeleteResult *
lsm_am_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	LsmIndex   *index;

	if (info->analyze_only || lsm_warn_of_preload(info->index))
		return stats;
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	index = lsm_index_open(info->index);
	lsm_manifest_reap(index);
	if (lsm_truncation_is_wanted(index))
	{
		if (IsInParallelMode())
			lsm_request_truncate(index);
		else
			(void) lsm_truncate(index);
	}
	/* After a restart, nobody else may know about an unfinished merge. */
	lsm_request_note(index, true);
	fill_stats(index, stats);
	return stats;
}
