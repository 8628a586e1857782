/*
 * cut.c
 *	  What lies before a frontier in a packed run: the blocks that a part of a
 *	  merge has taken the place of.  And what a run under construction needs.
 *
 * Found by way of the fence pages: a page is behind the frontier when the
 * separator of its right neighbour sorts before it.  That is also how a seek
 * chooses its way down, so no seek to the frontier or beyond it comes upon one.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "run/run.h"
#include "storage/buffers.h"

typedef struct Cut
{
	Relation	rel;
	LsmKeySpace *ks;
	LsmRunRecord *run;
	const LsmBound *from;		/* what is before it was cut already; or NULL */
	const LsmBound *to;
	LsmBlockList *list;
	uint32		leaves;			/* found */
	uint32		blocks;
} Cut;

static void cut_fence(Cut *cut, BlockNumber block, int height, bool whole);

static void
add_block(LsmBlockList *list, BlockNumber block)
{
	if (list->count == list->room)
	{
		list->room = Max(256, 2 * list->room);
		list->blocks = list->blocks ?
			repalloc_huge(list->blocks, list->room * sizeof(BlockNumber)) :
			palloc(list->room * sizeof(BlockNumber));
	}
	list->blocks[list->count++] = block;
}

/* A page all of which lies before the frontier, and did not before. */
static void
cut_child(Cut *cut, BlockNumber child, int height)
{
	if (height > 0)
		cut_fence(cut, child, height, true);
	else
		cut->leaves++;
	add_block(cut->list, child);
	cut->blocks++;
}

/* The page in which the frontier lies. */
static void
enter_child(Cut *cut, BlockNumber child, int height)
{
	if (height > 0)
		cut_fence(cut, child, height, false);
	else
		cut->run->first_leaf = child;
}

/*
 * The children of a fence page `height` pages above the leaves.  `whole`: all
 * of it lies before the frontier.
 */
static void
cut_fence(Cut *cut, BlockNumber block, int height, bool whole)
{
	Buffer		buffer = lsm_buffer_read(cut->rel, block, LSM_KIND(LSM_PAGE_FENCE),
										 cut->run->run_id, BUFFER_LOCK_SHARE, NULL);
	Page		page = palloc(BLCKSZ);
	BlockNumber child = InvalidBlockNumber;
	LsmGroup	group;

	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	lsm_group_init(&group, LSM_MAX_ENTRY_SIZE);
	for (int g = 0; g < lsm_leaf_group_count(page); g++)
	{
		if (!lsm_leaf_decode_group(page, g, &group))
			lsm_report_corruption(cut->rel, block, "entries cannot be decoded");
		for (int i = 0; i < group.count; i++)
		{
			const LsmEntry *separator = &group.entries[i];

			if (BlockNumberIsValid(child) &&
				(cut->from == NULL || lsm_bound_compare(cut->ks, cut->from, separator) >= 0))
			{
				if (!whole && lsm_bound_compare(cut->ks, cut->to, separator) >= 0)
					goto found;
				cut_child(cut, child, height - 1);
			}
			child = lsm_fence_child(separator);
			if (!BlockNumberIsValid(child))
				lsm_report_corruption(cut->rel, block, "separator names no child");
		}
	}
	if (!BlockNumberIsValid(child))
		lsm_report_corruption(cut->rel, block, "fence page has no children");
	if (whole)
		cut_child(cut, child, height - 1);
found:
	if (!whole)
		enter_child(cut, child, height - 1);
	lsm_group_free(&group);
	pfree(page);
}

/*
 * Let a packed run begin with the leaf in which the frontier `to` lies, and add
 * the blocks of the pages before it to the list: leaves, and fence pages that
 * lead to nothing else.  `from` is the frontier up to which that was done
 * before, or NULL.  The count of entries becomes an estimate; returns by how
 * many it is lower.
 */
int64
lsm_run_cut(Relation rel, LsmKeySpace *ks, LsmRunRecord *run, const LsmBound *from,
			const LsmBound *to, LsmBlockList *list)
{
	Cut			cut = {rel, ks, run, from, to, list, 0, 0};
	int64		entries;

	if (run->height > 0)
		cut_fence(&cut, run->root, run->height, false);
	if (cut.leaves >= run->leaves || cut.blocks >= run->blocks)
		lsm_report_corruption(rel, run->root, "fence pages lead to more leaves than the run has");
	entries = (int64) ((double) run->entries * cut.leaves / run->leaves);
	run->entries -= entries;
	run->leaves -= cut.leaves;
	run->blocks -= cut.blocks;
	return entries;
}

/* The fence pages of the right edge, and what they and the last leaf keep in reserve. */
static void
list_right_edge(Relation rel, const LsmRunRecord *run, LsmBlockList *list)
{
	uint64		owner = lsm_run_owner(run);
	BlockNumber block = run->root;
	LsmGroup	group;

	lsm_group_init(&group, LSM_MAX_ENTRY_SIZE);
	for (int height = run->height; height >= 0; height--)
	{
		Buffer		buffer = lsm_buffer_read(rel, block,
											 LSM_KIND(height > 0 ? LSM_PAGE_FENCE : LSM_PAGE_LEAF),
											 owner, BUFFER_LOCK_SHARE, NULL);
		Page		page = BufferGetPage(buffer);
		int			groups = lsm_leaf_group_count(page);

		add_block(list, block);
		if (BlockNumberIsValid(lsm_page_opaque(page)->next))
			add_block(list, lsm_page_opaque(page)->next);
		if (height > 0 && (groups == 0 || !lsm_leaf_decode_group(page, groups - 1, &group)))
			lsm_report_corruption(rel, block, "entries cannot be decoded");
		if (height > 0)
			block = lsm_fence_child(&group.entries[group.count - 1]);
		UnlockReleaseBuffer(buffer);
	}
	lsm_group_free(&group);
}

/*
 * The blocks that a run under construction needs to be resumed, and those of
 * its part, if it has one: in no order, some of them twice.
 *
 * REQUIRES: at least one leaf was written.
 */
void
lsm_run_list_blocks(Relation rel, const LsmRunRecord *run, const LsmRunRecord *part,
					LsmBlockList *list)
{
	LsmRunRecord copy = *run;
	Cut			cut = {rel, NULL, &copy, NULL, NULL, list, 0, 0};

	cut_fence(&cut, run->root, run->height, true);
	list_right_edge(rel, run, list);
	if (part != NULL)
	{
		/* Its leaves are those of the run. */
		list_right_edge(rel, part, list);
		add_block(list, part->extent_end);
	}
}
