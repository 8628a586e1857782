/*
 * writer.c
 *	  Writes a packed run from left to right.
 *
 * Pages are built in private memory and written once, when they are full:
 * leaves, and above them one fence page under construction for each level.
 * A leaf's link to its right neighbour needs that one's block number, so the
 * block of the open leaf is always reserved already.
 *
 * A fence page gets the entry of a leaf when the leaf is written, and that of
 * a fence page when it is opened.  So the rightmost page of each level is
 * always reachable from the top, and a writer can stop after any leaf (suspend)
 * and another process can go on (resume): it walks down the right edge.  What
 * was in the open leaf is not written and comes again.
 *
 * A leaf that a merge finds to be all alone at its place in the order is taken
 * as it is (add_page): the open leaf, when it is empty, becomes a copy of it,
 * and goes on from there.
 *
 * What a suspended writer has saved is not overwritten until the next one has
 * saved: the pages of the right edge move to other blocks each time.  So a step
 * that fails can be taken again.  The block that such a page has left is free
 * for the step after the next; it is kept in LsmPageOpaque.next, which fence
 * pages have no other use for.
 *
 * What has become a part (suspend_part) is read by scans.  Its fence pages stay
 * as they are, and belong to nobody when the writer has moved on.
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "run/fill.h"
#include "run/run.h"
#include "storage/buffers.h"
#include "storage/space.h"

/* A fence level under construction. */
typedef struct WriterLevel
{
	LsmLeafBuilder builder;
	Page		page;
	BlockNumber block;			/* invalid until it is needed */
	BlockNumber spare;			/* where the page was saved last, or invalid */
	LsmEntry	separator;		/* of the page's first entry */
	uint8		separator_key[LSM_MAX_ENTRY_SIZE + LSM_KEY_PAD];
} WriterLevel;

struct LsmRunWriter
{
	Relation	rel;
	Relation	heap;
	LsmKeySpace *ks;
	LsmRunRecord run;
	uint32		expected;		/* blocks, or 0 if unknown */
	BufferAccessStrategy strategy;
	bool		from_part;		/* what was resumed is read by scans */
	bool		appends;		/* to a finished run */
	uint32		leaves_written;	/* by this writer */
	LsmLeafMode mode;			/* how leaves code entries */

	LsmLeafBuilder leaf;
	Page		leaf_page;
	BlockNumber leaf_block;		/* of the open leaf, or invalid: none open */
	LsmEntry	leaf_separator;
	uint8		leaf_separator_key[LSM_MAX_ENTRY_SIZE + LSM_KEY_PAD];

	bool		leaf_is_copy;	/* the open leaf began as a copy of a page */
	uint32		pages_copied;	/* such leaves that were written */
	int			credit;			/* see fill.h */
	LsmGroup	scratch;		/* for going on with a copied page; no scratch
								 * area until needed */

	int			height;			/* levels in use */
	WriterLevel *levels[LSM_MAX_HEIGHT];
};

static BlockNumber
reserve_block(LsmRunWriter *w)
{
	if (w->run.next_block == w->run.extent_end)
	{
		BlockNumber start;
		uint32		length;
		uint32		want;
		uint32		most = Max(w->expected, w->run.blocks) / LSM_RUN_EXTENTS;

		most = Min(Max(most, LSM_EXTENT_BLOCKS), LSM_MAX_EXTENT_BLOCKS);
		if (w->expected > 0)
			want = w->expected > w->run.blocks ? w->expected - w->run.blocks : 1;
		else
			want = Max(1, w->run.blocks / 8);
		want = Min(want, most);
		lsm_space_alloc(w->rel, w->heap, w->run.run_id, want,
						w->run.extent_end, &start, &length);
		w->run.next_block = start;
		w->run.extent_end = start + length;
	}
	w->run.blocks++;
	w->run.end_block = Max(w->run.end_block, w->run.next_block + 1);
	return w->run.next_block++;
}

