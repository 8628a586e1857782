/*
 * directory.c
 *	  Directories: the trees that name the segments of a run.
 *
 * Directories change only with edits, so under the exclusive lock of the meta
 * page.  Readers lock a directory page for as long as it takes to search or to copy it,
 * and look at its stamp: a page that was changed after the reader's version was
 * taken tells it that the version is old.  What it comes upon otherwise is the
 * directory just as it was in that version.
 *
 * Items are added behind the last one and stay where they are.  The item of a
 * segment of which nothing is left has no blocks, and is passed over; its keys
 * still say how far the run goes.  Nor has the item of a directory page that is
 * freed because VACUUM has emptied all its segments.
 */
#include "postgres.h"

#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/* Lock a directory page, as the version knows it.  InvalidBuffer: it is older than the page. */
static Buffer
lock_directory_page(LsmIndex *index, const LsmRunRecord *run, uint64 edits, BlockNumber block)
{
	Buffer		buffer = lsm_buffer_read_recent(index->rel, block, LSM_PAGE_DIRECTORY,
												run->run_id, NULL);

	if (!BufferIsValid(buffer))
	{
		if (edits == LSM_ANY_EDIT)
			lsm_report_corruption(index->rel, block, "page is not a directory page of its run");
		return InvalidBuffer;
	}
	if (lsm_page_opaque(BufferGetPage(buffer))->stamp <= edits)
		return buffer;
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

/* Copy a directory page.  False if the version is older than the page. */
static bool
read_directory_page(LsmIndex *index, const LsmRunRecord *run, uint64 edits, BlockNumber block,
					Page copy)
{
	Buffer		buffer = lock_directory_page(index, run, edits, block);

	if (!BufferIsValid(buffer))
		return false;
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	return true;
}

static void
report_directory_item(LsmIndex *index, BlockNumber block)
{
	lsm_report_corruption(index->rel, block, "item of a directory is out of bounds");
}

static void
get_directory_item(LsmIndex *index, BlockNumber block, Page page, int ordinal,
				   LsmDirectoryEntry *item)
{
	if (!lsm_directory_page_get(page, ordinal, item))
		report_directory_item(index, block);
}

/* How many items of the page begin (by_high: end) before the bound? */
static int
count_items_before(LsmIndex *index, LsmKeySpace *ks, BlockNumber block, Page page,
				   const LsmBound *bound, bool by_high)
{
	int			low = 0;
	int			high = lsm_directory_page_count(page);

	while (low < high)
	{
		int			middle = (low + high) / 2;
		LsmEntry	end;

		if (!lsm_directory_page_get_end(page, middle, by_high, &end))
			report_directory_item(index, block);
		if (lsm_bound_compare(ks, bound, &end) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A search, and where its result goes. */
typedef struct Search
{
	LsmIndex   *index;
	LsmKeySpace *ks;
	const LsmRunRecord *run;
	uint64		edits;
	const LsmBound *bound;
	bool		forward;
	LsmFoundSegment *found;
} Search;

/* The child that the search begins with is not known yet. */
#define FIRST_CHILD (-2)

static LsmFindResult
search_segments(Search *s, BlockNumber block, Page page)
{
	int			count = lsm_directory_page_count(page);
	int			at = count_items_before(s->index, s->ks, block, page, s->bound, s->forward);
	int			step = s->forward ? 1 : -1;

	for (at = s->forward ? at : at - 1; at >= 0 && at < count; at += step)
	{
		LsmDirectoryEntry item;

		get_directory_item(s->index, block, page, at, &item);
		if (item.segment.blocks == 0)
			continue;
		s->found->segment = item.segment;
		s->found->page = block;
		s->found->ordinal = at;
		lsm_bound_set_entry(&s->found->low, &item.low, 1);
		lsm_bound_set_entry(&s->found->high, &item.high, -1);
		return LSM_FOUND;
	}
	return LSM_FOUND_NONE;
}

/*
 * The child of a page above level 1 to look into: number *at, or the next one that has
 * not been freed.  LSM_FOUND_NONE if there is none.
 */
static LsmFindResult
search_children(Search *s, BlockNumber block, Page page, int *at, BlockNumber *child)
{
	int			count = lsm_directory_page_count(page);
	int			step = s->forward ? 1 : -1;

	/* At first the last one that begins before the bound; what it lacks its neighbours may have. */
	if (*at == FIRST_CHILD)
	{
		*at = count_items_before(s->index, s->ks, block, page, s->bound, false) - 1;
		if (s->forward)
			*at = Max(*at, 0);
	}
	for (; *at >= 0 && *at < count; *at += step)
	{
		LsmDirectoryEntry item;

		get_directory_item(s->index, block, page, *at, &item);
		if (item.segment.blocks == 0)
			continue;
		*child = item.segment.start;
		*at += step;
		return LSM_FOUND;
	}
	return LSM_FOUND_NONE;
}

/*
 * Look at one page: for a segment at level 1, else for a child.  Encoded keys are
 * compared under the page's lock.  Other comparisons may call anything, so they get
 * a copy.
 */
static LsmFindResult
search_one_page(Search *s, BlockNumber block, int level, int *at, BlockNumber *child)
{
	PGAlignedBlock copy;
	Buffer		buffer = lock_directory_page(s->index, s->run, s->edits, block);
	Page		page;
	LsmFindResult result;

	if (!BufferIsValid(buffer))
		return LSM_FOUND_STALE;
	page = BufferGetPage(buffer);
	if (!s->ks->encoded)
	{
		memcpy(copy.data, page, BLCKSZ);
		page = copy.data;
		UnlockReleaseBuffer(buffer);
		buffer = InvalidBuffer;
	}
	if (lsm_directory_header(page)->level != level)
		lsm_report_corruption(s->index->rel, block, "directory page is of another level");
	if (level == 1)
		result = search_segments(s, block, page);
	else
		result = search_children(s, block, page, at, child);
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	return result;
}

/* Look below a page. Its lock is not held meanwhile: edits lock several, in any order. */
static LsmFindResult
search_below_page(Search *s, BlockNumber block, int level)
{
	BlockNumber child = InvalidBlockNumber;
	int			at = FIRST_CHILD;

	check_stack_depth();
	for (;;)
	{
		LsmFindResult result = search_one_page(s, block, level, &at, &child);

		if (level == 1 || result != LSM_FOUND)
			return result;
		result = search_below_page(s, child, level - 1);
		if (result != LSM_FOUND_NONE)
			return result;
	}
}

/*
 * Find the first segment that ends after the bound (backward: the last one that
 * begins before it), in the version of that edit.
 *
 * REQUIRES: the run has a directory.  found->low and high are zeroed, or were
 * used before; their memory is the current context's.
 */
LsmFindResult
lsm_directory_find(LsmIndex *index, LsmKeySpace *ks, const LsmRunRecord *run, uint64 edits,
				   const LsmBound *bound, ScanDirection direction, LsmFoundSegment *found)
{
	Search		s = {index, ks, run, edits, bound, ScanDirectionIsForward(direction), found};

	return search_below_page(&s, run->start, run->dir_height);
}

/*
 * Copy the directory page on which a search has found a segment: those behind it are
 * wanted, too.  LSM_FOUND_STALE if the version is older than the page.
 */
LsmFindResult
lsm_directory_copy(LsmIndex *index, const LsmRunRecord *run, uint64 edits,
				   const LsmFoundSegment *found, Page copy)
{
	return read_directory_page(index, run, edits, found->page, copy) ? LSM_FOUND : LSM_FOUND_STALE;
}

/* Where a run ends: the bound after the last entry that its segments were written with. */
LsmFindResult
lsm_directory_last(LsmIndex *index, const LsmRunRecord *run, uint64 edits, LsmBound *high)
{
	PGAlignedBlock room;
	Page		page = room.data;
	BlockNumber block = run->start;

	for (int level = run->dir_height; level > 0; level--)
	{
		LsmDirectoryEntry item;

		if (!read_directory_page(index, run, edits, block, page))
			return LSM_FOUND_STALE;
		get_directory_item(index, block, page, lsm_directory_page_count(page) - 1, &item);
		if (level == 1)
			lsm_bound_set_entry(high, &item.high, -1);
		block = item.segment.start;
	}
	return LSM_FOUND;
}

static bool
walk_directory_page(LsmIndex *index, const LsmRunRecord *run, uint64 edits, BlockNumber block,
					int level, LsmDirectoryVisitor visit, void *arg)
{
	PGAlignedBlock room;
	Page		page = room.data;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (!read_directory_page(index, run, edits, block, page))
		return false;
	if (lsm_directory_header(page)->level != level)
		lsm_report_corruption(index->rel, block, "directory page is of another level");
	visit(arg, block, page, -1, NULL);
	for (int i = 0; i < lsm_directory_page_count(page); i++)
	{
		LsmDirectoryEntry item;

		get_directory_item(index, block, page, i, &item);
		if (level == 1)
			visit(arg, block, page, i, &item);
		else if (item.segment.blocks > 0 &&
				 !walk_directory_page(index, run, edits, item.segment.start, level - 1, visit, arg))
			return false;
	}
	return true;
}

/*
 * Visit all pages of a directory from the root down, and all items of the lowest
 * ones, those without blocks included, in the order of their keys.  False when
 * it has changed since that edit: then some of it was visited.
 */
bool
lsm_directory_walk(LsmIndex *index, const LsmRunRecord *run, uint64 edits,
				   LsmDirectoryVisitor visit, void *arg)
{
	return walk_directory_page(index, run, edits, run->start, run->dir_height, visit, arg);
}

/* --- changes: the caller has begun a change ------------------------------------- */

static LsmChangedPage *
change_directory(LsmChange *change, const LsmRunRecord *run, BlockNumber block)
{
	return lsm_change_page(change, block, LSM_PAGE_DIRECTORY, run->run_id);
}

/* A new directory page, without items. */
static LsmChangedPage *
new_directory_page(LsmChange *change, const LsmRunRecord *run, int level)
{
	LsmDirectoryInit init;
	LsmChangedPage *page;

	memset(&init, 0, sizeof(init));
	lsm_space_take(change, 1, 1, false, &init.self);
	init.run_id = run->run_id;
	init.level = level;
	page = lsm_change_new_page(change, init.self);
	lsm_change_op(change, page, LSM_OP_DIRECTORY_INIT, &init, sizeof(init));
	return page;
}

static void
append_directory_item(LsmChange *change, LsmChangedPage *page, const LsmDirectoryEntry *entry)
{
	char		item[LSM_MAX_DIRECTORY_ITEM];
	uint32		size = lsm_directory_item_encode(item, entry);

	lsm_change_op(change, page, LSM_OP_DIRECTORY_APPEND, item, size);
}

/* The item for a child, which begins with `low`. */
static void
append_child(LsmChange *change, LsmChangedPage *page, const LsmEntry *low, BlockNumber child)
{
	LsmDirectoryEntry entry;

	memset(&entry, 0, sizeof(entry));
	entry.low = *low;
	entry.low.rest = NULL;
	entry.low.restlen = 0;
	entry.segment.start = child;
	entry.segment.blocks = 1;
	append_directory_item(change, page, &entry);
}

/* Does an item for an entry (above level 1: for its low key alone) fit? */
static bool
directory_item_fits(Page page, const LsmDirectoryEntry *entry, int level)
{
	uint32		keys = entry->low.keylen + (level == 1 ? entry->high.keylen : 0);

	return lsm_directory_page_fits(page, MAXALIGN(sizeof(LsmDirectoryItem) + keys));
}

/*
 * Look at a page of the right edge, as it is in this change: does an item for the entry
 * fit?  Returns what its last item leads to.  The page does not take part in the change
 * for that: a tall directory has more of them than an edit has room for.
 */
static BlockNumber
look_at_edge(LsmChange *change, const LsmRunRecord *run, BlockNumber block, int level,
			 const LsmDirectoryEntry *entry, bool *has_room)
{
	LsmIndex   *index = change->index;
	LsmChangedPage *changed = lsm_change_find(change, block);
	Buffer		buffer = InvalidBuffer;
	LsmDirectoryEntry last;
	Page		page;

	if (changed == NULL)
		buffer = lsm_buffer_read(index->rel, block, LSM_KIND(LSM_PAGE_DIRECTORY), run->run_id,
								 BUFFER_LOCK_SHARE, NULL);
	page = changed != NULL ? changed->copy : BufferGetPage(buffer);
	get_directory_item(index, block, page, lsm_directory_page_count(page) - 1, &last);
	*has_room = directory_item_fits(page, entry, level);
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	return last.segment.start;
}

StaticAssertDecl(LSM_MAX_HEIGHT + 1 + LSM_MOST_MAP_PAGES <= LSM_WAL_PAGES,
				 "an append to the tallest directory fits an edit");

/* All pages of the right edge are full: a new root above the old one. */
static void
add_directory_root(LsmChange *change, LsmRunRecord *run, const LsmEntry *low, BlockNumber child)
{
	LsmChangedPage *old = change_directory(change, run, run->start);
	LsmChangedPage *root;
	LsmDirectoryEntry first;

	if (run->dir_height == LSM_MAX_HEIGHT)
		elog(ERROR, "directory of index \"%s\" has too many levels",
			 RelationGetRelationName(change->index->rel));
	get_directory_item(change->index, old->block, old->copy, 0, &first);
	root = new_directory_page(change, run, run->dir_height + 1);
	append_child(change, root, &first.low, old->block);
	append_child(change, root, low, child);
	run->start = root->block;
	run->dir_height++;
}

/*
 * Add a segment behind the last one of a run, whose record is changed here and
 * put into the edit by the caller.  A run without segments gets a directory.
 *
 * Pages that take part, besides those of the space map: one that gets an item, and a
 * new one for each level below; at worst a new one for each level, the old root and a
 * new one.
 */
void
lsm_directory_append(LsmChange *change, LsmRunRecord *run, const LsmDirectoryEntry *entry)
{
	BlockNumber edge[LSM_MAX_HEIGHT + 1];
	bool		has_room[LSM_MAX_HEIGHT + 1];
	BlockNumber child;
	LsmChangedPage *page;

	Assert(run->segments == 0 || run->dir_height > 0);
	if (run->dir_height == 0)
	{
		page = new_directory_page(change, run, 1);
		append_directory_item(change, page, entry);
		run->start = page->block;
		run->dir_height = 1;
		lsm_run_add_segment(run, &entry->segment);
		return;
	}

	child = run->start;
	for (int level = run->dir_height; level > 0; level--)
	{
		edge[level] = child;
		child = look_at_edge(change, run, child, level, entry, &has_room[level]);
	}
	lsm_run_add_segment(run, &entry->segment);
	if (has_room[1])
	{
		append_directory_item(change, change_directory(change, run, edge[1]), entry);
		return;
	}

	/* A new page on each level whose last one is full, named by the one above. */
	page = new_directory_page(change, run, 1);
	append_directory_item(change, page, entry);
	for (int level = 2; level <= run->dir_height; level++)
	{
		child = page->block;
		if (has_room[level])
		{
			append_child(change, change_directory(change, run, edge[level]), &entry->low, child);
			return;
		}
		page = new_directory_page(change, run, level);
		append_child(change, page, &entry->low, child);
	}
	add_directory_root(change, run, &entry->low, page->block);
}

/* Change the record of a segment. */
void
lsm_directory_set(LsmChange *change, const LsmRunRecord *run, BlockNumber page, int ordinal,
				  const LsmSegment *segment)
{
	LsmDirectorySet set;

	memset(&set, 0, sizeof(set));
	set.segment = *segment;
	set.ordinal = ordinal;
	lsm_change_op(change, change_directory(change, run, page), LSM_OP_DIRECTORY_SET, &set,
				  sizeof(set));
}

static bool
names_no_segment(LsmIndex *index, const LsmChangedPage *page)
{
	for (int i = 0; i < lsm_directory_page_count(page->copy); i++)
	{
		LsmDirectoryEntry item;

		get_directory_item(index, page->block, page->copy, i, &item);
		if (item.segment.blocks > 0)
			return false;
	}
	return true;
}

/*
 * A segment is gone: free the page that its item is on, if there is nothing else on
 * it, and the pages above it likewise, so that searches need not pass them.  The
 * right edge stays: it says how far the run goes, and where items are added.
 *
 * REQUIRES: the change has taken note that the segment is gone, and the run is in no job.
 */
void
lsm_directory_prune(LsmChange *change, LsmKeySpace *ks, const LsmRunRecord *run,
					const LsmFoundSegment *found)
{
	LsmChangedPage *pages[LSM_MAX_HEIGHT + 1];
	int			ordinals[LSM_MAX_HEIGHT + 1];
	bool		at_edge[LSM_MAX_HEIGHT + 1];
	LsmBound	low = found->low;
	BlockNumber block = run->start;
	bool		edge = true;

	low.tie = -1;				/* the page of the item begins before it, or with it */
	for (int level = run->dir_height;; level--)
	{
		LsmDirectoryEntry item;

		pages[level] = change_directory(change, run, block);
		at_edge[level] = edge;
		if (level == 1)
			break;
		ordinals[level] = count_items_before(change->index, ks, block, pages[level]->copy, &low,
											 false) - 1;
		if (ordinals[level] < 0)
			return;
		edge = edge && ordinals[level] == lsm_directory_page_count(pages[level]->copy) - 1;
		get_directory_item(change->index, block, pages[level]->copy, ordinals[level], &item);
		if (item.segment.blocks == 0)
			return;
		block = item.segment.start;
	}
	Assert(block == found->page);
	for (int level = 1; level < run->dir_height; level++)
	{
		LsmDirectoryEntry item;

		if (at_edge[level] || !names_no_segment(change->index, pages[level]))
			return;
		lsm_space_give(change, pages[level]->block, 1);
		get_directory_item(change->index, pages[level + 1]->block, pages[level + 1]->copy,
						   ordinals[level + 1], &item);
		item.segment.blocks = 0;
		lsm_directory_set(change, run, pages[level + 1]->block, ordinals[level + 1], &item.segment);
	}
}

/* Free a page that its parent names, and what is below it, from the bottom up: one thing. */
static bool
free_below(LsmChange *change, const LsmRunRecord *run, BlockNumber block, int level)
{
	LsmChangedPage *page = change_directory(change, run, block);

	for (int i = 0; i < lsm_directory_page_count(page->copy); i++)
	{
		LsmDirectoryEntry item;
		LsmSegment	gone;

		get_directory_item(change->index, block, page->copy, i, &item);
		if (item.segment.blocks == 0)
			continue;
		if (level > 1 && free_below(change, run, item.segment.start, level - 1))
			return true;
		/* The segment, or a directory page of which nothing is left. */
		lsm_space_give(change, item.segment.start, item.segment.blocks);
		gone = item.segment;
		gone.blocks = 0;
		lsm_directory_set(change, run, block, i, &gone);
		return true;
	}
	return false;
}

/*
 * Free a segment of a run that is spent, or a page of its directory.  False when
 * only the root was left, which is free then, too.
 */
bool
lsm_directory_free_some(LsmChange *change, const LsmRunRecord *run)
{
	if (free_below(change, run, run->start, run->dir_height))
		return true;
	lsm_space_give(change, run->start, 1);
	return false;
}
