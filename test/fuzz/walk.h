/* walk.h -- the entries of a packed page, one after the other, as a reader that decodes each group sees them. */
#ifndef WALK_H
#define WALK_H

#include "fuzz.h"

#include "format/leaf_read.h"
#include "key/keyspace.h"

typedef struct Walk
{
	Page		page;
	int			next_group;
	int			at;
	bool		damaged;		/* a group cannot be decoded */
	LsmGroup	group;
} Walk;

static inline void
walk_begin(Walk *w, Page page)
{
	w->page = page;
	w->next_group = w->at = 0;
	w->damaged = false;
	lsm_group_init(&w->group, LSM_MAX_ENTRY_SIZE);
}

/* Returns the next entry, or NULL at the end or at a damaged group. */
static inline const LsmEntry *
walk_next(Walk *w)
{
	while (w->at == w->group.count)
	{
		if (w->damaged || w->next_group == lsm_leaf_group_count(w->page))
			return NULL;
		w->at = 0;
		w->damaged = !lsm_leaf_decode_group(w->page, w->next_group++, &w->group);
		if (w->damaged)
		{
			w->group.count = 0;
			return NULL;
		}
	}
	return &w->group.entries[w->at++];
}

static inline void
walk_end(Walk *w)
{
	lsm_group_free(&w->group);
}

static inline bool
same_entry(const LsmEntry *a, const LsmEntry *b)
{
	return a->keylen == b->keylen && memcmp(a->key, b->key, a->keylen) == 0 && a->tid == b->tid &&
		a->restlen == b->restlen && (a->restlen == 0 || memcmp(a->rest, b->rest, a->restlen) == 0);
}

/* What a page's entries are like. */
typedef struct PageFacts
{
	bool		readable;		/* all groups can be decoded */
	bool		sorted;			/* and (key, TID) ascends, and a table can have the TIDs */
	int			count;
	uint8		last_key[LSM_MAX_ENTRY_SIZE + LSM_KEY_PAD];
	LsmEntry	last;
} PageFacts;

static inline void
learn_facts(Page page, PageFacts *facts)
{
	static LsmKeySpace keyspace = {.encoded = true};
	Walk		w;
	const LsmEntry *entry;

	walk_begin(&w, page);
	facts->count = 0;
	facts->sorted = true;
	while ((entry = walk_next(&w)) != NULL)
	{
		expect(entry->keylen <= LSM_MAX_ENTRY_SIZE && entry->restlen <= LSM_MAX_ENTRY_SIZE);
		facts->sorted &= entry->tid >> 48 == 0 &&
			(facts->count == 0 || lsm_key_compare(&keyspace, &facts->last, entry) < 0);
		memcpy(facts->last_key, entry->key, entry->keylen + LSM_KEY_PAD);
		facts->last = *entry;
		facts->last.key = facts->last_key;
		facts->count++;
	}
	facts->readable = !w.damaged;
	facts->sorted &= facts->readable;
	walk_end(&w);
}

#endif