static void
copy_separator(LsmEntry *to, uint8 *room, const LsmEntry *from)
{
	memcpy(room, from->key, from->keylen);
	memset(room + from->keylen, 0, LSM_KEY_PAD);
	*to = *from;
	to->key = room;
	to->aligned = false;
}

static WriterLevel *
make_level(LsmRunWriter *w)
{
	WriterLevel *level = palloc0(sizeof(WriterLevel));

	if (w->height == LSM_MAX_HEIGHT)
		elog(ERROR, "run of index \"%s\" has too many levels", RelationGetRelationName(w->rel));
	level->page = palloc_extended(BLCKSZ, 0);
	level->block = InvalidBlockNumber;
	level->spare = InvalidBlockNumber;
	w->levels[w->height++] = level;
	return level;
}

static void
open_fence(LsmRunWriter *w, WriterLevel *level, const LsmEntry *separator)
{
	level->block = InvalidBlockNumber;
	lsm_fence_begin(&level->builder, level->page, lsm_leaf_needs_wide(separator->tid),
					w->run.run_id, InvalidBlockNumber);
	copy_separator(&level->separator, level->separator_key, separator);
}

/* A fence page gets its block when its parent names it or it is written. */
static BlockNumber
fence_block(LsmRunWriter *w, WriterLevel *level)
{
	if (!BlockNumberIsValid(level->block))
	{
		level->block = reserve_block(w);
		lsm_page_opaque(level->page)->self = level->block;
	}
	return level->block;
}

/* Add a child to fence level i, opening pages and levels as needed. */
static void
add_child(LsmRunWriter *w, int i, const LsmEntry *separator, BlockNumber child)
{
	WriterLevel *level;
	LsmEntry	entry = *separator;

	if (i == w->height)
	{
		level = make_level(w);
		open_fence(w, level, separator);
	}
	level = w->levels[i];
	entry.rest = (const uint8 *) &child;
	entry.restlen = sizeof(BlockNumber);
	if (lsm_leaf_add(&level->builder, &entry))
		return;

	/* Full: write it, open its right neighbour, and name both above. */
	lsm_buffer_write_new(w->rel, fence_block(w, level), level->page, w->strategy);
	if (i + 1 == w->height)
		add_child(w, i + 1, &level->separator, level->block);
	open_fence(w, level, separator);
	if (!lsm_leaf_add(&level->builder, &entry))
		elog(ERROR, "entry does not fit an empty page of index \"%s\"",
			 RelationGetRelationName(w->rel));
	add_child(w, i + 1, &level->separator, fence_block(w, level));
}

static void
write_leaf(LsmRunWriter *w, BlockNumber next)
{
	LsmPageOpaque *opaque = lsm_page_opaque(w->leaf_page);

	opaque->prev = w->run.last_leaf;
	opaque->next = next;
	lsm_buffer_write_new(w->rel, w->leaf_block, w->leaf_page, w->strategy);
	if (w->run.leaves == 0)
		w->run.first_leaf = w->leaf_block;
	w->run.last_leaf = w->leaf_block;
	w->run.leaves++;
	w->run.entries += lsm_leaf_header(w->leaf_page)->entry_count;
	w->leaves_written++;
	w->pages_copied += w->leaf_is_copy;
	/* Long entries leave much unused on a page that takes no more of them. */
	w->credit = Max(0, lsm_fill_credit(w->credit, lsm_leaf_unused(w->leaf_page)));

	/* An empty last leaf (see finish) is chained but has no separator. */
	if (lsm_leaf_header(w->leaf_page)->entry_count > 0)
		add_child(w, 0, &w->leaf_separator, w->leaf_block);
}

/* Open a leaf whose first entry will have this TID. */
static void
open_leaf(LsmRunWriter *w, BlockNumber block, uint64 tid)
{
	w->leaf_block = block;
	w->leaf_is_copy = false;
	lsm_leaf_begin_next(&w->leaf, w->leaf_page, w->ks->has_rest, &w->mode, tid,
						w->run.run_id, block);
}

