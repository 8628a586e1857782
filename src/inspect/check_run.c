/*
 * check_run.c
 *	  Verification of the pages of one run (I4, I5, I7).
 *
 * A packed run is walked from its root, each child between the separators of
 * its parent, so leaves come in order.  A run under construction is followed
 * along its leaves only: the next step may be writing its fence pages again,
 * while leaves never change but for VACUUM.  So is an input of a job that has a
 * part, from the frontier on: its fence pages lead to pages that are gone, too.
 */
#include "postgres.h"

#include "format/buffer_page.h"
#include "inspect/inspect.h"
#include "miscadmin.h"
#include "read/read.h"
#include "utils/memutils.h"

/* An entry with a copy of its key. */
typedef struct SavedEntry
{
	bool		valid;
	LsmEntry	entry;
	uint8	   *key;			/* room for the longest one and its padding */
} SavedEntry;

/* A page on the way from the root to a leaf. */
typedef struct WalkLevel
{
	Page		page;
	LsmGroup	group;
	SavedEntry	child;			/* separator of the child that is visited */
	SavedEntry	next;			/* that of its right neighbour */
} WalkLevel;

typedef struct Walk
{
	LsmCheck   *check;
	const LsmRunRecord *run;
	uint32		blocks;
	uint32		leaves;
	uint64		entries;
	BlockNumber end_block;		/* highest block so far + 1 */
	BlockNumber leaf;			/* the latest one, or invalid */
	BlockNumber leaf_next;		/* its link to the right */
	SavedEntry	last;			/* the latest entry of a leaf */
	LsmBound   *frontier;		/* input of a job that has a part: what is before
								 * it does not count; else NULL */
	WalkLevel  *levels[LSM_MAX_HEIGHT + 1];
} Walk;

static void
saved_init(SavedEntry *saved)
{
	saved->valid = false;
	saved->key = palloc(MAXALIGN(LSM_MAX_ENTRY_SIZE) + LSM_KEY_PAD);
}

static void
save_entry(SavedEntry *saved, const LsmEntry *entry)
{
	memcpy(saved->key, entry->key, entry->keylen);
	memset(saved->key + entry->keylen, 0, LSM_KEY_PAD);
	saved->entry = *entry;
	saved->entry.key = saved->key;
	saved->entry.aligned = true;
	saved->valid = true;
}

/* Compare, with the memory that comparison functions use given back. */
static int
compare(LsmCheck *c, const LsmEntry *a, const LsmEntry *b)
{
	MemoryContext old_context = MemoryContextSwitchTo(c->scratch);
	int			result = lsm_key_compare(c->ks, a, b);

	MemoryContextSwitchTo(old_context);
	return result;
}

static WalkLevel *
get_level(Walk *w, int height)
{
	WalkLevel  *level = w->levels[height];

	if (level == NULL)
	{
		level = w->levels[height] = palloc0(sizeof(WalkLevel));
		level->page = palloc(BLCKSZ);
		lsm_group_init(&level->group, w->check->ks->max_keylen);
		saved_init(&level->child);
		saved_init(&level->next);
	}
	return level;
}

static void
check_has_rest(LsmCheck *c, BlockNumber block, Page page, bool expected)
{
	bool		has_rest = (lsm_page_opaque(page)->flags & LSM_PAGE_HAS_REST) != 0;

	if (has_rest != expected)
		lsm_check_report(c, block, expected ? "entries of the page have no rest" :
						 "entries of the page have a rest");
}

/* Copy a page of the run, note its block as used, and check its header. */
static void
visit_page(Walk *w, BlockNumber block, uint16 kind, Page page)
{
	LsmCheck   *c = w->check;

	/* The leaves of a part are in use by the run under construction. */
	if (w->run->state != LSM_RUN_PART)
		lsm_check_use_block(c, block, w->run->run_id);
	lsm_check_read(c, block, kind, lsm_run_owner(w->run), page);
	check_has_rest(c, block, page, kind == LSM_PAGE_FENCE || c->ks->has_rest);
	w->blocks++;
	w->end_block = Max(w->end_block, block + 1);
}

/*
 * A fence page of the right edge keeps the block that it has left.  That of a
 * part is being written again.
 */
static void
visit_spare(Walk *w, BlockNumber block)
{
	Page		page;

	if (w->run->state == LSM_RUN_PART)
	{
		w->blocks++;
		return;
	}
	page = palloc(BLCKSZ);
	visit_page(w, block, LSM_PAGE_FENCE, page);
	pfree(page);
}

