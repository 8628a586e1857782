/*
 * t_merge.c
 *	  Properties of the merge of cursors: the merge returns what sorting all entries gives, in both
 *	  directions, after a seek to any position.
 *
 * The sources keep to the contract of cursor.h and promise nothing more.  An array is freed when
 * the next array is requested, so that the sanitizer detects later reads.  A source whose first
 * entry is beyond the limit may say that it has no entries.
 */
#include "backend.h"
#include "props.h"
#include "tap.h"

#include "key/merge.h"

enum
{
	SCAN, COPY, LIMIT, PAGES, SEGMENTS, SOURCES
};

static const char *const names[] = {
	"a scan's merge returns what sorting gives",
	"a merge that copies pages returns what sorting gives",
	"so does a merge up to a limit that the sources make use of",
	"the merge returns a page if and only if its entries come next",
	"the same holds for a segment",
	"a merge that copies pages names the source of an entry",
};

#define MOST_SOURCES 20
#define MOST_ROWS 60
#define PAGE_ENTRIES 4

static TestIndex the_index;

/* A sorted source: its rows, in pages of some entries. */
typedef struct Source
{
	LsmCursor	base;
	int			count;
	TestRow		rows[MOST_ROWS];
	bool		forward;
	int			next;			/* row behind the array, in the direction */
	int			page;			/* first row of the page at which the cursor may stand */
	LsmEntry   *array;			/* copies, also of keys */
	int			array_count;
	bool		refused;		/* the source refused its page the last time */
	bool		closed;
} Source;

static Source sources[MOST_SOURCES];
static int	source_count;
static TestRow all[MOST_SOURCES * MOST_ROWS];
static int	all_count;

/* --- sources --------------------------------------------------------------------- */

static void
drop_array(Source *s)
{
	for (int i = 0; i < s->array_count; i++)
		pfree((void *) s->array[i].key);
	if (s->array != NULL)
		pfree(s->array);
	s->array = NULL;
	s->array_count = 0;
}

static int
page_end(const Source *s, int row)
{
	return Min(s->count, (row / PAGE_ENTRIES + 1) * PAGE_ENTRIES);
}

/* Decode some entries: at most to the end of the page. */
static void
source_fill(LsmCursor *base)
{
	Source	   *s = (Source *) base;
	int			left = s->forward ? page_end(s, s->next) - s->next :
		s->next - s->next / PAGE_ENTRIES * PAGE_ENTRIES + 1;
	int			first = s->next;
	bool		upward = s->forward || chance(2);	/* the source chooses the order of the array */

	drop_array(s);
	base->valid = false;
	if (s->next < 0 || s->next >= s->count)
		return;
	s->array_count = 1 + pick(left);
	s->array = palloc(s->array_count * sizeof(LsmEntry));
	for (int i = 0; i < s->array_count; i++)
	{
		const LsmEntry *from = &s->rows[s->forward ? first + i : first - i].entry;
		LsmEntry   *to = &s->array[upward ? i : s->array_count - 1 - i];

		*to = *from;
		to->aligned = chance(2);
		to->key = memcpy(palloc0(from->keylen + (to->aligned ? LSM_KEY_PAD : 0)), from->key,
						 from->keylen);
	}
	s->next += s->forward ? s->array_count : -s->array_count;
	base->stride = upward ? 1 : -1;
	base->source = base;
	base->at_page = s->forward && first % PAGE_ENTRIES == 0;
	s->page = first;
	lsm_cursor_stand(base, upward ? s->array : s->array + s->array_count - 1, s->array_count - 1);
}

static void
source_seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	Source	   *s = (Source *) base;

	s->forward = ScanDirectionIsForward(direction);
	s->next = s->forward ? 0 : s->count - 1;
	while (s->next >= 0 && s->next < s->count &&
		   (lsm_bound_compare(the_index.ks, from, &s->rows[s->next].entry) > 0) != s->forward)
		s->next += s->forward ? 1 : -1;
	source_fill(base);
	if (base->valid && limit != NULL && chance(2) &&
		lsm_beyond(the_index.ks, limit, base->entry, direction))
		base->valid = false;
}

static void
source_close(LsmCursor *base)
{
	drop_array((Source *) base);
	((Source *) base)->closed = true;
}

