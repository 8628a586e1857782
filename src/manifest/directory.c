/*
 * directory.c
 *	  Directories: the trees that name the segments of a run.
 *
 * Directories change only in edits, under the exclusive lock of the meta page.  Readers lock
 * one directory page at a time, only to search or copy it, and check its stamp.  A stamp
 * later than the reader's version means that the version is stale.  Otherwise the page is
 * exactly as it was in that version.
 *
 * Items are appended and keep their places.  An item with no blocks stands for a segment that
 * is gone, or for a directory page that was freed because VACUUM emptied all its segments.
 * Searches skip such items, but their keys still tell where the run ends.
 */
#include "postgres.h"

#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/*
 * Lock a directory page (share).  Returns InvalidBuffer if the page has changed since the edit
 * `edits`.
 */
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

/* Copy a directory page.  Returns false if the page has changed since the edit `edits`. */
static bool
read_directory_page(LsmIndex *index, const LsmRunRecord *run, uint64 edits, BlockNumber block,
					Page copy)
{
	Buffer		buffer = lock_directory_page(index, run, edits, block);

	if (!BufferIsValid(buffer))
		return false;
	lsm_page_copy(copy, BufferGetPage(buffer));
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

/* Returns how many items on the page begin (with by_high: end) before the bound. */
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

/* A search: its arguments and its result. */
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

/* The search has not chosen its first child yet. */
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
 * Find the next child to search below a page above level 1: child *at, or the first child
 * after it that has not been freed.  Returns LSM_FOUND_NONE if no child is left.
 */
static LsmFindResult
search_children(Search *s, BlockNumber block, Page page, int *at, BlockNumber *child)
{
	int			count = lsm_directory_page_count(page);
	int			step = s->forward ? 1 : -1;

	/* Start with the last child that begins before the bound.  Its neighbors come next. */
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

/* Search one page: for a segment on level 1, for a child on higher levels. */
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
	if (s->ks->runs_user_code)
		page = lsm_buffer_leave(&buffer, &copy);
	if (lsm_directory_header(page)->level != level)
		lsm_report_corruption(s->index->rel, block, "directory page has the wrong level");
	if (level == 1)
		result = search_segments(s, block, page);
	else
		result = search_children(s, block, page, at, child);
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * Search a page and everything below it.  The page stays unlocked while its children are
 * searched, since edits lock several directory pages in any order.
 */
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
 * Find the first segment that ends after the bound, or, backward, the last segment that begins
 * before the bound.  Returns LSM_FOUND_STALE if the search meets a page that has changed since the
 * edit `edits`.
 *
 * REQUIRES: the run has a directory.  found->low and found->high are zeroed or set by an
 * earlier search.  Their keys are allocated in the current memory context.
 */
LsmFindResult
lsm_directory_find(LsmIndex *index, LsmKeySpace *ks, const LsmRunRecord *run, uint64 edits,
				   const LsmBound *bound, ScanDirection direction, LsmFoundSegment *found)
{
	Search		s = {index, ks, run, edits, bound, ScanDirectionIsForward(direction), found};

	return search_below_page(&s, run->start, run->dir_height);
}

/*
 * Copy the directory page on which a search found a segment, for a caller that also needs the
 * segments after it.  Returns LSM_FOUND_STALE if the page has changed since the edit `edits`.
 */
LsmFindResult
lsm_directory_copy(LsmIndex *index, const LsmRunRecord *run, uint64 edits,
				   const LsmFoundSegment *found, Page copy)
{
	return read_directory_page(index, run, edits, found->page, copy) ? LSM_FOUND : LSM_FOUND_STALE;
}

/*
 * List the segments of a directory that has only one page.  Sets *count to their number, which
 * must not exceed `most`.  Returns LSM_FOUND_STALE if the page has changed since the edit `edits`.
 */
LsmFindResult
lsm_directory_list(LsmIndex *index, const LsmRunRecord *run, uint64 edits, int most,
				   LsmSegment *segments, int *count)
{
	Buffer		buffer = lock_directory_page(index, run, edits, run->start);
	Page		page;
	int			items;

	Assert(run->dir_height == 1);
	if (!BufferIsValid(buffer))
		return LSM_FOUND_STALE;
	page = BufferGetPage(buffer);
	items = lsm_directory_page_count(page);
	*count = 0;
	for (int i = 0; i < items; i++)
	{
		LsmDirectoryEntry item;

		get_directory_item(index, run->start, page, i, &item);
		if (item.segment.blocks == 0)
			continue;
		if (*count == most)
			lsm_report_corruption(index->rel, run->start, "directory has more segments than its run");
		segments[(*count)++] = item.segment;
	}
	UnlockReleaseBuffer(buffer);
	return LSM_FOUND;
}

/*
 * Set *high to the end of a run: the bound after the last entry that was ever in its segments.
 * Returns LSM_FOUND_STALE if the directory has changed since the edit `edits`.
 */
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
		lsm_report_corruption(index->rel, block, "directory page has the wrong level");
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
 * Visit all pages of a directory from the root down, and in key order all items of its lowest
 * pages, including items without blocks.  Returns false if the directory has changed since
 * the edit `edits`.  By then, part of the directory may have been visited.
 */
bool
lsm_directory_walk(LsmIndex *index, const LsmRunRecord *run, uint64 edits,
				   LsmDirectoryVisitor visit, void *arg)
{
	return walk_directory_page(index, run, edits, run->start, run->dir_height, visit, arg);
}

/*
 * Find the pages that lead from the root of a directory to the item of a segment, for
 * lsm_directory_prune.  Returns LSM_FOUND_STALE if a page has changed since the edit `edits`, and
 * LSM_FOUND_NONE if no path leads there.
 *
 * REQUIRES: lsm_directory_find has found the segment.
 */
LsmFindResult
lsm_directory_path(LsmIndex *index, LsmKeySpace *ks, const LsmRunRecord *run, uint64 edits,
				   const LsmFoundSegment *found, LsmDirectoryPath *path)
{
	PGAlignedBlock room;
	Page		page = room.data;
	LsmBound	low = found->low;
	BlockNumber block = run->start;

	low.tie = -1;				/* the item may be the first one on its page */
	path->height = run->dir_height;
	for (int level = run->dir_height; level > 1; level--)
	{
		LsmDirectoryEntry item;

		if (!read_directory_page(index, run, edits, block, page))
			return LSM_FOUND_STALE;
		path->blocks[level] = block;
		path->ordinals[level] = count_items_before(index, ks, block, page, &low, false) - 1;
		if (path->ordinals[level] < 0)
			return LSM_FOUND_NONE;
		get_directory_item(index, block, page, path->ordinals[level], &item);
		if (item.segment.blocks == 0)
			return LSM_FOUND_NONE;
		block = item.segment.start;
	}
	path->blocks[1] = block;
	path->ordinals[1] = found->ordinal;
	return block == found->page ? LSM_FOUND : LSM_FOUND_NONE;
}

/* --- changes; the caller has begun the change -------------------------------------- */

static LsmChangedPage *
change_directory(LsmChange *change, const LsmRunRecord *run, BlockNumber block)
{
	return lsm_change_page(change, block, LSM_PAGE_DIRECTORY, run->run_id);
}

/* Add an empty directory page. */
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

/* Append the item of a child page whose first key is that of `low`. */
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

/* Does the item fit on the page?  Above level 1, items have only a low key. */
static bool
directory_item_fits(Page page, const LsmDirectoryEntry *entry, int level)
{
	uint32		keys = entry->low.keylen + (level == 1 ? entry->high.keylen : 0);

	return lsm_directory_page_fits(page, MAXALIGN(sizeof(LsmDirectoryItem) + keys));
}

/*
 * Look at a page of the right edge, with its changes if it is in the change already.  Sets
 * *has_room if an item for the entry fits.  Returns the block that the page's last item names.  The
 * page does not join the change: in a tall directory, the pages of the edge and the new pages would
 * be too many for one edit.
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

/* Called when all pages of the right edge are full: add a root above the old one. */
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
 * Append a segment to a run.  Updates *run; the caller puts the record into the edit.  A run
 * without segments gets a directory.
 *
 * Apart from map pages, the change gets the page that receives an item, and a new page for
 * each level below it.  At worst, it gets a new page for each level, the old root and a new
 * root.
 */
void
lsm_directory_append(LsmChange *change, LsmRunRecord *run, const LsmDirectoryEntry *entry)
{
	BlockNumber edge[LSM_MAX_HEIGHT + 1];
	bool		has_room[LSM_MAX_HEIGHT + 1];
	BlockNumber child;
	LsmChangedPage *page;

	if (run->segments > 0 && run->dir_height == 0)
		lsm_report_corruption(change->index->rel, LSM_BLOCK_META, "output of a merge has no directory");
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

	/* Add a page to each level whose last page is full.  The page above names it. */
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

/* Replace the record of a segment: item `ordinal` of a directory page. */
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
 * Does the path still lead from the run's root to the item?  The path's pages join the change.
 * Items keep their places, so a path breaks only if the directory gets a new root, or if a page of
 * the path is freed.
 */
bool
lsm_directory_path_holds(LsmChange *change, const LsmRunRecord *run, const LsmDirectoryPath *path)
{
	BlockNumber block = run->start;

	if (run->dir_height != path->height)
		return false;
	for (int level = path->height;; level--)
	{
		LsmChangedPage *page;
		LsmDirectoryEntry item;

		if (block != path->blocks[level])
			return false;
		page = change_directory(change, run, block);
		get_directory_item(change->index, block, page->copy, path->ordinals[level], &item);
		if (item.segment.blocks == 0)
			return false;
		if (level == 1)
			return true;
		block = item.segment.start;
	}
}

/*
 * Called when a segment is gone.  If the directory page with the segment's item names no other
 * segment, free the page.  Do the same with the pages above, so that searches need not visit them.
 * Pages of the right edge stay: they show where the run ends, and take new items.
 *
 * REQUIRES: the path held before the change cleared the segment's item.  The run is in no job.
 */
void
lsm_directory_prune(LsmChange *change, const LsmRunRecord *run, const LsmDirectoryPath *path)
{
	LsmChangedPage *pages[LSM_MAX_HEIGHT + 1];
	bool		at_edge[LSM_MAX_HEIGHT + 1];
	bool		edge = true;

	for (int level = path->height; level > 0; level--)
	{
		pages[level] = change_directory(change, run, path->blocks[level]);
		at_edge[level] = edge;
		edge = edge &&
			path->ordinals[level] == lsm_directory_page_count(pages[level]->copy) - 1;
	}
	for (int level = 1; level < path->height; level++)
	{
		LsmChangedPage *above = pages[level + 1];
		LsmDirectoryEntry item;

		if (at_edge[level] || !names_no_segment(change->index, pages[level]))
			return;
		lsm_space_give(change, pages[level]->block, 1);
		get_directory_item(change->index, above->block, above->copy, path->ordinals[level + 1],
						   &item);
		item.segment.blocks = 0;
		lsm_directory_set(change, run, above->block, path->ordinals[level + 1], &item.segment);
	}
}

/*
 * Free one segment or directory page below a page, from the bottom up.  Returns false if
 * nothing is left below the page.
 */
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
		/* The item names a segment, or a directory page that is now empty. */
		lsm_space_give(change, item.segment.start, item.segment.blocks);
		gone = item.segment;
		gone.blocks = 0;
		lsm_directory_set(change, run, block, i, &gone);
		return true;
	}
	return false;
}

/*
 * Free one segment or directory page of a spent run.  Returns false after it has freed the
 * root, which comes last.
 */
bool
lsm_directory_free_some(LsmChange *change, const LsmRunRecord *run)
{
	if (free_below(change, run, run->start, run->dir_height))
		return true;
	lsm_space_give(change, run->start, 1);
	return false;
}
