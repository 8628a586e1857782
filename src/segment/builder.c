/*
 * builder.c
 *	  Builds a segment from sorted entries: leaves from left to right, then the filter and
 *	  the fence pages.
 *
 * A page is built in private memory and written once. Pages name each other by their number
 * in the segment, so a segment can be built before its place is known. A batch builds such a
 * segment, an *image*. The image gets its blocks, id and checksums under the lock of the meta
 * page, in microseconds. A merge step or CREATE INDEX reserves blocks, and the builder writes each
 * leaf there once the leaf is complete.
 *
 * A segment ends when its blocks are used up. With each leaf, the builder updates an upper bound on
 * the number of fence pages (fences.h) and an estimate of the number of filter pages. The filter
 * gets only the blocks that the other pages do not need. The caller gives unused blocks back.
 *
 * A merge may find a leaf whose entries all come next. The builder may then copy the page
 * (lsm_builder_add_page): it closes the open leaf, and continues with the copy as its open leaf.
 * fill.h decides when a copy is allowed.
 */
#include "postgres.h"

#include "base/options.h"
#include "format/leaf_build.h"
#include "format/leaf_mode.h"
#include "format/leaf_read.h"
#include "miscadmin.h"
#include "segment/fences.h"
#include "segment/fill.h"
#include "segment/filter.h"
#include "segment/segment.h"
#include "storage/buffers.h"
#include "utils/memutils.h"

struct LsmBuilder
{
	Relation	rel;			/* NULL: an image */
	LsmKeySpace *ks;
	uint64		segment_id;
	BlockNumber start;
	uint32		most_blocks;
	BufferAccessStrategy strategy;
	MemoryContext context;		/* of the builder and all that it allocates */
	LsmLeafMode mode;			/* how leaves code entries */
	char	   *image;			/* the pages of an image; NULL: not an image */

	LsmLeafBuilder leaf;
	Page		leaf_page;
	bool		is_open;		/* there is a leaf under construction */
	uint32		leaves;			/* complete leaves */
	uint32		blocks;			/* all pages, once finished */
	int			height;			/* fence levels, once finished */
	uint64		entries;
	int			credit;			/* see fill.h */
	bool		leaf_is_copy;
	uint32		pages_copied;
	LsmGroup	scratch;		/* for resuming a copied page; allocated when first needed */

	int			filter_bits;	/* of the filter, per key; 0: no filter */
	LsmKeyHashes hashes;
	LsmKeyPrefixes prefixes;
	uint32		filter_blocks;	/* once finished */

	LsmEntry   *separators;		/* of each leaf, the open one included */
	uint32		separator_room;
	LsmFences	fences;			/* of the complete leaves and the open leaf */
	LsmEntry	low;			/* the first entry */
	LsmEntry	high;			/* the last entry, once finished */
};

static LsmBuilder *
make_builder(LsmKeySpace *ks, const LsmLeafMode *mode)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm builder",
												  ALLOCSET_DEFAULT_SIZES);
	LsmBuilder *b = MemoryContextAllocZero(context, sizeof(LsmBuilder));

	b->context = context;
	b->ks = ks;
	b->mode = *mode;
	lsm_mode_settle(&b->mode, ks->usual_keylen);
	/* Framed groups need keys that ascend as bytes. */
	if (!ks->encoded)
		b->mode.keylen = LSM_KEYLEN_MIXED;
	return b;
}

/*
 * Begin a segment in the blocks [start, start + length), which nobody else uses. The mode
 * says what is known about the entries. An entry whose TID does not fit the mode begins a new leaf
 * and widens the mode for this leaf and all later ones.
 */
LsmBuilder *
lsm_builder_create(Relation rel, LsmKeySpace *ks, uint64 segment_id, BlockNumber start,
				   uint32 length, const LsmLeafMode *mode, BufferAccessStrategy strategy)
{
	LsmBuilder *b = make_builder(ks, mode);

	b->rel = rel;
	b->segment_id = segment_id;
	b->start = start;
	b->most_blocks = length;
	b->strategy = strategy;
	b->leaf_page = MemoryContextAlloc(b->context, BLCKSZ);
	return b;
}

