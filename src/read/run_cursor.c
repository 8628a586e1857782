/*
 * run_cursor.c
 *	  Reads a run of packed segments as a cursor.
 *
 * A seek finds the leaf (run_search.c) and decodes part of one group under the leaf's share lock.
 * The cursor copies the leaf only when it needs more than that part, which most point lookups never
 * do.  But if comparing keys may run user code, the cursor copies the leaf before it searches (see
 * lsm_buffer_leave).  The next leaf is the next block.  After the last leaf of a segment, the
 * directory names the next segment.
 *
 * VACUUM and scans (kill_dead.c) may remove entries from a leaf at any time.  A cursor that comes
 * back to a leaf finds its position again by the last entry that it returned.
 *
 * A merge may take the whole copied page instead of its entries.
 */
#include "postgres.h"

#include "format/leaf_read.h"
#include "miscadmin.h"
#include "read/looked_for.h"
#include "read/read_ahead.h"
#include "read/run_cursor.h"
#include "read/run_lookup.h"
#include "segment/segment.h"
#include "storage/buffers.h"

/*
 * A seek in several runs decodes about WANTED_OF_ALL entries in total, and at least WANTED_OF_EACH
 * entries of each run.  A query for a few rows needs no more.
 */
#define WANTED_OF_ALL	24
#define WANTED_OF_EACH	4

/* --- moving on ------------------------------------------------------------------- */

/* Stand on decoded entry `pos`.  Backward, entries before the clip do not count. */
static void
stand_on(LsmRunCursor *c, int pos)
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
copy_leaf(LsmRunCursor *c, Buffer buffer)
{
	if (c->copy == NULL)
		c->copy = palloc(BLCKSZ);
	memcpy(c->copy, BufferGetPage(buffer), BLCKSZ);
	c->copied = true;
	c->decoded.page = lsm_read_see_page(c->cx, BufferGetBlockNumber(buffer), c->copy);
}

/* Decode up to `most` groups of the copy, beginning with c->group, and stand on the first entry. */
static void
decode_copy(LsmRunCursor *c, int most)
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
	stand_on(c, c->forward ? 0 : c->decoded.count - 1);
}

/*
 * Copy a leaf and stand on its first entry (backward: its last).  Returns false if the leaf is
 * empty or the cursor is stale.
 */
static bool
enter_leaf(LsmRunCursor *c, uint32 leaf)
{
	int64		before = lsm_pages_read();
	Buffer		buffer = lsm_run_read_page(c, leaf, LSM_PAGE_LEAF);
	bool		missed = lsm_pages_read() != before;

	if (!BufferIsValid(buffer))
		return false;
	c->leaf = leaf;
	lsm_run_note_near(c, buffer);
	copy_leaf(c, buffer);
	UnlockReleaseBuffer(buffer);
	if (!c->forward && unlikely(missed || c->ahead.depth > 0 || lsm_debug_prefetch_scan))
		lsm_run_look_ahead(c, missed);
	if (lsm_leaf_group_count(c->copy) == 0)
		return false;
	c->group = c->forward ? 0 : lsm_leaf_group_count(c->copy) - 1;
	/* Decode only one group, since a merge may take the whole page instead. */
	decode_copy(c, 1);
	c->base.at_page = c->forward;
	return true;
}

