/*
 * lookup_round.h
 *	  Groups a round of keys, looked up together in one run, by filter page.
 *
 * Usually each key is in a different segment, so the cache lines of filters that the keys need are
 * rarely in the processor's cache.  A round therefore fetches many of these lines at once.
 */
#ifndef LSM_LOOKUP_ROUND_H
#define LSM_LOOKUP_ROUND_H

#include "format/filter_page.h"
#include "format/segment_record.h"
#include "read/looked_for.h"

/* A round has at most this many keys. */
#define LSM_ROUND_KEYS	256

/* A round puts its keys into this many lists, by filter page. */
#define LSM_ROUND_LISTS	128

typedef struct LsmLookupRound
{
	int			count;
	int			segment_count;
	LsmSegment	segments[LSM_ROUND_KEYS];
	LsmProbe   *probes[LSM_ROUND_KEYS];
	int16		segment[LSM_ROUND_KEYS];	/* of each key: index of its segment */
	LsmFilterPlace places[LSM_ROUND_KEYS];	/* in the segment's filter, if it has one */
	int16		first[LSM_ROUND_LISTS]; /* first key of each list, or -1 */
	int16		next[LSM_ROUND_KEYS];	/* next key in the same list, or -1 */
} LsmLookupRound;

static inline void
lsm_round_clear(LsmLookupRound *r)
{
	r->count = 0;
	r->segment_count = 0;
}

/* Add a key to look for in a segment.  REQUIRES: the round has room for another key. */
static inline void
lsm_round_add(LsmLookupRound *r, LsmProbe *probe, const LsmSegment *segment)
{
	if (r->segment_count == 0 || r->segments[r->segment_count - 1].id != segment->id)
		r->segments[r->segment_count++] = *segment;
	r->segment[r->count] = r->segment_count - 1;
	r->probes[r->count++] = probe;
}

/* Returns the segment of key `i`. */
static inline const LsmSegment *
lsm_round_segment(const LsmLookupRound *r, int i)
{
	return &r->segments[r->segment[i]];
}

/* Returns the filter page that covers key `i`, as a page number in the segment. */
static inline uint32
lsm_round_filter_page(const LsmLookupRound *r, int i)
{
	return lsm_round_segment(r, i)->leaves + r->places[i].page;
}

/* Returns the block of the filter page that covers key `i`. */
static inline BlockNumber
lsm_round_filter_block(const LsmLookupRound *r, int i)
{
	return lsm_round_segment(r, i)->start + lsm_round_filter_page(r, i);
}

static inline void
lsm_round_clear_lists(LsmLookupRound *r)
{
	memset(r->first, -1, sizeof(r->first));
}

/*
 * Put key `i` into the list of its filter page.  A list may contain keys of several pages, but all
 * keys of a page are in the same list.  If the segment has no filter, returns false and puts the
 * key into no list.
 */
static inline bool
lsm_round_list_key(LsmLookupRound *r, int i)
{
	uint32		pages = lsm_round_segment(r, i)->filter_blocks;
	uint32		list;

	if (pages == 0)
		return false;
	r->places[i] = lsm_filter_place(r->probes[i]->hash, pages);
	list = lsm_round_filter_block(r, i) % LSM_ROUND_LISTS;
	r->next[i] = r->first[list];
	r->first[list] = i;
	return true;
}

#endif							/* LSM_LOOKUP_ROUND_H */
