/*
 * run_lookup.c
 *	  Asks filters whether a run may contain the key or prefix that a seek looks for.
 *
 * A lookup asks a filter before it reads a leaf of a run.  Usually the filter is part of the
 * segment, on disk.  A small run without such a filter has one in private memory (run_filter.h).
 * Filters cover whole keys and, depending on the storage parameter filter_prefix, key prefixes.
 */
#include "postgres.h"

#include "format/leaf_read.h"
#include "key/hash.h"
#include "read/run_lookup.h"
#include "storage/buffers.h"
#include "utils/memutils.h"

/* --- filters in private memory -------------------------------------------------- */

/*
 * Pass all groups of a small run to a function, in the order of their keys.  Returns false if the
 * cursor is stale.
 */
static bool
take_all_groups(LsmRunCursor *c, void (*take) (LsmGroup *group, void *arg), void *arg)
{
	PGAlignedBlock copy;

	lsm_run_segment(&c->run, &c->segment);
	for (uint32 leaf = 0; leaf < c->segment.leaves; leaf++)
	{
		Buffer		buffer = lsm_run_read_page(c, leaf, LSM_PAGE_LEAF);
		Page		page;

		if (!BufferIsValid(buffer))
			return false;
		page = BufferGetPage(buffer);
		/* Hash functions must not run under the page's lock. */
		if (!c->cx->ks->encoded)
			page = lsm_buffer_leave(&buffer, &copy);
		for (int g = 0; g < lsm_leaf_group_count(page); g++)
		{
			if (!lsm_leaf_decode_group(page, g, &c->decoded))
				lsm_run_damaged(c, leaf);
			if (c->decoded.count > 0)
				take(&c->decoded, arg);
		}
		if (BufferIsValid(buffer))
			UnlockReleaseBuffer(buffer);
	}
	return true;
}

typedef struct ReadKeys
{
	LsmKeySpace *ks;
	LsmKeyHashes *hashes;
	uint64		low;			/* lsm_entry_prefix of the first key */
	uint64		high;			/* lsm_entry_prefix of the last key */
} ReadKeys;

static void
take_keys(LsmGroup *group, void *arg)
{
	ReadKeys   *keys = arg;
	const LsmEntry *last = &group->entries[group->count - 1];

	if (keys->hashes->count == 0)
		keys->low = lsm_entry_prefix(keys->ks, &group->entries[0]);
	keys->high = lsm_entry_prefix(keys->ks, last);
	for (int i = 0; i < group->count; i++)
		lsm_filter_note_key(keys->hashes, NULL, keys->ks, &group->entries[i]);
}

/* Begin with room for at most this many hashes. */
#define MOST_EXPECTED 16384

/*
 * Read the hashes of all keys of a small run, and the prefixes (lsm_entry_prefix) of its first and
 * last key.  Returns false if the cursor is stale; otherwise the caller frees the hashes.  The
 * hashes are in a memory context that ends with the transaction, so an error frees them even if the
 * reader lives on.
 */
bool
lsm_run_read_keys(LsmRunCursor *c, LsmKeyHashes *hashes, uint64 *low, uint64 *high)
{
	ReadKeys	keys = {c->cx->ks, hashes, PG_UINT64_MAX, 0};
	bool		fresh;

	memset(hashes, 0, sizeof(LsmKeyHashes));
	hashes->context = CurTransactionContext;
	/* The array can grow, and the number of entries may be damaged. */
	hashes->room = Min(Max(c->run.entries, 1), MOST_EXPECTED);
	hashes->hashes = MemoryContextAlloc(hashes->context, hashes->room * sizeof(uint64));
	fresh = take_all_groups(c, take_keys, &keys);
	*low = keys.low;
	*high = keys.high;
	if (!fresh)
		pfree(hashes->hashes);
	return fresh;
}

