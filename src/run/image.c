/*
 * image.c
 *	  Builds a small packed run in private memory.
 *
 * Its leaves are built before anybody knows which blocks they will have; when
 * that is decided, under the lock of the meta page, lsm_run_image_place writes
 * the numbers into them, makes the fence page, and computes the checksums.  So
 * the lock is held for microseconds, and a run appears with a single record.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "run/run.h"

/* What a separator takes on the fence page, at most: heads, child, TID, offset. */
#define FENCE_ENTRY_OVERHEAD	32
#define FENCE_CAPACITY			(LSM_PAGE_SPECIAL - LSM_LEAF_DATA)

/*
 * An empty image, in the current memory context.  The mode tells what is known
 * of its entries.
 */
LsmRunImage *
lsm_run_image_create(LsmKeySpace *ks, const LsmLeafMode *mode)
{
	LsmRunImage *image = palloc0(sizeof(LsmRunImage));

	image->ks = ks;
	image->mode = *mode;
	lsm_mode_settle(&image->mode, ks->usual_keylen);
	/* All its pages are pinned at once when it is written. */
	image->most_leaves = Min(LSM_IMAGE_PAGES - 1, Max(NBuffers / 16, 2));
	image->pages = palloc(LSM_IMAGE_PAGES * BLCKSZ);
	return image;
}

void
lsm_run_image_clear(LsmRunImage *image)
{
	for (int i = 0; i < image->leaves; i++)
		pfree(image->separator_keys[i]);
	image->leaves = 0;
	image->entries = 0;
	image->fence_size = 0;
}

Page
lsm_run_image_page(const LsmRunImage *image, int i)
{
	return (Page) (image->pages + (Size) i * BLCKSZ);
}

/* Pages that it will take: the leaves, and the fence page above several. */
int
lsm_run_image_page_count(const LsmRunImage *image)
{
	return image->leaves > 1 ? image->leaves + 1 : image->leaves;
}

/* Start a leaf with an entry; false if the image has no room for it. */
static bool
open_leaf(LsmRunImage *image, const LsmEntry *entry)
{
	int			i = image->leaves;
	LsmEntry	separator = *entry;
	Size		size;

	if (i > 0)
		separator = lsm_run_separator(image->ks, &image->leaf, entry);
	separator.rest = NULL;
	separator.restlen = 0;
	size = separator.keylen + FENCE_ENTRY_OVERHEAD;
	if (i == image->most_leaves || image->fence_size + size > FENCE_CAPACITY ||
		(lsm_page_entries > 0 && i >= Max(lsm_page_entries, 8)))
		return false;

	image->separator_keys[i] = palloc(separator.keylen + LSM_KEY_PAD);
	memcpy(image->separator_keys[i], separator.key, separator.keylen);
	memset(image->separator_keys[i] + separator.keylen, 0, LSM_KEY_PAD);
	separator.key = image->separator_keys[i];
	separator.aligned = false;
	image->separators[i] = separator;
	image->fence_size += size;
	image->leaves++;
	lsm_leaf_begin_next(&image->leaf, lsm_run_image_page(image, i), image->ks->has_rest,
						&image->mode, entry->tid, 0, InvalidBlockNumber);
	if (!lsm_leaf_add(&image->leaf, entry))
		elog(ERROR, "entry does not fit an empty page of index \"%s\"", image->ks->index_name);
	return true;
}

/*
 * Append an entry.  False when it does not fit: then the image is complete.
 *
 * REQUIRES: it sorts after the one before.
 */
bool
lsm_run_image_add(LsmRunImage *image, const LsmEntry *entry)
{
	if ((image->leaves == 0 || !lsm_leaf_add(&image->leaf, entry)) &&
		!open_leaf(image, entry))
		return false;
	image->entries++;
	return true;
}

static void
make_fence(LsmRunImage *image, uint64 run_id, BlockNumber start)
{
	LsmLeafBuilder builder;
	bool		wide = false;

	for (int i = 0; i < image->leaves; i++)
		wide |= lsm_leaf_needs_wide(image->separators[i].tid);
	lsm_fence_begin(&builder, lsm_run_image_page(image, image->leaves), wide, run_id,
					start + image->leaves);
	for (int i = 0; i < image->leaves; i++)
	{
		LsmEntry	entry = image->separators[i];
		BlockNumber child = start + i;

		entry.rest = (const uint8 *) &child;
		entry.restlen = sizeof(BlockNumber);
		if (!lsm_leaf_add(&builder, &entry))
			elog(ERROR, "fence page of a batch of index \"%s\" is full", image->ks->index_name);
	}
}

/*
 * Give the run its id and its place, blocks from `start` on, and fill in its
 * record: state and level are the caller's.  Its pages are ready to be written
 * then.
 *
 * REQUIRES: the image is not empty.
 */
void
lsm_run_image_place(LsmRunImage *image, uint64 run_id, BlockNumber start, LsmRunRecord *run)
{
	int			pages = lsm_run_image_page_count(image);

	for (int i = 0; i < image->leaves; i++)
	{
		LsmPageOpaque *opaque = lsm_page_opaque(lsm_run_image_page(image, i));

		opaque->run_id = run_id;
		opaque->self = start + i;
		opaque->prev = i > 0 ? start + i - 1 : InvalidBlockNumber;
		opaque->next = i + 1 < image->leaves ? start + i + 1 : InvalidBlockNumber;
	}
	if (image->leaves > 1)
		make_fence(image, run_id, start);
	for (int i = 0; i < pages; i++)
		lsm_page_set_crc(lsm_run_image_page(image, i));

	run->run_id = run_id;
	run->entries = image->entries;
	run->root = start + pages - 1;
	run->first_leaf = start;
	run->last_leaf = start + image->leaves - 1;
	run->end_block = start + pages;
	run->leaves = image->leaves;
	run->blocks = pages;
	run->next_block = InvalidBlockNumber;
	run->extent_end = InvalidBlockNumber;
	run->height = image->leaves > 1 ? 1 : 0;
}
