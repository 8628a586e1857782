/*
 * sorter.c
 *	  Sorts entries, in memory and in temporary files.
 *
 * Core's tuplesort does not know encoded keys, and in some versions sorts index tuples only for
 * btree.  The sorter collects and sorts entries in memory (entries.c).  When the memory is full, it
 * writes the entries to a temporary file as a sorted batch.  At the end, a merge cursor merges the
 * batches, whose read buffers share the memory.  If there are too many batches for that, the sorter
 * first merges some of them into one.
 *
 * Several processes can each sort a share.  All but one export their batches to shared files, and
 * the last one merges these batches with its own.
 */
#include "postgres.h"

#include "key/merge.h"
#include "miscadmin.h"
#include "sort/entries.h"
#include "sort/sorter.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

typedef struct SortBatch
{
	BufFile    *file;
	int			fileno;
	off_t		offset;
	uint64		bytes;
} SortBatch;

struct LsmSorter
{
	Size		memory;
	MemoryContext context;		/* of the sorter */
	LsmEntries	entries;		/* in memory */
	BufFile    *file;			/* NULL until it is needed */
	SharedFileSet *files;		/* where `file` has a name; NULL: a private temporary file */
	int			number;			/* of this sorter's share */
	List	   *imported;		/* files of other shares */
	SortBatch  *batches;
	int			batch_count;
	int			batch_room;
	int			end_fileno;		/* where the file ends */
	off_t		end_offset;
};

/* Sizes of the batches' read buffers; the smallest holds several entries of any size. */
#define MIN_BUFFER	(4 * BLCKSZ)
#define MAX_BUFFER	(256 * 1024)

/*
 * Like core's sort, ours uses at least this much memory.  With very little, each entry would be a
 * batch.
 */
#define LEAST_MEMORY	(64 * 1024)

/* Start a sort that uses about `memory` bytes. The sorter lives in the current memory context. */
LsmSorter *
lsm_sorter_begin(LsmKeySpace *ks, Size memory)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm sort",
												  ALLOCSET_DEFAULT_SIZES);
	LsmSorter  *s = MemoryContextAllocZero(context, sizeof(LsmSorter));

	s->memory = Max(memory, LEAST_MEMORY);
	s->context = context;
	lsm_entries_init(&s->entries, ks, context);
	s->entries.limit = s->memory;
	return s;
}

static SortBatch *
add_sort_batch(LsmSorter *s)
{
	if (s->batch_count == s->batch_room)
	{
		s->batch_room = Max(16, 2 * s->batch_room);
		s->batches = s->batches ?
			repalloc(s->batches, s->batch_room * sizeof(SortBatch)) :
			palloc(s->batch_room * sizeof(SortBatch));
	}
	return &s->batches[s->batch_count++];
}

static void
name_of_share(char *name, int number)
{
	snprintf(name, MAXPGPATH, "share%d", number);
}

/* Begin a new batch at the end of the file. */
static SortBatch *
begin_sort_batch(LsmSorter *s)
{
	SortBatch  *batch = add_sort_batch(s);
	char		name[MAXPGPATH];

	if (s->file == NULL && s->files != NULL)
	{
		name_of_share(name, s->number);
		s->file = BufFileCreateFileSet(&s->files->fs, name);
	}
	else if (s->file == NULL)
		s->file = BufFileCreateTemp(false);
	batch->file = s->file;
	batch->fileno = s->end_fileno;
	batch->offset = s->end_offset;
	batch->bytes = 0;
	return batch;
}

static void
write_sort_batch(LsmSorter *s)
{
	MemoryContext old = MemoryContextSwitchTo(s->context);
	SortBatch  *batch;

	lsm_item_refs_sort(s->entries.refs, s->entries.count, s->entries.ks);
	batch = begin_sort_batch(s);
	for (Size i = 0; i < s->entries.count; i++)
	{
		LsmItem    *item = s->entries.refs[i].item;
		Size		size = lsm_item_bytes(item);

		BufFileWrite(s->file, item, size);
		batch->bytes += size;
		if (i % 4096 == 0)
			CHECK_FOR_INTERRUPTS();
	}
	BufFileTell(s->file, &s->end_fileno, &s->end_offset);
	lsm_entries_clear(&s->entries, true);
	MemoryContextSwitchTo(old);
}

/* Add a copy of an entry. */
void
lsm_sorter_add(LsmSorter *s, const LsmEntry *entry)
{
	if (s->entries.used >= s->memory && s->entries.count > 0)
		write_sort_batch(s);
	lsm_entries_add(&s->entries, entry);
}

