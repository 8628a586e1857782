/*
 * run_lookup.c
 *	  Asking filters whether a run may hold what a seek looks for.
 *
 * A lookup asks the filter of each run before it reads a leaf there.  The filter is the
 * segment's, on disk; or, if a small run has none, one in private memory (run_filter.h).
 * It knows whole keys and, if the index is declared so, their first columns.
 */
#include "postgres.h"

#include "format/leaf_read.h"
#include "key/encode.h"
#include "read/run_lookup.h"
#include "storage/buffers.h"
#include "utils/memutils.h"

/* --- filters in private memory -------------------------------------------------- */

/*
 * Pass all groups of a small run to a function, in the order of their keys.  False if the
 * cursor is stale.
 */
static bool
take_all_groups(LsmRunCursor *c, void (*take) (LsmGroup *group, void *arg), void *arg)
{
	lsm_run_segment(&c->run, &c->segment);
	for (uint32 leaf = 0; leaf < c->segment.leaves; leaf++)
	{
		Buffer		buffer = lsm_run_read_page(c, leaf, LSM_PAGE_LEAF);
		Page		page;

		if (!BufferIsValid(buffer))
			return false;
		page = BufferGetPage(buffer);
		for (int g = 0; g < lsm_leaf_group_count(page); g++)
		{
			if (!lsm_leaf_decode_group(page, g, &c->decoded))
				lsm_run_damaged(c, leaf);
			if (c->decoded.count > 0)
				take(&c->decoded, arg);
		}
		UnlockReleaseBuffer(buffer);
	}
	return true;
}

typedef struct ReadKeys
{
	LsmKeyHashes *hashes;
	uint64		low;			/* lsm_key_prefix of the first key */
	uint64		high;			/* and of the last one */
} ReadKeys;

static void
take_keys(LsmGroup *group, void *arg)
{
	ReadKeys   *keys = arg;
	const LsmEntry *last = &group->entries[group->count - 1];

	if (keys->hashes->count == 0)
		keys->low = lsm_key_prefix(group->entries[0].key, group->entries[0].keylen);
	keys->high = lsm_key_prefix(last->key, last->keylen);
	for (int i = 0; i < group->count; i++)
		lsm_hashes_add(keys->hashes, group->entries[i].key, group->entries[i].keylen);
}

/*
 * Read the hashes of all keys of a small run, and the prefixes of its first and last key.
 * False if the cursor is stale; else the caller frees the hashes.  They are in a context
 * that an error frees: the reader may outlive the error.
 */
bool
lsm_run_read_keys(LsmRunCursor *c, LsmKeyHashes *hashes, uint64 *low, uint64 *high)
{
	ReadKeys	keys = {hashes, PG_UINT64_MAX, 0};
	bool		fresh;

	memset(hashes, 0, sizeof(LsmKeyHashes));
	hashes->context = CurTransactionContext;
	hashes->room = Max(c->run.entries, 1);
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
	for (int i = 0; i < group->count; i++)
		lsm_prefixes_add(arg, group->entries[i].key, group->entries[i].keylen);
}

/* Make a filter of the keys of a small run.  False if the cursor is stale. */
bool
lsm_run_make_key_filter(LsmRunCursor *c)
{
	LsmKeyHashes keys;
	uint64		low;
	uint64		high;

	if (!lsm_run_read_keys(c, &keys, &low, &high))
		return false;
	lsm_own_filter_make(c->cx->filters, &c->filter->of_keys, c->cx->ks->nkeys, &keys, 1);
	pfree(keys.hashes);
	return true;
}

/*
 * Make a filter of the prefixes of a small run's keys.  It has as many columns as a filter
 * on disk would have, since later lookups may be of more columns than this one.  False if
 * the cursor is stale.
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
	if (fresh)
	{
		lsm_prefixes_limit(&prefixes, c->run.entries);
		lsm_own_filter_make(c->cx->filters, &c->filter->of_prefixes, prefixes.columns,
							prefixes.hashes, prefixes.columns);
	}
	MemoryContextDelete(context);
	return fresh;
}

/* --- asking ---------------------------------------------------------------------- */

