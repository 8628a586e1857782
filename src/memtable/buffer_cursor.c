/*
 * buffer_cursor.c
 *	  A cursor over one buffer page, open or sealed.
 *
 * The page is searched under its share lock and copied when something on it
 * lies within the limit; moving on needs no lock.
 */
#include "postgres.h"

#include "base/compat.h"
#include "format/buffer_page.h"
#include "memtable/memtable.h"
#include "storage/buffers.h"

typedef struct BufferCursor
{
	LsmCursor	base;
	Relation	rel;
	LsmKeySpace *ks;
	BlockNumber block;
	uint64		run_id;
	ScanDirection direction;
	int			pos;
	int			count;
	Page		copy;			/* NULL until it is needed */
	LsmEntry	entry;			/* that the cursor stands on */
} BufferCursor;

static void
get_entry(BufferCursor *c, Page page, int pos, LsmEntry *entry)
{
	if (!lsm_buffer_page_get(page, pos, entry))
		lsm_report_corruption(c->rel, c->block, "item is out of bounds");
}

/* Position of the first entry after the bound; the count if there is none. */
static int
search(BufferCursor *c, Page page, const LsmBound *bound)
{
	int			low = 0;
	int			high = lsm_buffer_page_count(page);

	while (low < high)
	{
		int			middle = (low + high) / 2;
		LsmEntry	entry;

		get_entry(c, page, middle, &entry);
		if (lsm_bound_compare(c->ks, bound, &entry) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
stand(BufferCursor *c)
{
	c->base.valid = c->pos >= 0 && c->pos < c->count;
	if (!c->base.valid)
		return;
	get_entry(c, c->copy, c->pos, &c->entry);
	c->base.entry = &c->entry;
	if (c->ks->encoded)
		c->base.prefix = lsm_key_prefix(c->entry.key, c->entry.keylen);
}

static void
seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	BufferCursor *c = (BufferCursor *) base;
	Buffer		buffer = InvalidBuffer;
	Page		page = c->copy;

	if (page == NULL)
	{
		buffer = lsm_buffer_read(c->rel, c->block, LSM_KIND(LSM_PAGE_BUFFER), c->run_id,
								 BUFFER_LOCK_SHARE, NULL);
		page = BufferGetPage(buffer);
		lsm_test_old_snapshot(c->ks->snapshot, c->rel, page);
	}
	c->direction = direction;
	c->count = lsm_buffer_page_count(page);
	c->pos = search(c, page, from);
	if (ScanDirectionIsBackward(direction))
		c->pos--;
	base->valid = c->pos >= 0 && c->pos < c->count;
	if (base->valid && limit != NULL)
	{
		LsmEntry	entry;

		get_entry(c, page, c->pos, &entry);
		base->valid = !lsm_beyond(c->ks, limit, &entry, direction);
	}
	if (BufferIsValid(buffer))
	{
		if (base->valid)
		{
			c->copy = palloc(BLCKSZ);
			memcpy(c->copy, page, BLCKSZ);
		}
		UnlockReleaseBuffer(buffer);
	}
	if (base->valid)
		stand(c);
}

static void
next(LsmCursor *base)
{
	BufferCursor *c = (BufferCursor *) base;

	c->pos += ScanDirectionIsForward(c->direction) ? 1 : -1;
	stand(c);
}

static void
close_cursor(LsmCursor *base)
{
	BufferCursor *c = (BufferCursor *) base;

	if (c->copy)
		pfree(c->copy);
	pfree(c);
}

static const LsmCursorOps buffer_cursor_ops = {seek, next, close_cursor};

/* A cursor over the buffer page of a run.  Lives in the current context. */
LsmCursor *
lsm_buffer_cursor_create(Relation rel, LsmKeySpace *ks, BlockNumber block, uint64 run_id)
{
	BufferCursor *c = palloc0(sizeof(BufferCursor));

	c->base.ops = &buffer_cursor_ops;
	c->rel = rel;
	c->ks = ks;
	c->block = block;
	c->run_id = run_id;
	return &c->base;
}
