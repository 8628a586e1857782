/*
 * run_lookup.c
 *	  Lookups in a run: filters spare most runs that do not have the key.
 *
 * A single lookup asks the filter of each run and goes on with a seek.  Who looks for
 * many keys, a batch of a unique index, asks run by run: then the keys come in order,
 * the directory is looked at once for each segment, and the parts of filters that a
 * round of keys needs are on their way from memory all at once.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "read/run_cursor.h"
#include "storage/buffers.h"
#include "utils/memutils.h"

/*
 * When a filter has said "perhaps" so many times in a row, it is not asked for a
 * while: most keys are there, as in the largest run, and the run is read anyway.
 */
#define YES_IN_A_ROW	16
#define LOOKUPS_UNASKED	48

/* --- filters ----------------------------------------------------------------- */

/*
 * Make the filter of a small run.  False if the cursor is stale.  A reader may outlive
 * an error; what is needed meanwhile does not.
 */
static bool
run_make_filter(RunCursor *c)
{
	uint32		room = 1024;
	uint64	   *hashes = MemoryContextAlloc(CurTransactionContext, room * sizeof(uint64));
	uint32		count = 0;

	for (uint32 leaf = 0; leaf < c->segment.leaves; leaf++)
	{
		Buffer		buffer = lsm_run_read_page(c, leaf, LSM_PAGE_LEAF);
		Page		page;

		if (!BufferIsValid(buffer))
		{
			pfree(hashes);
			return false;
		}
		page = BufferGetPage(buffer);
		for (int g = 0; g < lsm_leaf_group_count(page); g++)
		{
			if (!lsm_leaf_decode_group(page, g, &c->decoded))
				lsm_run_damaged(c, leaf);
			if (count + c->decoded.count > room)
			{
				room *= 2;
				hashes = repalloc(hashes, room * sizeof(uint64));
			}
			for (int i = 0; i < c->decoded.count; i++)
				hashes[count++] = lsm_filter_hash(c->decoded.entries[i].key,
												  c->decoded.entries[i].keylen);
		}
		UnlockReleaseBuffer(buffer);
	}
	lsm_run_filter_make(c->cx->filters, c->filter, hashes, count);
	pfree(hashes);
	return true;
}

/* Does the segment's filter know the key?  No, if the cursor is stale. */
static bool
run_ask_segment(RunCursor *c)
{
	LsmFilterPlace place = lsm_filter_place(c->cx->hash, c->segment.filter_blocks);
	Buffer		buffer = lsm_run_read_page(c, c->segment.leaves + place.page, LSM_PAGE_FILTER);
	bool		found;

	if (!BufferIsValid(buffer))
		return false;
	found = lsm_filter_page_has(BufferGetPage(buffer), &place, c->cx->hash);
	UnlockReleaseBuffer(buffer);
	return found;
}

/*
 * Does a filter say that the key is not in the segment, or is the cursor stale?
 * Then the key is not in the run: one that reaches into another segment is in
 * both.
 */
bool
lsm_run_lacks_key(RunCursor *c)
{
	LsmReadContext *cx = c->cx;
	bool		found;

	if (cx->lookup == NULL || (c->segment.filter_blocks == 0 && c->filter == NULL))
		return false;
	if (c->yes >= YES_IN_A_ROW && ++c->yes < YES_IN_A_ROW + LOOKUPS_UNASKED)
		return false;
	if (!cx->is_hashed)
	{
		cx->hash = lsm_filter_hash(cx->lookup->key, cx->lookup->keylen);
		cx->is_hashed = true;
	}
	if (c->segment.filter_blocks > 0)
		found = run_ask_segment(c);
	else if (c->filter->blocks == NULL && ++c->filter->lookups < LSM_LOOKUPS_BEFORE_FILTER)
		return false;
	else
		found = (c->filter->blocks != NULL || run_make_filter(c)) &&
			lsm_run_filter_has(c->filter, cx->hash);
	cx->counters.filter_checks++;
	cx->counters.filter_skips += !found;
	c->yes = found ? Min(c->yes + 1, YES_IN_A_ROW) : 0;
	return !found;
}

/* --- many keys --------------------------------------------------------------- */

/* Keys that are looked for together. */
#define KEYS_A_ROUND	256