/* Move to the first (backward: last) entry of the leaves after the current one. */
static void
leave_leaf(LsmRunCursor *c)
{
	bool		entered = false;

	c->base.valid = false;
	while (!entered && !c->cx->stale)
	{
		bool		last = c->forward ? c->leaf + 1 >= c->segment.leaves : c->leaf == 0;

		if (!last)
			entered = enter_leaf(c, c->forward ? c->leaf + 1 : c->leaf - 1);
		else if (lsm_run_next_segment(c))
			entered = enter_leaf(c, c->forward ? 0 : c->segment.leaves - 1);
		else
			return;
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Search the copied leaf, and stand on the entry found unless it is beyond the limit.  If the leaf
 * has no such entry, move on to the next leaf.
 */
static void
seek_in_copy(LsmRunCursor *c, const LsmBound *from, const LsmBound *limit)
{
	int			pos;

	if (!lsm_leaf_search(c->cx->ks, c->copy, from, &c->group, &pos, &c->decoded))
		lsm_run_damaged(c, c->leaf);
	c->base.at_page = c->forward && c->group == 0 && pos == 0 && c->decoded.count > 0;
	c->group += c->forward ? 1 : -1;
	if (c->forward ? pos < c->decoded.count : pos > 0)
	{
		/* If earlier entries of the group were read, they are already counted. */
		c->cx->counters.entries += c->forward ? c->decoded.count - pos : pos;
		pos -= !c->forward;
		if (limit == NULL || !lsm_beyond(c->cx->ks, limit, &c->decoded.entries[pos], c->direction))
			stand_on(c, pos);
	}
	/* Backward, only the first group can have position 0. */
	else if (c->forward && c->group < lsm_leaf_group_count(c->copy))
		decode_copy(c, 1);
	else
		leave_leaf(c);
}

static void
run_fill(LsmCursor *base)
{
	LsmRunCursor *c = (LsmRunCursor *) base;

	if (!c->copied && !c->ends)
	{
		Buffer		buffer;

		lsm_bound_set_entry(&c->here, base->entry, c->forward ? -1 : 1);
		base->valid = false;
		buffer = lsm_run_read_page(c, c->leaf, LSM_PAGE_LEAF);
		if (!BufferIsValid(buffer))
			return;
		copy_leaf(c, buffer);
		UnlockReleaseBuffer(buffer);
		seek_in_copy(c, &c->here, NULL);
		return;
	}
	base->valid = false;
	if (c->ends)
		return;
	if (c->forward ? c->group < lsm_leaf_group_count(c->copy) : c->group >= 0)
		decode_copy(c, LSM_DECODED_ENTRIES / LSM_UNFRAMED_ENTRIES);
	else
		leave_leaf(c);
}

/* --- seeking --------------------------------------------------------------------- */

/*
 * Find the position in a leaf, and decode the entries after it that the seek needs; see
 * lsm_leaf_search.  Returns false if the page is damaged.
 */
static bool
search_leaf(LsmRunCursor *c, Page page, const LsmBound *from, int *pos)
{
	LsmReadContext *cx = c->cx;
	int			most = LSM_GROUP_ENTRIES;

	/* A merge may take the whole page, so it must know its position on the page. */
	if (cx->is_merge || !cx->ks->encoded ||
		(lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST) != 0)
		return lsm_leaf_search(cx->ks, page, from, &c->group, pos, &c->decoded);
	if (cx->lookup_columns == cx->ks->nkeys)
		most = 1;				/* decodes the other entries of the key, too, if there are few */
	else if (cx->run_count > 1)
		most = Max(WANTED_OF_ALL / cx->run_count, WANTED_OF_EACH);
	return lsm_leaf_seek(cx->ks, page, from, most, c->forward, pos, &c->decoded);
}

/* Copy the rests of decoded entries out of the page.  Most entries have no rest. */
static void
keep_rests(LsmRunCursor *c)
{
	uint8	   *to = c->rests;

	for (int i = 0; i < c->decoded.count; i++)
	{
		LsmEntry   *entry = &c->decoded.entries[i];

		if (entry->restlen == 0)
			continue;
		if (to == NULL)
			to = c->rests = palloc(BLCKSZ);
		entry->rest = memcpy(to, entry->rest, entry->restlen);
		to += entry->restlen;
	}
}

/*
 * Seek in the segment that the cursor is in.  At the end of the segment, continue with the next
 * one.
 *
 * REQUIRES: if the run has a directory, c->found is the segment.
 */
void
lsm_run_seek_in_segment(LsmRunCursor *c, const LsmBound *from, const LsmBound *limit)
{
	Buffer		buffer = lsm_run_read_leaf(c, from);
	Page		page;
	int			pos;
	bool		done = false;

	if (!BufferIsValid(buffer))
		return;
	if (c->cx->ks->runs_user_code)
	{
		copy_leaf(c, buffer);
		UnlockReleaseBuffer(buffer);
		seek_in_copy(c, from, limit);
		return;
	}
	page = BufferGetPage(buffer);
	c->copied = false;

	/* One group is usually enough.  Decoding copies its keys. */
	c->decoded.page = lsm_read_see_page(c->cx, BufferGetBlockNumber(buffer), page);
	if (!search_leaf(c, page, from, &pos))
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
			if (c->cx->ks->has_rest)
				keep_rests(c);
			stand_on(c, pos);
			c->base.at_page = c->cx->is_merge && c->forward && c->group == 0 && pos == 0;
		}
	}
	if (!done)
		copy_leaf(c, buffer);
	UnlockReleaseBuffer(buffer);
	if (!done)
		seek_in_copy(c, from, NULL);
}