static void
take_prefixes(LsmGroup *group, void *arg)
{
	LsmKeyPrefixes *prefixes = arg;

	for (int i = 0; i < group->count; i++)
		lsm_filter_note_key(NULL, prefixes, prefixes->ks, &group->entries[i]);
}

/*
 * Make a filter of the keys of a small run, unless keys no longer have the hashes that filters
 * expect.  Returns false if the cursor is stale.
 */
bool
lsm_run_make_key_filter(LsmRunCursor *c)
{
	LsmKeySpace *ks = c->cx->ks;
	LsmKeyHashes keys;
	uint64		low;
	uint64		high;

	if (!lsm_run_read_keys(c, &keys, &low, &high))
		return false;
	if (lsm_hashing_holds(&ks->hashing))
		lsm_own_filter_make(c->cx->filters, &c->filter->of_keys, ks->nkeys, &keys, 1);
	pfree(keys.hashes);
	return true;
}

/*
 * Make a filter of the prefixes of a small run's keys.  The prefixes have as many columns as those
 * of a filter on disk, since later lookups may be for more columns than this lookup.  Returns false
 * if the cursor is stale.
 */
static bool
make_prefix_filter(LsmRunCursor *c)
{
	MemoryContext context = AllocSetContextCreate(CurTransactionContext, "pg_lsm prefixes",
												  ALLOCSET_DEFAULT_SIZES);
	LsmKeyPrefixes prefixes;
	bool		fresh;

	lsm_prefixes_init(&prefixes, c->cx->ks, c->cx->prefix_columns, c->cx->prefixes_if_worth,
					  context);
	fresh = take_all_groups(c, take_prefixes, &prefixes);
	if (fresh && lsm_hashing_holds(&c->cx->ks->hashing))
	{
		lsm_prefixes_limit(&prefixes, c->run.entries);
		lsm_own_filter_make(c->cx->filters, &c->filter->of_prefixes, prefixes.columns,
							prefixes.hashes, prefixes.columns);
	}
	MemoryContextDelete(context);
	return fresh;
}

/* --- asking ---------------------------------------------------------------------- */

/*
 * Get the hash of the first `columns` columns of the key that the seek looks for.  Returns false if
 * filters expect a different hash; in that case, the caller must not ask a filter.
 */
bool
lsm_run_lookup_hash(LsmReadContext *cx, int columns, uint64 *hash)
{
	if (cx->hashed_columns != columns)
	{
		cx->hash = lsm_hash_bound(cx->ks, cx->lookup, columns);
		cx->hashed_columns = columns;
		if (!lsm_hashing_holds(&cx->ks->hashing))
		{
			cx->lookup_columns = 0;
			cx->hashed_columns = 0;
			return false;
		}
	}
	*hash = cx->hash;
	return true;
}

/* A filter, and the question for it. */
typedef struct Question
{
	int			columns;		/* columns to ask about; 0: no filter can answer */
	LsmOwnFilter *own;			/* the filter in private memory; NULL: the segment's */
	LsmFilterHabit *habit;		/* NULL if no filter can answer */
} Question;

/* Choose a filter for the segment that the cursor is in. */
static Question
choose_filter(LsmRunCursor *c)
{
	int			columns = c->cx->lookup_columns;
	Question	q = {columns, NULL, NULL};
	bool		is_prefix = columns < c->cx->ks->nkeys;

	if (c->segment.filter_blocks > 0)
	{
		if (is_prefix)
			q.columns = Min(columns, c->segment.prefix_columns);
	}
	else if (c->filter == NULL)
		q.columns = 0;
	else if (!is_prefix)
		q.own = &c->filter->of_keys;
	else
	{
		q.own = &c->filter->of_prefixes;
		q.columns = Min(columns, q.own->filter.blocks ? q.own->columns : c->cx->prefix_columns);
	}
	if (q.columns > 0)
		q.habit = &c->habits[q.columns - 1];
	return q;
}

