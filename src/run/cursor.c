/*
 * cursor.c
 *	  A cursor over a packed run.
 *
 * A seek goes down the fence pages, holding one page at a time, and decodes a
 * single group of the leaf under its share lock.  Only when the cursor moves
 * beyond that group the leaf is copied; a point lookup never gets there.  From
 * leaf to leaf it follows the links between neighbours.
 *
 * VACUUM may remove entries from a leaf at any time; then a cursor that goes
 * back to the page finds its place by its last entry.
 *
 * Links may lead beyond the run's first and last leaf, into what a part has
 * taken the place of, or what a run has got since: the record is what counts.
 *
 * A merge may take the copy as it is, in place of the entries one by one.
 */
#include "postgres.h"

#include "base/compat.h"
#include "miscadmin.h"
#include "run/run.h"
#include "storage/buffers.h"

typedef struct RunCursor
{
	LsmCursor	base;
	Relation	rel;
	LsmKeySpace *ks;
	BufferAccessStrategy strategy;
	uint64		run_id;
	BlockNumber root;
	int			height;
	BlockNumber first_leaf;		/* beyond these nothing is read */
	BlockNumber last_leaf;
	uint32		leaves;			/* of the run */
	uint32		leaves_passed;	/* since the latest seek: more means a loop */
	ScanDirection direction;

	BlockNumber leaf;			/* where the cursor stands */
	bool		copied;			/* `copy` holds that leaf */
	Page		copy;			/* NULL until needed */
	int			group;
	int			pos;			/* in `decoded`, the entries of `group` */
	LsmGroup	decoded;
	LsmBound	here;			/* for finding the place again */
	LsmGroup	last;			/* last group of a page that was asked for; no
								 * scratch area until needed */
} RunCursor;

static void
damaged(RunCursor *c, BlockNumber block)
{
	lsm_report_corruption(c->rel, block, "entries cannot be decoded");
}

static Buffer
read_page(RunCursor *c, BlockNumber block, uint16 kind)
{
	Buffer		buffer = lsm_buffer_read(c->rel, block, LSM_KIND(kind), c->run_id,
										 BUFFER_LOCK_SHARE, c->strategy);

	lsm_test_old_snapshot(c->ks->snapshot, c->rel, BufferGetPage(buffer));
	return buffer;
}

/* Stand on entry `pos` of the decoded group. */
static void
stand(RunCursor *c)
{
	const LsmEntry *entry = &c->decoded.entries[c->pos];

	c->base.entry = entry;
	c->base.valid = true;
	if (c->ks->encoded)
		c->base.prefix = lsm_key_prefix_padded(entry->key);
}

static void
copy_leaf(RunCursor *c, Buffer buffer)
{
	if (c->copy == NULL)
		c->copy = palloc(BLCKSZ);
	memcpy(c->copy, BufferGetPage(buffer), BLCKSZ);
	c->copied = true;
}

static void
decode(RunCursor *c, int group)
{
	if (!lsm_leaf_decode_group(c->copy, group, &c->decoded))
		damaged(c, c->leaf);
	c->group = group;
}

/* The leaf after the copied one, in the direction of the scan, or invalid. */
static BlockNumber
neighbour(RunCursor *c)
{
	if (ScanDirectionIsForward(c->direction))
		return c->leaf == c->last_leaf ? InvalidBlockNumber : lsm_page_opaque(c->copy)->next;
	return c->leaf == c->first_leaf ? InvalidBlockNumber : lsm_page_opaque(c->copy)->prev;
}

/*
 * Go to the leaf `block` and stand on its first entry (backward: last one).
 * Empty leaves are passed over.
 */
