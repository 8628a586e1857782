/*
 * run_lookup.c
 *	  Lookups in a run: filters spare most runs that do not have the key.
 *
 * A single lookup asks the filter of each run and goes on with a seek.  Who looks for
 * many keys, a batch of a unique index, asks run by run: then the keys come in order, a
 * walk through the directory finds their segments, and the parts of filters that a round
 * of keys needs are on their way from memory all at once.
 */
#include "postgres.h"

#include "format/leaf_read.h"
#include "key/encode.h"
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
 * Show all groups of a small run, with their keys in order.  False if the cursor is
 * stale.  A reader may outlive an error; what is made of them should not.
 */
static bool
run_read_groups(RunCursor *c, void (*take) (LsmGroup *group, void *arg), void *arg)
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
	uint64		low;			/* prefix of the first key, as lsm_key_prefix has it, */
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
 * The hashes of all keys of a small run, to be freed, and the prefixes of its first and
 * its last key.  False if the cursor is stale.
 */
bool
lsm_run_read_keys(RunCursor *c, LsmKeyHashes *hashes, uint64 *low, uint64 *high)
{
	ReadKeys	keys = {hashes, PG_UINT64_MAX, 0};
	bool		fresh;

	memset(hashes, 0, sizeof(LsmKeyHashes));
	hashes->context = CurTransactionContext;
	hashes->room = Max(c->run.entries, 1);
	hashes->hashes = MemoryContextAlloc(hashes->context, hashes->room * sizeof(uint64));
	fresh = run_read_groups(c, take_keys, &keys);
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
static bool
run_make_filter(RunCursor *c)
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
 * Make one of the prefixes, of as many columns as filters on disk would have: further
 * lookups may be of more than this one.  False if the cursor is stale.
 */
static bool
run_make_prefix_filter(RunCursor *c)
{
	MemoryContext context = AllocSetContextCreate(CurTransactionContext, "pg_lsm prefixes",
												  ALLOCSET_DEFAULT_SIZES);
	LsmKeyPrefixes prefixes;
	bool		fresh;

	lsm_prefixes_init(&prefixes, c->cx->ks, c->cx->prefix_columns, c->cx->prefixes_if_worth,
					  context);
	fresh = run_read_groups(c, take_prefixes, &prefixes);
	if (fresh)
	{
		lsm_prefixes_limit(&prefixes, c->run.entries);
		lsm_own_filter_make(c->cx->filters, &c->filter->of_prefixes, prefixes.columns,
							prefixes.hashes, prefixes.columns);
	}
	MemoryContextDelete(context);
	return fresh;
}

/* The hash of the first columns of what is looked for, as filters know it. */
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

/* What a filter is asked about, and how. */
typedef struct Question
{
	int			columns;		/* of what is looked for; 0: no filter can be asked */
	LsmOwnFilter *own;			/* the filter in private memory; NULL: the segment's */
	uint8	   *yes;			/* see RunCursor; NULL if no filter can be asked */
} Question;

/* How can a filter be asked about what is looked for, in the segment that the cursor is in? */
static Question
what_to_ask(RunCursor *c)
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
		q.columns = Min(columns, q.own->blocks ? q.own->columns : c->cx->prefix_columns);
	}
	if (q.columns > 0)
		q.yes = &c->yes[q.columns - 1];
	return q;
}

/*
 * Will a seek ask a filter before it reads a leaf?  Then *number is the page of the
 * segment that it has to read for that, or LSM_NO_CHILD.
 */
bool
lsm_run_asks_filter(RunCursor *c, uint32 *number)
{
	Question	q = what_to_ask(c);

	*number = LSM_NO_CHILD;
	if (q.columns == 0 || *q.yes >= YES_IN_A_ROW)
		return false;
	if (q.own != NULL)
		return q.own->blocks != NULL;
	*number = c->segment.leaves +
		lsm_filter_place(lookup_hash(c->cx, q.columns), c->segment.filter_blocks).page;
	return true;
}

