/*
 * check_segment.c
 *	  Verifies the pages of one segment (I4, I5, I7).
 *
 * The walk of a packed segment starts at its root and goes down into each child in turn, so leaves
 * come in order.  The walk checks each child against the separators on both sides.  The segment may
 * be merged away meanwhile.  If a page has another owner and the current version no longer names
 * the segment, the walk ends, and check.c decides whether another round is needed.
 */
#include "postgres.h"

#include "format/buffer_page.h"
#include "format/filter_page.h"
#include "format/leaf_mode.h"
#include "format/leaf_read.h"
#include "inspect/inspect.h"
#include "key/hash.h"
#include "miscadmin.h"
#include "segment/segment.h"
#include "utils/memutils.h"

/* The current page of a level on the way from the root to a leaf. */
typedef struct WalkLevel
{
	Page		page;			/* NULL until the first page of the level is visited */
	LsmGroup	group;
	LsmSavedEntry	child;			/* separator of the current child; leaf: its first entry */
	LsmSavedEntry	next;			/* separator of its right neighbor */
	uint32		first;			/* number of the level's first page */
	uint32		count;			/* pages visited */
} WalkLevel;

/* A packed page while its entries are visited. */
typedef struct PageWalk
{
	uint32		number;			/* the page's number in the segment */
	int			height;			/* levels above the leaves */
	const LsmEntry *lower;		/* the page's separator, or NULL */
	int			ordinal;		/* number of the visited entry; finally, the number of entries */
	uint32		child;			/* the child of the latest separator */
} PageWalk;

typedef struct SegmentWalk
{
	LsmCheck   *check;
	const LsmCheckSegment *segment;
	const LsmEntry *frontier;	/* entries up to here do not count; NULL: all count */
	bool		live;			/* all further entries are after the frontier */
	uint64		entries;		/* visited so far */
	char	   *filter;			/* the filter's pages, or NULL */
	LsmSavedEntry	last;			/* the latest entry */
	WalkLevel	levels[LSM_MAX_HEIGHT + 1];
} SegmentWalk;

static inline BlockNumber
segment_block(SegmentWalk *w, uint32 number)
{
	return w->segment->segment.start + number;
}

static void
segment_check_has_rest(LsmCheck *c, BlockNumber block, Page page, bool expected)
{
	bool		has_rest = (lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST) != 0;

	if (has_rest != expected)
		lsm_check_report(c, block, expected ? "entries of the page have no rest" :
						 "entries of the page have a rest");
}

/*
 * Copy a page, which must be the next one of its level.  Returns false if the segment is gone.
 */
static bool
segment_visit(SegmentWalk *w, int height, uint32 number)
{
	LsmCheck   *c = w->check;
	WalkLevel  *level = &w->levels[height];
	uint16		kind = height == 0 ? LSM_PAGE_LEAF : LSM_PAGE_FENCE;

	if (level->page == NULL)
	{
		level->page = palloc(BLCKSZ);
		lsm_group_init(&level->group, c->ks->max_keylen);
		lsm_check_saved_init(&level->child);
		lsm_check_saved_init(&level->next);
		level->first = number;
	}
	if (number != level->first + level->count)
		lsm_check_report(c, segment_block(w, number),
						 "page is number %u of its segment, but number %u comes next",
						 number, level->first + level->count);
	level->count++;
	if (!lsm_check_read(c, w->segment, number, kind, level->page))
		return false;
	segment_check_has_rest(c, segment_block(w, number), level->page,
						   kind == LSM_PAGE_FENCE || c->ks->has_rest);
	return true;
}

/* Check the header fields that say how entries are coded. */
static void
segment_check_coding(LsmCheck *c, BlockNumber block, Page page)
{
	LsmLeafHeader *leaf = lsm_leaf_header(page);
	int			tid_bytes = 0;

	if (lsm_page_opaque(page)->kind == LSM_PAGE_FENCE)
	{
		if (leaf->base_block != 0 || leaf->last_block != 0)
			lsm_check_report(c, block, "fence page has a range of heap blocks");
		if (leaf->keylen != 0)
			lsm_check_report(c, block, "fence page has a key length");
	}
	if (leaf->keylen > c->ks->max_keylen)
		lsm_check_report(c, block, "keys have %u bytes, but keys of the index have at most %u",
						 leaf->keylen, c->ks->max_keylen);
	if (leaf->keylen > 0)
		tid_bytes = lsm_mode_tid_bytes(leaf->base_block, leaf->last_block, leaf->offset_bits);
	if (leaf->tid_bytes != tid_bytes)
		lsm_check_report(c, block, "TIDs are coded in %d bytes, not %d", leaf->tid_bytes, tid_bytes);
}