/*
 * Will a seek ask a filter before it reads a leaf?  If so, sets *number to the page of the segment
 * that holds the answer, or to LSM_NO_CHILD if the filter is in private memory.
 */
bool
lsm_run_asks_filter(LsmRunCursor *c, uint32 *number)
{
	Question	q = choose_filter(c);
	uint64		hash;

	*number = LSM_NO_CHILD;
	if (q.columns == 0 || !lsm_habit_is_asking(*q.habit) ||
		!lsm_run_lookup_hash(c->cx, q.columns, &hash))
		return false;
	if (q.own != NULL)
		return q.own->filter.blocks != NULL;
	*number = c->segment.leaves + lsm_filter_place(hash, c->segment.filter_blocks).page;
	return true;
}

/* Ask the segment's filter.  Also returns false if the cursor is stale. */
static bool
ask_segment_filter(LsmRunCursor *c, uint64 hash)
{
	LsmFilterPlace place = lsm_filter_place(hash, c->segment.filter_blocks);
	Buffer		buffer = lsm_run_read_page(c, c->segment.leaves + place.page, LSM_PAGE_FILTER);
	bool		found;

	if (!BufferIsValid(buffer))
		return false;
	found = lsm_filter_page_has(BufferGetPage(buffer), &place, hash);
	UnlockReleaseBuffer(buffer);
	return found;
}

/*
 * Ask the filter that lsm_run_asks_filter chose, for prefetching.  REQUIRES: the filter page is in
 * memory.  Does not update any counters.  Also returns false if the cursor is stale.
 */
bool
lsm_run_filter_admits(LsmRunCursor *c)
{
	Question	q = choose_filter(c);
	uint64		hash;

	if (!lsm_run_lookup_hash(c->cx, q.columns, &hash))
		return true;
	return q.own != NULL ? lsm_memory_filter_has(&q.own->filter, hash) :
		ask_segment_filter(c, hash);
}

/*
 * Ask a filter in private memory, and make the filter first if it is due.  Sets *asked to whether
 * there is a filter; without a filter the answer is true.  A new filter of prefixes may cover fewer
 * columns than expected.  Also returns false if the cursor is stale.
 */
static bool
ask_own_filter(LsmRunCursor *c, Question *q, bool *asked)
{
	uint64		hash;

	*asked = q->own->filter.blocks != NULL || lsm_own_filter_is_due(q->own, c->run.entries);
	if (!*asked)
		return true;
	if (q->own->filter.blocks == NULL)
	{
		bool		fresh = q->own == &c->filter->of_keys ? lsm_run_make_key_filter(c) :
			make_prefix_filter(c);

		if (!fresh)
			return false;
		*q = choose_filter(c);
	}
	*asked = q->own->filter.blocks != NULL && lsm_run_lookup_hash(c->cx, q->columns, &hash);
	return !*asked || lsm_memory_filter_has(&q->own->filter, hash);
}

/*
 * List the segments of a small run.  Lists none if a segment has no filter.  Returns false if the
 * cursor is stale.
 */
static bool
list_few(LsmRunCursor *c)
{
	LsmReadContext *cx = c->cx;
	int			filters = 0;

	if (c->few_run == c->run.run_id && c->few_edits == cx->edits)
		return true;
	c->few_run = 0;
	cx->counters.pages++;
	if (lsm_directory_list(cx->index, &c->run, cx->edits, LSM_FEW_SEGMENTS, c->few,
						   &c->few_count) != LSM_FOUND)
	{
		lsm_read_set_stale(cx, c->run.start);
		return false;
	}
	for (int i = 0; i < c->few_count; i++)
		filters += c->few[i].filter_blocks > 0;
	if (filters < c->few_count)
		c->few_count = 0;
	c->few_run = c->run.run_id;
	c->few_edits = cx->edits;
	return true;
}

/*
 * Does the filter of each segment of a small run say that the segment lacks the key?  Leaves the
 * cursor in the segment that c->found describes.  Also returns true if the cursor is stale.
 */