/*
 * Give the segment a filter if the index's options require one, keys can be hashed, and the segment
 * gets enough leaves (write_filter). Call this before adding anything, and not for an image.
 */
void
lsm_builder_want_filter(LsmBuilder *b)
{
	bool		if_worth;
	int			columns = lsm_filter_prefix(b->rel, b->ks->nkeys, &if_worth);

	b->filter_bits = lsm_hashing_holds(&b->ks->hashing) ? lsm_filter_bits(b->rel) : 0;
	b->hashes.context = b->context;
	if (b->filter_bits > 0)
		lsm_prefixes_init(&b->prefixes, b->ks, columns, if_worth, b->context);
}

/* Begin an image. */
LsmBuilder *
lsm_builder_create_image(LsmKeySpace *ks, const LsmLeafMode *mode)
{
	LsmBuilder *b = make_builder(ks, mode);

	b->image = MemoryContextAlloc(b->context, LSM_IMAGE_PAGES * BLCKSZ);
	/* Writing the image pins all its pages at once. */
	b->most_blocks = Min(LSM_IMAGE_PAGES, Max(NBuffers / 16, 3));
	if (lsm_page_entries > 0)
		b->most_blocks = Min(b->most_blocks, (uint32) Max(lsm_page_entries, 8) + 1);
	return b;
}

void
lsm_builder_free(LsmBuilder *b)
{
	MemoryContextDelete(b->context);
}

bool
lsm_builder_is_empty(const LsmBuilder *b)
{
	return b->entries == 0;
}

/* Sets *entry to the key and TID of the last entry added. Returns false if there is none. */
bool
lsm_builder_last(const LsmBuilder *b, LsmEntry *entry)
{
	memset(entry, 0, sizeof(LsmEntry));
	if (b->entries == 0)
		return false;
	entry->key = b->leaf.last_key;
	entry->keylen = b->leaf.last_keylen;
	entry->tid = b->leaf.last_tid;
	return true;
}

/* Returns how many leaves began as copies of a page. */
uint32
lsm_builder_pages_copied(const LsmBuilder *b)
{
	return b->pages_copied + b->leaf_is_copy;
}

/* Returns a copy of an entry's key and TID that lives as long as the builder. */
static LsmEntry
copy_key(LsmBuilder *b, const LsmEntry *entry)
{
	LsmEntry	copy;
	uint8	   *key = MemoryContextAlloc(b->context, entry->keylen + LSM_KEY_PAD);

	memcpy(key, entry->key, entry->keylen);
	memset(key + entry->keylen, 0, LSM_KEY_PAD);
	memset(&copy, 0, sizeof(copy));
	copy.key = key;
	copy.keylen = entry->keylen;
	copy.tid = entry->tid;
	return copy;
}

/*
 * Returns a separator before `entry`, the first entry of the next leaf. If keys are encoded and the
 * entry's key differs from the previous key, the separator is as short as possible and has no TID.
 * Otherwise, and for the first leaf, it has the whole key and the TID. Its key points into `entry`.
 */
static LsmEntry
make_separator(LsmBuilder *b, const LsmEntry *entry)
{
	LsmEntry	separator = *entry;
	LsmEntry	left;

	separator.rest = NULL;
	separator.restlen = 0;
	separator.aligned = false;
	if (b->leaves == 0 || !b->ks->encoded)
		return separator;
	left.key = b->leaf.last_key;
	left.keylen = b->leaf.last_keylen;
	if (left.keylen == entry->keylen && memcmp(left.key, entry->key, left.keylen) == 0)
		return separator;
	separator.keylen = lsm_separator_length(b->ks, &left, entry);
	separator.tid = 0;
	return separator;
}

/* --- reckoning fence pages and filter pages ---------------------------------- */

/* Estimates the number of filter pages that the segment will need with one more leaf. */
static uint32
reckon_filter(const LsmBuilder *b)
{
	uint32		leaves = b->leaves + 1;

	if (b->filter_bits == 0 || leaves < LSM_FILTER_LEAST_LEAVES)
		return 0;
	return lsm_filter_pages((b->hashes.count + b->prefixes.count) * leaves / b->leaves,
							b->filter_bits);
}