/*
 * Check the layout of a packed page beyond lsm_leaf_check: groups have no gaps, and the header's
 * count of entries is right.  Binary searches read the first entry of a group without decoding
 * the group, so that entry must equal the decoded one.
 */
static void
segment_check_layout(LsmCheck *c, BlockNumber block, Page page, LsmGroup *group)
{
	const char *wrong = lsm_leaf_check(page);
	int			groups = lsm_leaf_group_count(page);
	int			count = 0;

	if (wrong != NULL)
		lsm_check_report(c, block, "%s", wrong);
	if (groups == 0 && ((PageHeader) page)->pd_lower != LSM_LEAF_DATA)
		lsm_check_report(c, block, "an empty page has entries");
	segment_check_coding(c, block, page);
	if (groups > 0 && lsm_leaf_group_offset(page, 0) != LSM_LEAF_DATA)
		lsm_check_report(c, block, "the first group is not at the start of the page");
	for (int g = 0; g < groups; g++)
	{
		LsmEntry	first;

		if (!lsm_leaf_first_of_group(page, g, &first) ||
			!lsm_leaf_decode_group(page, g, group))
			lsm_check_report(c, block, "group %d cannot be decoded", g);
		if (first.tid != group->entries[0].tid || first.keylen != group->entries[0].keylen ||
			memcmp(first.key, group->entries[0].key, first.keylen) != 0)
			lsm_check_report(c, block, "start of group %d differs from its first entry", g);
		count += group->count;
	}
	if (count != lsm_leaf_header(page)->entry_count)
		lsm_check_report(c, block, "page has %d entries, but its header says %d", count,
						 lsm_leaf_header(page)->entry_count);
}

/* Copy a page, check its layout, and visit its entries.  Returns false if the segment is gone. */
static bool
segment_walk_page(SegmentWalk *w, PageWalk *p,
				  bool (*visit) (SegmentWalk *w, PageWalk *p, const LsmEntry *entry))
{
	LsmCheck   *c = w->check;
	WalkLevel  *level = &w->levels[p->height];
	BlockNumber block = segment_block(w, p->number);

	if (!segment_visit(w, p->height, p->number))
		return false;
	segment_check_layout(c, block, level->page, &level->group);
	for (int g = 0; g < lsm_leaf_group_count(level->page); g++)
	{
		if (!lsm_leaf_decode_group(level->page, g, &level->group))
			lsm_check_report(c, block, "group %d cannot be decoded", g);
		for (int i = 0; i < level->group.count; i++)
		{
			if (!visit(w, p, &level->group.entries[i]))
				return false;
			p->ordinal++;
		}
	}
	return true;
}

/* --- the filter ------------------------------------------------------------- */

/* Copy the pages of the filter.  Returns false if the segment is gone. */
static bool
segment_read_filter(SegmentWalk *w)
{
	const LsmSegment *segment = &w->segment->segment;

	w->filter = MemoryContextAllocHuge(CurrentMemoryContext,
									   (Size) segment->filter_blocks * BLCKSZ);
	for (uint32 i = 0; i < segment->filter_blocks; i++)
	{
		uint32		number = segment->leaves + i;
		Page		page = (Page) (w->filter + (Size) i * BLCKSZ);
		const char *wrong;

		if (!lsm_check_read(w->check, w->segment, number, LSM_PAGE_FILTER, page))
			return false;
		wrong = lsm_filter_page_check(page);
		if (wrong != NULL)
			lsm_check_report(w->check, segment_block(w, number), "%s", wrong);
		if (lsm_filter_header(page)->pages != segment->filter_blocks)
			lsm_check_report(w->check, segment_block(w, number),
							 "filter has %u pages, but the manifest says %u",
							 lsm_filter_header(page)->pages, segment->filter_blocks);
		if (lsm_filter_header(page)->prefix_columns != segment->prefix_columns)
			lsm_check_report(w->check, segment_block(w, number),
							 "filter has prefixes of %u columns, but the manifest says %u",
							 lsm_filter_header(page)->prefix_columns, segment->prefix_columns);
	}
	return true;
}

static bool
segment_filter_has(SegmentWalk *w, uint64 hash)
{
	LsmFilterPlace place = lsm_filter_place(hash, w->segment->segment.filter_blocks);

	return lsm_filter_page_has((Page) (w->filter + (Size) place.page * BLCKSZ), &place, hash);
}