static void
run_seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	LsmRunCursor *c = (LsmRunCursor *) base;
	LsmReadWatch watch;

	lsm_run_begin_watch(c, &watch);
	if (unlikely(c->cx->without != NULL) && lsm_seen_has(c->cx->without, c->run.run_id))
	{
		base->valid = false;
		base->at_page = false;
		return;
	}
	if (lsm_run_begin_seek(c, &from, direction) && !lsm_run_few_lack(c) &&
		lsm_run_enter_segment(c, from) && !lsm_run_lacks(c))
	{
		lsm_run_seek_in_segment(c, from, limit);
		if (c->is_perhaps)
			lsm_run_note_found(c);
	}
	if (unlikely(lsm_pages_read() != watch.pages))
		c->cx->missed_runs++;
	else if (likely(!lsm_debug_prefetch_scan))
		return;
	lsm_run_note_reads(c, &watch);
}

/* --- whole pages and segments, for merges ---------------------------------------- */

/*
 * Copy the leaf in which a seek has found its position.  Returns false if the leaf's first entry,
 * on which the cursor stands, has been removed, or if the version is stale.
 */
static bool
copy_found_leaf(LsmRunCursor *c)
{
	Buffer		buffer = lsm_run_read_page(c, c->leaf, LSM_PAGE_LEAF);
	const LsmEntry *here = c->base.entry;
	LsmEntry	first;

	/* The version is stale.  The cursor notices when it moves on. */
	if (!BufferIsValid(buffer))
		return false;
	copy_leaf(c, buffer);
	c->copied = false;			/* `decoded` is from an earlier look at the page */
	UnlockReleaseBuffer(buffer);
	if (lsm_leaf_group_count(c->copy) == 0)
		return false;
	if (!lsm_leaf_first_of_group(c->copy, 0, &first))
		lsm_run_damaged(c, c->leaf);
	return first.tid == here->tid && first.keylen == here->keylen &&
		memcmp(first.key, here->key, first.keylen) == 0;
}

static Page
run_whole_page(LsmCursor *base, const LsmEntry **last)
{
	LsmRunCursor *c = (LsmRunCursor *) base;

	if (!c->copied && !copy_found_leaf(c))
		return NULL;
	if (c->last.scratch == NULL)
		lsm_group_init(&c->last, c->cx->ks->max_keylen);
	if (!lsm_leaf_decode_group(c->copy, lsm_leaf_group_count(c->copy) - 1, &c->last))
		lsm_run_damaged(c, c->leaf);
	*last = &c->last.entries[c->last.count - 1];
	return c->copy;
}

static void
run_skip_page(LsmCursor *base)
{
	base->at_page = false;
	leave_leaf((LsmRunCursor *) base);
}

/* Read the last entry of a segment that no directory describes.  The entry's key is in c->last. */
static bool
read_high_entry(LsmRunCursor *c, LsmEntry *high)
{
	Buffer		buffer = lsm_run_read_page(c, c->segment.leaves - 1, LSM_PAGE_LEAF);
	Page		page;
	bool		found;

	if (!BufferIsValid(buffer))
		return false;
	page = BufferGetPage(buffer);
	if (c->last.scratch == NULL)
		lsm_group_init(&c->last, c->cx->ks->max_keylen);
	/* If the leaf has become empty, the merge should rewrite the segment. */
	found = lsm_leaf_group_count(page) > 0;
	if (found && !lsm_leaf_decode_group(page, lsm_leaf_group_count(page) - 1, &c->last))
		lsm_run_damaged(c, c->segment.leaves - 1);
	UnlockReleaseBuffer(buffer);
	if (found)
		*high = c->last.entries[c->last.count - 1];
	return found;
}