/*
 * Returns whether one more leaf with this separator fits. If so, counts the leaf. A single leaf has
 * no fence page.
 */
static bool
reckon_leaf(LsmBuilder *b, const LsmEntry *separator)
{
	LsmFences	after = b->fences;
	uint32		pages = b->leaves + 1 + reckon_filter(b);

	lsm_fences_add(&after, separator->keylen);
	if (b->leaves > 0)
		pages += lsm_fences_count(&after);
	if (pages > b->most_blocks)
		return false;
	b->fences = after;
	return true;
}

/* --- leaves -------------------------------------------------------------- */

/* Write a page to its place, unless it belongs to an image. */
static void
write_segment_page(LsmBuilder *b, uint32 number, Page page)
{
	LsmPageOpaque *opaque = lsm_page_opaque(page);

	if (b->rel == NULL)
		return;
	opaque->owner = b->segment_id;
	opaque->self = b->start + number;
	lsm_buffer_write_new(b->rel, b->start + number, page, b->strategy);
}

/* Close the open leaf. */
static void
close_leaf(LsmBuilder *b)
{
	lsm_leaf_finish(&b->leaf);
	write_segment_page(b, b->leaves, b->leaf_page);
	b->leaves++;
	b->pages_copied += b->leaf_is_copy;
	b->leaf_is_copy = false;
	/* Long entries leave much of a page unused, so the credit could become negative. */
	b->credit = Max(0, lsm_fill_credit(b->credit, lsm_leaf_unused(b->leaf_page)));
	b->is_open = false;
}

/*
 * Close the open leaf, make room for a leaf that begins with this entry, and note the new leaf's
 * separator. If the segment has no room, returns false and leaves the open leaf open.
 */
static bool
begin_leaf(LsmBuilder *b, const LsmEntry *first)
{
	LsmEntry	separator;

	lsm_prefixes_limit(&b->prefixes, b->hashes.count);
	/* The open leaf counts as complete here. */
	if (b->is_open)
	{
		b->leaves++;
		separator = make_separator(b, first);
		if (!reckon_leaf(b, &separator))
		{
			b->leaves--;
			return false;
		}
		b->leaves--;
		close_leaf(b);
	}
	else
	{
		separator = make_separator(b, first);
		if (!reckon_leaf(b, &separator))
			return false;
	}
	if (b->leaves == b->separator_room)
	{
		b->separator_room = Max(32, 2 * b->separator_room);
		b->separators = b->separators ?
			repalloc(b->separators, b->separator_room * sizeof(LsmEntry)) :
			MemoryContextAlloc(b->context, b->separator_room * sizeof(LsmEntry));
	}
	b->separators[b->leaves] = copy_key(b, &separator);
	if (b->leaves == 0)
		b->low = copy_key(b, first);
	if (b->image != NULL)
		b->leaf_page = lsm_builder_page(b, b->leaves);
	return true;
}

static bool
add_to_new_leaf(LsmBuilder *b, const LsmEntry *entry)
{
	if (!begin_leaf(b, entry))
		return false;
	lsm_leaf_begin_next(&b->leaf, b->leaf_page, b->ks->has_rest, &b->mode, entry->tid, 0,
						InvalidBlockNumber);
	if (!lsm_leaf_add(&b->leaf, entry))
		elog(ERROR, "entry does not fit an empty page of index \"%s\"", b->ks->index_name);
	b->is_open = true;
	return true;
}

/*
 * Append an entry. Returns false if the segment is full.
 *
 * REQUIRES: the entry sorts after the previous one.
 */
bool
lsm_builder_add(LsmBuilder *b, const LsmEntry *entry)
{
	if (unlikely(!b->is_open || !lsm_leaf_add(&b->leaf, entry)) && !add_to_new_leaf(b, entry))
		return false;
	b->entries++;
	if (b->filter_bits > 0)
		lsm_filter_note_key(&b->hashes, &b->prefixes, b->ks, entry);
	return true;
}

