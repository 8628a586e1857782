/*
 * cut.c
 *	  What lies before a frontier in a packed run: the blocks that a part of a
 *	  merge has taken the place of.
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
	lsm_group_init(&group, cut->ks->max_keylen);
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