/* A cursor over the entries in memory, or over one batch of the file. */
typedef struct SortCursor
{
	LsmCursor	base;
	LsmSorter  *sorter;
	LsmEntry	entry;			/* that the cursor stands on */
	Size		at;				/* in memory: index of the entry */

	BufFile    *file;			/* batch: NULL if in memory */
	SortBatch	rest;			/* what has not been read yet */
	char	   *buffer;
	Size		buffer_size;
	Size		filled;
	Size		pos;
} SortCursor;

/* Buffer at least `need` bytes, beginning at pos.  Returns false if the batch has fewer. */
static bool
fill_read_buffer(SortCursor *c, Size need)
{
	Size		n;

	if (c->filled - c->pos >= need)
		return true;
	memmove(c->buffer, c->buffer + c->pos, c->filled - c->pos);
	c->filled -= c->pos;
	c->pos = 0;
	n = Min(c->rest.bytes, c->buffer_size - c->filled);
	if (n > 0)
	{
		if (BufFileSeek(c->file, c->rest.fileno, c->rest.offset, SEEK_SET) != 0 ||
			BufFileRead(c->file, c->buffer + c->filled, n) != n)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read from temporary file of an index build: %m")));
		BufFileTell(c->file, &c->rest.fileno, &c->rest.offset);
		c->rest.bytes -= n;
		c->filled += n;
	}
	return c->filled - c->pos >= need;
}

static void
sort_cursor_stand(SortCursor *c)
{
	LsmItem   *item = NULL;

	if (c->file == NULL)
	{
		if (c->at < c->sorter->entries.count)
			item = c->sorter->entries.refs[c->at].item;
	}
	else if (fill_read_buffer(c, sizeof(LsmItem)))
	{
		item = (LsmItem *) (c->buffer + c->pos);
		if (!fill_read_buffer(c, lsm_item_bytes(item)))
			elog(ERROR, "temporary file of an index build ends early");
		item = (LsmItem *) (c->buffer + c->pos);
	}
	c->base.valid = item != NULL;
	if (item == NULL)
		return;
	lsm_item_entry(item, &c->entry);
	lsm_cursor_stand(&c->base, &c->entry, 0);
}

/* Seek to the start.  A build reads entries only once, forward. */
static void
sort_cursor_seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit,
				 ScanDirection direction)
{
	sort_cursor_stand((SortCursor *) base);
}

static void
sort_cursor_fill(LsmCursor *base)
{
	SortCursor *c = (SortCursor *) base;

	if (c->file == NULL)
		c->at++;
	else
		c->pos += lsm_item_bytes((LsmItem *) (c->buffer + c->pos));
	sort_cursor_stand(c);
}

static void
sort_cursor_close(LsmCursor *base)
{
	SortCursor *c = (SortCursor *) base;

	if (c->buffer)
		pfree(c->buffer);
	pfree(c);
}

static const LsmCursorOps sort_cursor_ops = {sort_cursor_seek, sort_cursor_fill, sort_cursor_close};

static LsmCursor *
create_batch_cursor(LsmSorter *s, const SortBatch *batch, Size buffer_size)
{
	SortCursor *c = palloc0(sizeof(SortCursor));

	c->base.ops = &sort_cursor_ops;
	c->sorter = s;
	c->file = batch->file;
	c->rest = *batch;
	c->buffer_size = buffer_size;
	c->buffer = palloc(buffer_size);
	return &c->base;
}

/* Returns a cursor over the first `count` batches. */
static LsmCursor *
create_merge_cursor(LsmSorter *s, int count)
{
	LsmCursor **children = palloc(count * sizeof(LsmCursor *));
	LsmCursor  *result;
	Size		share = s->memory / count;

	share = MAXALIGN_DOWN(Min(Max(share, MIN_BUFFER), MAX_BUFFER));
	for (int i = 0; i < count; i++)
		children[i] = create_batch_cursor(s, &s->batches[i], share);
	result = children[0];
	if (count > 1)
	{
		result = lsm_merge_create(s->entries.ks, false, true);
		lsm_merge_set(result, children, count);
	}
	pfree(children);
	return result;
}

/*
 * Write the buffer to the end of the file.  Seeks first, because cursors read other parts of the
 * file.
 */
