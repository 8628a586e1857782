/*
 * run_search.c
 *	  Searches a run for a position: from the run's record or directory to the segment, and down
 *	  the segment's fence pages to the leaf.
 *
 * The search locks one page at a time.  If a page now belongs to another segment, the cursor is
 * stale.
 */
#include "postgres.h"

#include "base/compat.h"
#include "read/run_search.h"
#include "segment/segment.h"
#include "storage/buffers.h"

/* --- pages -------------------------------------------------------------------- */

/* Report a page of the segment whose entries cannot be decoded. */
void
lsm_run_damaged(LsmRunCursor *c, uint32 page)
{
	lsm_report_corruption(c->cx->index->rel, c->segment.start + page, "entries cannot be decoded");
}

/* Returns the block of a page of the segment. */
static BlockNumber
run_page_block(LsmRunCursor *c, uint32 number)
{
	if (number >= c->segment.blocks)
		lsm_run_damaged(c, c->segment.blocks - 1);
	return c->segment.start + number;
}

/* Count a page that was read.  An invalid buffer means that the page now has another owner. */
static Buffer
note_page_read(LsmRunCursor *c, uint32 number, Buffer buffer)
{
	c->cx->counters.pages++;
	if (!BufferIsValid(buffer))
		lsm_read_set_stale(c->cx, c->segment.start + number);
	else
		lsm_test_old_snapshot(c->cx->snapshot, c->cx->index->rel, BufferGetPage(buffer));
	return buffer;
}

/* May searches soon read the page again?  Large runs have too many leaves for that. */
static inline bool
is_read_often(LsmRunCursor *c, uint16 kind)
{
	return !c->cx->is_merge && (kind != LSM_PAGE_LEAF || lsm_run_is_single(&c->run));
}

/* Lock a page of the segment in share mode.  Returns InvalidBuffer if the version is stale. */
Buffer
lsm_run_read_page(LsmRunCursor *c, uint32 number, uint16 kind)
{
	Relation	rel = c->cx->index->rel;
	BlockNumber block = run_page_block(c, number);
	uint64		owner = c->segment.id;

	return note_page_read(c, number, is_read_often(c, kind) ?
						  lsm_buffer_read_recent(rel, block, kind, owner, c->cx->strategy) :
						  lsm_buffer_read_owned(rel, block, kind, owner, BUFFER_LOCK_SHARE,
												c->cx->strategy));
}

/* --- segments ----------------------------------------------------------------- */

/*
 * Find the segment for a position in the directory.  Returns false if there is none, or the
 * cursor is stale.  *found is NULL, or an earlier result, which is overwritten.
 */
bool
lsm_run_search_directory(LsmRunCursor *c, const LsmBound *bound, LsmFoundSegment **found)
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

/* Move the cursor to the segment for a position.  Returns what lsm_run_search_directory does. */
bool
lsm_run_find_segment(LsmRunCursor *c, const LsmBound *bound)
{
	if (!lsm_run_search_directory(c, bound, &c->found))
		return false;
	c->segment = c->found->segment;
	return true;
}

/*
 * Move to the next segment in the direction of the scan.  Returns what lsm_run_search_directory
 * does.
 */
bool
lsm_run_next_segment(LsmRunCursor *c)
{
	LsmBound	from = {0};
	bool		found;

	if (lsm_run_is_single(&c->run))
		return false;
	/* The seek found the segment in the directory. */
	Assert(c->found->segment.id == c->segment.id);
	/* The search overwrites *c->found. */
	from = c->forward ? c->found->high : c->found->low;
	from.key = palloc(from.keylen + LSM_KEY_PAD);
	memcpy(from.key, c->forward ? c->found->high.key : c->found->low.key,
		   from.keylen + LSM_KEY_PAD);
	found = lsm_run_find_segment(c, &from);
	pfree(from.key);
	return found;
}

/* Does a position lie before the clip? */
static bool
is_before_clip(LsmRunCursor *c, const LsmBound *bound)
{
	LsmEntry	at;

	if (c->clip == NULL)
		return false;
	lsm_bound_entry(c->clip, &at);
	return lsm_bound_compare(c->cx->ks, bound, &at) > 0;
}

static bool
is_near_leaf(LsmRunCursor *c, const LsmBound *from)
{
	return lsm_near_leaf_covers(&c->near, c->segment.id, c->cx->user, from->key, from->keylen);
}