/* Does the header's account of how entries are coded make sense? */
static void
check_coding(LsmCheck *c, BlockNumber block, Page page)
{
	LsmLeafHeader *leaf = lsm_leaf_header(page);
	int			tid_bytes = 0;

	if (lsm_page_opaque(page)->kind == LSM_PAGE_FENCE)
	{
		if (leaf->base_block != 0 || leaf->last_block != 0)
			lsm_check_report(c, block, "a fence page has a range for its TIDs");
		if (leaf->keylen != 0)
			lsm_check_report(c, block, "a fence page has a length for its keys");
	}
	if (leaf->keylen > c->ks->max_keylen)
		lsm_check_report(c, block, "keys have %u bytes, but the longest one of the index has %u",
						 leaf->keylen, c->ks->max_keylen);
	if (leaf->keylen > 0)
		tid_bytes = lsm_mode_tid_bytes(leaf->base_block, leaf->last_block, leaf->offset_bits);
	if (leaf->tid_bytes != tid_bytes)
		lsm_check_report(c, block, "TIDs are coded in %d bytes, not %d", leaf->tid_bytes, tid_bytes);
}

/*
 * The layout of a packed page beyond what lsm_leaf_check sees: groups without
 * gaps, and as many entries as the header says.  Binary searches use the first
 * entry of a group as it lies in the page, so that must be what is decoded.
 */
static void
check_layout(LsmCheck *c, BlockNumber block, Page page, LsmGroup *group)
{
	const char *wrong = lsm_leaf_check(page);
	int			groups = lsm_leaf_group_count(page);
	int			count = 0;

	if (wrong != NULL)
		lsm_check_report(c, block, "%s", wrong);
	if (groups == 0 && ((PageHeader) page)->pd_lower != LSM_LEAF_DATA)
		lsm_check_report(c, block, "an empty page has entries");
	check_coding(c, block, page);
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
			lsm_check_report(c, block, "group %d begins with something else than its first entry", g);
		count += group->count;
	}
	if (count != lsm_leaf_header(page)->entry_count)
		lsm_check_report(c, block, "page has %d entries, its header says %d", count,
						 lsm_leaf_header(page)->entry_count);
}

/* Do scans see the entry? */
static bool
is_live(Walk *w, const LsmEntry *entry)
{
	MemoryContext old_context;
	int			result;

	if (w->run->state == LSM_RUN_BUILDING)
		return false;
	if (w->frontier == NULL)
		return true;
	old_context = MemoryContextSwitchTo(w->check->scratch);
	result = lsm_bound_compare(w->check->ks, w->frontier, entry);
	MemoryContextSwitchTo(old_context);
	return result > 0;
}

/* One entry of a leaf: in itself, after the one before, not before `lower`. */
static void
check_leaf_entry(Walk *w, BlockNumber block, int ordinal, const LsmEntry *entry,
				 const LsmEntry *lower)
{
	LsmCheck   *c = w->check;

	lsm_check_entry(c, entry, is_live(w, entry), block, ordinal);
	if (w->last.valid && compare(c, &w->last.entry, entry) >= 0)
		lsm_check_report(c, block, "entry %d does not sort after the one before (I5)", ordinal);
	if (lower != NULL && compare(c, lower, entry) > 0)
		lsm_check_report(c, block, "entry %d sorts before the page's separator", ordinal);
	save_entry(&w->last, entry);
	w->entries++;
}

/*
 * A leaf whose entries must not sort before `lower` but before `upper`; each
 * may be NULL.  Its left neighbour is the leaf that was visited last.
 */
static void
check_leaf(Walk *w, BlockNumber block, const LsmEntry *lower, const LsmEntry *upper)
{
	LsmCheck   *c = w->check;
	WalkLevel  *level = get_level(w, 0);
	LsmPageOpaque *opaque;
	int			ordinal = 0;

	visit_page(w, block, LSM_PAGE_LEAF, level->page);
	opaque = lsm_page_opaque(level->page);
	check_layout(c, block, level->page, &level->group);
	if (opaque->prev != w->leaf)
		lsm_check_report(c, block, "link to the left is %u, not %u", opaque->prev, w->leaf);
	if (w->leaves > 0 && w->leaf_next != block)
		lsm_check_report(c, w->leaf, "link to the right is %u, not %u", w->leaf_next, block);
	if (w->leaves == 0 && block != w->run->first_leaf)
		lsm_check_report(c, block, "manifest says that the first leaf is %u", w->run->first_leaf);

	for (int g = 0; g < lsm_leaf_group_count(level->page); g++)
	{
		if (!lsm_leaf_decode_group(level->page, g, &level->group))
			lsm_check_report(c, block, "group %d cannot be decoded", g);
		for (int i = 0; i < level->group.count; i++, ordinal++)
			check_leaf_entry(w, block, ordinal, &level->group.entries[i],
							 ordinal == 0 ? lower : NULL);
	}
	if (ordinal > 0 && upper != NULL && compare(c, &w->last.entry, upper) >= 0)
		lsm_check_report(c, block, "last entry does not sort before the next page's separator");
	w->leaf = block;
	w->leaf_next = opaque->next;
	w->leaves++;
	MemoryContextReset(c->scratch);
}

