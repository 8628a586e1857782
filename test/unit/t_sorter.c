/*
 * t_sorter.c
 *	  Properties of the sort of CREATE INDEX, and of sorting in memory: whatever the input
 *	  order, each row comes out once, in order.
 *
 * With its minimum memory, a sort holds a few hundred rows, so a round has several batches,
 * and merges some of them into one before the end.
 */
#include "backend.h"
#include "props.h"
#include "tap.h"

#include "nodes/pg_list.h"
#include "port/pg_bswap.h"
#include "sort/entries.h"
#include "sort/sorter.h"
#include "storage/buffile.h"

enum
{
	MEMORY, FILE_SORT, SHARES, REFS, REFS_COPY, SPREAD_KEYS, PROPERTIES
};

static const char *const names[] = {
	"rows that fit in memory are sorted",
	"so are rows that do not",
	"and rows that several processes have sorted",
	"pointers to entries are sorted in place",
	"so are copies of them, even if rows come in order or in reverse order",
	"and copies of keys that are spread over all buckets",
};

#define MOST_ROWS 6000
#define MOST_SHARES 3

static TestIndex the_index;
static TestRow rows[MOST_ROWS];
static const TestRow *order[MOST_ROWS];	/* in which the rows come */
static int	row_count;

/* --- files in memory ---------------------------------------------------------- */

/* File positions as core has them, by segment and offset, with small segments. */
#define SEGMENT_SIZE 10000
#define MOST_FILES 16

struct BufFile
{
	char		name[64];		/* of a shared file */
	char	   *data;
	size_t		size;
	size_t		room;
	size_t		at;
	bool		is_open;
};

static BufFile files[MOST_FILES];
static int	file_count;

static BufFile *
make_file(const char *name)
{
	BufFile    *file = &files[file_count++];

	Assert(file_count <= MOST_FILES);
	memset(file, 0, sizeof(BufFile));
	strlcpy(file->name, name, sizeof(file->name));
	file->is_open = true;
	return file;
}

BufFile *
BufFileCreateTemp(bool across_transactions)
{
	return make_file("");
}

BufFile *
BufFileCreateFileSet(FileSet *set, const char *name)
{
	return make_file(name);
}

void
BufFileExportFileSet(BufFile *file)
{
}

BufFile *
BufFileOpenFileSet(FileSet *set, const char *name, int mode, bool missing_ok)
{
	for (int i = 0; i < file_count; i++)
	{
		if (strcmp(files[i].name, name) == 0)
			return &files[i];
	}
	return NULL;
}

void
BufFileClose(BufFile *file)
{
	file->is_open = false;
}

#if PG_VERSION_NUM >= 160000
void
BufFileWrite(BufFile *file, const void *data, size_t size)
#else
void
BufFileWrite(BufFile *file, void *data, size_t size)
#endif
{
	if (file->at + size > file->room)
	{
		file->room = 2 * (file->at + size);
		file->data = file->data == NULL ? palloc(file->room) : repalloc(file->data, file->room);
	}
	memcpy(file->data + file->at, data, size);
	file->at += size;
	file->size = Max(file->size, file->at);
}

size_t
BufFileRead(BufFile *file, void *data, size_t size)
{
	size_t		n = Min(size, file->size - file->at);

	memcpy(data, file->data + file->at, n);
	file->at += n;
	return n;
}

int
BufFileSeek(BufFile *file, int fileno, off_t offset, int whence)
{
	file->at = (size_t) fileno * SEGMENT_SIZE + offset;
	return file->at <= file->size ? 0 : EOF;
}

void
BufFileTell(BufFile *file, int *fileno, off_t *offset)
{
	*fileno = file->at / SEGMENT_SIZE;
	*offset = file->at % SEGMENT_SIZE;
}

int
errcode_for_file_access(void)
{
	return 0;
}

List *
lappend(List *list, void *datum)
{
	if (list == NIL)
	{
		list = palloc(sizeof(List));
		list->type = T_List;
		list->length = 0;
		list->elements = palloc(MOST_FILES * sizeof(ListCell));
	}
	list->elements[list->length++].ptr_value = datum;
	return list;
}

/* --- rounds ------------------------------------------------------------------- */

static void
shuffle(void)
{
	for (int i = 0; i < row_count; i++)
	{
		int			other = pick(i + 1);

		order[i] = order[other];
		order[other] = &rows[i];
	}
	/* In some rounds the rows come in order or in reverse order, perhaps except for a few. */
	if (chance(3))
	{
		bool		forward = chance(2);

		for (int i = 0; i < row_count; i++)
			order[i] = &rows[forward ? i : row_count - 1 - i];
		for (int i = pick(3); i > 0 && row_count > 0; i--)
		{
			int			a = pick(row_count);
			int			b = pick(row_count);
			const TestRow *swap = order[a];

			order[a] = order[b];
			order[b] = swap;
		}
	}
}