/* A page is identified by its number. */
static Page
source_page(LsmCursor *base, const LsmEntry **last)
{
	Source	   *s = (Source *) base;

	s->refused = chance(8);		/* the page has changed */
	if (s->refused)
		return NULL;
	*last = &s->rows[page_end(s, s->page) - 1].entry;
	return (Page) s->rows[s->page].entry.key;
}

static void
source_skip_page(LsmCursor *base)
{
	Source	   *s = (Source *) base;

	s->next = page_end(s, s->page);
	source_fill(base);
}

/* All remaining pages are one segment. */
static bool
source_segment(LsmCursor *base, uint32 least_blocks, LsmWholeSegment *whole)
{
	Source	   *s = (Source *) base;

	if ((uint32) (s->count - s->page) < least_blocks * PAGE_ENTRIES)
		return false;
	memset(whole, 0, sizeof(LsmWholeSegment));
	whole->entry.low = s->rows[s->page].entry;
	whole->entry.high = s->rows[s->count - 1].entry;
	return true;
}

static const LsmCursorOps source_ops = {source_seek, source_fill, source_close, source_page,
source_skip_page, source_segment};

/* Make rows for all sources. Sometimes each source has a range of its own. */
static void
make_sources(void)
{
	bool		ranges = chance(3);
	int			given = 0;

	source_count = pick(chance(3) ? 3 : MOST_SOURCES + 1);
	all_count = source_count * pick(MOST_ROWS + 1);
	rows_make(&the_index, all, all_count);
	all_count = rows_sort(&the_index, all, all_count);
	for (int i = 0; i < source_count; i++)
	{
		memset(&sources[i], 0, sizeof(Source));
		sources[i].base.ops = &source_ops;
	}
	for (int i = 0; i < all_count; i++)
	{
		Source	   *s = &sources[ranges ? (given / 10) % source_count : (int) pick(source_count)];

		given += 1 + (chance(30) ? pick(10) : 0);
		while (s->count == MOST_ROWS)
			s = &sources[(s - sources + 1) % source_count];
		s->rows[s->count++] = all[i];
	}
}

/* --- what must hold ------------------------------------------------------------------ */

/* Returns the row that a seek finds among all rows. */
static int
find(const LsmBound *from, bool forward)
{
	int			at = forward ? 0 : all_count - 1;

	while (at >= 0 && at < all_count &&
		   (lsm_bound_compare(the_index.ks, from, &all[at].entry) > 0) != forward)
		at += forward ? 1 : -1;
	return at;
}

static bool
stands_on(const LsmCursor *merge, int at)
{
	if (at < 0 || at >= all_count)
		return !merge->valid;
	return merge->valid && merge->entry->tid == all[at].entry.tid &&
		merge->entry->keylen == all[at].entry.keylen &&
		memcmp(merge->entry->key, all[at].entry.key, all[at].entry.keylen) == 0;
}

static bool
has_row(const Source *s, const TestRow *row)
{
	for (int i = 0; i < s->count; i++)
	{
		if (rows_compare(&the_index, &s->rows[i], row) == 0)
			return true;
	}
	return false;
}

/* Are the next rows, from `at` to the row of this entry, all from one source? */
static bool
are_next_of(const Source *s, int at, const LsmEntry *last)
{
	for (; at < all_count; at++)
	{
		if (!has_row(s, &all[at]))
			return false;
		if (all[at].entry.tid == last->tid && lsm_key_equal(the_index.ks, &all[at].entry, last))
			return true;
	}
	return false;
}

/*
 * Ask for the page at which the merge stands.  The merge must return the page if the page's
 * entries come next, unless the source refuses.  Returns true if the page was skipped.
 */
