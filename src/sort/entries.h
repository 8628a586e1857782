/*
 * entries.h
 *	  Collects and sorts entries in memory, for batches and for the sorter of CREATE INDEX.
 */
#ifndef LSM_ENTRIES_H
#define LSM_ENTRIES_H

#include "base/coding.h"
#include "key/cursor.h"

/* A bit set in the TID of a batch's item when its entry is in the index.  TIDs have 48 bits. */
#define LSM_ITEM_WRITTEN	(UINT64CONST(1) << 63)

/* An entry in memory, and in temporary files; key and rest follow. */
typedef struct LsmItem
{
	uint64		tid;
	uint32		keylen;
	uint32		restlen;
} LsmItem;

StaticAssertDecl(sizeof(LsmItem) % MAXIMUM_ALIGNOF == 0, "keys must be aligned");

typedef struct LsmItemRef
{
	uint64		prefix;			/* lsm_entry_prefix */
	LsmItem    *item;
} LsmItemRef;

typedef struct LsmEntries
{
	LsmKeySpace *ks;
	MemoryContext items;		/* holds the items, and nothing else */
	MemoryContext context;		/* holds refs */
	char	   *chunk;			/* where the next item goes */
	Size		chunk_left;
	Size		next_chunk;		/* size of the chunk after this one */
	Size		used;			/* bytes of chunks and refs */
	Size		limit;			/* bytes that may be used; 0: no limit */
	LsmItemRef *refs;
	Size		count;
	Size		room;
} LsmEntries;

extern void lsm_entries_init(LsmEntries *entries, LsmKeySpace *ks, MemoryContext context);
extern void lsm_entries_add(LsmEntries *entries, const LsmEntry *entry);
extern void lsm_item_refs_sort(LsmItemRef *refs, Size count, LsmKeySpace *ks);
extern void lsm_item_refs_sort_copy(LsmItemRef *to, const LsmItemRef *from, Size count,
									LsmKeySpace *ks);
extern void lsm_entries_clear(LsmEntries *entries, bool keep_refs);

/* Write an entry to an item. */
static inline void
lsm_item_set(LsmItem *item, const LsmEntry *entry)
{
	item->tid = entry->tid;
	item->keylen = entry->keylen;
	item->restlen = entry->restlen;
	lsm_copy((uint8 *) (item + 1), entry->key, entry->keylen);
	if (entry->restlen > 0)
		memcpy((char *) (item + 1) + entry->keylen, entry->rest, entry->restlen);
}

static inline Size
lsm_item_bytes(const LsmItem *item)
{
	return MAXALIGN(sizeof(LsmItem) + item->keylen + item->restlen);
}

static inline void
lsm_item_entry(const LsmItem *item, LsmEntry *entry)
{
	entry->key = (const uint8 *) (item + 1);
	entry->keylen = item->keylen;
	entry->rest = entry->key + item->keylen;
	entry->restlen = item->restlen;
	entry->tid = item->tid & ~LSM_ITEM_WRITTEN;
	entry->aligned = false;
}

#endif							/* LSM_ENTRIES_H */