/* Does the segment's filter know the key or prefix?  No, if the cursor is stale. */
static bool
run_ask_segment(RunCursor *c, uint64 hash)
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
 * Does a filter that lsm_run_asks_filter names, and that is in memory, know what is looked
 * for?  Who asks ahead: it is not counted.  No, if the cursor is stale.
 */
bool
lsm_run_filter_has(RunCursor *c)
{
	Question	q = what_to_ask(c);
	uint64		hash = lookup_hash(c->cx, q.columns);

	return q.own != NULL ? lsm_own_filter_has(q.own, hash) : run_ask_segment(c, hash);
}

/*
 * Ask a filter in private memory, which is made when that is worth it; one of prefixes may
 * turn out to know fewer columns than were to be asked about.  True if there is none yet;
 * no, if the cursor is stale.
 */
static bool
run_ask_own(RunCursor *c, Question *q, bool *asked)
{
	*asked = q->own->blocks != NULL || ++q->own->lookups >= LSM_LOOKUPS_BEFORE_FILTER;
	if (!*asked)
		return true;
	if (q->own->blocks == NULL)
	{
		if (!(q->own == &c->filter->of_keys ? run_make_filter(c) : run_make_prefix_filter(c)))
			return false;
		*q = what_to_ask(c);
	}
	return lsm_own_filter_has(q->own, lookup_hash(c->cx, q->columns));
}

/*
 * Does a filter say that nothing of what is looked for is in the segment, or is the
 * cursor stale?  Then nothing of it is in the run.  For a seek goes to the first segment
 * that ends behind the place (backward: the last one that begins before it), and as that
 * end has another key, or prefix, all of these lie before it.  Entries that VACUUM has
 * removed change nothing: filters keep them.
 */
bool
lsm_run_lacks(RunCursor *c)
{
	LsmReadContext *cx = c->cx;
	bool		asked = true;
	bool		found;
	Question	q;

	c->is_perhaps = false;
	if (cx->lookup_columns == 0 || (c->segment.filter_blocks == 0 && c->filter == NULL))
		return false;
	/* A single run mostly has the key, and a leaf that is known costs hardly more than the filter. */
	if (c->is_near && cx->run_count == 1)
		return false;
	q = what_to_ask(c);
	if (q.columns == 0)
		return false;
	if (*q.yes >= YES_IN_A_ROW && ++*q.yes < YES_IN_A_ROW + LOOKUPS_UNASKED)
		return false;
	if (q.own == NULL)
		found = run_ask_segment(c, lookup_hash(cx, q.columns));
	else
		found = run_ask_own(c, &q, &asked);
	if (!asked)
		return false;
	cx->counters.filter_checks++;
	cx->counters.filter_skips += !found;
	*q.yes = found ? Min(*q.yes + 1, YES_IN_A_ROW) : 0;
	c->is_perhaps = found;
	return !found;
}

/* The cursor has sought what a filter has said may be there: if nothing of it is, count that. */
void
lsm_run_note_found(RunCursor *c)
{
	LsmReadContext *cx = c->cx;

	if (!cx->stale &&
		(!c->base.valid || lsm_beyond(cx->ks, cx->lookup, c->base.entry, c->direction)))
		cx->counters.filter_misses++;
}

/* --- many keys --------------------------------------------------------------- */

/* Keys that are looked for together. */
#define KEYS_A_ROUND	256

/* Lists into which they are put, by page of a filter. */
#define PAGE_LISTS		128

/* With a key for so many segments it pays to copy the page of the directory that names them. */
#define SEGMENTS_A_KEY	16

/*
 * Keys to be looked for, each in a segment of its own, mostly: so what is to be waited
 * for, the lines of their filters, is on its way from memory for many at a time.
 */
typedef struct LookupRound
{
	int			count;
	int			segment_count;
	LsmSegment	segments[KEYS_A_ROUND];
	LsmProbe   *probes[KEYS_A_ROUND];
	int16		segment[KEYS_A_ROUND];	/* of each key */
	LsmFilterPlace places[KEYS_A_ROUND];	/* in its filter, if it has one */
	int16		first[PAGE_LISTS];	/* of each list, or -1 */
	int16		next[KEYS_A_ROUND]; /* in its list */
} LookupRound;