/* Returns whether a page of this mode can take all entries of the segment. */
static bool
mode_covers(const LsmLeafMode *page, const LsmLeafMode *segment)
{
	return page->base_block <= segment->base_block && page->last_block >= segment->last_block &&
		page->offset_bits >= segment->offset_bits && page->keylen == segment->keylen;
}

/*
 * Returns whether to close the open leaf, if there is one, and continue with a copy of this
 * page. A page with another mode may not be able to take more entries.
 */
static bool
may_copy(const LsmBuilder *b, Page page)
{
	LsmLeafMode mode;

	lsm_mode_of_page(page, &mode);
	return lsm_fill_may_copy(b->credit, !b->is_open, b->is_open ? lsm_leaf_builder_unused(&b->leaf) : 0,
							 lsm_leaf_unused(page), !mode_covers(&mode, &b->mode));
}

/* Hash the keys of the open leaf, which is a copy. */
static void
hash_leaf(LsmBuilder *b)
{
	for (int g = 0; g < lsm_leaf_group_count(b->leaf_page); g++)
	{
		if (!lsm_leaf_decode_group(b->leaf_page, g, &b->scratch))
			lsm_report_corruption(b->rel, lsm_page_opaque(b->leaf_page)->self,
								  "entries cannot be decoded");
		for (int i = 0; i < b->scratch.count; i++)
			lsm_filter_note_key(&b->hashes, &b->prefixes, b->ks, &b->scratch.entries[i]);
	}
}

/*
 * Append all entries of another segment's leaf by copying the page.
 *
 * REQUIRES: the leaf's first entry sorts after the last entry added.
 */
LsmPageResult
lsm_builder_add_page(LsmBuilder *b, Page page)
{
	LsmEntry	first;
	LsmPageOpaque *opaque;

	if (!may_copy(b, page))
		return LSM_PAGE_REFUSED;
	if (!lsm_leaf_first_of_group(page, 0, &first))
		lsm_report_corruption(b->rel, lsm_page_opaque(page)->self, "entries cannot be decoded");
	if (!begin_leaf(b, &first))
		return LSM_PAGE_NO_ROOM;
	memcpy(b->leaf_page, page, BLCKSZ);
	opaque = lsm_page_opaque(b->leaf_page);
	opaque->verified = 0;
	if (b->scratch.scratch == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(b->context);

		lsm_group_init(&b->scratch, b->ks->max_keylen);
		MemoryContextSwitchTo(old);
	}
	if (b->filter_bits > 0)
		hash_leaf(b);
	if (!lsm_leaf_resume(&b->leaf, b->leaf_page, &b->scratch))
		lsm_report_corruption(b->rel, lsm_page_opaque(page)->self, "entries cannot be decoded");
	b->entries += lsm_leaf_header(page)->entry_count;
	b->is_open = true;
	b->leaf_is_copy = true;
	return LSM_PAGE_TAKEN;
}

/* --- the filter ------------------------------------------------------------------ */

/* Write the filter after the leaves, into blocks that the fence pages do not need. */
static void
write_filter(LsmBuilder *b)
{
	uint32		others = b->leaves + lsm_fences_count(&b->fences);
	uint32		pages;
	char	   *filter;

	if (b->filter_bits == 0 || b->leaves < LSM_FILTER_LEAST_LEAVES ||
		!lsm_hashing_holds(&b->ks->hashing))
		return;
	lsm_prefixes_limit(&b->prefixes, b->hashes.count);
	pages = Min(lsm_filter_pages(b->hashes.count + b->prefixes.count, b->filter_bits),
				b->most_blocks - others);
	if (pages == 0)
		return;
	filter = lsm_filter_make(&b->hashes, &b->prefixes, pages);
	for (uint32 i = 0; i < pages; i++)
		write_segment_page(b, b->leaves + i, (Page) (filter + (Size) i * BLCKSZ));
	pfree(filter);
	b->filter_blocks = pages;
}

/* --- writing fence pages ------------------------------------------------------ */

/* Returns where to build page `number`: in the image, or in the spare page. */
static Page
fence_room(LsmBuilder *b, uint32 number, Page spare)
{
	/* The blocks after the segment belong to others. */
	if (number >= b->most_blocks)
		elog(ERROR, "fence pages of a segment of index \"%s\" do not fit its %u blocks",
			 b->ks->index_name, b->most_blocks);
	return b->image == NULL ? spare : lsm_builder_page(b, number);
}

