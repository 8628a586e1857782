/*
 * run_cursor.c
 *	  A cursor over a run of packed segments.
 *
 * A seek finds the segment, in the run's record or its directory, goes down the
 * fence pages, holding one page at a time, and decodes a part of a single group of
 * the leaf under its share lock.  Only when the cursor moves beyond that part the
 * leaf is copied; a point lookup never gets there.  The next leaf is the next
 * block, and after the last one of a segment the directory is asked again.
 *
 * VACUUM may remove entries from a leaf at any time; then a cursor that goes
 * back to the page finds its place by its last entry.
 *
 * A merge may take the copy as it is, in place of the entries one by one.  Filters are
 * in run_lookup.c.
 */
#include "postgres.h"

#include "base/compat.h"
#include "format/leaf_coding.h"
#include "format/leaf_read.h"
#include "miscadmin.h"
#include "read/run_cursor.h"
#include "storage/buffers.h"

/*
 * Where several runs are merged, so many entries of all together are decoded by a seek, and
 * so many of each at least: a query of a few rows wants no more.
 */
#define WANTED_OF_ALL	24
#define WANTED_OF_EACH	4

/* The version is old: the cursor ends, and who reads takes a newer one. */
void
lsm_read_set_stale(LsmReadContext *cx, BlockNumber block)
{
	if (cx->stale)
		return;
	cx->stale = true;
	cx->stale_block = block;
}

void
lsm_run_damaged(RunCursor *c, uint32 page)
{
	lsm_report_corruption(c->cx->index->rel, c->segment.start + page, "entries cannot be decoded");
}

/* The block of a page of the segment. */
static BlockNumber
run_block(RunCursor *c, uint32 number)
{
	if (number >= c->segment.blocks)
		lsm_run_damaged(c, c->segment.blocks - 1);
	return c->segment.start + number;
}

/* A page of the segment was read: it is locked, or belongs to somebody else by now. */
static Buffer
run_note_page(RunCursor *c, uint32 number, Buffer buffer)
{
	c->cx->counters.pages++;
	if (!BufferIsValid(buffer))
		lsm_read_set_stale(c->cx, c->segment.start + number);
	else
		lsm_test_old_snapshot(c->cx->snapshot, c->cx->index->rel, BufferGetPage(buffer));
	return buffer;
}

/* Is it a page that a search may soon read again?  Leaves of large runs are too many. */
static inline bool
run_is_recent(RunCursor *c, uint16 kind)
{
	return !c->cx->is_merge && (kind != LSM_PAGE_LEAF || lsm_run_is_single(&c->run));
}

/* Lock a page of the segment; InvalidBuffer when the version is old. */
Buffer
lsm_run_read_page(RunCursor *c, uint32 number, uint16 kind)
{
	Relation	rel = c->cx->index->rel;
	BlockNumber block = run_block(c, number);
	uint64		owner = c->segment.id;

	return run_note_page(c, number, run_is_recent(c, kind) ?
						 lsm_buffer_read_recent(rel, block, kind, owner, c->cx->strategy) :
						 lsm_buffer_read_owned(rel, block, kind, owner, BUFFER_LOCK_SHARE,
											   c->cx->strategy));
}

/* --- the leaf that was entered last ------------------------------------------ */

/* The first eight bytes of a group's first key.  False if that is not easily told. */
static bool
group_prefix(Page page, int group, uint64 *prefix)
{
	LsmLeafCoding coding = lsm_leaf_coding(page);
	const uint8 *key;
	uint32		length = lsm_leaf_first_key(&coding, page, group, &key);

	*prefix = lsm_key_prefix_padded(key) & lsm_high_bytes_mask(Min(length, 8));
	return length > 0;
}

/*
 * Remember the leaf that the cursor is in.  Its keys are looked at when it is entered again:
 * lookups of keys in no order should not wait for parts of the page that they do not need.
 */
static void
run_note_near(RunCursor *c, Buffer buffer)
{
	LsmNearLeaf *near = &c->near;
	Page		page = BufferGetPage(buffer);
	int			groups = lsm_leaf_group_count(page);

	if (near->segment != c->segment.id || near->leaf != c->leaf || near->user != c->cx->user)
	{
		near->segment = c->segment.id;
		near->leaf = c->leaf;
		near->user = c->cx->user;
		near->has_keys = false;
	}
	else if (!near->has_keys && c->cx->ks->encoded && groups > 0)
		near->has_keys = group_prefix(page, 0, &near->low) &&
			group_prefix(page, groups - 1, &near->high);
	near->buffer = BufferIsLocal(buffer) ? InvalidBuffer : buffer;
}

