/*
 * entries.c
 *	  Collects entries in memory and sorts them.
 *
 * Items lie in chunks of growing size, so few entries take little memory.  The sort
 * works on an array of pointers, each with a prefix of the item's key (lsm_entry_prefix).  Prefixes
 * decide nearly all comparisons without touching the items.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "sort/entries.h"
#include "utils/memutils.h"

#define FIRST_CHUNK (8 * 1024)
#define LAST_CHUNK	(1024 * 1024)
#define FIRST_REFS	256
#define SMALL_ITEM	(sizeof(LsmItem) + 8)	/* size of an item with an int4 key */

/* Compare items that have the same prefix. */
static int
compare_items(const LsmItem *a, const LsmItem *b, LsmKeySpace *ks)
{
	LsmEntry	ea;
	LsmEntry	eb;

	lsm_item_entry(a, &ea);
	lsm_item_entry(b, &eb);
	return lsm_key_compare(ks, &ea, &eb);
}

static inline int
compare_refs(const LsmItemRef *a, const LsmItemRef *b, LsmKeySpace *ks)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	return compare_items(a->item, b->item, ks);
}

#define ST_SORT sort_refs
#define ST_ELEMENT_TYPE LsmItemRef
#define ST_COMPARE(a, b, ks) compare_refs(a, b, ks)
#define ST_COMPARE_ARG_TYPE LsmKeySpace
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Start empty. Everything collected lives in `context` or below it. */
void
lsm_entries_init(LsmEntries *entries, LsmKeySpace *ks, MemoryContext context)
{
	memset(entries, 0, sizeof(LsmEntries));
	entries->ks = ks;
	entries->context = context;
	entries->items = AllocSetContextCreate(context, "pg_lsm entries", ALLOCSET_DEFAULT_SIZES);
	entries->next_chunk = FIRST_CHUNK;
}

/* Returns by how many pointers to extend the array: doubles it, unless the limit demands less. */
static Size
more_refs(const LsmEntries *entries)
{
	Size		left = entries->limit - Min(entries->limit, entries->used);

	if (entries->limit == 0)
		return Max(FIRST_REFS, entries->room);
	return Max(FIRST_REFS, Min(entries->room, left / (sizeof(LsmItemRef) + SMALL_ITEM)));
}

static void
add_ref(LsmEntries *entries, uint64 prefix, LsmItem *item)
{
	if (entries->count == entries->room)
	{
		Size		room = entries->room + more_refs(entries);

		entries->refs = entries->refs ?
			repalloc_huge(entries->refs, room * sizeof(LsmItemRef)) :
			MemoryContextAlloc(entries->context, room * sizeof(LsmItemRef));
		entries->used += (room - entries->room) * sizeof(LsmItemRef);
		entries->room = room;
	}
	entries->refs[entries->count].prefix = prefix;
	entries->refs[entries->count].item = item;
	entries->count++;
}

/* Add a copy of an entry. */
void
lsm_entries_add(LsmEntries *entries, const LsmEntry *entry)
{
	Size		size = MAXALIGN(sizeof(LsmItem) + entry->keylen + entry->restlen);
	LsmItem    *item;

	if (entries->chunk_left < size)
	{
		Size		chunk = Max(entries->next_chunk, size);

		entries->chunk = MemoryContextAlloc(entries->items, chunk);
		entries->chunk_left = chunk;
		entries->used += chunk;
		entries->next_chunk = Min(2 * entries->next_chunk, LAST_CHUNK);
		if (entries->limit != 0)
			entries->next_chunk = Min(entries->next_chunk, Max(entries->limit / 16, FIRST_CHUNK));
	}
	item = (LsmItem *) entries->chunk;
	entries->chunk += size;
	entries->chunk_left -= size;
	lsm_item_set(item, entry);
	add_ref(entries, lsm_entry_prefix(entries->ks, entry), item);
}

void
lsm_item_refs_sort(LsmItemRef *refs, Size count, LsmKeySpace *ks)
{
	sort_refs(refs, count, ks);
}

/*
 * Fewer than LEAST_FOR_BUCKETS entries are sorted without buckets. There are at most
 * 1 << BUCKET_BITS buckets.
 */
#define LEAST_FOR_BUCKETS	64
#define BUCKET_BITS			10

/* Is each entry greater than the one before it (order is 1), or smaller (order is -1)? */
static bool
are_in_order(const LsmItemRef *refs, Size count, int order, LsmKeySpace *ks)
{
	for (Size i = 1; i < count; i++)
	{
		if (compare_refs(&refs[i], &refs[i - 1], ks) * order <= 0)
			return false;
	}
	return true;
}

/*
 * Sort a copy. Entries that come in key order or in reverse order need no sorting. If they come in
 * neither order, the first few entries usually show that. Such entries go to buckets by their
 * prefixes. Random keys fill the buckets evenly, so little is left to sort. With skewed keys, the
 * pass that fills the buckets gains nothing.
 */
void
lsm_item_refs_sort_copy(LsmItemRef *to, const LsmItemRef *from, Size count, LsmKeySpace *ks)
{
	uint32		ends[1 << BUCKET_BITS] = {0};
	uint64		low = PG_UINT64_MAX;
	uint64		high = 0;
	uint32		begin = 0;
	int			shift;

	if (count == 0)
		return;
	if (are_in_order(from, count, 1, ks))
	{
		memcpy(to, from, count * sizeof(LsmItemRef));
		return;
	}
	if (are_in_order(from, count, -1, ks))
	{
		for (Size i = 0; i < count; i++)
			to[i] = from[count - 1 - i];
		return;
	}
	for (Size i = 0; i < count; i++)
	{
		low = Min(low, from[i].prefix);
		high = Max(high, from[i].prefix);
	}
	if (count < LEAST_FOR_BUCKETS || count > PG_INT32_MAX || low == high)
	{
		memcpy(to, from, count * sizeof(LsmItemRef));
		sort_refs(to, count, ks);
		return;
	}
	shift = Max(lsm_bits_of(high - low) - Min(BUCKET_BITS, lsm_bits_of(count)), 0);
	for (Size i = 0; i < count; i++)
		ends[(from[i].prefix - low) >> shift]++;
	for (int b = 0; b < lengthof(ends); b++)
	{
		uint32		size = ends[b];

		ends[b] = begin;
		begin += size;
	}
	for (Size i = 0; i < count; i++)
		to[ends[(from[i].prefix - low) >> shift]++] = from[i];
	begin = 0;
	for (int b = 0; b < lengthof(ends); b++)
	{
		if (ends[b] - begin > 1)
			sort_refs(to + begin, ends[b] - begin, ks);
		begin = ends[b];
	}
}

/* Forget all entries.  keep_refs: keep the array of pointers for the next entries. */
void
lsm_entries_clear(LsmEntries *entries, bool keep_refs)
{
	if (!keep_refs && entries->refs != NULL)
	{
		pfree(entries->refs);
		entries->refs = NULL;
		entries->room = 0;
	}
	MemoryContextReset(entries->items);
	entries->chunk = NULL;
	entries->chunk_left = 0;
	entries->next_chunk = FIRST_CHUNK;
	entries->used = entries->room * sizeof(LsmItemRef);
	entries->count = 0;
}
