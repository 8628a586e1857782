/*
 * buffer_cursor.c
 *	  Reads one page of the write buffer, open or sealed, as a cursor.
 *
 * A seek searches the page under the page's share lock, and copies the page if an entry lies within
 * the limit. If comparing may run user code, it copies the page first (lsm_buffer_leave). Moving on
 * needs no lock. Further seeks use the copy until the context's generation changes. After that,
 * inserts may have added entries to the page.
 *
 * Lookups of whole keys first ask a filter in private memory (page_filter.h). The filter catches up
 * with the page once per generation, and stops once it has all entries of a sealed page.
 */
#include "postgres.h"

#include "base/compat.h"
#include "format/buffer_page.h"
#include "read/buffer_cursor.h"
#include "read/looked_for.h"
#include "read/run_filter.h"
#include "read/run_lookup.h"
#include "storage/buffers.h"

/* Entries to decode at a time. */
#define BATCH 32

typedef struct BufferCursor
{
	LsmCursor	base;
	LsmReadContext *cx;
	BlockNumber block;
	uint64		segment_id;
	const LsmBound *clip;		/* entries before this bound do not count; or NULL */
	bool		forward;
	int			next;			/* next slot to decode */
	int			count;
	uint64		generation;		/* of the copy; 0: no copy */
	Page		copy;			/* NULL until needed */
	Buffer		recent;			/* buffer that held the page last */
	uint32		page;			/* see LsmEntry */
	bool		is_sealed;		/* the page gets no more entries */
	LsmPageFilter *filter;		/* NULL: the context has no filters */
	uint64		filter_generation;	/* generation of the last catch-up */
	LsmEntry	entries[BATCH];
} BufferCursor;

static void
buffer_get(BufferCursor *c, Page page, int pos, LsmEntry *entry)
{
	if (!lsm_buffer_page_get(page, pos, entry))
		lsm_report_corruption(c->cx->index->rel, c->block, "item is out of bounds");
}