static void
enter_leaf(RunCursor *c, BlockNumber block)
{
	bool		forward = ScanDirectionIsForward(c->direction);

	c->base.valid = false;
	while (BlockNumberIsValid(block))
	{
		Buffer		buffer;

		if (++c->leaves_passed > c->leaves)
			lsm_report_corruption(c->rel, block, "chain of leaves is broken");
		buffer = read_page(c, block, LSM_PAGE_LEAF);
		copy_leaf(c, buffer);
		UnlockReleaseBuffer(buffer);
		c->leaf = block;
		if (lsm_leaf_group_count(c->copy) > 0)
		{
			decode(c, forward ? 0 : lsm_leaf_group_count(c->copy) - 1);
			c->pos = forward ? 0 : c->decoded.count - 1;
			stand(c);
			c->base.at_page = forward;
			return;
		}
		block = neighbour(c);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
leave_leaf(RunCursor *c)
{
	enter_leaf(c, neighbour(c));
}

/* Find the place of `from` in the copied leaf and stand there, or go on. */
static void
seek_in_copy(RunCursor *c, const LsmBound *from)
{
	if (!lsm_leaf_search(c->ks, c->copy, from, &c->group, &c->pos, &c->decoded))
		damaged(c, c->leaf);
	if (ScanDirectionIsForward(c->direction))
	{
		if (c->pos < c->decoded.count)
			stand(c);
		else if (c->group + 1 < lsm_leaf_group_count(c->copy))
		{
			decode(c, c->group + 1);
			c->pos = 0;
			stand(c);
		}
		else
			leave_leaf(c);
	}
	else
	{
		/* The entry before pos; pos 0 only in the first group. */
		if (--c->pos >= 0)
			stand(c);
		else
			leave_leaf(c);
	}
}

static void
seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	RunCursor  *c = (RunCursor *) base;
	BlockNumber block = c->root;
	Buffer		buffer;
	Page		page;
	bool		forward = ScanDirectionIsForward(direction);
	bool		done = false;

	c->direction = direction;
	c->leaves_passed = 0;
	base->valid = false;
	base->at_page = false;
	for (int level = c->height; level > 0; level--)
	{
		BlockNumber child;

		buffer = read_page(c, block, LSM_PAGE_FENCE);
		if (!lsm_fence_search(c->ks, BufferGetPage(buffer), from, &c->decoded, &child))
			damaged(c, block);
		UnlockReleaseBuffer(buffer);
		block = child;
	}

	buffer = read_page(c, block, LSM_PAGE_LEAF);
	page = BufferGetPage(buffer);
	c->leaf = block;
	c->copied = false;
	if (!(lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST))
	{
		/* Try to do with one group: its keys are copied, it has no rests. */
		if (!lsm_leaf_search(c->ks, page, from, &c->group, &c->pos, &c->decoded))
			damaged(c, block);
		if (!forward)
			c->pos--;
		if (c->pos >= 0 && c->pos < c->decoded.count)
		{
			done = true;
			if (limit == NULL ||
				!lsm_beyond(c->ks, limit, &c->decoded.entries[c->pos], direction))
				stand(c);
		}
	}
	if (!done)
		copy_leaf(c, buffer);
	UnlockReleaseBuffer(buffer);
	if (!done)
		seek_in_copy(c, from);
	base->at_page = forward && base->valid && c->group == 0 && c->pos == 0;
}

static void
next(LsmCursor *base)
{
	RunCursor  *c = (RunCursor *) base;
	bool		forward = ScanDirectionIsForward(c->direction);

	base->valid = false;
	base->at_page = false;
	c->pos += forward ? 1 : -1;
	if (c->pos >= 0 && c->pos < c->decoded.count)
	{
		stand(c);
		return;
	}
	if (!c->copied)
	{
		Buffer		buffer;

		lsm_bound_set_entry(&c->here, base->entry, forward ? -1 : 1);
		buffer = read_page(c, c->leaf, LSM_PAGE_LEAF);
		copy_leaf(c, buffer);
		UnlockReleaseBuffer(buffer);
		seek_in_copy(c, &c->here);
		return;
	}
	if (forward && c->group + 1 < lsm_leaf_group_count(c->copy))
	{
		decode(c, c->group + 1);
		c->pos = 0;
		stand(c);
	}
	else if (!forward && c->group > 0)
	{
		decode(c, c->group - 1);
		c->pos = c->decoded.count - 1;
		stand(c);
	}
	else
		leave_leaf(c);
}

/*
 * Copy the leaf that a seek has found the place in.  False if VACUUM has
 * removed the entry since: the cursor stands on it, though it is dead.
 */
static bool
copy_found_leaf(RunCursor *c)
{
	Buffer		buffer = read_page(c, c->leaf, LSM_PAGE_LEAF);
	const LsmEntry *here = c->base.entry;
	LsmEntry	first;

	copy_leaf(c, buffer);
	c->copied = false;			/* `decoded` is of the page as it was */
	UnlockReleaseBuffer(buffer);
	if (lsm_leaf_group_count(c->copy) == 0)
		return false;
	if (!lsm_leaf_first_of_group(c->copy, 0, &first))
		damaged(c, c->leaf);
	return first.tid == here->tid && first.keylen == here->keylen &&
		memcmp(first.key, here->key, first.keylen) == 0;
}

static Page
page(LsmCursor *base, const LsmEntry **last)
{
	RunCursor  *c = (RunCursor *) base;

	if (!c->copied && !copy_found_leaf(c))
		return NULL;
	if (c->last.scratch == NULL)
		lsm_group_init(&c->last, c->ks->max_keylen);
	if (!lsm_leaf_decode_group(c->copy, lsm_leaf_group_count(c->copy) - 1, &c->last))
		damaged(c, c->leaf);
	*last = &c->last.entries[c->last.count - 1];
	return c->copy;
}

static void
skip_page(LsmCursor *base)
{
	leave_leaf((RunCursor *) base);
}

static void
close_cursor(LsmCursor *base)
{
	RunCursor  *c = (RunCursor *) base;

	if (c->copy)
		pfree(c->copy);
	if (c->here.key)
		pfree(c->here.key);
	lsm_group_free(&c->decoded);
	if (c->last.scratch)
		lsm_group_free(&c->last);
	pfree(c);
}

static const LsmCursorOps run_cursor_ops = {seek, next, close_cursor, page, skip_page};

/* A cursor over a packed run.  Lives in the current memory context. */
LsmCursor *
lsm_run_cursor_create(Relation rel, LsmKeySpace *ks, const LsmRunRecord *run,
					  BufferAccessStrategy strategy)
{
	RunCursor  *c = palloc0(sizeof(RunCursor));

	c->base.ops = &run_cursor_ops;
	c->rel = rel;
	c->ks = ks;
	c->strategy = strategy;
	c->run_id = lsm_run_owner(run);
	c->first_leaf = run->first_leaf;
	c->last_leaf = run->last_leaf;
	c->root = run->root;
	c->height = run->height;
	c->leaves = run->leaves;
	lsm_group_init(&c->decoded, ks->max_keylen);
	return &c->base;
}