/*
 * Does a place surely lie between entries that the leaf was written with?  Keys that
 * differ in their first eight bytes only count.
 */
static bool
run_is_near(RunCursor *c, const LsmBound *from)
{
	const LsmNearLeaf *near = &c->near;
	uint64		prefix;

	if (!near->has_keys || near->segment != c->segment.id || near->user != c->cx->user)
		return false;
	prefix = lsm_key_prefix(from->key, from->keylen);
	return near->low < prefix &&
		(near->high & lsm_high_bytes_mask(Min(from->keylen, 8))) > prefix;
}

/*
 * Stand on entry `pos` of what is decoded.  Backward, what lies before the clip
 * does not count.
 */
static void
run_stand(RunCursor *c, int pos)
{
	int			first = 0;

	c->ends = false;
	if (c->forward)
	{
		lsm_cursor_stand(&c->base, &c->decoded.entries[pos], c->decoded.count - 1 - pos);
		return;
	}
	if (c->clip != NULL)
	{
		while (first <= pos &&
			   lsm_bound_compare(c->cx->ks, c->clip, &c->decoded.entries[first]) < 0)
			first++;
		c->ends = first > 0;
	}
	if (first <= pos)
		lsm_cursor_stand(&c->base, &c->decoded.entries[pos], pos - first);
}

static void
run_copy_leaf(RunCursor *c, Buffer buffer)
{
	if (c->copy == NULL)
		c->copy = palloc(BLCKSZ);
	memcpy(c->copy, BufferGetPage(buffer), BLCKSZ);
	c->copied = true;
	c->decoded.page = lsm_read_see_page(c->cx, BufferGetBlockNumber(buffer), c->copy);
}

/* Decode from group `c->group` of the copy on, as far as there is room, and stand there. */
static void
run_decode(RunCursor *c, int most)
{
	int			groups = lsm_leaf_group_count(c->copy);
	int			n;

	if (c->forward)
	{
		n = lsm_leaf_decode_groups(c->copy, c->group, Min(c->group + most, groups) - 1,
								   &c->decoded);
		c->group += n;
	}
	else
	{
		n = lsm_leaf_decode_groups_before(c->copy, c->group, &c->decoded);
		c->group -= n;
	}
	if (n <= 0 || c->decoded.count == 0)
		lsm_run_damaged(c, c->leaf);
	c->cx->counters.entries += c->decoded.count;
	run_stand(c, c->forward ? 0 : c->decoded.count - 1);
}

/*
 * Copy leaf `leaf` and stand on its first entry (backward: last one).  False if
 * it is empty, or the cursor is stale.
 */
static bool
run_enter_leaf(RunCursor *c, uint32 leaf)
{
	int64		before = lsm_pages_read();
	Buffer		buffer = lsm_run_read_page(c, leaf, LSM_PAGE_LEAF);
	bool		missed = lsm_pages_read() != before;

	if (!BufferIsValid(buffer))
		return false;
	c->leaf = leaf;
	run_note_near(c, buffer);
	run_copy_leaf(c, buffer);
	UnlockReleaseBuffer(buffer);
	if (!c->forward && unlikely(missed || c->ahead.depth > 0 || lsm_debug_prefetch_scan))
		lsm_run_look_ahead(c, missed);
	if (lsm_leaf_group_count(c->copy) == 0)
		return false;
	c->group = c->forward ? 0 : lsm_leaf_group_count(c->copy) - 1;
	/* One group only: a merge may take the page as it is. */
	run_decode(c, 1);
	c->base.at_page = c->forward;
	return true;
}

/*
 * Find the segment for a place in the directory.  False if there is none, or the
 * cursor is stale.  *found is NULL, or what was found before.
 */
bool
lsm_run_search_directory(RunCursor *c, const LsmBound *bound, LsmFoundSegment **found)
{
	LsmFindResult result;

	if (*found == NULL)
		*found = palloc0(sizeof(LsmFoundSegment));
	result = lsm_directory_find(c->cx->index, c->cx->ks, &c->run, c->cx->edits, bound,
								c->direction, *found);
	c->cx->counters.pages += c->run.dir_height;
	if (result == LSM_FOUND_STALE)
		lsm_read_set_stale(c->cx, c->run.start);
	if (result != LSM_FOUND)
		return false;
	c->cx->counters.segments++;
	return true;
}