static bool
all_few_lack(LsmRunCursor *c, uint64 hash)
{
	LsmSegment	here = c->segment;
	bool		lacks = true;

	for (int i = 0; i < c->few_count && lacks && !c->cx->stale; i++)
	{
		c->segment = c->few[i];
		lacks = !ask_segment_filter(c, hash);
	}
	c->segment = here;
	return lacks;
}

/*
 * Do the filters of a small run say that none of its segments contains the key?  Asking all filters
 * takes less time than finding the right segment by comparing keys.  Also returns true if the
 * cursor is stale.
 *
 * Time of a lookup, where 1 is the time without asking all filters first (12 runs, 6 of them with
 * two segments; text keys, in memory):
 *
 *		collation		absent key		present key
 *		en-x-icu		0.84			0.91
 *		"C"				0.93			0.90
 */
bool
lsm_run_few_lack(LsmRunCursor *c)
{
	LsmReadContext *cx = c->cx;
	LsmFilterHabit *habit = &c->habits[cx->ks->nkeys - 1];
	uint64		hash;

	if (cx->lookup_columns < cx->ks->nkeys || c->run.dir_height != 1 || c->is_near ||
		c->run.segments > LSM_FEW_SEGMENTS || c->run.blocks > LSM_FEW_BLOCKS ||
		!lsm_habit_is_asking(*habit))
		return false;
	if (!list_few(c))
		return true;
	if (c->few_count == 0 || !lsm_run_lookup_hash(cx, cx->ks->nkeys, &hash) || !all_few_lack(c, hash))
		return false;
	if (cx->stale)
		return true;
	cx->counters.segments++;
	cx->counters.filter_checks++;
	cx->counters.filter_skips++;
	cx->spared += LSM_SPARED_BY_DISK;
	lsm_habit_note(habit, false);
	return true;
}

/*
 * Does a filter say that the segment lacks the key or prefix?  If so, the whole run lacks it,
 * because a seek goes to the first segment that ends after the position (backward: the last segment
 * that begins before the position).  The entry at that end has another key or prefix, so all
 * entries with the wanted key or prefix lie before that end.  Removed entries stay in filters,
 * which is harmless.  Also returns true if the cursor is stale.
 */
bool
lsm_run_lacks(LsmRunCursor *c)
{
	LsmReadContext *cx = c->cx;
	bool		asked = true;
	bool		found = true;
	uint64		hash;
	Question	q;

	c->is_perhaps = false;
	if (cx->lookup_columns == 0 || (c->segment.filter_blocks == 0 && c->filter == NULL))
		return false;
	/* The only run usually has the key, and the near leaf costs hardly more than the filter. */
	if (c->is_near && cx->run_count == 1)
		return false;
	q = choose_filter(c);
	if (q.columns == 0)
		return false;
	if (!lsm_habit_ask(q.habit))
		return false;
	if (q.own != NULL)
		found = ask_own_filter(c, &q, &asked);
	else if (lsm_run_lookup_hash(cx, q.columns, &hash))
		found = ask_segment_filter(c, hash);
	else
		asked = false;
	if (!asked)
		return false;
	cx->counters.filter_checks++;
	cx->counters.filter_skips += !found;
	if (!found)
		cx->spared += q.own != NULL ? LSM_SPARED_BY_MEMORY : LSM_SPARED_BY_DISK;
	lsm_habit_note(q.habit, found);
	c->is_perhaps = found;
	return !found;
}

/* Called at the end of a seek that a filter let through.  Counts a miss if no entry was found. */
void
lsm_run_note_found(LsmRunCursor *c)
{
	LsmReadContext *cx = c->cx;

	if (!cx->stale &&
		(!c->base.valid || lsm_beyond(cx->ks, cx->lookup, c->base.entry, c->direction)))
		cx->counters.filter_misses++;
}
