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
	/* A single run mostly has the key, and a leaf that is known costs hardly more than the filter. */
	if (c->is_near && cx->run_count == 1)
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

/* Lists into which they are put, by page of a filter. */
#define PAGE_LISTS		128

/* To look for a key takes about as long as to put so many into a filter. */
#define ENTRIES_A_LOOKUP	32

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
	bool		valid;			/* it is on a segment */
	bool		copies_pages;	/* keys are close to each other: directory pages are copied */
	bool		has_copy;		/* of the page that the segment is on */
	int			ordinal;		/* of the segment on the copy */
	PGAlignedBlock copy;
} SegmentWalk;

static inline int
compare_keys(const LsmProbe *probe, const uint8 *key, uint32 keylen)
{
	int			c = memcmp(probe->entry.key, key, Min(probe->entry.keylen, keylen));

	if (c != 0)
		return c;
	return probe->entry.keylen < keylen ? -1 : probe->entry.keylen > keylen;
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
		w->segment = item.segment;
		w->low = item.low.key;
		w->lowlen = item.low.keylen;
		w->high = item.high.key;
		w->highlen = item.high.keylen;
		w->valid = true;
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
	while (w->valid && compare_keys(probe, w->high, w->highlen) > 0)
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
	w->segment = c->walked->segment;
	w->low = c->walked->low.key;
	w->lowlen = c->walked->low.keylen;
	w->high = c->walked->high.key;
	w->highlen = c->walked->high.keylen;
	w->valid = true;
	return true;
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
sort_by_page(LookupRound *r)
{
	memset(r->first, -1, sizeof(r->first));
	for (int i = 0; i < r->count; i++)
	{
		uint32		pages = segment_of(r, i)->filter_blocks;
		BlockNumber block;

		if (pages == 0)
			continue;
		r->places[i] = lsm_filter_place(r->probes[i]->hash, pages);
		block = filter_block_of(r, i);
		lsm_buffer_recall(block);
		r->next[i] = r->first[block % PAGE_LISTS];
		r->first[block % PAGE_LISTS] = i;
	}
	for (int i = 0; i < r->count; i++)
	{
		if (segment_of(r, i)->filter_blocks > 0)
			lsm_buffer_expect(filter_block_of(r, i),
							  LSM_FILTER_DATA + r->places[i].block * LSM_FILTER_BLOCK_BYTES);
	}
}

/* Ask filters about a list of keys.  Those of one page follow each other, mostly. */
static void
ask_list(RunCursor *c, LookupRound *r, int first, bool *perhaps)
{
	Buffer		buffer = InvalidBuffer;
	BlockNumber block = InvalidBlockNumber;

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
			buffer = lsm_run_read_expected_page(c, c->segment.leaves + r->places[i].page,
												LSM_PAGE_FILTER);
		}
		if (!BufferIsValid(buffer))
			return;
		perhaps[i] = lsm_filter_page_has(BufferGetPage(buffer), &r->places[i],
										 r->probes[i]->hash);
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
}

/* Are there enough lookups in a run that has no filter yet, with so many more? */
static bool
is_filter_due(RunCursor *c, int more)
{
	c->filter->lookups += more;
	return (uint64) c->filter->lookups * ENTRIES_A_LOOKUP >= c->run.entries;
}

/*
 * Ask the filter that a run of one segment has in private memory.  It is made when that
 * is worth it.
 */
static void
ask_private_filter(RunCursor *c, LookupRound *r, bool *perhaps)
{
	c->segment = r->segments[0];
	if (c->filter->blocks == NULL && (!is_filter_due(c, r->count) || !run_make_filter(c)))
		return;
	for (int i = 0; i < r->count; i++)
		perhaps[i] = lsm_run_filter_has(c->filter, r->probes[i]->hash);
	c->cx->counters.filter_checks += r->count;
}

/* Which keys of the round may be there?  If the cursor is stale the answer does not count. */
static void
ask_for_round(RunCursor *c, LookupRound *r, bool *perhaps)
{
	/* Without a filter they all may. */
	for (int i = 0; i < r->count; i++)
		perhaps[i] = segment_of(r, i)->filter_blocks == 0;
	if (c->filter != NULL && r->segments[0].filter_blocks == 0)
	{
		ask_private_filter(c, r, perhaps);
		return;
	}
	sort_by_page(r);
	for (int list = 0; list < PAGE_LISTS && !c->cx->stale; list++)
	{
		if (r->first[list] < 0)
			continue;
		ask_list(c, r, r->first[list], perhaps);
		CHECK_FOR_INTERRUPTS();
	}
	for (int i = 0; i < r->count; i++)
		c->cx->counters.filter_checks += segment_of(r, i)->filter_blocks > 0;
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

	if (r->count > 0)
		ask_for_round(c, r, perhaps);
	for (int i = 0; i < r->count && !c->cx->stale; i++)
	{
		if (perhaps[i])
			seek_key(c, r->probes[i], low, high);
		else
			c->cx->counters.filter_skips++;
		CHECK_FOR_INTERRUPTS();
	}
	r->count = 0;
	r->segment_count = 0;
}

/*
 * Is it known without a look: found, the same key as the one before, or one that counts
 * elsewhere?
 */
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
	SegmentWalk walk;
	bool		is_single = lsm_run_is_single(&c->run);

	c->direction = ForwardScanDirection;
	c->forward = true;
	c->base.stride = 1;
	c->base.valid = false;
	c->base.at_page = false;
	c->ends = false;
	r.count = 0;
	r.segment_count = 0;
	walk.valid = false;
	walk.has_copy = false;
	walk.copies_pages = count * SEGMENTS_A_KEY >= c->run.segments;

	if (is_single)
	{
		if (!enter_single(c, probes, count, low))
			return !c->cx->stale;
		walk.segment = c->segment;
	}
	for (Size i = is_single ? 1 : 0; i < count && !c->cx->stale; i++)
	{
		if (is_answered(c, probes, i))
			continue;
		if (!is_single)
		{
			if (!walk_to(c, &walk, &probes[i], low))
				break;
			if (compare_keys(&probes[i], walk.low, walk.lowlen) < 0)
				continue;
		}
		add_to_round(&r, &probes[i], &walk.segment);
		if (r.count == KEYS_A_ROUND)
			look_for_round(c, &r, low, high);
	}
	if (!c->cx->stale)
		look_for_round(c, &r, low, high);
	c->base.valid = false;
	/* It may be in any segment that was asked, without having found it in the directory. */
	c->near.segment = 0;
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