/* The hash of the first columns of what is looked for. */
static uint64
lookup_hash(LsmReadContext *cx, int columns)
{
	const LsmBound *bound = cx->lookup;

	if (cx->hashed_columns == columns)
		return cx->hash;
	if (columns == cx->ks->nkeys)
		cx->hash = lsm_filter_hash(bound->key, bound->keylen);
	else
		cx->hash = lsm_filter_prefix_hash(bound->key,
										  lsm_encoded_prefix_length(cx->ks->columns, bound->key,
																	bound->keylen, columns),
										  columns);
	cx->hashed_columns = columns;
	return cx->hash;
}

/* A filter, and the question for it. */
typedef struct Question
{
	int			columns;		/* of what is looked for; 0: no filter can answer */
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
 * Will a seek ask a filter before it reads a leaf?  Then *number is the page of the segment
 * that holds the answer, or LSM_NO_CHILD if the filter is in private memory.
 */
bool
lsm_run_asks_filter(LsmRunCursor *c, uint32 *number)
{
	Question	q = choose_filter(c);

	*number = LSM_NO_CHILD;
	if (q.columns == 0 || !lsm_habit_is_asking(*q.habit))
		return false;
	if (q.own != NULL)
		return q.own->filter.blocks != NULL;
	*number = c->segment.leaves +
		lsm_filter_place(lookup_hash(c->cx, q.columns), c->segment.filter_blocks).page;
	return true;
}

/* Ask the segment's filter.  False, too, if the cursor is stale. */
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
 * Ask a filter that lsm_run_asks_filter has named and that is in memory, for prefetching:
 * nothing is counted.  False, too, if the cursor is stale.
 */
bool
lsm_run_filter_admits(LsmRunCursor *c)
{
	Question	q = choose_filter(c);
	uint64		hash = lookup_hash(c->cx, q.columns);

	return q.own != NULL ? lsm_memory_filter_has(&q.own->filter, hash) :
		ask_segment_filter(c, hash);
}

/*
 * Ask a filter in private memory, and make it first if it is due.  *asked tells if there is
 * one; without a filter the answer is true.  A new filter of prefixes may know fewer columns
 * than expected.  False, too, if the cursor is stale.
 */
static bool
ask_own_filter(LsmRunCursor *c, Question *q, bool *asked)
{
	*asked = q->own->filter.blocks != NULL || ++q->own->lookups >= LSM_LOOKUPS_BEFORE_FILTER;
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
	return lsm_memory_filter_has(&q->own->filter, lookup_hash(c->cx, q->columns));
}

/*
 * Does a filter say that the segment holds nothing of what is looked for?  Then the run does
 * not either.  For a seek goes to the first segment that ends after the position (backward:
 * the last one that begins before it).  That end has another key, or prefix, so all entries
 * that are looked for lie before it.  Removed entries stay in filters and do no harm.
 * True, too, if the cursor is stale.
 */
bool
lsm_run_lacks(LsmRunCursor *c)
{
	LsmReadContext *cx = c->cx;
	bool		asked = true;
	bool		found;
	Question	q;

	c->is_perhaps = false;
	if (cx->lookup_columns == 0 || (c->segment.filter_blocks == 0 && c->filter == NULL))
		return false;
	/* A single run mostly has the key, and the near leaf costs hardly more than the filter. */
	if (c->is_near && cx->run_count == 1)
		return false;
	q = choose_filter(c);
	if (q.columns == 0)
		return false;
	if (!lsm_habit_ask(q.habit))
		return false;
	if (q.own == NULL)
		found = ask_segment_filter(c, lookup_hash(cx, q.columns));
	else
		found = ask_own_filter(c, &q, &asked);
	if (!asked)
		return false;
	cx->counters.filter_checks++;
	cx->counters.filter_skips += !found;
	lsm_habit_note(q.habit, found);
	c->is_perhaps = found;
	return !found;
}

/* A seek that a filter let through has ended: count the filter's mistake if it found nothing. */
void
lsm_run_note_found(LsmRunCursor *c)
{
	LsmReadContext *cx = c->cx;

	if (!cx->stale &&
		(!c->base.valid || lsm_beyond(cx->ks, cx->lookup, c->base.entry, c->direction)))
		cx->counters.filter_misses++;
}