static void
append_to_file(LsmSorter *s, const char *buffer, Size bytes)
{
	if (BufFileSeek(s->file, s->end_fileno, s->end_offset, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file of an index build: %m")));
	BufFileWrite(s->file, unconstify(char *, buffer), bytes);
	BufFileTell(s->file, &s->end_fileno, &s->end_offset);
}

/* Merge the first `count` batches into one, which becomes the last. */
static void
merge_sort_batches(LsmSorter *s, int count)
{
	SortBatch	batch = *begin_sort_batch(s);
	LsmCursor  *merged = create_merge_cursor(s, count);
	char	   *buffer = palloc(MIN_BUFFER);
	Size		filled = 0;
	LsmBound	start;

	memset(&start, 0, sizeof(start));
	lsm_bound_init(&start, 1);
	for (lsm_cursor_seek(merged, &start, NULL, ForwardScanDirection); merged->valid;
		 lsm_cursor_next(merged))
	{
		const LsmEntry *entry = merged->entry;
		LsmItem		head = {entry->tid, entry->keylen, entry->restlen};
		Size		size = lsm_item_bytes(&head);
		char	   *item;

		if (filled + size > MIN_BUFFER)
		{
			append_to_file(s, buffer, filled);
			filled = 0;
			CHECK_FOR_INTERRUPTS();
		}
		item = buffer + filled;
		memset(item + size - MAXIMUM_ALIGNOF, 0, MAXIMUM_ALIGNOF);
		lsm_item_set((LsmItem *) item, entry);
		filled += size;
		batch.bytes += size;
	}
	append_to_file(s, buffer, filled);
	lsm_cursor_close(merged);
	pfree(buffer);

	s->batches[s->batch_count - 1] = batch;
	s->batch_count -= count;
	memmove(s->batches, s->batches + count, s->batch_count * sizeof(SortBatch));
}

/* Sort.  Returns a cursor over the result.  The caller seeks it to the start. */
LsmCursor *
lsm_sorter_finish(LsmSorter *s)
{
	MemoryContext old = MemoryContextSwitchTo(s->context);
	LsmCursor  *result;
	int			most = Max(2, s->memory / MIN_BUFFER);

	if (s->batch_count == 0)
	{
		SortCursor *c = palloc0(sizeof(SortCursor));

		lsm_item_refs_sort(s->entries.refs, s->entries.count, s->entries.ks);
		c->base.ops = &sort_cursor_ops;
		c->sorter = s;
		result = &c->base;
	}
	else
	{
		if (s->entries.count > 0)
			write_sort_batch(s);
		lsm_entries_clear(&s->entries, false);
		/* Merge as few batches as possible, because merged batches are written twice. */
		while (s->batch_count > most)
			merge_sort_batches(s, Min(most, s->batch_count - most + 1));
		result = create_merge_cursor(s, s->batch_count);
	}
	MemoryContextSwitchTo(old);
	return result;
}

/* Give this sorter the share with this number, which another process will merge. */
void
lsm_sorter_share(LsmSorter *s, SharedFileSet *files, int number)
{
	s->files = files;
	s->number = number;
}

/*
 * Sort, and leave the result to another process.  After that, the caller can only end the sorter.
 * Ending the sorter does not remove the file.
 */
void
lsm_sorter_export(LsmSorter *s, LsmSortedShare *share)
{
	if (s->entries.count > 0)
		write_sort_batch(s);
	share->batch_count = s->batch_count;
	share->fileno = s->end_fileno;
	share->offset = s->end_offset;
	if (s->batch_count == 0)
		return;
	append_to_file(s, (const char *) s->batches, s->batch_count * sizeof(SortBatch));
	BufFileExportFileSet(s->file);
}

/* Add the batches of a share, to be merged with ours. Call before lsm_sorter_finish. */
void
lsm_sorter_import(LsmSorter *s, SharedFileSet *files, int number, const LsmSortedShare *share)
{
	MemoryContext old = MemoryContextSwitchTo(s->context);
	char		name[MAXPGPATH];
	BufFile    *file;

	if (share->batch_count > 0)
	{
		name_of_share(name, number);
		file = BufFileOpenFileSet(&files->fs, name, O_RDONLY, false);
		s->imported = lappend(s->imported, file);
		if (BufFileSeek(file, share->fileno, share->offset, SEEK_SET) != 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not seek in temporary file of an index build: %m")));
		for (int i = 0; i < share->batch_count; i++)
		{
			SortBatch  *batch = add_sort_batch(s);

			if (BufFileRead(file, batch, sizeof(SortBatch)) != sizeof(SortBatch))
				ereport(ERROR,
						(errcode_for_file_access(),
						 errmsg("could not read from temporary file of an index build: %m")));
			batch->file = file;
		}
	}
	MemoryContextSwitchTo(old);
}

void
lsm_sorter_end(LsmSorter *s)
{
	ListCell   *cell;

	if (s->file)
		BufFileClose(s->file);
	foreach(cell, s->imported)
		BufFileClose(lfirst(cell));
	MemoryContextDelete(s->context);
}
