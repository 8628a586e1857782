/*
 * filter.h
 *	  Making the filter of a segment: the hashes of its keys are collected while
 *	  it is built, 8 bytes for each, and put into pages when their number is known.
 */
#ifndef LSM_FILTER_H
#define LSM_FILTER_H

#include "format/filter_page.h"

/* A segment of fewer leaves is found out about as quickly without. */
#define LSM_FILTER_LEAST_LEAVES	8

typedef struct LsmKeyHashes
{
	MemoryContext context;
	uint64	   *hashes;
	uint64		count;
	uint64		room;
} LsmKeyHashes;

extern void lsm_hashes_grow(LsmKeyHashes *h);
extern char *lsm_filter_make(LsmKeyHashes *h, uint32 pages);

/* Note a key.  Keys come in order, so equal ones follow each other. */
static inline void
lsm_hashes_add(LsmKeyHashes *h, const uint8 *key, uint32 keylen)
{
	uint64		hash = lsm_filter_hash(key, keylen);

	if (h->count > 0 && h->hashes[h->count - 1] == hash)
		return;
	if (unlikely(h->count == h->room))
		lsm_hashes_grow(h);
	h->hashes[h->count++] = hash;
}

#endif							/* LSM_FILTER_H */