static bool
run_whole_segment(LsmCursor *base, uint32 least_blocks, LsmWholeSegment *whole)
{
	LsmRunCursor *c = (LsmRunCursor *) base;
	const LsmSegment *segment = &c->segment;

	/* The merge should rewrite a segment from which VACUUM has removed many entries. */
	if (c->leaf != 0 || segment->blocks < least_blocks || segment->removed > segment->entries / 10)
		return false;
	memset(whole, 0, sizeof(LsmWholeSegment));
	whole->run_id = c->run.run_id;
	whole->entry.segment = *segment;
	/* Not the directory's low entry: it may have been removed, or may lie before the clip. */
	whole->entry.low = *base->entry;
	if (!lsm_run_is_single(&c->run))
	{
		lsm_bound_entry(&c->found->high, &whole->entry.high);
		whole->page = c->found->page;
		whole->ordinal = c->found->ordinal;
		return true;
	}
	return read_high_entry(c, &whole->entry.high);
}

/* --- cursors --------------------------------------------------------------------- */

static void
free_found(LsmFoundSegment *found)
{
	if (found == NULL)
		return;
	lsm_found_free_keys(found);
	pfree(found);
}

static void
run_close(LsmCursor *base)
{
	LsmRunCursor *c = (LsmRunCursor *) base;

	if (c->copy)
		pfree(c->copy);
	if (c->rests)
		pfree(c->rests);
	if (c->here.key)
		pfree(c->here.key);
	free_found(c->found);
	free_found(c->walked);
	lsm_group_free(&c->decoded);
	if (c->last.scratch)
		lsm_group_free(&c->last);
	pfree(c);
}

static const LsmCursorOps run_cursor_ops = {run_seek, run_fill, run_close, run_whole_page, run_skip_page,
run_whole_segment, lsm_run_expect};

/* Create a cursor without a run, in the current memory context. */
LsmCursor *
lsm_run_cursor_create(LsmReadContext *cx)
{
	LsmRunCursor *c = palloc0(sizeof(LsmRunCursor));

	c->base.ops = &run_cursor_ops;
	c->base.source = &c->base;
	c->cx = cx;
	lsm_group_init(&c->decoded, cx->ks->max_keylen);
	return &c->base;
}

/* Let the cursor read a run.  Unless `clip` is NULL, entries before it do not count. */
void
lsm_run_cursor_set(LsmCursor *cursor, const LsmRunRecord *run, const LsmBound *clip)
{
	LsmRunCursor *c = (LsmRunCursor *) cursor;

	if (c->run.run_id != run->run_id)
		memset(c->habits, 0, sizeof(c->habits));
	c->run = *run;
	c->clip = clip;
	c->base.valid = false;
	lsm_near_leaf_forget(&c->near);
	c->filter = NULL;
	if (c->cx->filters != NULL && lsm_run_is_single(run) &&
		run->leaves <= (run->filter_blocks == 0 ? LSM_RUN_FILTER_MOST_LEAVES :
						LSM_JOINT_MOST_LEAVES))
		c->filter = lsm_run_filters_get(c->cx->filters, run->run_id);
}

/* --- splits of parallel scans ------------------------------------------------------ */

/*
 * Set `split` to the position before the first entry of a leaf.  Returns false if the leaf is empty
 * or the cursor is stale.
 */
static bool
split_before_leaf(LsmRunCursor *c, uint32 leaf, LsmBound *split)
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
 * Find a position about `leaves` leaves after `from` (backward: before it), or fewer at the end of
 * a segment.  The position is always beyond `from`, so the caller makes progress.  Returns false if
 * the run ends earlier or the cursor is stale.  The cursor stands nowhere afterwards.
 */
bool
lsm_run_cursor_split(LsmCursor *cursor, const LsmBound *from, uint32 leaves,
					 ScanDirection direction, LsmBound *split)
{
	LsmRunCursor *c = (LsmRunCursor *) cursor;
	int			sign = ScanDirectionIsForward(direction) ? 1 : -1;
	uint32		leaf;
	uint32		end;
	LsmEntry	at;

	if (!lsm_run_prepare_seek(c, &from, direction) || !lsm_run_find_leaf(c, from))
		return false;
	/* The target leaf may be empty.  If so, try the leaves after it. */
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
		if (split_before_leaf(c, leaf, split) &&
			lsm_bound_order(c->cx->ks, from, split) * sign > 0)
			return true;
		if (c->cx->stale)
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	/*
	 * Take the end that the segment had when it was written.  This end is beyond `from`, because
	 * the seek chose the segment for `from`.
	 */
	if (lsm_run_is_single(&c->run))
		return false;
	lsm_bound_entry(c->forward ? &c->found->high : &c->found->low, &at);
	lsm_bound_set_entry(split, &at, -sign);
	return true;
}