/*
 * The separator before `entry`, the first of the leaf after the one that was
 * built: as short as it can be.  Where it is cut, or the keys differ anyway, no
 * TID is needed.  Points into the entry.
 */
LsmEntry
lsm_run_separator(LsmKeySpace *ks, const LsmLeafBuilder *leaf, const LsmEntry *entry)
{
	LsmEntry	separator = *entry;
	LsmEntry	left;

	separator.rest = NULL;
	separator.restlen = 0;
	if (!ks->encoded)
		return separator;
	left.key = leaf->last_key;
	left.keylen = leaf->last_keylen;
	if (left.keylen == entry->keylen && memcmp(left.key, entry->key, left.keylen) == 0)
		return separator;
	separator.keylen = lsm_separator_length(ks, &left, entry);
	separator.tid = 0;
	return separator;
}

static void
must_fit(LsmRunWriter *w, const LsmEntry *entry)
{
	if (!lsm_leaf_add(&w->leaf, entry))
		elog(ERROR, "entry does not fit an empty page of index \"%s\"",
			 RelationGetRelationName(w->rel));
}

/*
 * Append an entry.
 *
 * REQUIRES: it sorts after the one before.
 */
void
lsm_run_writer_add(LsmRunWriter *w, const LsmEntry *entry)
{
	if (unlikely(!BlockNumberIsValid(w->leaf_block)))
		open_leaf(w, reserve_block(w), entry->tid);

	if (unlikely(lsm_leaf_header(w->leaf_page)->entry_count == 0))
	{
		/* First of the run, or after resuming: the whole entry separates. */
		open_leaf(w, w->leaf_block, entry->tid);
		copy_separator(&w->leaf_separator, w->leaf_separator_key, entry);
		must_fit(w, entry);
	}
	else if (!lsm_leaf_add(&w->leaf, entry))
	{
		LsmEntry	separator = lsm_run_separator(w->ks, &w->leaf, entry);
		BlockNumber next = reserve_block(w);

		write_leaf(w, next);
		copy_separator(&w->leaf_separator, w->leaf_separator_key, &separator);
		open_leaf(w, next, entry->tid);
		must_fit(w, entry);
	}
}

/* Does a page of this mode take all entries that the run is to have? */
static bool
covers(const LsmLeafMode *page, const LsmLeafMode *run)
{
	return page->base_block <= run->base_block && page->last_block >= run->last_block &&
		page->offset_bits >= run->offset_bits && page->keylen == run->keylen;
}

/*
 * Is the open leaf to be closed, if there is anything in it, to go on with a
 * copy of this page?  A page with a mode of its own may take no more entries.
 * The first leaf has the mode of the run, for those who go on with the run or
 * merge it.
 */
static bool
may_copy(const LsmRunWriter *w, Page page)
{
	bool		is_empty = lsm_leaf_header(w->leaf_page)->entry_count == 0;
	LsmLeafMode mode;
	bool		own_mode;

	lsm_mode_of_page(page, &mode);
	own_mode = !covers(&mode, &w->mode);
	if (w->run.leaves == 0 && is_empty && own_mode)
		return false;
	return lsm_fill_may_copy(w->credit, is_empty, lsm_leaf_unused(w->leaf_page),
							 lsm_leaf_unused(page), own_mode);
}

/* The open leaf, empty, becomes a copy of the page. */
static void
take_page(LsmRunWriter *w, BlockNumber block, Page page)
{
	LsmPageOpaque *opaque = lsm_page_opaque(w->leaf_page);

	memcpy(w->leaf_page, page, BLCKSZ);
	opaque->run_id = w->run.run_id;
	opaque->self = block;
	w->leaf_block = block;
	w->leaf_is_copy = true;
	if (w->scratch.scratch == NULL)
		lsm_group_init(&w->scratch, w->ks->max_keylen);
	if (!lsm_leaf_resume(&w->leaf, w->leaf_page, &w->scratch))
		lsm_report_corruption(w->rel, lsm_page_opaque(page)->self, "entries cannot be decoded");
}