static void check_fence(Walk *w, BlockNumber block, int height,
						const LsmEntry *lower, const LsmEntry *upper);

static void
check_child(Walk *w, int height, const SavedEntry *separator, BlockNumber child,
			const LsmEntry *upper)
{
	if (height == 1)
		check_leaf(w, child, &separator->entry, upper);
	else
		check_fence(w, child, height - 1, &separator->entry, upper);
}

/* A separator is a whole key, or in an encoded keyspace the start of one. */
static void
check_separator(Walk *w, BlockNumber block, int ordinal, const LsmEntry *entry)
{
	LsmCheck   *c = w->check;
	LsmEntry	key = *entry;

	if (!BlockNumberIsValid(lsm_fence_child(entry)))
		lsm_check_report(c, block, "separator %d names no child", ordinal);
	if (!c->ks->encoded)
	{
		key.rest = NULL;
		key.restlen = 0;
		lsm_check_key(c, &key, block, ordinal);
	}
}

/*
 * A fence page `height` pages above the leaves, and all below it.  Separators
 * must be between `lower` and `upper`.  Two may be equal: when VACUUM empties
 * the last leaf of a run under construction, what was in it may come again.
 */
static void
check_fence(Walk *w, BlockNumber block, int height, const LsmEntry *lower, const LsmEntry *upper)
{
	LsmCheck   *c = w->check;
	WalkLevel  *level = get_level(w, height);
	BlockNumber child = InvalidBlockNumber;
	BlockNumber spare;
	int			ordinal = 0;

	check_stack_depth();
	visit_page(w, block, LSM_PAGE_FENCE, level->page);
	spare = lsm_page_opaque(level->page)->next;
	if (BlockNumberIsValid(spare))
		visit_spare(w, spare);
	check_layout(c, block, level->page, &level->group);
	level->child.valid = false;
	for (int g = 0; g < lsm_leaf_group_count(level->page); g++)
	{
		if (!lsm_leaf_decode_group(level->page, g, &level->group))
			lsm_check_report(c, block, "group %d cannot be decoded", g);
		for (int i = 0; i < level->group.count; i++, ordinal++)
		{
			const LsmEntry *entry = &level->group.entries[i];
			SavedEntry	swap = level->child;

			check_separator(w, block, ordinal, entry);
			save_entry(&level->next, entry);
			if (ordinal == 0 && lower != NULL && compare(c, lower, &level->next.entry) > 0)
				lsm_check_report(c, block, "first separator sorts before that of the parent");
			if (ordinal > 0)
			{
				if (compare(c, &level->child.entry, &level->next.entry) > 0)
					lsm_check_report(c, block, "separator %d sorts before the one before it",
									 ordinal);
				check_child(w, height, &level->child, child, &level->next.entry);
			}
			child = lsm_fence_child(entry);
			level->child = level->next;
			level->next = swap;
		}
	}
	if (ordinal == 0)
		lsm_check_report(c, block, "fence page has no children");
	if (upper != NULL && compare(c, &level->child.entry, upper) > 0)
		lsm_check_report(c, block, "last separator sorts after that of the next page");
	check_child(w, height, &level->child, child, upper);
}

/* A leaf at the right end may be without entries, and then without separator. */
static void
check_unlisted_leaf(Walk *w)
{
	uint64		entries = w->entries;
	BlockNumber block = w->leaf_next;

	check_leaf(w, block, NULL, NULL);
	if (w->entries != entries)
		lsm_check_report(w->check, block, "no fence page leads to this leaf");
}

