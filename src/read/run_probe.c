/*
 * run_probe.c
 *	  Looks for many keys of a unique index in a run: those of a batch, or of the rows that
 *	  ON CONFLICT looks ahead at.
 *
 * The keys come in order.  A walk through the directory finds their segments.  Keys are handled in
 * rounds.  A round asks the filters about all its keys, so that many cache lines of filters are
 * fetched at once, and seeks only the keys that may be in the run.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "read/lookup_round.h"
#include "read/read_ahead.h"
#include "read/run_cursor.h"
#include "read/run_lookup.h"
#include "read/run_probe.h"
#include "read/segment_walk.h"
#include "storage/buffers.h"

/* Copying directory pages pays if the run has at most this many segments for each key. */
#define SEGMENTS_PER_KEY	16

/* --- segments -------------------------------------------------------------------- */

/*
 * Move to the segment that contains the key, or to the first segment after the key.  Returns false
 * if there is none, or the cursor is stale.
 */
static bool
walk_to_key(LsmRunCursor *c, LsmSegmentWalk *w, bool copies_pages, const LsmProbe *probe, LsmBound *low)
{
	LsmEntry	at_low;
	LsmEntry	at_high;

	while (w->valid && lsm_walk_is_behind(w, probe))
	{
		if (!lsm_walk_next(w))
			lsm_report_corruption(c->cx->index->rel, c->walked->page,
								  "item of a directory is out of bounds");
		c->cx->counters.segments += w->valid;
	}
	if (w->valid)
		return true;

	lsm_bound_set_key(c->cx->ks, low, &probe->entry, 1);
	w->has_copy = false;
	if (!lsm_run_search_directory(c, low, &c->walked))
		return false;
	if (copies_pages)
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
	lsm_bound_entry(&c->walked->low, &at_low);
	lsm_bound_entry(&c->walked->high, &at_high);
	lsm_walk_stand(w, &c->walked->segment, &at_low, &at_high);
	return true;
}

/* --- filters --------------------------------------------------------------------- */

/*
 * Remembers the number of bits that a segment's filter sets for each key.  Each filter page has
 * this number, but reading it from the page means waiting for one more cache line.
 */
typedef struct LsmKnownProbes
{
	uint64		segment;		/* 0: none */
	int			probes;
} LsmKnownProbes;

#define KNOWN_SEGMENTS	1024

static inline LsmKnownProbes *
bits_of_segment(LsmRunCursor *c, uint64 segment)
{
	return &c->cx->known_probes[segment % KNOWN_SEGMENTS];
}

/*
 * Returns the number of bits that the segment's filter sets for each key.  Takes the number from a
 * page of the filter if the number is not known.
 */
static inline int
bits_from_page(LsmRunCursor *c, uint64 segment, Page page)
{
	LsmKnownProbes *known = bits_of_segment(c, segment);

	if (known->segment != segment)
	{
		known->segment = segment;
		known->probes = lsm_filter_header(page)->probes;
	}
	return known->probes;
}

/*
 * Put the keys of the round into lists by filter page.  Fetch the keys' parts of the filter pages
 * whose buffers are remembered into the CPU's cache.
 */
static void
list_by_filter_page(LsmRunCursor *c, LsmLookupRound *r)
{
	lsm_buffer_recall_many();
	lsm_round_clear_lists(r);
	for (int i = 0; i < r->count; i++)
	{
		if (lsm_round_list_key(r, i))
			lsm_buffer_recall(c->cx->index->rel, lsm_round_filter_block(r, i));
	}
	for (int i = 0; i < r->count; i++)
	{
		const LsmSegment *segment = lsm_round_segment(r, i);

		if (segment->filter_blocks > 0)
			lsm_buffer_expect(c->cx->index->rel, lsm_round_filter_block(r, i),
							  LSM_FILTER_DATA + r->places[i].block * LSM_FILTER_BLOCK_BYTES,
							  bits_of_segment(c, segment->id)->segment != segment->id);
	}
}