/*
 * Append all entries of a leaf of another run, by copying it.  False, with
 * nothing done, if that would leave too much unused.
 *
 * REQUIRES: its first entry sorts after the one that was added before.
 */
bool
lsm_run_writer_add_page(LsmRunWriter *w, Page page)
{
	LsmEntry	first;
	LsmEntry	separator;
	BlockNumber block;

	if (!BlockNumberIsValid(w->leaf_block))
		open_leaf(w, reserve_block(w), (uint64) w->mode.base_block << 16);
	if (!may_copy(w, page))
		return false;
	if (!lsm_leaf_first_of_group(page, 0, &first))
		lsm_report_corruption(w->rel, lsm_page_opaque(page)->self, "entries cannot be decoded");
	block = w->leaf_block;
	separator = first;
	if (lsm_leaf_header(w->leaf_page)->entry_count > 0)
	{
		separator = lsm_run_separator(w->ks, &w->leaf, &first);
		block = reserve_block(w);
		write_leaf(w, block);
	}
	copy_separator(&w->leaf_separator, w->leaf_separator_key, &separator);
	take_page(w, block, page);
	return true;
}

/* Leaves written that began as copies; with `all`, the open one counts, too. */
uint32
lsm_run_writer_pages_copied(const LsmRunWriter *w, bool all)
{
	return w->pages_copied + (all && w->leaf_is_copy);
}

/* Leaves written since the writer began or resumed. */
uint32
lsm_run_writer_leaves(const LsmRunWriter *w)
{
	return w->leaves_written;
}

/* Blocks of the run so far, whoever wrote them. */
uint32
lsm_run_writer_blocks(const LsmRunWriter *w)
{
	return w->run.blocks;
}

static LsmRunWriter *
make_writer(Relation rel, Relation heap, LsmKeySpace *ks, const LsmRunRecord *run,
			uint32 expected_blocks)
{
	LsmRunWriter *w = palloc0(sizeof(LsmRunWriter));

	w->rel = rel;
	w->heap = heap;
	w->ks = ks;
	w->run = *run;
	w->expected = expected_blocks;
	w->leaf_page = palloc(BLCKSZ);
	w->leaf_block = InvalidBlockNumber;
	if (expected_blocks == 0 || expected_blocks > LSM_EXTENT_BLOCKS * 4)
		w->strategy = GetAccessStrategy(BAS_BULKWRITE);
	return w;
}

/*
 * Begin a run.  Its record (id, level, state) is in the manifest already, or
 * nobody else can see the index.  expected_blocks is an upper bound or 0.
 * The mode tells what is known of the entries: one that does not fit it costs a
 * page, but only once.
 */
LsmRunWriter *
lsm_run_writer_begin(Relation rel, Relation heap, LsmKeySpace *ks,
					 const LsmRunRecord *run, uint32 expected_blocks, const LsmLeafMode *mode)
{
	LsmRunWriter *w = make_writer(rel, heap, ks, run, expected_blocks);

	w->mode = *mode;
	lsm_mode_settle(&w->mode, ks->usual_keylen);
	w->run.root = InvalidBlockNumber;
	w->run.first_leaf = InvalidBlockNumber;
	w->run.last_leaf = InvalidBlockNumber;
	w->run.next_block = InvalidBlockNumber;
	w->run.extent_end = InvalidBlockNumber;
	return w;
}

/* Let a leaf that is complete have a right neighbour after all. */
static void
link_leaf(LsmRunWriter *w, BlockNumber leaf, BlockNumber next)
{
	Buffer		buffer = lsm_buffer_read(w->rel, leaf, LSM_KIND(LSM_PAGE_LEAF), w->run.run_id,
										 BUFFER_LOCK_EXCLUSIVE, NULL);

	START_CRIT_SECTION();
	lsm_page_opaque(BufferGetPage(buffer))->next = next;
	lsm_page_set_crc(BufferGetPage(buffer));
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(w->rel))
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/*
 * The place after the last entry of a finished run.  False if its last leaf is
 * empty.
 */
