/*
 * remove.c
 *	  Finds and removes the dead entries of a leaf or a buffer page.
 */
#include "postgres.h"

#include "format/leaf_build.h"
#include "format/leaf_read.h"
#include "storage/remove.h"
#include "format/buffer_page.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "storage/emit.h"

/*
 * Find the dead entries of a checked, locked page. Returns the number of dead entries. Fills
 * `ordinals`, which has room for LSM_MAX_PAGE_ENTRIES, with their ordinals, and sets *total to the
 * number of all entries.
 */
int
lsm_remove_find(Relation rel, Buffer buffer, LsmDeadTest test, void *arg, LsmGroup *scratch,
				uint16 *ordinals, int *total)
{
	Page		page = BufferGetPage(buffer);
	BlockNumber block = BufferGetBlockNumber(buffer);
	int			dead = 0;
	int			ordinal = 0;

	if (lsm_page_opaque(page)->kind == LSM_PAGE_BUFFER)
	{
		for (; ordinal < lsm_buffer_page_count(page); ordinal++)
		{
			LsmEntry	entry;

			if (!lsm_buffer_page_get(page, ordinal, &entry))
				lsm_report_corruption(rel, block, "item is out of bounds");
			if (test(arg, entry.tid))
				ordinals[dead++] = ordinal;
		}
	}
	else
	{
		for (int g = 0; g < lsm_leaf_group_count(page); g++)
		{
			if (!lsm_leaf_decode_group(page, g, scratch) ||
				ordinal + scratch->count > LSM_MAX_PAGE_ENTRIES)
				lsm_report_corruption(rel, block, "entries cannot be decoded");
			for (int i = 0; i < scratch->count; i++, ordinal++)
			{
				if (test(arg, scratch->entries[i].tid))
					ordinals[dead++] = ordinal;
			}
		}
	}
	Assert(dead <= LSM_MAX_PAGE_ENTRIES);
	*total = ordinal;
	return dead;
}

/*
 * Remove these entries from a page that is locked exclusively, and log the removal. For horizon
 * and is_catalog, see xl_lsm_delete. Raises an error, with the page unchanged, if the page is
 * damaged.
 */
void
lsm_remove(Relation rel, Buffer buffer, uint16 *ordinals, int count, TransactionId horizon,
		   bool is_catalog, LsmGroup *scratch)
{
	Page		page = BufferGetPage(buffer);
	PGAlignedBlock copy;
	bool		done;

	memcpy(copy.data, page, BLCKSZ);
	if (lsm_page_opaque(page)->kind == LSM_PAGE_BUFFER)
	{
		lsm_buffer_page_delete((Page) copy.data, ordinals, count);
		done = lsm_buffer_page_count((Page) copy.data) == lsm_buffer_page_count(page) - count;
	}
	else
		done = lsm_leaf_delete((Page) copy.data, ordinals, count, scratch) &&
			lsm_leaf_header((Page) copy.data)->entry_count ==
			lsm_leaf_header(page)->entry_count - count;
	if (!done)
		lsm_report_corruption(rel, BufferGetBlockNumber(buffer), "entries cannot be removed");

	START_CRIT_SECTION();
	memcpy(page, copy.data, BLCKSZ);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
		lsm_wal_delete(buffer, ordinals, count, horizon, is_catalog);
	END_CRIT_SECTION();
}
