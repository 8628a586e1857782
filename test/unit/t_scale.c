/*
 * t_scale.c -- the directory and the space map at the size of 1 TB.
 *
 * Models manifest/directory.c and manifest/space.c with the real pages, in memory. If their policy
 * changes, this file must change as well. The test counts how many pages an operation reads or
 * changes, not how long it takes. docs/scale.md has the figures.
 */
#include "tap.h"

#include "backend.h"
#include "base/coding.h"
#include "format/directory_page.h"
#include "format/map_page.h"
#include "manifest/manifest.h"

/* --- the directory ----------------------------------------------------------- */

#define SEGMENTS 100000		/* 800 GB of 8 MB each */

typedef struct Tree
{
	char	   *pages;
	uint32		count;
	uint32		room;
	BlockNumber root;
	int			height;
	uint32		keylen;
	uint64		segments;
	int			changed;		/* pages, by the latest append */
	int			read;			/* pages, by the latest seek */
} Tree;

static Page
tree_page(const Tree *t, BlockNumber block)
{
	return (Page) (t->pages + (Size) block * BLCKSZ);
}

static BlockNumber
new_page(Tree *t, int level)
{
	if (t->count == t->room)
	{
		t->room = Max(64, 2 * t->room);
		t->pages = realloc(t->pages, (Size) t->room * BLCKSZ);
	}
	lsm_directory_page_init(tree_page(t, t->count), 77, t->count, level);
	t->changed++;
	return t->count++;
}

/* Append an item that fits; its page counts as changed unless it is new. */
static void
append_item(Tree *t, BlockNumber block, const LsmDirectoryEntry *entry, bool is_new)
{
	char		item[LSM_MAX_DIRECTORY_ITEM];
	uint32		size = lsm_directory_item_encode(item, entry);

	if (!lsm_directory_page_append(tree_page(t, block), item, size))
		abort();
	t->changed += !is_new;
}

static void
append_child(Tree *t, BlockNumber block, const LsmEntry *low, BlockNumber child, bool is_new)
{
	LsmDirectoryEntry entry;

	memset(&entry, 0, sizeof(entry));
	entry.low = *low;
	entry.segment.start = child;
	entry.segment.blocks = 1;
	append_item(t, block, &entry, is_new);
}

static bool
fits(Tree *t, BlockNumber block, const LsmDirectoryEntry *entry, int level)
{
	uint32		keys = entry->low.keylen + (level == 1 ? entry->high.keylen : 0);

	return lsm_directory_page_fits(tree_page(t, block), MAXALIGN(sizeof(LsmDirectoryItem) + keys));
}

static void
add_root(Tree *t, const LsmEntry *low, BlockNumber child)
{
	BlockNumber old = t->root;
	LsmDirectoryEntry first;
	LsmDirectoryEntry copy;
	uint8		key[LSM_MAX_ENTRY_SIZE];

	/* A new page may move the pages in memory. */
	lsm_directory_page_get(tree_page(t, old), 0, &first);
	copy = first;
	memcpy(key, first.low.key, first.low.keylen);
	copy.low.key = key;
	t->root = new_page(t, ++t->height);
	append_child(t, t->root, &copy.low, old, true);
	append_child(t, t->root, low, child, true);
}

/* As lsm_directory_append does. */
static void
append_segment(Tree *t, const LsmDirectoryEntry *entry)
{
	BlockNumber edge[LSM_MAX_HEIGHT + 1];
	BlockNumber child = t->root;

	t->changed = 0;
	if (t->height == 0)
	{
		t->root = new_page(t, 1);
		t->height = 1;
		append_item(t, t->root, entry, true);
		return;
	}
	for (int level = t->height; level > 0; level--)
	{
		LsmDirectoryEntry last;
		Page		page = tree_page(t, child);

		edge[level] = child;
		lsm_directory_page_get(page, lsm_directory_page_count(page) - 1, &last);
		child = last.segment.start;
	}
	if (fits(t, edge[1], entry, 1))
	{
		append_item(t, edge[1], entry, false);
		return;
	}
	child = new_page(t, 1);
	append_item(t, child, entry, true);
	for (int level = 2; level <= t->height; level++)
	{
		BlockNumber page;

		if (fits(t, edge[level], entry, level))
		{
			append_child(t, edge[level], &entry->low, child, false);
			return;
		}
		page = new_page(t, level);
		append_child(t, page, &entry->low, child, true);
		child = page;
	}
	add_root(t, &entry->low, child);
}