/* Called when a seek begins.  The cursor stands nowhere. */
void
lsm_run_set_direction(LsmRunCursor *c, ScanDirection direction)
{
	c->direction = direction;
	c->forward = ScanDirectionIsForward(direction);
	c->base.stride = c->forward ? 1 : -1;
	c->base.valid = false;
	c->base.at_page = false;
	c->ends = false;
}

/*
 * Begin a seek.  If *from lies before the clip, a forward seek moves *from to the clip, and a
 * backward seek returns false, since entries before the clip do not count.
 */
bool
lsm_run_begin_seek(LsmRunCursor *c, const LsmBound **from, ScanDirection direction)
{
	lsm_run_set_direction(c, direction);
	if (is_before_clip(c, *from))
	{
		if (!c->forward)
			return false;
		*from = c->clip;
	}
	c->is_near = is_near_leaf(c, *from);
	return true;
}

/*
 * Find the segment to seek in, after lsm_run_begin_seek.  Returns false if there is none, or the
 * cursor is stale.
 */
bool
lsm_run_enter_segment(LsmRunCursor *c, const LsmBound *from)
{
	if (c->is_near)
		return true;
	if (!lsm_run_is_single(&c->run))
		return lsm_run_find_segment(c, from);
	lsm_run_segment(&c->run, &c->segment);
	c->cx->counters.segments++;
	return true;
}

/* Begin a seek, and find its segment. */
bool
lsm_run_prepare_seek(LsmRunCursor *c, const LsmBound **from, ScanDirection direction)
{
	return lsm_run_begin_seek(c, from, direction) && lsm_run_enter_segment(c, *from);
}

/* --- leaves ------------------------------------------------------------------- */

/* Find the child of a fence page for a position.  Returns false if the cursor is stale. */
static bool
search_fence_page(LsmRunCursor *c, uint32 number, const LsmBound *from, uint32 *child)
{
	Buffer		buffer = lsm_run_read_page(c, number, LSM_PAGE_FENCE);
	PGAlignedBlock copy;
	Page		page;

	if (!BufferIsValid(buffer))
		return false;
	page = c->cx->ks->runs_user_code ? lsm_buffer_leave(&buffer, &copy) : BufferGetPage(buffer);
	if (!lsm_fence_search(c->cx->ks, page, from, &c->decoded, child) || *child >= number)
		lsm_run_damaged(c, number);
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	return true;
}

/* Go down the fence pages to the leaf for a position.  Returns false if the cursor is stale. */
static bool
descend_to_leaf(LsmRunCursor *c, const LsmBound *from)
{
	uint32		page = c->segment.blocks - 1;

	for (int level = c->segment.height; level > 0; level--)
	{
		if (!search_fence_page(c, page, from, &page))
			return false;
	}
	c->leaf = page;
	return true;
}

/* Set c->leaf for a seek that was prepared.  Returns false if the cursor is stale. */
bool
lsm_run_find_leaf(LsmRunCursor *c, const LsmBound *from)
{
	if (!c->is_near)
		return descend_to_leaf(c, from);
	c->leaf = c->near.leaf;
	return true;
}

/* Note that the cursor has entered c->leaf. */
void
lsm_run_note_near(LsmRunCursor *c, Buffer buffer)
{
	lsm_near_leaf_note(&c->near, c->segment.id, c->leaf, c->cx->user, c->cx->ks->encoded,
					   BufferGetPage(buffer));
	c->near.buffer = BufferIsLocal(buffer) ? InvalidBuffer : buffer;
}

/* Find and lock the leaf for a position.  Returns InvalidBuffer if the version is stale. */
Buffer
lsm_run_read_leaf(LsmRunCursor *c, const LsmBound *from)
{
	Buffer		buffer;

	if (is_near_leaf(c, from))
	{
		c->leaf = c->near.leaf;
		return note_page_read(c, c->leaf,
							  lsm_buffer_read_again(c->cx->index->rel, run_page_block(c, c->leaf),
													LSM_PAGE_LEAF, c->segment.id,
													c->cx->strategy, &c->near.buffer));
	}
	if (!descend_to_leaf(c, from))
		return InvalidBuffer;
	buffer = lsm_run_read_page(c, c->leaf, LSM_PAGE_LEAF);
	if (BufferIsValid(buffer))
		lsm_run_note_near(c, buffer);
	return buffer;
}
