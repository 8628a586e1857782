/*
 * tid_sort.h
 *	  Sorts the items of a queue of TIDs by page, for both item widths.
 *
 * Only tid_queue.c includes this file, with ITEM_TYPE and ITEM_SUFFIX defined. The file defines
 * sort_items_SUFFIX(items, count).
 */

#define SORT_PASTE(name, suffix) name##_##suffix
#define SORT_EXPAND(name, suffix) SORT_PASTE(name, suffix)
#define SORT_NAME(name) SORT_EXPAND(name, ITEM_SUFFIX)
#define SORT_BLOCK(item) ((BlockNumber) ((item) >> LSM_ITEM_BLOCK_SHIFT))

#define ST_SORT SORT_NAME(sort_bucket)
#define ST_ELEMENT_TYPE ITEM_TYPE
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Exchange items until each is in its bucket. The items of a bucket end at ends[]. */
static void
SORT_NAME(fill_buckets)(ITEM_TYPE *items, Size count, int shift, Size *ends)
{
	Size		next[BUCKETS];
	Size		sizes[BUCKETS] = {0};
	Size		position = 0;

	for (Size i = 0; i < count; i++)
		sizes[SORT_BLOCK(items[i]) >> shift]++;
	for (int bucket = 0; bucket < BUCKETS; bucket++)
	{
		next[bucket] = position;
		position += sizes[bucket];
		ends[bucket] = position;
	}
	for (int bucket = 0; bucket < BUCKETS; bucket++)
	{
		CHECK_FOR_INTERRUPTS();
		while (next[bucket] < ends[bucket])
		{
			ITEM_TYPE	item = items[next[bucket]];
			int			target = SORT_BLOCK(item) >> shift;

			items[next[bucket]] = items[next[target]];
			items[next[target]++] = item;
		}
	}
}

/* Sort items whose blocks differ only in the lowest bits. */
static void
SORT_NAME(count_bucket)(ITEM_TYPE *items, Size count, BlockNumber mask)
{
	ITEM_TYPE	copy[SMALL_BUCKET];
	Size		next[SMALL_RANGE] = {0};
	Size		position = 0;

	for (Size i = 0; i < count; i++)
	{
		copy[i] = items[i];
		next[SORT_BLOCK(items[i]) & mask]++;
	}
	for (BlockNumber i = 0; i <= mask; i++)
	{
		Size		size = next[i];

		next[i] = position;
		position += size;
	}
	for (Size i = 0; i < count; i++)
		items[next[SORT_BLOCK(copy[i]) & mask]++] = copy[i];
}

/* Sort by page. This is several times faster than a sort by comparisons. */
static void
SORT_NAME(sort_items)(ITEM_TYPE *items, Size count)
{
	Size		ends[BUCKETS];
	Size		begin = 0;
	BlockNumber bits = 0;
	int			shift = 0;

	if (count < BUCKETS)
	{
		SORT_NAME(sort_bucket)(items, count);
		return;
	}
	for (Size i = 0; i < count; i++)
		bits |= SORT_BLOCK(items[i]);
	while (bits >> shift >= BUCKETS)
		shift++;
	SORT_NAME(fill_buckets)(items, count, shift, ends);
	for (int bucket = 0; bucket < BUCKETS; bucket++)
	{
		Size		size = ends[bucket] - begin;

		CHECK_FOR_INTERRUPTS();
		if (size <= SMALL_BUCKET && (1 << shift) <= SMALL_RANGE)
			SORT_NAME(count_bucket)(items + begin, size, (1 << shift) - 1);
		else
			SORT_NAME(sort_bucket)(items + begin, size);
		begin = ends[bucket];
	}
}

#undef SORT_PASTE
#undef SORT_EXPAND
#undef SORT_NAME
#undef SORT_BLOCK
#undef ITEM_TYPE
#undef ITEM_SUFFIX