bool
lsm_run_read_end(Relation rel, LsmKeySpace *ks, const LsmRunRecord *run, LsmBound *end)
{
	Buffer		buffer = lsm_buffer_read(rel, run->last_leaf, LSM_KIND(LSM_PAGE_LEAF),
										 run->run_id, BUFFER_LOCK_SHARE, NULL);
	Page		page = BufferGetPage(buffer);
	int			groups = lsm_leaf_group_count(page);
	LsmGroup	group;

	lsm_group_init(&group, ks->max_keylen);
	if (groups > 0 && !lsm_leaf_decode_group(page, groups - 1, &group))
		lsm_report_corruption(rel, run->last_leaf, "entries cannot be decoded");
	UnlockReleaseBuffer(buffer);
	if (groups > 0)
		lsm_bound_set_entry(end, &group.entries[group.count - 1], -1);
	lsm_group_free(&group);
	return groups > 0;
}

/* How many entries has the fuller one of a finished run's last two leaves? */
uint32
lsm_run_last_count(Relation rel, const LsmRunRecord *run)
{
	BlockNumber block = run->last_leaf;
	uint32		most = 0;

	for (int i = 0; i < 2 && BlockNumberIsValid(block); i++)
	{
		Buffer		buffer = lsm_buffer_read(rel, block, LSM_KIND(LSM_PAGE_LEAF), run->run_id,
											 BUFFER_LOCK_SHARE, NULL);
		Page		page = BufferGetPage(buffer);

		most = Max(most, lsm_leaf_header(page)->entry_count);
		block = block == run->first_leaf ? InvalidBlockNumber : lsm_page_opaque(page)->prev;
		UnlockReleaseBuffer(buffer);
	}
	return most;
}

/* Read a page of the run into private memory. */
static void
fetch_page(LsmRunWriter *w, BlockNumber block, uint16 kind, Page page)
{
	Buffer		buffer = lsm_buffer_read(w->rel, block, LSM_KIND(kind), w->run.run_id,
										 BUFFER_LOCK_SHARE, NULL);

	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
}

/*
 * Move a page of the right edge to another block: to the one that it left two
 * steps ago, if there is one.  parent_child is where its parent has the number.
 */
static void
move_fence(LsmRunWriter *w, WriterLevel *level, uint8 *parent_child)
{
	LsmPageOpaque *opaque = lsm_page_opaque(level->page);

	if (w->from_part)
		w->run.blocks--;
	else
		level->spare = opaque->self;
	level->block = BlockNumberIsValid(opaque->next) ? opaque->next : reserve_block(w);
	opaque->self = level->block;
	opaque->next = InvalidBlockNumber;
	if (parent_child != NULL)
		memcpy(parent_child, &level->block, sizeof(BlockNumber));
}

/*
 * Go on with a run that was suspended; is_part: by suspend_part.  `position`
 * becomes the place after its last entry.
 *
 * REQUIRES: at least one leaf was written.
 */