static bool
check_page(LsmCursor *merge, int *at)
{
	Source	   *s = (Source *) merge->source;
	int			first = s->page;
	const LsmEntry *last = NULL;
	LsmWholeSegment whole;
	Page		page;

	if (lsm_cursor_segment(merge, 2, &whole))
		props_expect(SEGMENTS, s->count - first >= 2 * PAGE_ENTRIES &&
					 are_next_of(s, *at, &s->rows[s->count - 1].entry), "row %d of %d, %s", *at,
					 all_count, rows_describe(&the_index));
	else
		props_expect(SEGMENTS, s->count - first < 2 * PAGE_ENTRIES ||
					 !are_next_of(s, *at, &s->rows[s->count - 1].entry), "row %d of %d, %s", *at,
					 all_count, rows_describe(&the_index));

	page = lsm_cursor_page(merge, &last);
	props_expect(PAGES, page == NULL ?
				 s->refused || !are_next_of(s, *at, &s->rows[page_end(s, first) - 1].entry) :
				 page == (Page) s->rows[first].entry.key && are_next_of(s, *at, last),
				 "row %d of %d, %s", *at, all_count, rows_describe(&the_index));
	if (page == NULL)
		return false;
	if (chance(3))
		return false;
	*at += page_end(s, first) - first;
	lsm_cursor_skip_page(merge);
	return true;
}

/* Read a number of entries. */
static void
check_entries(LsmCursor *merge, bool ahead, int at, const LsmBound *limit, ScanDirection direction)
{
	bool		forward = ScanDirectionIsForward(direction);
	int			steps = chance(2) ? all_count + 1 : (int) pick(20);
	int			property = limit != NULL ? LIMIT : ahead ? SCAN : COPY;

	for (int i = 0; i < steps; i++)
	{
		/* Beyond the limit any entry may come. */
		if (limit != NULL && (at < 0 || at >= all_count ||
							  lsm_beyond(the_index.ks, limit, &all[at].entry, direction)))
		{
			props_expect(LIMIT, !merge->valid ||
						 lsm_beyond(the_index.ks, limit, merge->entry, direction),
						 "row %d of %d, %s", at, all_count, rows_describe(&the_index));
			return;
		}
		if (!props_expect(property, stands_on(merge, at),
						  "row %d of %d, %d sources, %s, %s", at, all_count, source_count,
						  forward ? "forward" : "backward", rows_describe(&the_index)) ||
			!merge->valid)
			return;
		if (!ahead)
		{
			props_expect(SOURCES, has_row((Source *) merge->source, &all[at]), "row %d of %d", at,
						 all_count);
			if (merge->at_page && forward && limit == NULL && check_page(merge, &at))
				continue;
		}
		lsm_cursor_next(merge);
		at += forward ? 1 : -1;
	}
}

static void
pick_bound(LsmBound *bound)
{
	lsm_bound_init(bound, chance(2) ? 1 : -1);
	if (all_count > 0 && !chance(4))
	{
		const TestRow *row = &all[pick(all_count)];

		if (chance(2))
			lsm_bound_set_entry(bound, &row->entry, chance(2) ? 1 : -1);
		else
			lsm_bound_set_key(the_index.ks, bound, &row->entry, chance(2) ? 1 : -1);
	}
}

static void
check_seeks(LsmCursor *merge, bool ahead)
{
	LsmBound	from = {0};
	LsmBound	limit = {0};

	for (int i = 0; i < 8; i++)
	{
		bool		forward = ahead ? chance(2) : !chance(4);
		ScanDirection direction = forward ? ForwardScanDirection : BackwardScanDirection;
		bool		limited = chance(3);

		pick_bound(&from);
		pick_bound(&limit);
		lsm_cursor_seek(merge, &from, limited ? &limit : NULL, direction);
		check_entries(merge, ahead, find(&from, forward), limited ? &limit : NULL, direction);
	}
}

static void
round_of_merges(void)
{
	bool		ahead = chance(2);
	bool		owns = chance(2);
	LsmCursor  *children[MOST_SOURCES];
	LsmCursor  *merge;

	rows_index(&the_index, 2);
	merge = lsm_merge_create(the_index.ks, ahead, owns);
	/* A reader sets other children when its version changes. */
	for (int i = 0; i < 2; i++)
	{
		make_sources();
		for (int s = 0; s < source_count; s++)
			children[s] = &sources[s].base;
		lsm_merge_set(merge, children, source_count);
		check_seeks(merge, ahead);
	}
	lsm_cursor_close(merge);
	for (int s = 0; s < source_count; s++)
		Assert(sources[s].closed == owns);
}

int
main(void)
{
	return props_run(400, round_of_merges, names, lengthof(names));
}