/*
 * Does the filter lack the first columns of an entry's key?  If hashes have changed since the
 * filter was built, nobody tests it, so it counts as lacking nothing.
 */
static bool
segment_filter_lacks(SegmentWalk *w, const LsmEntry *entry, int columns)
{
	LsmKeySpace *ks = w->check->ks;
	uint64		hash = lsm_hash_key(ks, entry, columns);

	return !segment_filter_has(w, hash) && lsm_hashing_holds(&ks->hashing);
}

/* Check that the filter has the entry's key, and the prefixes of the key that it should have. */
static void
segment_check_in_filter(SegmentWalk *w, BlockNumber block, int ordinal, const LsmEntry *entry)
{
	if (segment_filter_lacks(w, entry, w->check->ks->nkeys))
		lsm_check_report(w->check, block, "filter lacks entry %d", ordinal);
	for (int columns = 1; columns <= w->segment->segment.prefix_columns; columns++)
	{
		if (segment_filter_lacks(w, entry, columns))
			lsm_check_report(w->check, block, "filter lacks the first %d columns of entry %d",
							 columns, ordinal);
	}
}

/* --- leaves ----------------------------------------------------------------- */

/* Do scans see the entry?  If so, they see all later entries as well. */
static bool
segment_is_live(SegmentWalk *w, const LsmEntry *entry)
{
	if (!w->live)
		w->live = lsm_check_compare(w->check, w->frontier, entry) < 0;
	return w->live;
}

/* Check an entry by itself, and that it sorts after the previous one and not before `lower`. */
static void
segment_check_entry(SegmentWalk *w, BlockNumber block, int ordinal, const LsmEntry *entry,
					const LsmEntry *lower)
{
	LsmCheck   *c = w->check;

	/* Check the key first: comparison functions must not get a damaged tuple. */
	if (!w->live)
		lsm_check_key(c, entry, block, ordinal);
	lsm_check_entry(c, entry, segment_is_live(w, entry), block, ordinal);
	if (w->last.valid && lsm_check_compare(c, &w->last.entry, entry) >= 0)
		lsm_check_report_order(c, block, "entry", ordinal, "does not sort after the previous entry (I5)");
	if (lower != NULL && lsm_check_compare(c, lower, entry) > 0)
		lsm_check_report_order(c, block, "entry", ordinal, "sorts before the page's separator");
	if (w->filter != NULL)
		segment_check_in_filter(w, block, ordinal, entry);
	lsm_check_saved_set(&w->last, entry);
	w->entries++;
}

/*
 * Check that the first and the last entry of a leaf lie within the segment's key range in the
 * directory, where readers look for entries.
 */
static void
segment_check_range(SegmentWalk *w, BlockNumber block, const LsmEntry *first)
{
	const LsmCheckSegment *segment = w->segment;

	if (!segment->has_item)
		return;
	if (lsm_check_compare(w->check, &segment->low, first) > 0)
		lsm_check_report_order(w->check, block, "first entry", -1,
							   "sorts before its segment in the directory (I5)");
	if (lsm_check_compare(w->check, &w->last.entry, &segment->high) > 0)
		lsm_check_report_order(w->check, block, "last entry", -1,
							   "sorts after its segment in the directory (I5)");
}

static bool
segment_visit_entry(SegmentWalk *w, PageWalk *p, const LsmEntry *entry)
{
	segment_check_entry(w, segment_block(w, p->number), p->ordinal, entry,
						p->ordinal == 0 ? p->lower : NULL);
	if (p->ordinal == 0)
		lsm_check_saved_set(&w->levels[0].child, entry);
	return true;
}

/*
 * Check a leaf.  Its entries must not sort before `lower`, and must sort before `upper`.  Either
 * bound may be NULL.  Returns false if the segment is gone.
 */
static bool
segment_check_leaf(SegmentWalk *w, uint32 number, const LsmEntry *lower, const LsmEntry *upper)
{
	LsmCheck   *c = w->check;
	BlockNumber block = segment_block(w, number);
	PageWalk	p = {.number = number, .height = 0, .lower = lower};

	if (!segment_walk_page(w, &p, segment_visit_entry))
		return false;
	if (p.ordinal > 0)
	{
		segment_check_range(w, block, &w->levels[0].child.entry);
		if (upper != NULL && lsm_check_compare(c, &w->last.entry, upper) >= 0)
			lsm_check_report_order(c, block, "last entry", -1,
								   "does not sort before the next page's separator");
	}
	MemoryContextReset(c->scratch);
	return true;
}

/* --- fence pages ------------------------------------------------------------ */