/* Returns the slot of the first entry after the bound, or the count if there is none. */
static int
buffer_search(BufferCursor *c, Page page, const LsmBound *bound)
{
	int			low = 0;
	int			high = lsm_buffer_page_count(page);

	while (low < high)
	{
		int			middle = (low + high) / 2;
		LsmEntry	entry;

		buffer_get(c, page, middle, &entry);
		if (lsm_bound_compare(c->cx->ks, bound, &entry) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Decode the next entries in the direction of the scan from the copy. */
static void
buffer_fill(LsmCursor *base)
{
	BufferCursor *c = (BufferCursor *) base;
	int			n = 0;

	base->valid = false;
	base->stride = 1;
	while (n < BATCH && c->next >= 0 && c->next < c->count)
	{
		buffer_get(c, c->copy, c->next, &c->entries[n]);
		if (!c->forward && c->clip != NULL &&
			lsm_bound_compare(c->cx->ks, c->clip, &c->entries[n]) < 0)
		{
			c->next = -1;
			break;
		}
		c->entries[n++].page = c->page;
		c->next += c->forward ? 1 : -1;
	}
	c->cx->counters.entries += n;
	if (n > 0)
		lsm_cursor_stand(base, c->entries, n - 1);
}

/* Lock the page. Returns InvalidBuffer if the version is stale. */
static Buffer
buffer_lock(BufferCursor *c)
{
	Buffer		buffer = lsm_buffer_read_again(c->cx->index->rel, c->block, LSM_PAGE_BUFFER,
											   c->segment_id, c->cx->strategy, &c->recent);

	c->cx->counters.pages++;
	if (!BufferIsValid(buffer))
		lsm_read_set_stale(c->cx, c->block);
	else
		lsm_test_old_snapshot(c->cx->snapshot, c->cx->index->rel, BufferGetPage(buffer));
	return buffer;
}

/* --- the filter --------------------------------------------------------------- */

/*
 * Let the filter catch up with the page if `lookups` more lookups pay for that. Returns false if
 * the filter does not have all entries, or the cursor is stale.
 */
static bool
filter_catch_up(BufferCursor *c, uint32 lookups)
{
	LsmReadContext *cx = c->cx;
	LsmPageNews news;
	Buffer		buffer;
	bool		is_worth;

	if (c->filter->is_final || (c->filter_generation == cx->generation && c->filter->room > 0))
		return true;
	buffer = buffer_lock(c);
	if (!BufferIsValid(buffer))
		return false;
	is_worth = lsm_page_filter_read(cx->ks, c->filter, BufferGetPage(buffer), lookups, &news);
	UnlockReleaseBuffer(buffer);
	if (!is_worth)
		return false;
	/* Hash functions run without the page's lock. */
	if (!lsm_run_filters_note_page(cx->filters, c->filter, cx->ks, &news))
		return false;
	c->filter_generation = cx->generation;
	c->filter->is_final = c->is_sealed;
	return true;
}

/* Does the filter say that the page lacks the seek's key? Also true if the cursor is stale. */
static bool
filter_lacks(BufferCursor *c)
{
	LsmReadContext *cx = c->cx;
	uint64		hash;

	if (c->filter == NULL || cx->lookup_columns != cx->ks->nkeys || !filter_catch_up(c, 1) ||
		!lsm_run_lookup_hash(cx, cx->lookup_columns, &hash))
		return cx->stale;
	cx->counters.filter_checks++;
	if (lsm_page_filter_has(c->filter, hash))
		return false;
	cx->counters.filter_skips++;
	cx->spared += LSM_SPARED_BY_MEMORY;
	return true;
}

/* --- seeking ------------------------------------------------------------------ */

/* Is the entry at the cursor's position within the limit? */
static bool
is_within_limit(BufferCursor *c, Page page, const LsmBound *limit, ScanDirection direction)
{
	LsmEntry	entry;

	if (c->next < 0 || c->next >= c->count)
		return false;
	if (limit == NULL)
		return true;
	buffer_get(c, page, c->next, &entry);
	return !lsm_beyond(c->cx->ks, limit, &entry, direction);
}

static void
copy_page(BufferCursor *c, Page page)
{
	if (c->copy == NULL)
		c->copy = palloc(BLCKSZ);
	memcpy(c->copy, page, BLCKSZ);
	c->page = lsm_read_see_page(c->cx, c->block, page);
	c->generation = c->cx->generation;
}

/* Search the page, or this generation's copy, and stand on the entry found. */
static void
search_page(BufferCursor *c, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	Buffer		buffer = InvalidBuffer;
	Page		page = c->copy;

	c->base.valid = false;
	if (c->generation != c->cx->generation)
	{
		buffer = buffer_lock(c);
		if (!BufferIsValid(buffer))
			return;
		page = BufferGetPage(buffer);
		if (c->cx->ks->runs_user_code)
		{
			copy_page(c, page);
			UnlockReleaseBuffer(buffer);
			buffer = InvalidBuffer;
			page = c->copy;
		}
	}
	c->forward = ScanDirectionIsForward(direction);
	c->count = lsm_buffer_page_count(page);
	c->next = buffer_search(c, page, from);
	if (c->forward && c->clip != NULL)
		c->next = Max(c->next, buffer_search(c, page, c->clip));
	if (!c->forward)
		c->next--;
	if (!is_within_limit(c, page, limit, direction))
		c->next = -1;
	else if (page != c->copy)
		copy_page(c, page);
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	if (c->next >= 0)
		buffer_fill(&c->base);
}

static void
buffer_seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	BufferCursor *c = (BufferCursor *) base;
	LsmReadContext *cx = c->cx;
	int64		asked = cx->counters.filter_checks;

	base->valid = false;
	if (unlikely(cx->without != NULL) && lsm_seen_has(cx->without, c->segment_id))
		return;
	if (filter_lacks(c))
		return;
	asked = cx->counters.filter_checks - asked;
	search_page(c, from, limit, direction);
	if (!base->valid && !cx->stale)
		cx->counters.filter_misses += asked;
}

static void
buffer_close(LsmCursor *base)
{
	BufferCursor *c = (BufferCursor *) base;

	if (c->copy)
		pfree(c->copy);
	pfree(c);
}

static const LsmCursorOps buffer_cursor_ops = {buffer_seek, buffer_fill, buffer_close};

/*
 * Look for keys in the page. Marks the keys that have an entry on the page. If a key is repeated,
 * marks only the first. Returns false, and does nothing, if searching without a filter is better.
 */
bool
lsm_buffer_cursor_probe(LsmCursor *cursor, LsmProbe *probes, Size count, LsmBound *low,
						LsmBound *high)
{
	BufferCursor *c = (BufferCursor *) cursor;
	LsmReadContext *cx = c->cx;

	if (c->filter == NULL || !filter_catch_up(c, (uint32) Min(count, BLCKSZ)))
		return cx->stale;
	for (Size i = 0; i < count && !cx->stale; i++)
	{
		LsmProbe   *probe = &probes[i];

		if (probe->found || probe->repeats)
			continue;
		cx->counters.filter_checks++;
		if (!lsm_page_filter_has(c->filter, probe->hash))
		{
			cx->counters.filter_skips++;
			continue;
		}
		lsm_bound_set_key(cx->ks, low, &probe->entry, 1);
		lsm_bound_set_key(cx->ks, high, &probe->entry, -1);
		search_page(c, low, high, ForwardScanDirection);
		probe->found = cursor->valid && lsm_key_equal(cx->ks, cursor->entry, &probe->entry);
		cx->counters.filter_misses += !probe->found && !cx->stale;
	}
	return true;
}

/* Create a cursor without a page. It allocates in the memory context that is current now. */
LsmCursor *
lsm_buffer_cursor_create(LsmReadContext *cx)
{
	BufferCursor *c = palloc0(sizeof(BufferCursor));

	c->base.ops = &buffer_cursor_ops;
	c->base.source = &c->base;
	c->cx = cx;
	return &c->base;
}

/* Let the cursor read the page of a run. Unless `clip` is NULL, entries before it do not count. */
void
lsm_buffer_cursor_set(LsmCursor *cursor, const LsmRunRecord *run, const LsmBound *clip)
{
	BufferCursor *c = (BufferCursor *) cursor;

	if (c->segment_id != run->run_id)
		c->generation = 0;
	c->block = run->start;
	c->segment_id = run->run_id;
	c->clip = clip;
	c->is_sealed = run->state == LSM_RUN_SEALED;
	c->filter_generation = 0;
	c->filter = c->cx->filters == NULL ? NULL :
		&lsm_run_filters_get(c->cx->filters, run->run_id)->of_page;
}