/*
 * A walk through the segments of a run, in the order of their keys.  A run of one
 * segment has no bounds.
 */
typedef struct SegmentWalk
{
	LsmSegment	segment;
	const uint8 *low;			/* its first and its last key: in `copy` or in c->walked */
	const uint8 *high;
	uint32		lowlen;
	uint32		highlen;
	uint64		low_prefix;
	uint64		high_prefix;
	bool		valid;			/* it is on a segment */
	bool		copies_pages;	/* keys are close to each other: directory pages are copied */
	bool		has_copy;		/* of the page that the segment is on */
	int			ordinal;		/* of the segment on the copy */
	PGAlignedBlock copy;
} SegmentWalk;

/* The walk comes to a segment with these bounds. */
static inline void
walk_stand(SegmentWalk *w, const LsmSegment *segment, const uint8 *low, uint32 lowlen,
		   const uint8 *high, uint32 highlen)
{
	w->segment = *segment;
	w->low = low;
	w->lowlen = lowlen;
	w->low_prefix = lsm_key_prefix(low, lowlen);
	w->high = high;
	w->highlen = highlen;
	w->high_prefix = lsm_key_prefix(high, highlen);
	w->valid = true;
}

/* Go on to the next segment of the copied directory page. */
static void
walk_on(RunCursor *c, SegmentWalk *w)
{
	LsmDirectoryEntry item;

	w->valid = false;
	while (w->has_copy && ++w->ordinal < lsm_directory_page_count(w->copy.data))
	{
		if (!lsm_directory_page_get(w->copy.data, w->ordinal, &item))
			lsm_report_corruption(c->cx->index->rel, c->walked->page,
								  "item of a directory is out of bounds");
		if (item.segment.blocks == 0)
			continue;
		walk_stand(w, &item.segment, item.low.key, item.low.keylen, item.high.key,
				   item.high.keylen);
		c->cx->counters.segments++;
		return;
	}
}

/*
 * Go to the segment that the key is in, or the first one behind it.  False if there is
 * none, or the cursor is stale.
 */
static bool
walk_to(RunCursor *c, SegmentWalk *w, const LsmProbe *probe, LsmBound *low)
{
	while (w->valid && lsm_probe_compare(probe, w->high, w->highlen, w->high_prefix) > 0)
		walk_on(c, w);
	if (w->valid)
		return true;

	lsm_bound_set_key(c->cx->ks, low, &probe->entry, 1);
	w->has_copy = false;
	if (!lsm_run_search_directory(c, low, &c->walked))
		return false;
	if (w->copies_pages)
	{
		c->cx->counters.pages++;
		if (lsm_directory_copy(c->cx->index, &c->run, c->cx->edits, c->walked,
							   w->copy.data) != LSM_FOUND)
		{
			lsm_read_set_stale(c->cx, c->run.start);
			return false;
		}
		w->has_copy = true;
		w->ordinal = c->walked->ordinal;
	}
	walk_stand(w, &c->walked->segment, c->walked->low.key, c->walked->low.keylen,
			   c->walked->high.key, c->walked->high.keylen);
	return true;
}

/*
 * How many bits the filter of a segment sets for each key: its pages tell in their
 * headers, but to look there is one line more to wait for.
 */
typedef struct LsmKnownProbes
{
	uint64		segment;		/* 0: none */
	int			probes;
} LsmKnownProbes;

#define KNOWN_SEGMENTS	1024

static inline LsmKnownProbes *
known_probes(RunCursor *c, uint64 segment)
{
	return &c->cx->known_probes[segment % KNOWN_SEGMENTS];
}

/* The same, from a page of the filter if it is not known. */
static inline int
get_probes(RunCursor *c, uint64 segment, Page page)
{
	LsmKnownProbes *known = known_probes(c, segment);

	if (known->segment != segment)
	{
		known->segment = segment;
		known->probes = lsm_filter_header(page)->probes;
	}
	return known->probes;
}