static bool segment_check_fence(SegmentWalk *w, uint32 number, int height,
								const LsmEntry *lower, const LsmEntry *upper);

static bool
segment_check_child(SegmentWalk *w, int height, const LsmSavedEntry *separator, uint32 child,
					const LsmEntry *upper)
{
	if (height == 1)
		return segment_check_leaf(w, child, &separator->entry, upper);
	return segment_check_fence(w, child, height - 1, &separator->entry, upper);
}

/*
 * Check a separator by itself.  An encoded separator may be the beginning of a key; a tuple
 * separator is a whole key.  Children have lower page numbers than their parents.
 */
static void
segment_check_separator(SegmentWalk *w, uint32 number, int ordinal, const LsmEntry *entry)
{
	LsmCheck   *c = w->check;
	LsmEntry	key = *entry;

	if (lsm_fence_child(entry->rest, entry->restlen) >= number)
		lsm_check_report(c, segment_block(w, number), "separator %d names no child", ordinal);
	if (!c->ks->encoded)
	{
		key.rest = NULL;
		key.restlen = 0;
		lsm_check_key(c, &key, segment_block(w, number), ordinal);
	}
}

/*
 * Check the order of the separator in level->next.  The first separator of a page equals the
 * page's separator in its parent; the others ascend.
 */
static void
segment_check_separator_order(SegmentWalk *w, BlockNumber block, WalkLevel *level, int ordinal,
							  const LsmEntry *lower)
{
	LsmCheck   *c = w->check;

	if (ordinal == 0 && lower != NULL && lsm_check_compare(c, lower, &level->next.entry) != 0)
		lsm_check_report(c, block, "first separator differs from that of the page in its parent");
	if (ordinal > 0 && lsm_check_compare(c, &level->child.entry, &level->next.entry) >= 0)
		lsm_check_report_order(c, block, "separator", ordinal,
								   "does not sort after the previous one (I5)");
}

/* Check a separator, and then the child before it, whose upper bound it is. */
static bool
segment_visit_separator(SegmentWalk *w, PageWalk *p, const LsmEntry *entry)
{
	WalkLevel  *level = &w->levels[p->height];
	LsmSavedEntry	swap = level->child;

	segment_check_separator(w, p->number, p->ordinal, entry);
	lsm_check_saved_set(&level->next, entry);
	segment_check_separator_order(w, segment_block(w, p->number), level, p->ordinal, p->lower);
	if (p->ordinal > 0 &&
		!segment_check_child(w, p->height, &level->child, p->child, &level->next.entry))
		return false;
	p->child = lsm_fence_child(entry->rest, entry->restlen);
	level->child = level->next;
	level->next = swap;
	return true;
}

/*
 * Check a fence page `height` levels above the leaves, and everything below it.  Its first
 * separator must equal `lower`, and all must sort before `upper`.  Either bound may be NULL.
 * Returns false if the segment is gone.
 */
static bool
segment_check_fence(SegmentWalk *w, uint32 number, int height, const LsmEntry *lower,
					const LsmEntry *upper)
{
	LsmCheck   *c = w->check;
	WalkLevel  *level = &w->levels[height];
	BlockNumber block = segment_block(w, number);
	PageWalk	p = {.number = number, .height = height, .lower = lower, .child = LSM_NO_CHILD};

	check_stack_depth();
	if (!segment_walk_page(w, &p, segment_visit_separator))
		return false;
	if (p.ordinal == 0)
		lsm_check_report(c, block, "fence page has no children");
	if (upper != NULL && lsm_check_compare(c, &level->child.entry, upper) >= 0)
		lsm_check_report_order(c, block, "last separator", -1,
							   "does not sort before that of the next page");
	return segment_check_child(w, height, &level->child, p.child, upper);
}

/* --- segments --------------------------------------------------------------- */

/*
 * Are there more entries than were written, according to the manifest?  Returns false for a job's
 * input without a directory: its record no longer counts the entries that the job's output has.
 */
static bool
has_more_than_counted(const SegmentWalk *w)
{
	const LsmCheckSegment *s = w->segment;

	return (s->has_item || s->run->job_id == 0) &&
		w->entries > (uint64) s->segment.entries + s->segment.removed;
}

/*
 * Compare what a segment holds with its record.  There may be fewer entries than the record says:
 * VACUUM updates the record after it removes entries, and scans do not update it.  There are never
 * more than were written.
 */