/* The same, and the cursor goes there. */
bool
lsm_run_find_segment(RunCursor *c, const LsmBound *bound)
{
	if (!lsm_run_search_directory(c, bound, &c->found))
		return false;
	c->segment = c->found->segment;
	return true;
}

/* Go on to the segment after this one, in the direction of the scan. */
static bool
run_next_segment(RunCursor *c)
{
	LsmBound	from = {0};
	bool		found;

	if (lsm_run_is_single(&c->run))
		return false;
	/* Who seeks in a segment has found it there. */
	Assert(c->found->segment.id == c->segment.id);
	/* The search overwrites what it finds. */
	from = c->forward ? c->found->high : c->found->low;
	from.key = palloc(from.keylen + LSM_KEY_PAD);
	memcpy(from.key, c->forward ? c->found->high.key : c->found->low.key,
		   from.keylen + LSM_KEY_PAD);
	found = lsm_run_find_segment(c, &from);
	pfree(from.key);
	return found;
}

/* Go on to the first (backward: last) entry of the leaves after the current one. */
static void
run_leave_leaf(RunCursor *c)
{
	bool		entered = false;

	c->base.valid = false;
	while (!entered && !c->cx->stale)
	{
		bool		last = c->forward ? c->leaf + 1 >= c->segment.leaves : c->leaf == 0;

		if (!last)
			entered = run_enter_leaf(c, c->forward ? c->leaf + 1 : c->leaf - 1);
		else if (run_next_segment(c))
			entered = run_enter_leaf(c, c->forward ? 0 : c->segment.leaves - 1);
		else
			return;
		CHECK_FOR_INTERRUPTS();
	}
}

/* Find the place of `from` in the copied leaf and stand there, or go on. */
static void
run_seek_in_copy(RunCursor *c, const LsmBound *from)
{
	int			pos;

	if (!lsm_leaf_search(c->cx->ks, c->copy, from, &c->group, &pos, &c->decoded))
		lsm_run_damaged(c, c->leaf);
	c->base.at_page = c->forward && c->group == 0 && pos == 0 && c->decoded.count > 0;
	c->group += c->forward ? 1 : -1;
	if (c->forward ? pos < c->decoded.count : pos > 0)
	{
		/* Those before were counted, if they were read. */
		c->cx->counters.entries += c->forward ? c->decoded.count - pos : pos;
		run_stand(c, c->forward ? pos : pos - 1);
	}
	/* Backward, position 0 is in the first group only. */
	else if (c->forward && c->group < lsm_leaf_group_count(c->copy))
		run_decode(c, 1);
	else
		run_leave_leaf(c);
}

/* Go down to the leaf for a place; false if the cursor is stale. */
static bool
run_find_leaf(RunCursor *c, const LsmBound *from)
{
	uint32		page = c->segment.blocks - 1;

	for (int level = c->segment.height; level > 0; level--)
	{
		Buffer		buffer = lsm_run_read_page(c, page, LSM_PAGE_FENCE);
		uint32		child;

		if (!BufferIsValid(buffer))
			return false;
		if (!lsm_fence_search(c->cx->ks, BufferGetPage(buffer), from, &c->decoded, &child) ||
			child >= page)
			lsm_run_damaged(c, page);
		UnlockReleaseBuffer(buffer);
		page = child;
	}
	c->leaf = page;
	return true;
}

/* Go down to the leaf for a place, or back to the one that was entered last, and lock it. */
static Buffer
run_read_leaf(RunCursor *c, const LsmBound *from)
{
	Buffer		buffer;

	if (run_is_near(c, from))
	{
		c->leaf = c->near.leaf;
		return run_note_page(c, c->leaf,
							 lsm_buffer_read_again(c->cx->index->rel, run_block(c, c->leaf),
												   LSM_PAGE_LEAF, c->segment.id, c->cx->strategy,
												   &c->near.buffer));
	}
	if (!run_find_leaf(c, from))
		return InvalidBuffer;
	buffer = lsm_run_read_page(c, c->leaf, LSM_PAGE_LEAF);
	if (BufferIsValid(buffer))
		run_note_near(c, buffer);
	return buffer;
}

/*
 * Find the place of `from` on the page of a leaf without rests, and decode what will be
 * wanted from there on; see lsm_leaf_search.  False if the page is damaged.
 */