/* The number of a page's items that begin (by_high: end) before the key. */
static int
count_before(Page page, const uint8 *key, uint32 keylen, bool by_high)
{
	int			low = 0;
	int			high = lsm_directory_page_count(page);

	while (low < high)
	{
		int			middle = (low + high) / 2;
		LsmDirectoryEntry item;

		lsm_directory_page_get(page, middle, &item);
		if (memcmp(by_high ? item.high.key : item.low.key, key, keylen) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* As search_page does, forward: the first segment that does not end before the key. */
static uint64
seek(Tree *t, BlockNumber block, int level, const uint8 *key)
{
	Page		page = tree_page(t, block);
	int			count = lsm_directory_page_count(page);
	int			at = count_before(page, key, t->keylen, level == 1);

	t->read++;
	for (at = level == 1 ? at : Max(at - 1, 0); at < count; at++)
	{
		LsmDirectoryEntry item;
		uint64		found;

		lsm_directory_page_get(page, at, &item);
		if (item.segment.blocks == 0)
			continue;
		found = level == 1 ? item.segment.id : seek(t, item.segment.start, level - 1, key);
		if (found != 0)
			return found;
	}
	return 0;
}

/* The key of a number: as many bytes as the test uses, in the order of the numbers. */
static void
make_key(uint8 *key, uint32 keylen, uint64 number)
{
	uint64		bytes = pg_hton64(number);

	memset(key, 'k', keylen);
	memcpy(key + keylen - sizeof(bytes), &bytes, sizeof(bytes));
}

/* Segment i has the keys from 10 i + 3 to 10 i + 7. */
static void
add_segments(Tree *t, int *most_changed, uint64 *changed)
{
	uint8		low[LSM_MAX_ENTRY_SIZE];
	uint8		high[LSM_MAX_ENTRY_SIZE];

	for (uint64 i = 0; i < t->segments; i++)
	{
		LsmDirectoryEntry entry;

		memset(&entry, 0, sizeof(entry));
		make_key(low, t->keylen, 10 * i + 3);
		make_key(high, t->keylen, 10 * i + 7);
		entry.segment.id = LSM_FIRST_ID + i;
		entry.segment.start = i * LSM_MAX_SEGMENT_BLOCKS;
		entry.segment.blocks = LSM_MAX_SEGMENT_BLOCKS;
		entry.low.key = low;
		entry.high.key = high;
		entry.low.keylen = entry.high.keylen = t->keylen;
		append_segment(t, &entry);
		*most_changed = Max(*most_changed, t->changed);
		*changed += t->changed;
	}
}

/*
 * Seek to each key that matters. Does each seek find the right segment, and how many pages does it
 * read?
 */
static bool
seek_all(Tree *t, int *most_read)
{
	uint8		key[LSM_MAX_ENTRY_SIZE];
	bool		good = true;

	for (uint64 i = 0; i < t->segments; i++)
	{
		for (int at = 0; at < 10; at += 3)
		{
			uint64		expected = i + (at > 7);

			make_key(key, t->keylen, 10 * i + at);
			t->read = 0;
			good &= seek(t, t->root, t->height, key) ==
				(expected < t->segments ? LSM_FIRST_ID + expected : 0);
			*most_read = Max(*most_read, t->read);
		}
	}
	return good;
}

/* No segment is left on a page or on those below it. The item above the page says so. */
static bool
is_empty(Page page)
{
	for (int i = 0; i < lsm_directory_page_count(page); i++)
	{
		LsmDirectoryEntry item;

		lsm_directory_page_get(page, i, &item);
		if (item.segment.blocks > 0)
			return false;
	}
	return true;
}

/*
 * As lsm_directory_prune: free empty pages, except at the right edge. Returns true if the page is
 * empty.
 */
static bool
prune_below(Tree *t, BlockNumber block, int level, bool at_edge)
{
	Page		page = tree_page(t, block);
	int			count = lsm_directory_page_count(page);

	for (int i = 0; level > 1 && i < count; i++)
	{
		LsmDirectoryEntry item;

		lsm_directory_page_get(page, i, &item);
		if (item.segment.blocks > 0 &&
			prune_below(t, item.segment.start, level - 1, at_edge && i == count - 1))
		{
			item.segment.blocks = 0;
			lsm_directory_page_set(page, i, &item.segment);
		}
	}
	return !at_edge && is_empty(page);
}

/* VACUUM empties the segments before a given one, step by step, as old rows are deleted. */
static void
empty_segments(Tree *t, uint64 empty)
{
	uint64		n = 0;

	for (BlockNumber block = 0; block < t->count && n < empty; block++)
	{
		Page		page = tree_page(t, block);

		if (lsm_directory_header(page)->level != 1)
			continue;
		for (int i = 0; i < lsm_directory_page_count(page) && n < empty; i++, n++)
		{
			LsmDirectoryEntry item;

			lsm_directory_page_get(page, i, &item);
			item.segment.blocks = 0;
			lsm_directory_page_set(page, i, &item.segment);
		}
	}
}

/*
 * The number of pages read by a seek to the very beginning; -1 if the seek does not find the first
 * segment left.
 */
static int
seek_first(Tree *t, uint64 first)
{
	uint8		key[LSM_MAX_ENTRY_SIZE];

	make_key(key, t->keylen, 0);
	t->read = 0;
	if (seek(t, t->root, t->height, key) != LSM_FIRST_ID + first)
		return -1;
	return t->read;
}

static void
test_directory(uint32 keylen, uint64 segments, int most_height)
{
	Tree		t = {.keylen = keylen,.segments = segments};
	int			most_changed = 0;
	int			most_read = 0;
	uint64		changed = 0;
	bool		good = true;
	bool		found;
	int			behind;
	int			unpruned;

	add_segments(&t, &most_changed, &changed);
	for (BlockNumber block = 0; block < t.count; block++)
		good &= lsm_directory_page_check(tree_page(&t, block)) == NULL;
	found = seek_all(&t, &most_read);
	empty_segments(&t, segments / 2);
	unpruned = seek_first(&t, segments / 2);
	prune_below(&t, t.root, t.height, true);
	behind = seek_first(&t, segments / 2);
	printf("# keys of %u bytes: %u pages for %u segments, height %d; a seek reads %d at most, an append "
		   "writes %.2f on average and %d at most\n",
		   keylen, t.count, (uint32) segments, t.height, most_read, (double) changed / segments, most_changed);
	printf("# keys of %u bytes: behind %u empty segments a seek reads %d pages, and %d while the run is an input\n",
		   keylen, (uint32) segments / 2, behind, unpruned);
	ok(good && found, "a directory is sound, and each of its segments is found");
	ok(t.height <= most_height, "its height is small");
	ok(most_read <= 2 * t.height - 1,
	   "a seek reads one page of each level, or that page and its neighbor");
	ok(most_changed <= t.height + 1 && changed <= segments * (keylen < 500 ? 2 : 4),
	   "an append usually changes one page, and at most one of each level");
	ok(behind > 0 && unpruned > 0, "a seek finds the right segment behind empty ones");
	ok(behind <= t.height, "it does not read pages that have nothing left");
	free(t.pages);
}

static void
test_version(void)
{
	printf("# a version has %d bytes, %d of them records of %d runs\n", (int) sizeof(LsmVersion),
		   (int) (LSM_MAX_RUNS * sizeof(LsmRunRecord)), LSM_MAX_RUNS);
	ok(sizeof(LsmVersion) <= BLCKSZ,
	   "a version is no larger than a page, whatever the size of the index");
}

/* --- the space map -------------------------------------------------------------- */

#define REGIONS		2100		/* 1.02 TB */
#define MORE_REGIONS 400		/* that the test lets the file grow by */
#define MOST_REGIONS 4			/* as in manifest/space.c */

static char *map_pages;
static LsmSpace space;
static uint64 allocations;
static uint64 pages_looked_at;
static int	most_looked_at;
static int	looked_at;			/* by this allocation */

static Page
map_page(uint32 region)
{
	return (Page) (map_pages + (Size) region * BLCKSZ);
}

static void
set_bits(BlockNumber start, uint32 length, bool used)
{
	uint32		region = lsm_region_of(start);

	if (!lsm_map_set(map_page(region), start - lsm_region_start(region), length, used))
		abort();
}

static bool
search(uint32 region, BlockNumber from, BlockNumber to, uint32 want, BlockNumber *start,
	   uint32 *length)
{
	BlockNumber base = lsm_region_start(region);
	uint32		first;
	uint32		count;

	if (from >= to)
		return false;
	looked_at++;
	if (lsm_map_find(map_page(region), from - base, to - base, want, 1, &first, &count) &&
		count > *length)
	{
		*start = base + first;
		*length = count;
	}
	return *length >= want;
}

/* As find. Sets *next to the place where the search continues if it found nothing. */
static uint32
find(BlockNumber at, uint32 want, BlockNumber *start, BlockNumber *next)
{
	uint32		regions = lsm_region_of(space.mapped_end - 1) + 1;
	uint32		length = 0;
	uint32		region;

	if (at >= space.mapped_end)
		at = LSM_FIXED_BLOCKS;
	region = lsm_region_of(at);
	for (uint32 n = 0; n < Min(regions, MOST_REGIONS); n++)
	{
		BlockNumber end = lsm_region_start(region) + LSM_REGION_BLOCKS;

		if (search(region, n == 0 ? at : lsm_region_first(region), Min(end, space.mapped_end), want,
				   start, &length))
			break;
		region = (region + 1) % regions;
		*next = lsm_region_first(region);
	}
	return length;
}

/* As grow does. */
static uint32
grow(uint32 want, uint32 least, BlockNumber *start)
{
	uint32		region = lsm_region_of(space.mapped_end - 1);
	BlockNumber end = lsm_region_start(region) + LSM_REGION_BLOCKS;
	uint32		length;

	if (end - space.mapped_end < least)
	{
		space.free_blocks += end - space.mapped_end;
		space.mapped_end = end + 1;
		if (region + 1 >= REGIONS + MORE_REGIONS)
			abort();
		lsm_map_page_init(map_page(region + 1), end);
		end += LSM_REGION_BLOCKS;
	}
	length = Min(want, end - space.mapped_end);
	*start = space.mapped_end;
	space.mapped_end += length;
	space.free_blocks += length;
	return length;
}

/* As lsm_space_take does, in a large file. */
static uint32
take(uint32 want, uint32 least, bool large, BlockNumber *start)
{
	BlockNumber *at = large ? &space.search_large : &space.search_small;
	BlockNumber next = *at;
	uint32		length = 0;

	looked_at = 0;
	if (space.free_blocks >= least)
		length = find(*at, want, start, &next);
	if (least < want && space.free_blocks > space.mapped_end / 16 && space.free_blocks >= want)
		least = Min(least, Max(LSM_LEAST_EXTENT, want / 16));
	if (length >= least)
		next = *start + length;
	/*
	 * Otherwise the next search continues where this one ended, so that searches cycle through the
	 * file.
	 */
	else
		length = grow(want, least, start);
	set_bits(*start, length, true);
	space.free_blocks -= length;
	*at = next;
	allocations++;
	pages_looked_at += looked_at;
	most_looked_at = Max(most_looked_at, looked_at);
	return length;
}

static void
give(BlockNumber start, uint32 length)
{
	set_bits(start, length, false);
	space.free_blocks += length;
}

/* Extents in use, roughly first in, first out. */
typedef struct Extent
{
	BlockNumber start;
	uint32		length;
} Extent;

typedef struct Run
{
	Extent	   *extents;
	uint32		count;
	uint32		room;
	uint32		freed;			/* of the extents freed so far */
	uint64		blocks;
} Run;

static void
add_extent(Run *run, BlockNumber start, uint32 length)
{
	if (run->count == run->room)
	{
		run->room = Max(64, 2 * run->room);
		run->extents = realloc(run->extents, run->room * sizeof(Extent));
	}
	run->extents[run->count++] = (Extent) {start, length};
	run->blocks += length;
}

static uint32
free_next(Run *run)
{
	Extent	   *extent = &run->extents[run->freed++];

	give(extent->start, extent->length);
	return extent->length;
}

/* A segment for a run, of `want` blocks or less. */
static uint32
write_segment(Run *run, uint32 want)
{
	BlockNumber start;
	uint32		length = take(want, want / 4 + 1, true, &start);

	add_extent(run, start, length);
	return length;
}

static void
free_run(Run *run)
{
	while (run->freed < run->count)
		free_next(run);
	free(run->extents);
	memset(run, 0, sizeof(Run));
}

/*
 * Merge runs into one. Write the output's segments, and free the input segments behind the
 * frontier; free runs of one extent at the end. percent: how much of the inputs remains after
 * deletions.
 */
static Run
merge(Run *inputs, int count, int percent)
{
	Run			output = {0};
	uint64		blocks = 0;
	uint64		passed = 0;
	uint64		freed = 0;
	uint32		size;

	for (int i = 0; i < count; i++)
		blocks += inputs[i].blocks;
	size = Min(Max(blocks / LSM_JOB_SEGMENTS, LSM_MIN_SEGMENT_BLOCKS), LSM_MAX_SEGMENT_BLOCKS);
	while (passed < blocks)
	{
		uint64		left = (blocks - passed) * percent / 100 + 4;
		int			i = rnd(count);

		passed += (uint64) write_segment(&output, Min(size, left)) * 100 / percent;
		for (int tries = 0; freed < passed && tries < count; i = (i + 1) % count, tries++)
		{
			if (inputs[i].count > 1 && inputs[i].freed < inputs[i].count &&
				inputs[i].freed * blocks <= passed * inputs[i].count)
			{
				freed += free_next(&inputs[i]);
				tries = -1;
			}
		}
	}
	for (int i = 0; i < count; i++)
		free_run(&inputs[i]);
	return output;
}

#define FANOUT 16
#define TOP_LEVEL 4

static Run	levels[TOP_LEVEL][2 * FANOUT];
static int	level_count[TOP_LEVEL];

/* Add a batch. Merge levels that are full. */
static bool
add_batch(uint64 *written)
{
	BlockNumber start;
	uint32		length = 1 + rnd(LSM_IMAGE_PAGES);
	Run			run = {0};

	take(length, length, false, &start);
	add_extent(&run, start, length);
	*written += length;
	for (int level = 0; level < TOP_LEVEL; level++)
	{
		levels[level][level_count[level]++] = run;
		if (level_count[level] < (level == 0 ? 2 * FANOUT : FANOUT))
			return false;
		if (level == TOP_LEVEL - 1)
			return true;
		run = merge(levels[level], level_count[level], 100);
		*written += run.blocks;
		level_count[level] = 0;
	}
	return true;
}

static uint64
live_blocks(void)
{
	uint64		used = 0;

	for (uint32 region = 0; region <= lsm_region_of(space.mapped_end - 1); region++)
		used += LSM_REGION_BLOCKS - backend_count_free(map_page(region));
	return used;
}

/* The initial index: segments of 8 MB, one after the other. */
static void
fill_file(Run *top)
{
	map_pages = calloc(REGIONS + MORE_REGIONS, BLCKSZ);
	space.mapped_end = LSM_FIXED_BLOCKS;
	space.search_small = space.search_large = LSM_FIXED_BLOCKS;
	lsm_map_page_init(map_page(0), LSM_BLOCK_MAP);
	while (space.mapped_end < (uint64) REGIONS * LSM_REGION_BLOCKS)
	{
		BlockNumber start;
		uint32		length = grow(LSM_MAX_SEGMENT_BLOCKS, LSM_MAX_SEGMENT_BLOCKS / 4 + 1, &start);

		set_bits(start, length, true);
		space.free_blocks -= length;
		add_extent(top, start, length);
	}
}

/*
 * Take the next part of the large run. The new rows replace as many old ones, so the part has as
 * many blocks as the new runs, and the index keeps its size.
 */
static Run
part_of(Run *top, uint64 blocks)
{
	Run			part = {0};

	while (part.blocks < blocks && top->freed < top->count)
	{
		Extent	   *extent = &top->extents[top->freed++];

		add_extent(&part, extent->start, extent->length);
	}
	return part;
}

#define ROUNDS 12

static void
test_space(void)
{
	Run			top = {0};
	uint64		written = 0;
	double		worst = 0;
	int			rounds = 0;
	uint64		first_end;

	fill_file(&top);
	first_end = space.mapped_end;
	while (rounds < ROUNDS)
	{
		Run			inputs[FANOUT + 1];
		Run			output;

		if (!add_batch(&written))
			continue;
		/* The highest level is merged with a part of the large run. Half of the entries remain. */
		memcpy(inputs, levels[TOP_LEVEL - 1], FANOUT * sizeof(Run));
		level_count[TOP_LEVEL - 1] = 0;
		inputs[FANOUT] = (Run) {0};
		for (int i = 0; i < FANOUT; i++)
			inputs[FANOUT].blocks += inputs[i].blocks;
		inputs[FANOUT] = part_of(&top, inputs[FANOUT].blocks);
		output = merge(inputs, FANOUT + 1, 50);
		written += output.blocks;
		for (uint32 i = 0; i < output.count; i++)
			add_extent(&top, output.extents[i].start, output.extents[i].length);
		free(output.extents);
		rounds++;
		worst = Max(worst, (double) space.mapped_end / live_blocks());
	}
	printf("# %u regions, %.1f GB: %.1f GB written, %d allocations; pages looked at: %.2f on average, "
		   "%d at most\n", lsm_region_of(space.mapped_end - 1) + 1,
		   (double) space.mapped_end * BLCKSZ / 1e9, (double) written * BLCKSZ / 1e9,
		   (int) allocations, (double) pages_looked_at / allocations, most_looked_at);
	printf("# the file has grown by %.2f %%; it is %.3f times as large as what is in use, at most\n",
		   100.0 * (space.mapped_end - first_end) / first_end, worst);
	ok(most_looked_at <= MOST_REGIONS, "an allocation reads at most four map pages");
	ok(pages_looked_at < 2 * allocations, "and fewer than two on average");
	ok(worst < 1.1, "the file is less than a tenth larger than the space in use");
	for (int level = 0; level < TOP_LEVEL; level++)
	{
		for (int i = 0; i < level_count[level]; i++)
			free(levels[level][i].extents);
	}
	free(top.extents);
	free(map_pages);
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_directory(9, SEGMENTS, 3);
	test_directory(17, SEGMENTS, 3);
	test_directory(200, SEGMENTS, 4);
	test_directory(LSM_MAX_ENTRY_SIZE, SEGMENTS / 20, 14);
	test_version();
	test_space();
	return done();
}