static void
segment_check_totals(SegmentWalk *w)
{
	LsmCheck   *c = w->check;
	const LsmSegment *segment = &w->segment->segment;
	BlockNumber root = segment_block(w, segment->blocks - 1);
	uint32		number = 0;

	/* The leaves come first, then the filter, then the levels of fence pages, the root last. */
	for (int i = 0; i <= segment->height; i++)
	{
		if (w->levels[i].first != number)
			lsm_check_report(c, root, "level %d begins with page %u of the segment, not %u",
							 i, w->levels[i].first, number);
		number += w->levels[i].count + (i == 0 ? segment->filter_blocks : 0);
	}
	if (number != segment->blocks || w->levels[0].count != segment->leaves)
		lsm_check_report(c, root,
						 "segment has %u leaves in %u blocks, but the manifest says %u in %u",
						 w->levels[0].count, number, segment->leaves, segment->blocks);
	if (has_more_than_counted(w))
		lsm_check_report(c, root,
						 "segment has " UINT64_FORMAT " entries, but the manifest says %u",
						 w->entries, segment->entries);
}

/* Check the items of a buffer page.  The items have no gaps, so their sizes add up. */
static void
segment_check_items(SegmentWalk *w, BlockNumber block, Page page)
{
	LsmCheck   *c = w->check;
	const char *wrong = lsm_buffer_page_check(page);
	uint32		size = 0;

	if (wrong != NULL)
		lsm_check_report(c, block, "%s", wrong);
	for (int i = 0; i < lsm_buffer_page_count(page); i++)
	{
		LsmEntry	entry;

		if (!lsm_buffer_page_get(page, i, &entry))
			lsm_check_report(c, block, "item is out of bounds");
		segment_check_entry(w, block, i, &entry, NULL);
		size += lsm_item_size(&entry);
	}
	MemoryContextReset(c->scratch);
	if (size != LSM_PAGE_SPECIAL - ((PageHeader) page)->pd_upper)
		lsm_check_report(c, block, "items take %u bytes, but their area has %u", size,
						 (unsigned) (LSM_PAGE_SPECIAL - ((PageHeader) page)->pd_upper));
}

/*
 * Check a buffer page.  An open page was copied with the version; a sealed one is read now.
 * Returns false if the segment is gone.
 */
static bool
segment_check_buffer(SegmentWalk *w)
{
	LsmCheck   *c = w->check;
	const LsmCheckSegment *segment = w->segment;
	BlockNumber block = segment->segment.start;
	Page		page = segment->open_page;
	bool		open = page != NULL;

	if (open)
	{
		lsm_check_page(c, block, LSM_PAGE_BUFFER, segment->segment.id, page);
		lsm_check_note_blocks(c, c->blocks_done + 1);
	}
	else
	{
		page = palloc(BLCKSZ);
		if (!lsm_check_read(c, segment, 0, LSM_PAGE_BUFFER, page))
			return false;
	}
	if (((lsm_page_opaque(page)->flags & LSM_PAGE_OPEN) != 0) != open)
		lsm_check_report(c, block, open ? "page of an open run is not open (I7)" :
						 "page of a sealed run is open (I7)");
	segment_check_has_rest(c, block, page, c->ks->has_rest);
	segment_check_items(w, block, page);
	/* The manifest learns of the entries of an open page when the page is sealed. */
	if (!open && has_more_than_counted(w))
		lsm_check_report(c, block,
						 "run has " UINT64_FORMAT " entries, but the manifest says %u",
						 w->entries, segment->segment.entries);
	return true;
}

/*
 * Check all pages of a segment.  Returns false if the segment is gone; some of its pages may have
 * been checked by then.
 */
bool
lsm_check_segment(LsmCheck *c, const LsmCheckSegment *segment)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm check segment",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	SegmentWalk *w = palloc0(sizeof(SegmentWalk));
	bool		complete;

	w->check = c;
	w->segment = segment;
	w->frontier = lsm_check_frontier(c, segment->run);
	w->live = w->frontier == NULL;
	lsm_check_saved_init(&w->last);
	lsm_block_range_begin(&c->leaves, c->rel, segment->segment.start, segment->segment.leaves, c->strategy);
	if (segment->run->state == LSM_RUN_PACKED)
	{
		const LsmSegment *record = &segment->segment;

		if (record->filter_blocks > 0 && !segment_read_filter(w))
			complete = false;
		else if (record->height == 0)
			complete = segment_check_leaf(w, 0, NULL, NULL);
		else
			complete = segment_check_fence(w, record->blocks - 1, record->height, NULL, NULL);
		if (complete)
			segment_check_totals(w);
	}
	else
		complete = segment_check_buffer(w);
	lsm_block_range_end(&c->leaves);
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	return complete;
}