static bool
run_search_leaf(RunCursor *c, Page page, const LsmBound *from, int *pos)
{
	LsmReadContext *cx = c->cx;
	int			most = LSM_GROUP_ENTRIES;

	/* A merge may take the page as it is, and wants to know where on it it stands. */
	if (cx->is_merge || !cx->ks->encoded)
		return lsm_leaf_search(cx->ks, page, from, &c->group, pos, &c->decoded);
	if (cx->lookup_columns == cx->ks->nkeys)
		most = 1;				/* further ones that have the key come anyway, a few */
	else if (cx->run_count > 1)
		most = Max(WANTED_OF_ALL / cx->run_count, WANTED_OF_EACH);
	return lsm_leaf_seek(cx->ks, page, from, most, c->forward, pos, &c->decoded);
}

/*
 * Seek within the segment, and on from its end.
 *
 * REQUIRES: a run with a directory has found the segment there.
 */
void
lsm_run_seek_in_segment(RunCursor *c, const LsmBound *from, const LsmBound *limit)
{
	Buffer		buffer = run_read_leaf(c, from);
	Page		page;
	int			pos;
	bool		done = false;

	if (!BufferIsValid(buffer))
		return;
	page = BufferGetPage(buffer);
	c->copied = false;
	if (!(lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST))
	{
		/* Try to do with one group: its keys are copied, it has no rests. */
		c->decoded.page = lsm_read_see_page(c->cx, BufferGetBlockNumber(buffer), page);
		if (!run_search_leaf(c, page, from, &pos))
			lsm_run_damaged(c, c->leaf);
		if (!c->forward)
			pos--;
		if (pos >= 0 && pos < c->decoded.count)
		{
			done = true;
			c->cx->counters.entries += c->decoded.count;
			if (limit == NULL ||
				!lsm_beyond(c->cx->ks, limit, &c->decoded.entries[pos], c->direction))
			{
				run_stand(c, pos);
				c->base.at_page = c->cx->is_merge && c->forward && c->group == 0 && pos == 0;
			}
		}
	}
	if (!done)
		run_copy_leaf(c, buffer);
	UnlockReleaseBuffer(buffer);
	if (!done)
		run_seek_in_copy(c, from);
}

/* Does a place lie before the clip? */
static bool
run_is_before_clip(RunCursor *c, const LsmBound *bound)
{
	LsmEntry	at;

	if (c->clip == NULL)
		return false;
	lsm_bound_entry(c->clip, &at);
	return lsm_bound_compare(c->cx->ks, bound, &at) > 0;
}

/*
 * Find the segment to seek in; *from may have to move to the clip.  False if there
 * is nothing there, or the cursor is stale.
 */
bool
lsm_run_prepare_seek(RunCursor *c, const LsmBound **from, ScanDirection direction)
{
	c->direction = direction;
	c->forward = ScanDirectionIsForward(direction);
	c->base.stride = c->forward ? 1 : -1;
	c->base.valid = false;
	c->base.at_page = false;
	c->ends = false;
	if (run_is_before_clip(c, *from))
	{
		if (!c->forward)
			return false;
		*from = c->clip;
	}
	c->is_near = run_is_near(c, *from);
	if (c->is_near)
		return true;
	if (!lsm_run_is_single(&c->run))
		return lsm_run_find_segment(c, *from);
	lsm_run_segment(&c->run, &c->segment);
	c->cx->counters.segments++;
	return true;
}

static void
run_seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	RunCursor  *c = (RunCursor *) base;
	LsmReadWatch watch;

	lsm_run_begin_watch(c, &watch);
	if (unlikely(c->cx->without != NULL) && lsm_seen_has(c->cx->without, c->run.run_id))
	{
		base->valid = false;
		base->at_page = false;
		return;
	}
	if (lsm_run_prepare_seek(c, &from, direction) && !lsm_run_lacks(c))
	{
		lsm_run_seek_in_segment(c, from, limit);
		if (c->is_perhaps)
			lsm_run_note_found(c);
	}
	if (unlikely(lsm_pages_read() != watch.pages || lsm_debug_prefetch_scan))
		lsm_run_note_reads(c, &watch);
}

/*
 * Let c->leaf be the one that a seek, which is prepared, will read.  False if the cursor
 * is stale.
 */
bool
lsm_run_next_leaf(RunCursor *c, const LsmBound *from)
{
	if (!c->is_near)
		return run_find_leaf(c, from);
	c->leaf = c->near.leaf;
	return true;
}