/* Put a key into the round, which has room, to be looked for in a segment. */
static inline void
add_to_round(LookupRound *r, LsmProbe *probe, const LsmSegment *segment)
{
	if (r->segment_count == 0 || r->segments[r->segment_count - 1].id != segment->id)
		r->segments[r->segment_count++] = *segment;
	r->segment[r->count] = r->segment_count - 1;
	r->probes[r->count++] = probe;
}

static inline const LsmSegment *
segment_of(const LookupRound *r, int i)
{
	return &r->segments[r->segment[i]];
}

/* The block that knows of a key. */
static inline BlockNumber
filter_block_of(const LookupRound *r, int i)
{
	const LsmSegment *segment = segment_of(r, i);

	return segment->start + segment->leaves + r->places[i].page;
}

/*
 * Put the keys of the round into lists by the page of a filter that knows them.  Those
 * whose segment has no filter are in none.
 */
static void
sort_by_page(RunCursor *c, LookupRound *r)
{
	lsm_buffer_recall_many();
	memset(r->first, -1, sizeof(r->first));
	for (int i = 0; i < r->count; i++)
	{
		uint32		pages = segment_of(r, i)->filter_blocks;
		BlockNumber block;

		if (pages == 0)
			continue;
		r->places[i] = lsm_filter_place(r->probes[i]->hash, pages);
		block = filter_block_of(r, i);
		lsm_buffer_recall(c->cx->index->rel, block);
		r->next[i] = r->first[block % PAGE_LISTS];
		r->first[block % PAGE_LISTS] = i;
	}
	for (int i = 0; i < r->count; i++)
	{
		const LsmSegment *segment = segment_of(r, i);

		if (segment->filter_blocks > 0)
			lsm_buffer_expect(c->cx->index->rel, filter_block_of(r, i),
							  LSM_FILTER_DATA + r->places[i].block * LSM_FILTER_BLOCK_BYTES,
							  known_probes(c, segment->id)->segment != segment->id);
	}
}