/* Lists into which they are put, by page of the filter; filters have hardly more. */
#define PAGE_LISTS		128

/* To look for a key takes about as long as to put so many into a filter. */
#define ENTRIES_A_LOOKUP	32

typedef struct LookupRound
{
	int			count;
	LsmProbe   *probes[KEYS_A_ROUND];
	LsmFilterPlace places[KEYS_A_ROUND];
	int16		first[PAGE_LISTS];	/* of each list, or -1 */
	int16		next[KEYS_A_ROUND]; /* in its list */
} LookupRound;

static inline int
compare_keys(const LsmProbe *probe, const uint8 *key, uint32 keylen)
{
	int			c = memcmp(probe->entry.key, key, Min(probe->entry.keylen, keylen));

	if (c != 0)
		return c;
	return probe->entry.keylen < keylen ? -1 : probe->entry.keylen > keylen;
}

/* Put the keys of the round into lists by the page of the filter that knows them. */
static void
sort_by_page(RunCursor *c, LookupRound *r)
{
	const BlockNumber first = c->segment.start + c->segment.leaves;

	memset(r->first, -1, Min(c->segment.filter_blocks, PAGE_LISTS) * sizeof(int16));
	for (int i = 0; i < r->count; i++)
	{
		LsmFilterPlace *place = &r->places[i];

		*place = lsm_filter_place(r->probes[i]->hash, c->segment.filter_blocks);
		lsm_buffer_expect(first + place->page,
						  LSM_FILTER_DATA + place->block * LSM_FILTER_BLOCK_BYTES);
		r->next[i] = r->first[place->page % PAGE_LISTS];
		r->first[place->page % PAGE_LISTS] = i;
	}
}