LsmRunWriter *
lsm_run_writer_resume(Relation rel, Relation heap, LsmKeySpace *ks,
					  const LsmRunRecord *run, bool is_part, uint32 expected_blocks,
					  LsmBound *position)
{
	LsmRunWriter *w = make_writer(rel, heap, ks, run, expected_blocks);
	BlockNumber block = run->root;
	uint8	   *parent_child = NULL;
	LsmLeafMode of_last;
	LsmGroup	group;
	int			last;

	w->from_part = is_part;
	lsm_group_init(&group, LSM_MAX_ENTRY_SIZE);
	for (int i = 0; i < run->height; i++)
		make_level(w);
	for (int i = run->height - 1; i >= 0; i--)
	{
		WriterLevel *level = w->levels[i];
		LsmEntry	first;

		fetch_page(w, block, LSM_PAGE_FENCE, level->page);
		move_fence(w, level, parent_child);
		if (!lsm_leaf_resume(&level->builder, level->page, &group) ||
			!lsm_leaf_first_of_group(level->page, 0, &first))
			lsm_report_corruption(rel, block, "entries cannot be decoded");
		first.rest = NULL;
		first.restlen = 0;
		copy_separator(&level->separator, level->separator_key, &first);
		if (i == 0)
			lsm_bound_set_entry(position, &group.entries[group.count - 1], 1);
		block = lsm_fence_child(&group.entries[group.count - 1]);
		/* Rests stay in the page. */
		parent_child = (uint8 *) group.entries[group.count - 1].rest;
	}
	if (block != run->last_leaf)
		lsm_report_corruption(rel, run->root, "right edge does not lead to the last leaf");

	/* Every entry was known when the first leaf was begun, or widened the mode since. */
	fetch_page(w, run->first_leaf, LSM_PAGE_LEAF, w->leaf_page);
	lsm_mode_of_page(w->leaf_page, &w->mode);
	fetch_page(w, block, LSM_PAGE_LEAF, w->leaf_page);
	lsm_mode_of_page(w->leaf_page, &of_last);
	lsm_mode_join(&w->mode, &of_last);
	last = lsm_leaf_group_count(w->leaf_page) - 1;
	if (last >= 0)
	{
		if (!lsm_leaf_decode_group(w->leaf_page, last, &group))
			lsm_report_corruption(rel, block, "entries cannot be decoded");
		lsm_bound_set_entry(position, &group.entries[group.count - 1], -1);
	}
	/* VACUUM has emptied the leaf: all from its separator on may come again. */
	block = lsm_page_opaque(w->leaf_page)->next;
	open_leaf(w, block, (uint64) w->mode.base_block << 16);
	lsm_group_free(&group);
	return w;
}

/*
 * Append to a finished run, more_blocks at most, in a mode of their own.
 * Nothing of what it has is written again but the link of its last leaf, so
 * versions that have its record from before can be read meanwhile, and if
 * nothing comes of it.
 *
 * REQUIRES: it has fence pages and the flag LSM_RUN_PARTED, and its last leaf is
 * not empty.
 */
LsmRunWriter *
lsm_run_writer_append(Relation rel, Relation heap, LsmKeySpace *ks, const LsmRunRecord *run,
					  uint32 more_blocks, const LsmLeafMode *mode)
{
	LsmBound	position = {0};
	LsmRunWriter *w = lsm_run_writer_resume(rel, heap, ks, run, true,
											run->blocks + Max(more_blocks, run->blocks / 16),
											&position);

	w->appends = true;
	w->mode = *mode;
	lsm_mode_settle(&w->mode, ks->usual_keylen);
	open_leaf(w, reserve_block(w), (uint64) w->mode.base_block << 16);
	link_leaf(w, run->last_leaf, w->leaf_block);
	return w;
}

static void
write_fences(LsmRunWriter *w)
{
	for (int i = 0; i < w->height; i++)
	{
		BlockNumber block = fence_block(w, w->levels[i]);

		lsm_page_opaque(w->levels[i]->page)->next = w->levels[i]->spare;
		lsm_buffer_write_new(w->rel, block, w->levels[i]->page, w->strategy);
	}
	w->run.root = w->levels[w->height - 1]->block;
	w->run.height = w->height;
}

static void
free_writer(LsmRunWriter *w)
{
	for (int i = 0; i < w->height; i++)
	{
		pfree(w->levels[i]->page);
		pfree(w->levels[i]);
	}
	if (w->strategy)
		FreeAccessStrategy(w->strategy);
	if (w->scratch.scratch)
		lsm_group_free(&w->scratch);
	pfree(w->leaf_page);
	pfree(w);
}

/*
 * Stop for now.  The record that comes back must go into the manifest for the
 * run to be resumed; the writer is freed.
 *
 * REQUIRES: at least one leaf was written.
 */
void
lsm_run_writer_suspend(LsmRunWriter *w, LsmRunRecord *run)
{
	Assert(w->run.leaves > 0);
	write_fences(w);
	*run = w->run;
	free_writer(w);
}