/* Ask filters about a list of keys.  Those of one page follow each other, mostly. */
static void
ask_list(RunCursor *c, LookupRound *r, int first, bool *perhaps)
{
	Buffer		buffer = InvalidBuffer;
	BlockNumber block = InvalidBlockNumber;
	int			probes = 0;

	for (int i = first; i >= 0; i = r->next[i])
	{
		if (BufferIsValid(buffer) && filter_block_of(r, i) != block)
		{
			UnlockReleaseBuffer(buffer);
			buffer = InvalidBuffer;
		}
		if (!BufferIsValid(buffer))
		{
			block = filter_block_of(r, i);
			c->segment = *segment_of(r, i);
			buffer = lsm_run_read_page(c, c->segment.leaves + r->places[i].page,
									   LSM_PAGE_FILTER);
			if (!BufferIsValid(buffer))
				return;
			probes = get_probes(c, c->segment.id, BufferGetPage(buffer));
		}
		perhaps[i] = lsm_filter_block_has(lsm_filter_page_block(BufferGetPage(buffer),
																&r->places[i]),
										  probes, r->probes[i]->hash);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/* Ask for the pages of filters that a list needs. */
static void
ask_for_filters(RunCursor *c, LookupRound *r, int first)
{
	BlockNumber block = InvalidBlockNumber;

	for (int i = first; i >= 0; i = r->next[i])
	{
		if (filter_block_of(r, i) == block)
			continue;
		block = filter_block_of(r, i);
		c->segment = *segment_of(r, i);
		lsm_run_ask_expected(c, c->segment.leaves + r->places[i].page);
	}
}

/* Are there enough lookups in a run that has no filter yet, with so many more? */
static bool
is_filter_due(RunCursor *c, int more)
{
	c->filter->of_keys.lookups += more;
	return (uint64) c->filter->of_keys.lookups * LSM_ENTRIES_A_LOOKUP >= c->run.entries;
}

/*
 * Ask the filter that a run of one segment has in private memory.  It is made when that
 * is worth it; false if there is none.
 */
static bool
ask_private_filter(RunCursor *c, LookupRound *r, bool *perhaps)
{
	c->segment = r->segments[0];
	if (c->filter->of_keys.blocks == NULL &&
		(!is_filter_due(c, r->count) || !run_make_filter(c)))
		return false;
	for (int i = 0; i < r->count; i++)
		perhaps[i] = lsm_own_filter_has(&c->filter->of_keys, r->probes[i]->hash);
	c->cx->counters.filter_checks += r->count;
	return true;
}

/*
 * Which keys of the round may be there?  If the cursor is stale the answer does not count.
 * The filters of so many lists are asked for ahead.  True if keys whose segment has no
 * filter have been asked about, too.
 */
static bool
ask_for_round(RunCursor *c, LookupRound *r, int ahead, bool *perhaps)
{
	int			asked = 0;

	/* Without a filter they all may. */
	for (int i = 0; i < r->count; i++)
		perhaps[i] = segment_of(r, i)->filter_blocks == 0;
	if (c->filter != NULL && r->segments[0].filter_blocks == 0)
		return ask_private_filter(c, r, perhaps);
	if (c->cx->known_probes == NULL)
		c->cx->known_probes = palloc0(KNOWN_SEGMENTS * sizeof(LsmKnownProbes));
	sort_by_page(c, r);
	for (int list = 0; list < PAGE_LISTS && !c->cx->stale; list++)
	{
		for (; ahead > 0 && asked < PAGE_LISTS && asked <= list + ahead; asked++)
			ask_for_filters(c, r, r->first[asked]);
		if (r->first[list] < 0)
			continue;
		ask_list(c, r, r->first[list], perhaps);
		CHECK_FOR_INTERRUPTS();
	}
	for (int i = 0; i < r->count; i++)
		c->cx->counters.filter_checks += segment_of(r, i)->filter_blocks > 0;
	return false;
}

/* The cursor has been put before the key: is there an entry with it? */
static void
note_found(RunCursor *c, LsmProbe *probe)
{
	probe->found |= c->base.valid && lsm_key_equal(c->cx->ks, c->base.entry, &probe->entry);
}

/*
 * Seek a key that may be there.  Its segment is found anew: if VACUUM has emptied the end
 * of that, or the key goes on in the next one, the seek does, too.
 */
static void
seek_key(RunCursor *c, LsmProbe *probe, LsmBound *low, LsmBound *high)
{
	lsm_bound_set_key(c->cx->ks, low, &probe->entry, 1);
	lsm_bound_set_key(c->cx->ks, high, &probe->entry, -1);
	c->base.valid = false;
	if (lsm_run_is_single(&c->run))
		lsm_run_segment(&c->run, &c->segment);
	else if (!lsm_run_find_segment(c, low))
		return;
	lsm_run_seek_in_segment(c, low, high);
	note_found(c, probe);
}

/* Look for the keys of the round; none are left in it then. */
static void
look_for_round(RunCursor *c, LookupRound *r, LsmBound *low, LsmBound *high)
{
	bool		perhaps[KEYS_A_ROUND];
	LsmReadWatch watch;
	int			ahead;			/* so many further keys may have their leaves asked for */
	int			asked = 0;		/* the keys before have */
	bool		is_private;		/* the filter that was asked */

	if (r->count == 0)
		return;
	ahead = lsm_run_begin_round(c, &watch);
	is_private = ask_for_round(c, r, ahead, perhaps);
	for (int i = 0; i < r->count && !c->cx->stale; i++)
	{
		for (; ahead > 0 && asked < r->count && !c->cx->stale; asked++)
		{
			if (!perhaps[asked])
				continue;
			lsm_bound_set_key(c->cx->ks, low, &r->probes[asked]->entry, 1);
			lsm_run_ask_for_leaf(c, segment_of(r, asked), low);
			ahead--;
		}
		if (perhaps[i])
		{
			seek_key(c, r->probes[i], low, high);
			ahead += i < asked;
			if (!r->probes[i]->found && !c->cx->stale)
				c->cx->counters.filter_misses += is_private || segment_of(r, i)->filter_blocks > 0;
		}
		else
			c->cx->counters.filter_skips++;
		CHECK_FOR_INTERRUPTS();
	}
	lsm_run_end_round(c, &watch, r->count);
	r->count = 0;
	r->segment_count = 0;
}

/*
 * Is it known without a look: found, the same key as the one before, or one that counts
 * elsewhere?
 */
static inline bool
is_answered(const LsmProbe *probe, const LsmBound *clip, uint64 clip_prefix)
{
	return probe->found || probe->repeats ||
		(clip != NULL && lsm_probe_compare(probe, clip->key, clip->keylen, clip_prefix) < 0);
}

/* The cursor is to look for keys, and stands nowhere. */
static void
prepare_probes(RunCursor *c)
{
	c->direction = ForwardScanDirection;
	c->forward = true;
	c->base.stride = 1;
	c->base.valid = false;
	c->base.at_page = false;
	c->ends = false;
	/* It may be in any segment then, without having found it in the directory. */
	c->near.segment = 0;
}

/*
 * Enter a run of one segment, which has no bounds in a directory, and look for the first
 * key.  False if the run has nothing between that and the last one, as is common while
 * keys ascend or descend.
 */
bool
lsm_run_enter_single(RunCursor *c, LsmProbe *probes, Size count, LsmBound *low)
{
	LsmProbe   *last = &probes[count - 1];

	prepare_probes(c);
	lsm_run_segment(&c->run, &c->segment);
	c->cx->counters.segments++;
	lsm_bound_set_key(c->cx->ks, low, &probes[0].entry, 1);
	lsm_run_seek_in_segment(c, low, NULL);
	note_found(c, &probes[0]);
	return c->base.valid &&
		lsm_probe_compare(last, c->base.entry->key, c->base.entry->keylen,
					 lsm_key_prefix(c->base.entry->key, c->base.entry->keylen)) >= 0;
}

/*
 * Look for keys, which are in order, in the run: those of which it has an entry are
 * marked; of those that repeat the first.  Of entries before the clip it may be told or not:
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
	SegmentWalk walk;
	bool		is_single = lsm_run_is_single(&c->run);
	uint64		clip_prefix = c->clip != NULL ? lsm_key_prefix(c->clip->key, c->clip->keylen) : 0;

	prepare_probes(c);
	r.count = 0;
	r.segment_count = 0;
	walk.valid = false;
	walk.has_copy = false;
	walk.copies_pages = count * SEGMENTS_A_KEY >= c->run.segments;

	if (is_single)
	{
		if (!lsm_run_enter_single(c, probes, count, low))
			return !c->cx->stale;
		walk.segment = c->segment;
	}
	for (Size i = is_single ? 1 : 0; i < count && !c->cx->stale; i++)
	{
		if (is_answered(&probes[i], c->clip, clip_prefix))
			continue;
		if (!is_single)
		{
			if (!walk_to(c, &walk, &probes[i], low))
				break;
			if (lsm_probe_compare(&probes[i], walk.low, walk.lowlen, walk.low_prefix) < 0)
				continue;
		}
		add_to_round(&r, &probes[i], &walk.segment);
		if (r.count == KEYS_A_ROUND)
			look_for_round(c, &r, low, high);
	}
	if (!c->cx->stale)
		look_for_round(c, &r, low, high);
	prepare_probes(c);
	return !c->cx->stale;
}

/*
 * Has the run filters, or can it have one in private memory?  Else to look for many keys
 * is as well done by reading.
 */
bool
lsm_run_cursor_has_filter(LsmCursor *cursor)
{
	RunCursor  *c = (RunCursor *) cursor;

	return c->run.filter_blocks > 0 || c->filter != NULL;
}