static void
run_fill(LsmCursor *base)
{
	RunCursor  *c = (RunCursor *) base;

	if (!c->copied && !c->ends)
	{
		Buffer		buffer;

		lsm_bound_set_entry(&c->here, base->entry, c->forward ? -1 : 1);
		base->valid = false;
		buffer = lsm_run_read_page(c, c->leaf, LSM_PAGE_LEAF);
		if (!BufferIsValid(buffer))
			return;
		run_copy_leaf(c, buffer);
		UnlockReleaseBuffer(buffer);
		run_seek_in_copy(c, &c->here);
		return;
	}
	base->valid = false;
	if (c->ends)
		return;
	if (c->forward ? c->group < lsm_leaf_group_count(c->copy) : c->group >= 0)
		run_decode(c, LSM_DECODED_ENTRIES / LSM_UNFRAMED_ENTRIES);
	else
		run_leave_leaf(c);
}

/*
 * Copy the leaf that a seek has found the place in.  False if VACUUM has
 * removed the entry since: the cursor stands on it, though it is dead.
 */
static bool
run_copy_found_leaf(RunCursor *c)
{
	Buffer		buffer = lsm_run_read_page(c, c->leaf, LSM_PAGE_LEAF);
	const LsmEntry *here = c->base.entry;
	LsmEntry	first;

	/* If the version is old, that is found out when the cursor moves on. */
	if (!BufferIsValid(buffer))
		return false;
	run_copy_leaf(c, buffer);
	c->copied = false;			/* `decoded` is of the page as it was */
	UnlockReleaseBuffer(buffer);
	if (lsm_leaf_group_count(c->copy) == 0)
		return false;
	if (!lsm_leaf_first_of_group(c->copy, 0, &first))
		lsm_run_damaged(c, c->leaf);
	return first.tid == here->tid && first.keylen == here->keylen &&
		memcmp(first.key, here->key, first.keylen) == 0;
}

static Page
run_page(LsmCursor *base, const LsmEntry **last)
{
	RunCursor  *c = (RunCursor *) base;

	if (!c->copied && !run_copy_found_leaf(c))
		return NULL;
	if (c->last.scratch == NULL)
		lsm_group_init(&c->last, c->cx->ks->max_keylen);
	if (!lsm_leaf_decode_group(c->copy, lsm_leaf_group_count(c->copy) - 1, &c->last))
		lsm_run_damaged(c, c->leaf);
	*last = &c->last.entries[c->last.count - 1];
	return c->copy;
}

/* The last entry of a segment that has no item in a directory; its keys are in c->last. */
static bool
run_read_high(RunCursor *c, LsmEntry *high)
{
	Buffer		buffer = lsm_run_read_page(c, c->segment.leaves - 1, LSM_PAGE_LEAF);
	Page		page;
	bool		found;

	if (!BufferIsValid(buffer))
		return false;
	page = BufferGetPage(buffer);
	if (c->last.scratch == NULL)
		lsm_group_init(&c->last, c->cx->ks->max_keylen);
	/* VACUUM may have emptied it: then the segment is not worth keeping as it is. */
	found = lsm_leaf_group_count(page) > 0;
	if (found && !lsm_leaf_decode_group(page, lsm_leaf_group_count(page) - 1, &c->last))
		lsm_run_damaged(c, c->segment.leaves - 1);
	UnlockReleaseBuffer(buffer);
	if (found)
		*high = c->last.entries[c->last.count - 1];
	return found;
}

static bool
run_segment(LsmCursor *base, uint32 least_blocks, LsmWholeSegment *whole)
{
	RunCursor  *c = (RunCursor *) base;
	const LsmSegment *segment = &c->segment;

	/* One that VACUUM has thinned is better written anew. */
	if (c->leaf != 0 || segment->blocks < least_blocks || segment->removed > segment->entries / 10)
		return false;
	memset(whole, 0, sizeof(LsmWholeSegment));
	whole->run_id = c->run.run_id;
	whole->entry.segment = *segment;
	/* VACUUM may have removed what it began with, which may lie before the clip. */
	whole->entry.low = *base->entry;
	if (!lsm_run_is_single(&c->run))
	{
		lsm_bound_entry(&c->found->high, &whole->entry.high);
		whole->page = c->found->page;
		whole->ordinal = c->found->ordinal;
		return true;
	}
	return run_read_high(c, &whole->entry.high);
}

static void
run_skip_page(LsmCursor *base)
{
	base->at_page = false;
	run_leave_leaf((RunCursor *) base);
}