/* Does the cursor give all rows in their order? */
static bool
is_sorted(LsmCursor *cursor)
{
	LsmBound	start = {0};
	int			n = 0;

	lsm_bound_init(&start, 1);
	for (lsm_cursor_seek(cursor, &start, NULL, ForwardScanDirection); cursor->valid;
		 lsm_cursor_next(cursor))
	{
		const LsmEntry *entry = cursor->entry;
		const LsmEntry *expected;

		if (n == row_count)
			return false;
		expected = &rows[n++].entry;
		if (entry->tid != expected->tid || entry->keylen != expected->keylen ||
			entry->restlen != expected->restlen ||
			memcmp(entry->key, expected->key, entry->keylen) != 0 ||
			(entry->restlen > 0 && memcmp(entry->rest, expected->rest, entry->restlen) != 0))
			return false;
	}
	lsm_cursor_close(cursor);
	return n == row_count;
}

static void
sort_by_one(int property, Size memory)
{
	LsmSorter  *sorter = lsm_sorter_begin(the_index.ks, memory);

	for (int i = 0; i < row_count; i++)
		lsm_sorter_add(sorter, &order[i]->entry);
	props_expect(property, is_sorted(lsm_sorter_finish(sorter)), "%d rows of (%s)", row_count,
				 rows_describe(&the_index));
	lsm_sorter_end(sorter);
}

/* All participants but the first sort a share, perhaps an empty one, and export it. */
static void
sort_by_several(void)
{
	SharedFileSet set;
	LsmSorter  *sorters[MOST_SHARES];
	LsmSortedShare shares[MOST_SHARES];
	int			count = 1 + pick(MOST_SHARES);
	int			used = 1 + pick(count);

	for (int i = 0; i < count; i++)
	{
		sorters[i] = lsm_sorter_begin(the_index.ks, 0);
		if (i > 0)
			lsm_sorter_share(sorters[i], &set, i);
	}
	for (int i = 0; i < row_count; i++)
		lsm_sorter_add(sorters[pick(used)], &order[i]->entry);
	for (int i = 1; i < count; i++)
	{
		lsm_sorter_export(sorters[i], &shares[i]);
		lsm_sorter_end(sorters[i]);
	}
	for (int i = 1; i < count; i++)
		lsm_sorter_import(sorters[0], &set, i, &shares[i]);
	props_expect(SHARES, is_sorted(lsm_sorter_finish(sorters[0])), "%d rows of (%s), %d shares",
				 row_count, rows_describe(&the_index), count);
	lsm_sorter_end(sorters[0]);
}

static bool
refs_are_sorted(const LsmItemRef *refs)
{
	for (int i = 0; i < row_count; i++)
	{
		if (refs[i].item->tid != rows[i].entry.tid || refs[i].item->keylen != rows[i].entry.keylen ||
			memcmp(refs[i].item + 1, rows[i].entry.key, rows[i].entry.keylen) != 0)
			return false;
	}
	return true;
}

static void
sort_refs(void)
{
	LsmEntries	entries;
	LsmItemRef *copy = palloc((row_count + 1) * sizeof(LsmItemRef));

	lsm_entries_init(&entries, the_index.ks, CurrentMemoryContext);
	for (int i = 0; i < row_count; i++)
		lsm_entries_add(&entries, &order[i]->entry);
	lsm_item_refs_sort_copy(copy, entries.refs, entries.count, the_index.ks);
	props_expect(REFS_COPY, refs_are_sorted(copy), "%d rows of (%s)", row_count,
				 rows_describe(&the_index));
	lsm_item_refs_sort(entries.refs, entries.count, the_index.ks);
	props_expect(REFS, refs_are_sorted(entries.refs), "%d rows of (%s)", row_count,
				 rows_describe(&the_index));
}

/* Keys of random bytes, which the rows of a test index do not have. */
static void
sort_spread_keys(void)
{
	static LsmKeySpace keyspace = {.encoded = true};
	int			count = pick(3000);
	int			shift = 8 * pick(8);	/* they may begin alike */
	LsmItemRef *copy = palloc((count + 1) * sizeof(LsmItemRef));
	LsmEntries	entries;
	bool		sorted = true;

	lsm_entries_init(&entries, &keyspace, CurrentMemoryContext);
	for (int i = 0; i < count; i++)
	{
		uint64		key = pg_hton64(pick_bits() >> shift);
		LsmEntry	entry = {.key = (uint8 *) &key,.keylen = sizeof(key),.tid = i + 1};

		lsm_entries_add(&entries, &entry);
	}
	lsm_item_refs_sort_copy(copy, entries.refs, entries.count, &keyspace);
	for (int i = 1; i < count; i++)
	{
		LsmEntry	a;
		LsmEntry	b;

		lsm_item_entry(copy[i - 1].item, &a);
		lsm_item_entry(copy[i].item, &b);
		sorted &= lsm_key_compare(&keyspace, &a, &b) < 0;
	}
	props_expect(SPREAD_KEYS, sorted, "%d keys of %d bits", count, 64 - shift);
}

static void
one_round(void)
{
	file_count = 0;
	rows_index(&the_index, MOST_COLUMNS - 1);
	row_count = chance(2) ? pick(100) : pick(MOST_ROWS + 1);
	rows_make(&the_index, rows, row_count);
	row_count = rows_sort(&the_index, rows, row_count);
	shuffle();
	sort_by_one(MEMORY, 1024 * 1024 * 1024);
	sort_by_one(FILE_SORT, 0);
	sort_by_several();
	sort_refs();
	sort_spread_keys();
}

int
main(void)
{
	return props_run(60, one_round, names, PROPERTIES);
}