/* Ask filters about a list of keys.  Keys of the same page are usually adjacent. */
static void
ask_list(LsmRunCursor *c, LsmLookupRound *r, int first, bool *perhaps)
{
	Buffer		buffer = InvalidBuffer;
	BlockNumber block = InvalidBlockNumber;
	int			probes = 0;

	for (int i = first; i >= 0; i = r->next[i])
	{
		if (BufferIsValid(buffer) && lsm_round_filter_block(r, i) != block)
		{
			UnlockReleaseBuffer(buffer);
			buffer = InvalidBuffer;
		}
		if (!BufferIsValid(buffer))
		{
			block = lsm_round_filter_block(r, i);
			c->segment = *lsm_round_segment(r, i);
			buffer = lsm_run_read_page(c, lsm_round_filter_page(r, i), LSM_PAGE_FILTER);
			if (!BufferIsValid(buffer))
				return;
			probes = bits_from_page(c, c->segment.id, BufferGetPage(buffer));
		}
		perhaps[i] = lsm_filter_block_has(lsm_filter_page_block(BufferGetPage(buffer),
																&r->places[i]),
										  probes, r->probes[i]->hash);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/* Prefetch the filter pages of a list. */
static void
prefetch_filters(LsmRunCursor *c, LsmLookupRound *r, int first)
{
	BlockNumber block = InvalidBlockNumber;

	for (int i = first; i >= 0; i = r->next[i])
	{
		if (lsm_round_filter_block(r, i) == block)
			continue;
		block = lsm_round_filter_block(r, i);
		c->segment = *lsm_round_segment(r, i);
		lsm_run_ask_expected(c, lsm_round_filter_page(r, i));
	}
}

/* Count `more` lookups.  Is the filter of the run's keys due? */
static bool
is_key_filter_due(LsmRunCursor *c, int more)
{
	LsmOwnFilter *own = &c->filter->of_keys;

	own->lookups += more;
	return lsm_memory_filter_is_due(own->lookups, c->run.entries);
}

/*
 * Ask the filter that a run of one segment has in private memory.  Make the filter first if it is
 * due.  Returns false if there is no filter, or the cursor is stale.
 */
static bool
ask_private_filter(LsmRunCursor *c, LsmLookupRound *r, bool *perhaps)
{
	const LsmMemoryFilter *filter = &c->filter->of_keys.filter;

	c->segment = r->segments[0];
	if (filter->blocks == NULL &&
		(!is_key_filter_due(c, r->count) || !lsm_run_make_key_filter(c) || filter->blocks == NULL))
		return false;
	for (int i = 0; i < r->count; i++)
		perhaps[i] = lsm_memory_filter_has(filter, r->probes[i]->hash);
	c->cx->counters.filter_checks += r->count;
	return true;
}

/*
 * Find out which keys of the round may be in the run.  The result is meaningless if the cursor is
 * stale.  Prefetches the filter pages of up to `ahead` lists in advance.  Returns true if a filter
 * in private memory has answered for all keys.
 */
static bool
ask_filters(LsmRunCursor *c, LsmLookupRound *r, int ahead, bool *perhaps)
{
	int			asked = 0;

	/* Without a filter, any key may be in the run. */
	for (int i = 0; i < r->count; i++)
		perhaps[i] = lsm_round_segment(r, i)->filter_blocks == 0;
	if (c->filter != NULL && r->segments[0].filter_blocks == 0)
		return ask_private_filter(c, r, perhaps);
	if (c->cx->known_probes == NULL)
		c->cx->known_probes = palloc0(KNOWN_SEGMENTS * sizeof(LsmKnownProbes));
	list_by_filter_page(c, r);
	for (int list = 0; list < LSM_ROUND_LISTS && !c->cx->stale; list++)
	{
		for (; ahead > 0 && asked < LSM_ROUND_LISTS && asked <= list + ahead; asked++)
			prefetch_filters(c, r, r->first[asked]);
		if (r->first[list] < 0)
			continue;
		ask_list(c, r, r->first[list], perhaps);
		CHECK_FOR_INTERRUPTS();
	}
	for (int i = 0; i < r->count; i++)
		c->cx->counters.filter_checks += lsm_round_segment(r, i)->filter_blocks > 0;
	return false;
}

/* --- keys ------------------------------------------------------------------------ */

/* Note whether there is an entry with the key.  The cursor has just sought the key. */
static void
note_if_found(LsmRunCursor *c, LsmProbe *probe)
{
	probe->found |= c->base.valid && lsm_key_equal(c->cx->ks, c->base.entry, &probe->entry);
}

/*
 * Seek a key that may be in the run.  Searches the directory again, since the seek may have to
 * continue in the next segment: entries with the key may continue there, after those at the end of
 * this segment were removed.
 */
static void
seek_probe(LsmRunCursor *c, LsmProbe *probe, LsmBound *low, LsmBound *high)
{
	lsm_bound_set_key(c->cx->ks, low, &probe->entry, 1);
	lsm_bound_set_key(c->cx->ks, high, &probe->entry, -1);
	c->base.valid = false;
	if (lsm_run_is_single(&c->run))
		lsm_run_segment(&c->run, &c->segment);
	else if (!lsm_run_find_segment(c, low))
		return;
	lsm_run_seek_in_segment(c, low, high);
	note_if_found(c, probe);
}

/* Look for the keys of the round, and empty the round. */
static void
look_up_round(LsmRunCursor *c, LsmLookupRound *r, LsmBound *low, LsmBound *high)
{
	bool		perhaps[LSM_ROUND_KEYS];
	LsmReadWatch watch;
	int			ahead;			/* leaves that may be prefetched now */
	int			asked = 0;		/* leaves of the keys before key `asked` were prefetched */
	bool		is_private;		/* a filter in private memory has answered */

	if (r->count == 0)
		return;
	ahead = lsm_run_begin_round(c, &watch);
	is_private = ask_filters(c, r, ahead, perhaps);
	for (int i = 0; i < r->count && !c->cx->stale; i++)
	{
		for (; ahead > 0 && asked < r->count && !c->cx->stale; asked++)
		{
			if (!perhaps[asked])
				continue;
			lsm_bound_set_key(c->cx->ks, low, &r->probes[asked]->entry, 1);
			lsm_run_ask_for_leaf(c, lsm_round_segment(r, asked), low);
			ahead--;
		}
		if (perhaps[i])
		{
			seek_probe(c, r->probes[i], low, high);
			ahead += i < asked;
			if (!r->probes[i]->found && !c->cx->stale)
				c->cx->counters.filter_misses += is_private || lsm_round_segment(r, i)->filter_blocks > 0;
		}
		else
			c->cx->counters.filter_skips++;
		CHECK_FOR_INTERRUPTS();
	}
	lsm_run_end_round(c, &watch, r->count);
	lsm_round_clear(r);
}

/* Where a cursor's entries begin to count. */
typedef struct Clip
{
	bool		exists;
	LsmEntry	entry;
	uint64		prefix;
} Clip;

static void
set_clip(Clip *clip, const LsmRunCursor *c)
{
	clip->exists = c->clip != NULL;
	if (!clip->exists)
		return;
	lsm_bound_entry(c->clip, &clip->entry);
	clip->prefix = lsm_entry_prefix(c->cx->ks, &clip->entry);
}

/*
 * Can the probe be skipped, because an earlier search found it, it repeats the key before it, or it
 * lies before the clip?
 */
static inline bool
needs_no_look(LsmKeySpace *ks, const LsmProbe *probe, const Clip *clip)
{
	return probe->found || probe->repeats ||
		(clip->exists && lsm_probe_compare(ks, probe, &clip->entry, clip->prefix) < 0);
}

/* Prepare the cursor to look for keys.  Afterwards it stands nowhere. */
static void
prepare_probes(LsmRunCursor *c)
{
	lsm_run_set_direction(c, ForwardScanDirection);
	/* The cursor may enter any segment without finding it in the directory. */
	c->near.segment = 0;
}

/*
 * Enter a run of one segment, and look for the first key.  (Such a run has no directory with its
 * range of keys.)  Returns false if the cursor is stale, or the run has nothing from the first key
 * to the last.  The latter is common while keys ascend or descend.
 */
bool
lsm_run_enter_single(LsmRunCursor *c, LsmProbe *probes, Size count, LsmBound *low)
{
	LsmProbe   *last = &probes[count - 1];

	prepare_probes(c);
	lsm_run_segment(&c->run, &c->segment);
	c->cx->counters.segments++;
	lsm_bound_set_key(c->cx->ks, low, &probes[0].entry, 1);
	lsm_run_seek_in_segment(c, low, NULL);
	note_if_found(c, &probes[0]);
	return c->base.valid &&
		lsm_probe_compare(c->cx->ks, last, c->base.entry,
						  lsm_entry_prefix(c->cx->ks, c->base.entry)) >= 0;
}

/*
 * Look for keys, in their order, in the run.  Marks the keys that have an entry in the run.  If a
 * key is repeated, marks only the first.  Entries before the clip may or may not count, because the
 * output of the job has them.  Returns false if the version is stale.  low and high are room for
 * bounds.
 *
 * REQUIRES: at least one key; the hashes are what filters expect.
 */
bool
lsm_run_probe(LsmCursor *cursor, LsmProbe *probes, Size count, LsmBound *low,
			  LsmBound *high)
{
	LsmRunCursor *c = (LsmRunCursor *) cursor;
	LsmLookupRound r;
	LsmSegmentWalk walk;
	bool		is_single = lsm_run_is_single(&c->run);
	bool		copies_pages = count * SEGMENTS_PER_KEY >= c->run.segments;
	Clip		clip;

	set_clip(&clip, c);
	prepare_probes(c);
	lsm_round_clear(&r);
	walk.ks = c->cx->ks;
	walk.valid = false;
	walk.has_copy = false;

	if (is_single)
	{
		if (!lsm_run_enter_single(c, probes, count, low))
			return !c->cx->stale;
		walk.segment = c->segment;
	}
	for (Size i = is_single ? 1 : 0; i < count && !c->cx->stale; i++)
	{
		if (needs_no_look(c->cx->ks, &probes[i], &clip))
			continue;
		if (!is_single)
		{
			if (!walk_to_key(c, &walk, copies_pages, &probes[i], low))
				break;
			if (lsm_walk_is_before(&walk, &probes[i]))
				continue;
		}
		lsm_round_add(&r, &probes[i], &walk.segment);
		if (r.count == LSM_ROUND_KEYS)
			look_up_round(c, &r, low, high);
	}
	if (!c->cx->stale)
		look_up_round(c, &r, low, high);
	prepare_probes(c);
	return !c->cx->stale;
}

/*
 * Does the run have a filter on disk, or in private memory once it is due?  Without a filter, a
 * caller with many keys may as well read the run.
 */
bool
lsm_run_has_filter(LsmCursor *cursor)
{
	LsmRunCursor *c = (LsmRunCursor *) cursor;

	return c->run.filter_blocks > 0 || c->filter != NULL;
}