static void
free_found(LsmFoundSegment *found)
{
	if (found == NULL)
		return;
	if (found->low.key)
		pfree(found->low.key);
	if (found->high.key)
		pfree(found->high.key);
	pfree(found);
}

static void
run_close(LsmCursor *base)
{
	RunCursor  *c = (RunCursor *) base;

	if (c->copy)
		pfree(c->copy);
	if (c->here.key)
		pfree(c->here.key);
	free_found(c->found);
	free_found(c->walked);
	lsm_group_free(&c->decoded);
	if (c->last.scratch)
		lsm_group_free(&c->last);
	pfree(c);
}

static const LsmCursorOps run_cursor_ops = {run_seek, run_fill, run_close, run_page, run_skip_page,
run_segment, lsm_run_expect};

/* A cursor over no run yet, in the current memory context, as all that it allocates. */
LsmCursor *
lsm_run_cursor_create(LsmReadContext *cx)
{
	RunCursor  *c = palloc0(sizeof(RunCursor));

	c->base.ops = &run_cursor_ops;
	c->base.source = &c->base;
	c->cx = cx;
	lsm_group_init(&c->decoded, cx->ks->max_keylen);
	return &c->base;
}

/* Let it read a run, from `clip` on unless that is NULL. */
void
lsm_run_cursor_set(LsmCursor *cursor, const LsmRunRecord *run, const LsmBound *clip)
{
	RunCursor  *c = (RunCursor *) cursor;

	if (c->run.run_id != run->run_id)
		memset(c->yes, 0, sizeof(c->yes));
	c->run = *run;
	c->clip = clip;
	c->base.valid = false;
	c->near.segment = 0;
	c->near.has_keys = false;
	c->filter = NULL;
	if (c->cx->filters != NULL && lsm_run_is_single(run) &&
		run->leaves <= (run->filter_blocks == 0 ? LSM_RUN_FILTER_MOST_LEAVES :
						LSM_JOINT_MOST_LEAVES))
		c->filter = lsm_run_filters_get(c->cx->filters, run->run_id);
}

/*
 * Let `split` be the position before the first entry of a leaf.  False if it has
 * none, or the cursor is stale.
 */
static bool
run_split_before_leaf(RunCursor *c, uint32 leaf, LsmBound *split)
{
	Buffer		buffer = lsm_run_read_page(c, leaf, LSM_PAGE_LEAF);
	LsmEntry	first;
	bool		found;

	if (!BufferIsValid(buffer))
		return false;
	found = lsm_leaf_group_count(BufferGetPage(buffer)) > 0;
	if (found)
	{
		if (!lsm_leaf_first_of_group(BufferGetPage(buffer), 0, &first))
			lsm_run_damaged(c, leaf);
		lsm_bound_set_entry(split, &first, 1);
	}
	UnlockReleaseBuffer(buffer);
	return found;
}

/*
 * A position so many leaves of the run after `from` (backward: before it), or a
 * leaf more or less; at the end of a segment it may be less.  False if the run ends
 * before, or the cursor is stale.  The split is beyond `from` in that direction,
 * always, so who goes on from there gets ahead.  The cursor does not stand
 * anywhere afterwards.
 */
bool
lsm_run_cursor_split(LsmCursor *cursor, const LsmBound *from, uint32 leaves,
					 ScanDirection direction, LsmBound *split)
{
	RunCursor  *c = (RunCursor *) cursor;
	int			sign = ScanDirectionIsForward(direction) ? 1 : -1;
	uint32		leaf;
	uint32		end;
	LsmEntry	at;

	if (!lsm_run_prepare_seek(c, &from, direction) || !run_find_leaf(c, from))
		return false;
	/* From the leaf that far away on, toward where we are: VACUUM may have emptied some. */
	if (c->forward)
	{
		leaf = c->leaf + leaves;
		end = c->segment.leaves;
	}
	else
	{
		leaf = c->leaf >= leaves ? c->leaf - leaves : c->leaf + 1;
		end = c->leaf + 1;
	}
	for (; leaf < end; leaf++)
	{
		if (run_split_before_leaf(c, leaf, split) &&
			lsm_bound_order(c->cx->ks, from, split) * sign > 0)
			return true;
		if (c->cx->stale)
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	/* Where the segment ends, as it was written; it lies beyond `from`, or we were not here. */
	if (lsm_run_is_single(&c->run))
		return false;
	lsm_bound_entry(c->forward ? &c->found->high : &c->found->low, &at);
	lsm_bound_set_entry(split, &at, -sign);
	return true;
}