/*
 * Write the fence pages above `count` pages that start with page `first`. The new pages start
 * with page `at`. Replaces the builder's separators with those of the new pages, and returns the
 * number of new pages.
 */
static uint32
write_level(LsmBuilder *b, uint32 count, uint32 first, uint32 at, bool wide, Page spare)
{
	LsmEntry   *separators = b->separators;
	LsmLeafBuilder *page = MemoryContextAlloc(b->context, sizeof(LsmLeafBuilder));
	uint32		pages = 0;

	for (uint32 i = 0; i < count; i++)
	{
		LsmEntry	entry = separators[i];
		uint32		child = first + i;

		entry.rest = (const uint8 *) &child;
		entry.restlen = sizeof(child);
		if (i > 0 && lsm_leaf_add(page, &entry))
			continue;
		if (i > 0)
			write_segment_page(b, at + pages - 1, page->page);
		lsm_fence_begin(page, fence_room(b, at + pages, spare), wide, 0,
						InvalidBlockNumber);
		if (!lsm_leaf_add(page, &entry))
			elog(ERROR, "entry does not fit an empty page of index \"%s\"", b->ks->index_name);
		separators[pages++] = separators[i];
	}
	write_segment_page(b, at + pages - 1, page->page);
	return pages;
}

/* Complete the segment. A segment without entries has no blocks and must not be installed. */
void
lsm_builder_finish(LsmBuilder *b)
{
	uint32		level_pages = b->leaves + 1;
	uint32		first = 0;
	uint32		next;
	bool		wide = false;
	LsmEntry	last;

	if (!lsm_builder_last(b, &last))
		return;
	b->high = copy_key(b, &last);
	close_leaf(b);
	write_filter(b);
	next = b->leaves + b->filter_blocks;
	for (uint32 i = 0; i < b->leaves; i++)
		wide |= lsm_leaf_needs_wide(b->separators[i].tid);
	while (level_pages > 1)
	{
		PGAlignedBlock spare;
		uint32		above = write_level(b, level_pages, first, next, wide, spare.data);

		first = next;
		next += above;
		level_pages = above;
		b->height++;
	}
	b->blocks = next;
	Assert(b->blocks <= b->most_blocks);
}

/*
 * Sets *result to the directory item of a finished segment that has entries. The keys live as long
 * as the builder.
 */
void
lsm_builder_describe(const LsmBuilder *b, LsmDirectoryEntry *result)
{
	LsmSegment *segment = &result->segment;

	memset(result, 0, sizeof(LsmDirectoryEntry));
	segment->id = b->segment_id;
	segment->entries = (uint32) b->entries;
	segment->start = b->start;
	segment->blocks = b->blocks;
	segment->leaves = b->leaves;
	segment->filter_blocks = b->filter_blocks;
	segment->prefix_columns = b->filter_blocks > 0 ? b->prefixes.columns : 0;
	segment->height = b->height;
	segment->heap_low = b->mode.base_block;
	segment->heap_high = b->mode.last_block;
	segment->keylen = b->mode.keylen;
	segment->offset_bits = b->mode.offset_bits;
	result->low = b->low;
	result->high = b->high;
}

/* --- images ---------------------------------------------------------------- */

Page
lsm_builder_page(const LsmBuilder *b, uint32 i)
{
	return (Page) (b->image + (Size) i * BLCKSZ);
}

/*
 * Give a finished image its id and its blocks, which begin at `start`. The pages are then ready to
 * be written.
 */
void
lsm_builder_place(LsmBuilder *b, uint64 segment_id, BlockNumber start, LsmSegment *segment)
{
	for (uint32 i = 0; i < b->blocks; i++)
	{
		Page		page = lsm_builder_page(b, i);

		lsm_page_opaque(page)->owner = segment_id;
		lsm_page_opaque(page)->self = start + i;
		lsm_page_set_crc(page);
	}
	segment->id = segment_id;
	segment->start = start;
}