/* What was found of a run, compared with its record. */
static void
check_totals(Walk *w)
{
	LsmCheck   *c = w->check;
	const LsmRunRecord *run = w->run;
	BlockNumber unused;
	uint64		owned;

	if (w->leaf != run->last_leaf)
		lsm_check_report(c, w->leaf, "manifest says that the last leaf is %u", run->last_leaf);
	if (w->leaves != run->leaves)
		lsm_check_report(c, run->root, "run has %u leaves, the manifest says %u",
						 w->leaves, run->leaves);
	/*
	 * VACUUM may have counted what it removed from pages of a failed step, or
	 * behind a part.
	 */
	if (w->entries > run->entries && run->state != LSM_RUN_PART &&
		!(run->flags & (LSM_RUN_RECOVERED | LSM_RUN_PARTED | LSM_RUN_CUT)))
		lsm_check_report(c, run->root,
						 "run has " UINT64_FORMAT " entries, the manifest says " UINT64_FORMAT,
						 w->entries, run->entries);
	if (run->state == LSM_RUN_BUILDING || (run->flags & LSM_RUN_CUT))
		return;
	/* Pages that parts have left may lie behind all others. */
	if (w->blocks != run->blocks || w->end_block > run->end_block ||
		(w->end_block < run->end_block && run->state != LSM_RUN_PART &&
		 !(run->flags & LSM_RUN_PARTED)))
		lsm_check_report(c, run->root,
						 "run has %u blocks and ends at %u, the manifest says %u and %u",
						 w->blocks, w->end_block, run->blocks, run->end_block);
	if (run->state == LSM_RUN_PART)
		return;
	owned = lsm_check_owned_blocks(c, run->run_id, &unused);
	if (owned != w->blocks && !(run->flags & (LSM_RUN_RECOVERED | LSM_RUN_PARTED)))
		lsm_check_report(c, unused, "block belongs to run " UINT64_FORMAT ", but is no part of it",
						 run->run_id);
}

/* The page with the frontier of a part: a separator after all that is in it. */
static void
check_frontier(Walk *w)
{
	LsmCheck   *c = w->check;
	BlockNumber block = w->run->extent_end;
	WalkLevel  *level = get_level(w, 0);
	LsmEntry	separator;

	lsm_check_use_block(c, block, w->run->job_id);
	lsm_check_read(c, block, LSM_PAGE_FENCE, w->run->job_id, level->page);
	check_has_rest(c, block, level->page, true);
	check_layout(c, block, level->page, &level->group);
	if (lsm_leaf_header(level->page)->entry_count != 1 ||
		!lsm_leaf_first_of_group(level->page, 0, &separator))
		lsm_check_report(c, block, "page does not hold a frontier");
	save_entry(&level->next, &separator);
	if (w->last.valid && compare(c, &w->last.entry, &level->next.entry) >= 0)
		lsm_check_report(c, block, "the frontier does not sort after the part's last entry");
}

/* An input of which a part has taken the beginning, from the frontier on. */
static void
check_cut(Walk *w)
{
	LsmCheck   *c = w->check;
	const LsmRunRecord *run = w->run;
	BlockNumber block = run->first_leaf;
	WalkLevel  *level = get_level(w, 0);

	lsm_check_read(c, block, LSM_PAGE_LEAF, run->run_id, level->page);
	w->leaf = lsm_page_opaque(level->page)->prev;
	while (w->leaves < run->leaves && BlockNumberIsValid(block))
	{
		check_leaf(w, block, NULL, NULL);
		block = w->leaf_next;
	}
	check_totals(w);
}

static void
check_packed(Walk *w)
{
	const LsmRunRecord *run = w->run;

	if (run->height == 0)
		check_leaf(w, run->root, NULL, NULL);
	else
		check_fence(w, run->root, run->height, NULL, NULL);
	if (run->state == LSM_RUN_PART)
	{
		check_totals(w);
		check_frontier(w);
		return;
	}
	if (BlockNumberIsValid(w->leaf_next) && run->height > 0 && w->leaf != run->last_leaf)
		check_unlisted_leaf(w);
	/* The last leaf may have a neighbour: appending begins with that link. */
	check_totals(w);
}

/*
 * The space of a run under construction, between steps: what it has written
 * and what it has reserved.
 */
static void
check_building_space(Walk *w)
{
	LsmCheck   *c = w->check;
	const LsmRunRecord *run = w->run;
	BlockNumber unused;
	uint64		owned = lsm_check_owned_blocks(c, run->run_id, &unused);
	uint64		known = run->blocks;

	if (BlockNumberIsValid(run->next_block))
		known += run->extent_end - run->next_block;
	if (owned < known ||
		(owned > known && !(run->flags & (LSM_RUN_RECOVERED | LSM_RUN_PARTED))))
		lsm_check_report(c, LSM_BLOCK_MAP,
						 "run " UINT64_FORMAT " has " UINT64_FORMAT " blocks in the space map, " UINT64_FORMAT " in the manifest",
						 run->run_id, owned, known);
}

