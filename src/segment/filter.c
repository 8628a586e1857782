/*
 * filter.c
 *	  Builds the filter of a segment; see filter.h.
 */
#include "postgres.h"

#include "key/encode.h"
#include "key/hash.h"
#include "segment/filter.h"
#include "utils/memutils.h"

/* Fetch a key's part of the filter into the CPU's cache this many keys ahead. */
#define KEYS_AHEAD	8

/*
 * Prefixes are discarded only if they outnumber the keys by more than this. With assertions, the
 * number is low, so that tests see prefixes discarded.
 */
#ifdef USE_ASSERT_CHECKING
#define PREFIXES_ALLOWED	64
#else
#define PREFIXES_ALLOWED	1024
#endif

void
lsm_hashes_grow(LsmKeyHashes *h)
{
	uint64		room = Max(1024, 2 * h->room);

	h->hashes = h->hashes ? repalloc_huge(h->hashes, room * sizeof(uint64)) :
		MemoryContextAlloc(h->context, room * sizeof(uint64));
	h->room = room;
}

/* --- prefixes ------------------------------------------------------------------ */

/*
 * Prepare to collect the prefixes of up to `columns` columns, in this memory context.
 *
 * REQUIRES: keys have more than `columns` columns.
 */
void
lsm_prefixes_init(LsmKeyPrefixes *p, LsmKeySpace *ks, int columns, bool if_worth,
				  MemoryContext context)
{
	memset(p, 0, sizeof(LsmKeyPrefixes));
	p->ks = ks;
	if (columns <= 0)
		return;
	Assert(columns < ks->nkeys);
	p->columns = columns;
	p->if_worth = if_worth;
	if (ks->encoded)
	{
		p->last = MemoryContextAlloc(context, ks->max_keylen);
		p->ends = MemoryContextAllocZero(context, columns * sizeof(uint32));
	}
	p->hashes = MemoryContextAllocZero(context, columns * sizeof(LsmKeyHashes));
	for (int i = 0; i < columns; i++)
		p->hashes[i].context = context;
}

/* Note a prefix of `columns` columns. */
static void
note_prefix(LsmKeyPrefixes *p, int columns, uint64 hash)
{
	LsmKeyHashes *hashes = &p->hashes[columns - 1];

	p->count -= hashes->count;
	lsm_hashes_note(hashes, hash);
	p->count += hashes->count;
}

/* Note an encoded key whose longest prefix differs from that of the previous key. */
void
lsm_prefixes_add_new(LsmKeyPrefixes *p, const uint8 *key, uint32 keylen)
{
	bool		same = p->last_length > 0;
	uint32		at = 0;

	for (int i = 0; i < p->columns; i++)
	{
		uint32		len = at < keylen ?
			lsm_encoded_column_length(&p->ks->columns[i], key + at, key + keylen) : 0;

		if (len == 0)
			lsm_keyspace_report_entry(p->ks);
		same = same && p->ends[i] == at + len && memcmp(p->last + at, key + at, len) == 0;
		at += len;
		p->ends[i] = at;
		if (same)
			continue;
		note_prefix(p, i + 1, lsm_filter_prefix_hash(key, at, i + 1));
	}
	memcpy(p->last, key, at);
	p->last_length = at;
}

/* lsm_filter_note_key for tuple keys: computes the hash of a key from the hashes of its prefixes. */
void
lsm_filter_note_tuple(LsmKeyHashes *h, LsmKeyPrefixes *p, LsmKeySpace *ks, const LsmEntry *entry)
{
	uint64		hashes[INDEX_MAX_KEYS];
	int			columns = h != NULL ? ks->nkeys : p->columns;

	lsm_hash_tuple_key(ks, entry, columns, hashes);
	if (h != NULL)
		lsm_hashes_note(h, hashes[ks->nkeys - 1]);
	for (int i = 0; p != NULL && i < p->columns; i++)
		note_prefix(p, i + 1, hashes[i]);
}

/*
 * Given the number of keys, discard the longest prefixes while there are more prefixes than keys.
 * Keeps the shortest prefixes, of which there are no more than keys.  So prefixes about double the
 * filter at most.  Discards nothing unless p->if_worth.
 */
void
lsm_prefixes_limit(LsmKeyPrefixes *p, uint64 keys)
{
	while (p->if_worth && p->columns > 1 && p->count > keys + PREFIXES_ALLOWED)
	{
		LsmKeyHashes *longest = &p->hashes[--p->columns];

		p->count -= longest->count;
		if (longest->hashes)
			pfree(longest->hashes);
		if (p->ends)
			p->last_length = p->ends[p->columns - 1];
	}
}

/* --- pages --------------------------------------------------------------------- */

/* Add hashes to a filter of `pages` pages. */
static void
put_hashes(char *filter, uint32 pages, const LsmKeyHashes *h)
{
	for (uint64 i = 0; i < h->count; i++)
	{
		LsmFilterPlace place = lsm_filter_place(h->hashes[i], pages);

		if (i + KEYS_AHEAD < h->count)
		{
			LsmFilterPlace next = lsm_filter_place(h->hashes[i + KEYS_AHEAD], pages);

			__builtin_prefetch(lsm_filter_page_block((Page) (filter + (Size) next.page * BLCKSZ),
													 &next), 1);
		}
		lsm_filter_page_add((Page) (filter + (Size) place.page * BLCKSZ), &place, h->hashes[i]);
	}
}

/*
 * Returns the pages of the filter, allocated in the memory context of the hashes. The pages' owner
 * and block number are not set.
 */
char *
lsm_filter_make(LsmKeyHashes *h, const LsmKeyPrefixes *prefixes, uint32 pages)
{
	char	   *filter = MemoryContextAllocHuge(h->context, (Size) pages * BLCKSZ);
	int			probes = lsm_filter_probes(h->count + prefixes->count, pages);

	for (uint32 i = 0; i < pages; i++)
		lsm_filter_page_init((Page) (filter + (Size) i * BLCKSZ), probes, pages,
							 prefixes->columns);
	put_hashes(filter, pages, h);
	for (int i = 0; i < prefixes->columns; i++)
		put_hashes(filter, pages, &prefixes->hashes[i]);
	return filter;
}
