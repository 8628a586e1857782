/*
 * filter.h
 *	  Builds the filter of a segment: collects the hashes of its keys, 8 bytes each, and
 *	  puts them into pages once the number of hashes is known.
 *
 * The filter also has the prefixes of keys: the values of the first column, of the first two
 * columns, and so on. Keys come in order, so each prefix counts once.
 */
#ifndef LSM_FILTER_H
#define LSM_FILTER_H

#include "format/filter_page.h"
#include "key/keyspace.h"

/* A segment with fewer leaves gets no filter, since it can be searched as quickly without one. */
#define LSM_FILTER_LEAST_LEAVES	8

typedef struct LsmKeyHashes
{
	MemoryContext context;
	uint64	   *hashes;
	uint64		count;
	uint64		room;
} LsmKeyHashes;

typedef struct LsmKeyPrefixes
{
	LsmKeySpace *ks;
	int			columns;		/* prefixes have up to this many columns; 0: no prefixes */
	bool		if_worth;		/* columns may decrease: see lsm_prefixes_limit */
	uint64		count;			/* of all prefixes */
	/* Used for encoded keys only. */
	uint8	   *last;			/* the longest prefix of the previous key */
	uint32		last_length;	/* 0: no key yet */
	uint32	   *ends;			/* where each column ends in `last` */

	LsmKeyHashes *hashes;		/* element i: of prefixes of i + 1 columns */
} LsmKeyPrefixes;

extern void lsm_hashes_grow(LsmKeyHashes *h);
extern void lsm_prefixes_init(LsmKeyPrefixes *p, LsmKeySpace *ks, int columns, bool if_worth,
							  MemoryContext context);
extern void lsm_prefixes_add_new(LsmKeyPrefixes *p, const uint8 *key, uint32 keylen);
extern void lsm_filter_note_tuple(LsmKeyHashes *h, LsmKeyPrefixes *p, LsmKeySpace *ks,
								  const LsmEntry *entry);
extern void lsm_prefixes_limit(LsmKeyPrefixes *p, uint64 keys);
extern char *lsm_filter_make(LsmKeyHashes *h, const LsmKeyPrefixes *prefixes, uint32 pages);

/* Note the hash of a key or prefix. Equal keys are consecutive, and so are equal prefixes. */
static inline void
lsm_hashes_note(LsmKeyHashes *h, uint64 hash)
{
	if (h->count > 0 && h->hashes[h->count - 1] == hash)
		return;
	if (unlikely(h->count == h->room))
		lsm_hashes_grow(h);
	h->hashes[h->count++] = hash;
}

/* Note the prefixes of an encoded key. Usually they equal those of the previous key. */
static inline void
lsm_prefixes_add(LsmKeyPrefixes *p, const uint8 *key, uint32 keylen)
{
	if (p->columns > 0 &&
		(p->last_length == 0 || keylen < p->last_length ||
		 memcmp(key, p->last, p->last_length) != 0))
		lsm_prefixes_add_new(p, key, keylen);
}

/* Note an entry's key, unless h is NULL, and its prefixes, unless p is NULL. */
static inline void
lsm_filter_note_key(LsmKeyHashes *h, LsmKeyPrefixes *p, LsmKeySpace *ks, const LsmEntry *entry)
{
	if (unlikely(!ks->encoded))
	{
		lsm_filter_note_tuple(h, p, ks, entry);
		return;
	}
	if (h != NULL)
		lsm_hashes_note(h, lsm_filter_hash(entry->key, entry->keylen));
	if (p != NULL)
		lsm_prefixes_add(p, entry->key, entry->keylen);
}

#endif							/* LSM_FILTER_H */