/*
 * Write the frontier: a fence page whose only entry separates what is written
 * from what comes after it.
 */
static BlockNumber
write_frontier(LsmRunWriter *w)
{
	LsmLeafBuilder builder;
	Page		page = palloc_extended(BLCKSZ, 0);
	LsmEntry	separator = w->leaf_separator;
	BlockNumber none = InvalidBlockNumber;
	BlockNumber block = reserve_block(w);

	w->run.blocks--;
	separator.rest = (const uint8 *) &none;
	separator.restlen = sizeof(BlockNumber);
	lsm_fence_begin(&builder, page, lsm_leaf_needs_wide(separator.tid), w->run.run_id, block);
	if (!lsm_leaf_add(&builder, &separator))
		elog(ERROR, "entry does not fit an empty page of index \"%s\"",
			 RelationGetRelationName(w->rel));
	lsm_buffer_write_new(w->rel, block, page, w->strategy);
	pfree(page);
	return block;
}

/*
 * As lsm_run_writer_suspend, but also fill in the record of a part: what is
 * written, with a frontier behind it.  Its id, level and job are the caller's.
 *
 * REQUIRES: at least one leaf was written, and an entry added after it.
 */
void
lsm_run_writer_suspend_part(LsmRunWriter *w, LsmRunRecord *run, LsmRunRecord *part)
{
	BlockNumber frontier;

	Assert(lsm_leaf_header(w->leaf_page)->entry_count > 0);
	frontier = write_frontier(w);
	w->run.flags |= LSM_RUN_PARTED;
	lsm_run_writer_suspend(w, run);
	part->state = LSM_RUN_PART;
	part->entries = run->entries;
	part->root = run->root;
	part->height = run->height;
	part->first_leaf = run->first_leaf;
	part->last_leaf = run->last_leaf;
	part->leaves = run->leaves;
	part->blocks = run->blocks - 1; /* that of the open leaf is reserved only */
	part->end_block = run->end_block;
	part->next_block = InvalidBlockNumber;
	part->extent_end = frontier;
}

/* The frontier of a part, as a bound.  Errors when the page is damaged. */
void
lsm_run_read_frontier(Relation rel, const LsmRunRecord *part, LsmBound *bound)
{
	Buffer		buffer = lsm_buffer_read(rel, part->extent_end, LSM_KIND(LSM_PAGE_FENCE),
										 lsm_run_owner(part), BUFFER_LOCK_SHARE, NULL);
	LsmEntry	separator;

	if (lsm_leaf_group_count(BufferGetPage(buffer)) != 1 ||
		!lsm_leaf_first_of_group(BufferGetPage(buffer), 0, &separator))
		lsm_report_corruption(rel, part->extent_end, "page does not hold a frontier");
	lsm_bound_set_entry(bound, &separator, 1);
	UnlockReleaseBuffer(buffer);
}

/*
 * Complete the run, give back the space that it did not use, and free the
 * writer.  Of one that is appended to, the space is kept: more will come.  A
 * run without entries comes back with no leaves: do not install it.
 */
void
lsm_run_writer_finish(LsmRunWriter *w, LsmRunRecord *run)
{
	if (BlockNumberIsValid(w->leaf_block) &&
		(lsm_leaf_header(w->leaf_page)->entry_count > 0 || w->run.leaves > 0))
		write_leaf(w, InvalidBlockNumber);

	if (w->run.leaves > 0)
	{
		if (w->run.leaves == 1 && !BlockNumberIsValid(w->levels[0]->block))
		{
			w->run.root = w->run.first_leaf;
			w->run.height = 0;
		}
		else
			write_fences(w);
	}
	if (!w->appends)
	{
		if (w->run.leaves > 0)
			lsm_space_trim(w->rel, w->heap, w->run.run_id, w->run.next_block, w->run.extent_end);
		w->run.next_block = InvalidBlockNumber;
		w->run.extent_end = InvalidBlockNumber;
	}
	*run = w->run;
	free_writer(w);
}