/* Ask the segment's filter about a list of keys.  Those of one page follow each other, mostly. */
static void
ask_list(RunCursor *c, LookupRound *r, int first, bool *perhaps)
{
	Buffer		buffer = InvalidBuffer;
	uint32		number = 0;

	for (int i = first; i >= 0; i = r->next[i])
	{
		if (BufferIsValid(buffer) && r->places[i].page != number)
		{
			UnlockReleaseBuffer(buffer);
			buffer = InvalidBuffer;
		}
		number = r->places[i].page;
		if (!BufferIsValid(buffer))
			buffer = lsm_run_read_expected_page(c, c->segment.leaves + number, LSM_PAGE_FILTER);
		if (!BufferIsValid(buffer))
			return;
		perhaps[i] = lsm_filter_page_has(BufferGetPage(buffer), &r->places[i],
										 r->probes[i]->hash);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

static void
ask_segment_for_round(RunCursor *c, LookupRound *r, bool *perhaps)
{
	int			lists = Min(c->segment.filter_blocks, PAGE_LISTS);

	sort_by_page(c, r);
	for (int list = 0; list < lists && !c->cx->stale; list++)
	{
		ask_list(c, r, r->first[list], perhaps);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Are there enough lookups in a run that has no filter yet, with so many more? */
static bool
is_filter_due(RunCursor *c, int more)
{
	c->filter->lookups += more;
	return (uint64) c->filter->lookups * ENTRIES_A_LOOKUP >= c->run.entries;
}

/* Keep the keys of the round that the segment may have. */
static void
ask_for_round(RunCursor *c, LookupRound *r)
{
	bool		perhaps[KEYS_A_ROUND] = {0};
	int			kept = 0;

	if (c->segment.filter_blocks > 0)
		ask_segment_for_round(c, r, perhaps);
	else
	{
		if (c->filter == NULL ||
			(c->filter->blocks == NULL && (!is_filter_due(c, r->count) || !run_make_filter(c))))
			return;
		for (int i = 0; i < r->count; i++)
			perhaps[i] = lsm_run_filter_has(c->filter, r->probes[i]->hash);
	}
	for (int i = 0; i < r->count; i++)
	{
		if (perhaps[i])
			r->probes[kept++] = r->probes[i];
	}
	c->cx->counters.filter_checks += r->count;
	c->cx->counters.filter_skips += r->count - kept;
	r->count = kept;
}

/* The cursor has been put before the key: is there an entry with it? */
static void
note_found(RunCursor *c, LsmProbe *probe)
{
	probe->found |= c->base.valid && lsm_key_equal(c->cx->ks, c->base.entry, &probe->entry);
}

/* Look for the keys of the round in the segment; none are left in it then. */
static void
look_for_round(RunCursor *c, LookupRound *r, LsmBound *low, LsmBound *high)
{
	if (r->count > 0)
		ask_for_round(c, r);
	for (int i = 0; i < r->count && !c->cx->stale; i++)
	{
		LsmProbe   *probe = r->probes[i];

		CHECK_FOR_INTERRUPTS();
		lsm_bound_set_key(c->cx->ks, low, &probe->entry, 1);
		lsm_bound_set_key(c->cx->ks, high, &probe->entry, -1);
		c->base.valid = false;
		lsm_run_seek_in_segment(c, low, high);
		note_found(c, probe);
	}
	r->count = 0;
}

/* Is it known without a look: found, the same key as the one before, or one that counts elsewhere? */
static bool
is_answered(RunCursor *c, const LsmProbe *probes, Size i)
{
	const LsmProbe *probe = &probes[i];

	return probe->found ||
		(i > 0 && compare_keys(probe, probes[i - 1].entry.key, probes[i - 1].entry.keylen) == 0) ||
		(c->clip != NULL && compare_keys(probe, c->clip->key, c->clip->keylen) < 0);
}

/*
 * Enter a run of one segment, which has no bounds in a directory, and look for the first
 * key.  False if the run has nothing between that and the last one, as is common while
 * keys ascend or descend.
 */
static bool
enter_single(RunCursor *c, LsmProbe *probes, Size count, LsmBound *low)
{
	lsm_run_segment(&c->run, &c->segment);
	c->cx->counters.segments++;
	lsm_bound_set_key(c->cx->ks, low, &probes[0].entry, 1);
	lsm_run_seek_in_segment(c, low, NULL);
	note_found(c, &probes[0]);
	return c->base.valid &&
		compare_keys(&probes[count - 1], c->base.entry->key, c->base.entry->keylen) >= 0;
}

/*
 * Look for keys, which are in order, in the run: those of which it has an entry are
 * marked; of equal ones the first.  Of entries before the clip it may be told or not:
 * they are in the output of the job.  False if the version is old.  low and high are
 * room for bounds.
 *
 * REQUIRES: encoded keys, one at least.
 */
bool
lsm_run_cursor_probe(LsmCursor *cursor, LsmProbe *probes, Size count, LsmBound *low,
					 LsmBound *high)
{
	RunCursor  *c = (RunCursor *) cursor;
	LookupRound r;
	bool		is_single = lsm_run_is_single(&c->run);
	bool		in_segment = false;

	c->direction = ForwardScanDirection;
	c->forward = true;
	c->base.stride = 1;
	c->base.valid = false;
	c->base.at_page = false;
	c->ends = false;
	r.count = 0;

	if (is_single && !enter_single(c, probes, count, low))
		return !c->cx->stale;
	for (Size i = is_single ? 1 : 0; i < count && !c->cx->stale; i++)
	{
		LsmProbe   *probe = &probes[i];

		if (is_answered(c, probes, i))
			continue;
		/* To the segment that the key is in, or that comes behind it. */
		if (!is_single && (!in_segment || compare_keys(probe, c->found->high.key,
													   c->found->high.keylen) > 0))
		{
			look_for_round(c, &r, low, high);
			lsm_bound_set_key(c->cx->ks, low, &probe->entry, 1);
			if (c->cx->stale || !lsm_run_find_segment(c, low))
				break;
			/* Whatever the cursor's last user had found. */
			in_segment = true;
		}
		if (!is_single && compare_keys(probe, c->found->low.key, c->found->low.keylen) < 0)
			continue;
		r.probes[r.count++] = probe;
		if (r.count == KEYS_A_ROUND)
			look_for_round(c, &r, low, high);
	}
	if (!c->cx->stale)
		look_for_round(c, &r, low, high);
	c->base.valid = false;
	return !c->cx->stale;
}

/* Has the run filters, or can it have one in private memory?  Else to look for many keys is as well done by reading. */
bool
lsm_run_cursor_has_filter(LsmCursor *cursor)
{
	RunCursor  *c = (RunCursor *) cursor;

	return c->run.filter_blocks > 0 || c->filter != NULL;
}