static void
check_building(Walk *w)
{
	const LsmRunRecord *run = w->run;
	BlockNumber block = run->first_leaf;

	/*
	 * A step is under way, or has failed: pages, extents and counts need not
	 * fit the record, and nobody reads them.
	 */
	if (run->flags & LSM_RUN_STEPPING)
		return;
	check_building_space(w);
	if (run->leaves == 0)
		return;
	while (w->leaves < run->leaves)
	{
		check_leaf(w, block, NULL, NULL);
		block = w->leaf_next;
	}
	check_totals(w);
}

/*
 * A buffer page, sealed or (copied with the manifest) open.  Inserting and
 * deleting leave no gaps, so the sizes of the items add up.
 */
static void
check_buffer_page(Walk *w)
{
	LsmCheck   *c = w->check;
	const LsmRunRecord *run = w->run;
	Page		page = c->open_pages[run - c->version->runs];
	bool		open = run->state == LSM_RUN_OPEN;
	const char *wrong;
	uint32		size = 0;
	BlockNumber unused;

	lsm_check_use_block(c, run->root, run->run_id);
	if (open)
		lsm_check_page(c, run->root, LSM_PAGE_BUFFER, run->run_id, page);
	else
	{
		page = get_level(w, 0)->page;
		lsm_check_read(c, run->root, LSM_PAGE_BUFFER, run->run_id, page);
	}
	if (((lsm_page_opaque(page)->flags & LSM_PAGE_OPEN) != 0) != open)
		lsm_check_report(c, run->root, open ? "page of the open run is not open (I7)" :
						 "page of a sealed run is open (I7)");
	check_has_rest(c, run->root, page, c->ks->has_rest);
	wrong = lsm_buffer_page_check(page);
	if (wrong != NULL)
		lsm_check_report(c, run->root, "%s", wrong);

	for (int i = 0; i < lsm_buffer_page_count(page); i++)
	{
		LsmEntry	entry;

		if (!lsm_buffer_page_get(page, i, &entry))
			lsm_check_report(c, run->root, "item is out of bounds");
		check_leaf_entry(w, run->root, i, &entry, NULL);
		size += lsm_item_size(&entry);
	}
	MemoryContextReset(c->scratch);
	if (size != LSM_PAGE_SPECIAL - ((PageHeader) page)->pd_upper)
		lsm_check_report(c, run->root, "items have a size of %u, their area of %u", size,
						 (unsigned) (LSM_PAGE_SPECIAL - ((PageHeader) page)->pd_upper));
	if (!open && w->entries > run->entries && !(run->flags & LSM_RUN_CUT))
		lsm_check_report(c, run->root,
						 "run has " UINT64_FORMAT " entries, the manifest says " UINT64_FORMAT,
						 w->entries, run->entries);
	if (lsm_check_owned_blocks(c, run->run_id, &unused) != 1)
		lsm_check_report(c, unused, "block belongs to run " UINT64_FORMAT ", but is no part of it",
						 run->run_id);
}

static void
free_walk(Walk *w)
{
	for (int i = 0; i <= LSM_MAX_HEIGHT; i++)
	{
		WalkLevel  *level = w->levels[i];

		if (level == NULL)
			continue;
		pfree(level->page);
		lsm_group_free(&level->group);
		pfree(level->child.key);
		pfree(level->next.key);
		pfree(level);
	}
	pfree(w->last.key);
	pfree(w);
}

/* All pages of a run. */
void
lsm_check_run(LsmCheck *c, const LsmRunRecord *run)
{
	Walk	   *w = palloc0(sizeof(Walk));

	w->check = c;
	w->run = run;
	w->leaf = InvalidBlockNumber;
	w->leaf_next = InvalidBlockNumber;
	w->frontier = lsm_read_frontier(c->index, c->version, run);
	saved_init(&w->last);
	switch ((LsmRunState) run->state)
	{
		case LSM_RUN_OPEN:
		case LSM_RUN_SEALED:
			check_buffer_page(w);
			break;
		case LSM_RUN_PACKED:
		case LSM_RUN_PART:
			if (run->flags & LSM_RUN_CUT)
				check_cut(w);
			else
				check_packed(w);
			break;
		case LSM_RUN_BUILDING:
			check_building(w);
			break;
	}
	free_walk(w);
}
