/*
 * sorter.c
 *	  External sort of entries.
 *
 * Core's tuplesort cannot be used on index tuples of an access method that is
 * not btree on all versions, and knows nothing of encoded keys.  Entries are
 * collected in memory with the first eight bytes of their keys, sorted with
 * core's sort template, and, when memory is used up, written to a temporary
 * file as a sorted batch.  Batches are merged with the merge cursor.
 */
#include "postgres.h"

#include "compact/sorter.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

/* An entry in memory and in the file; key and rest follow. */
typedef struct SortItem
{
	uint64		tid;
	uint32		keylen;
	uint32		restlen;
} SortItem;

StaticAssertDecl(sizeof(SortItem) % MAXIMUM_ALIGNOF == 0, "keys must be aligned");

typedef struct SortRef
{
	uint64		prefix;
	SortItem   *item;
} SortRef;

typedef struct SortBatch
{
	int			fileno;
	off_t		offset;
	uint64		bytes;
} SortBatch;

struct LsmSorter
{
	LsmKeySpace *ks;
	Size		memory;
	uint64		bytes;			/* added in all */
	MemoryContext context;		/* of the sorter */
	MemoryContext items;		/* of the entries in memory */
	Size		used;
	char	   *chunk;
	Size		chunk_left;
	SortRef    *refs;
	Size		count;
	Size		room;
	BufFile    *file;
	SortBatch  *batches;
	int			batch_count;
	int			batch_room;
};

#define CHUNK_SIZE (1024 * 1024)
#define READ_SIZE (256 * 1024)

static inline Size
item_size(uint32 keylen, uint32 restlen)
{
	return MAXALIGN(sizeof(SortItem) + keylen + restlen);
}

static inline void
item_entry(SortItem *item, LsmEntry *entry)
{
	entry->key = (uint8 *) (item + 1);
	entry->keylen = item->keylen;
	entry->rest = entry->key + item->keylen;
	entry->restlen = item->restlen;
	entry->tid = item->tid;
	entry->aligned = false;
}

static inline int
compare_refs(const SortRef *a, const SortRef *b, LsmKeySpace *ks)
{
	LsmEntry	ea;
	LsmEntry	eb;

	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	item_entry(a->item, &ea);
	item_entry(b->item, &eb);
	return lsm_key_compare(ks, &ea, &eb);
}

#define ST_SORT sort_refs
#define ST_ELEMENT_TYPE SortRef
#define ST_COMPARE(a, b, ks) compare_refs(a, b, ks)
#define ST_COMPARE_ARG_TYPE LsmKeySpace
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Start a sort that uses about `memory` bytes.  Lives in the current context. */
LsmSorter *
lsm_sorter_begin(LsmKeySpace *ks, Size memory)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm sort",
												  ALLOCSET_DEFAULT_SIZES);
	LsmSorter  *s = MemoryContextAllocZero(context, sizeof(LsmSorter));

	s->ks = ks;
	s->memory = memory;
	s->context = context;
	s->items = AllocSetContextCreate(context, "pg_lsm sort entries", ALLOCSET_DEFAULT_SIZES);
	return s;
}

static void
write_batch(LsmSorter *s)
{
	MemoryContext old = MemoryContextSwitchTo(s->context);
	SortBatch  *batch;

	sort_refs(s->refs, s->count, s->ks);
	if (s->file == NULL)
		s->file = BufFileCreateTemp(false);
	if (s->batch_count == s->batch_room)
	{
		s->batch_room = Max(16, 2 * s->batch_room);
		s->batches = s->batches ?
			repalloc(s->batches, s->batch_room * sizeof(SortBatch)) :
			palloc(s->batch_room * sizeof(SortBatch));
	}
	batch = &s->batches[s->batch_count++];
	BufFileTell(s->file, &batch->fileno, &batch->offset);
	batch->bytes = 0;
	for (Size i = 0; i < s->count; i++)
	{
		SortItem   *item = s->refs[i].item;
		Size		size = item_size(item->keylen, item->restlen);

		BufFileWrite(s->file, item, size);
		batch->bytes += size;
		if (i % 4096 == 0)
			CHECK_FOR_INTERRUPTS();
	}
	MemoryContextReset(s->items);
	s->used = 0;
	s->chunk = NULL;
	s->chunk_left = 0;
	s->count = 0;
	MemoryContextSwitchTo(old);
}

/* Add an entry; it is copied. */
void
lsm_sorter_add(LsmSorter *s, const LsmEntry *entry)
{
	Size		size = item_size(entry->keylen, entry->restlen);
	SortItem   *item;

	if (s->used + s->room * sizeof(SortRef) >= s->memory && s->count > 1024)
		write_batch(s);
	if (s->count == s->room)
	{
		s->room = Max(1024, 2 * s->room);
		s->refs = s->refs ?
			repalloc_huge(s->refs, s->room * sizeof(SortRef)) :
			MemoryContextAllocHuge(s->context, s->room * sizeof(SortRef));
	}
	if (s->chunk_left < size)
	{
		s->chunk = MemoryContextAlloc(s->items, CHUNK_SIZE);
		s->chunk_left = CHUNK_SIZE;
		s->used += CHUNK_SIZE;
	}
	item = (SortItem *) s->chunk;
	s->chunk += size;
	s->chunk_left -= size;
	s->bytes += sizeof(uint64) + entry->keylen + entry->restlen;
	item->tid = entry->tid;
	item->keylen = entry->keylen;
	item->restlen = entry->restlen;
	memcpy(item + 1, entry->key, entry->keylen);
	if (entry->restlen > 0)
		memcpy((char *) (item + 1) + entry->keylen, entry->rest, entry->restlen);
	s->refs[s->count].prefix = s->ks->encoded ? lsm_key_prefix(entry->key, entry->keylen) : 0;
	s->refs[s->count].item = item;
	s->count++;
}

/* Bytes of keys, rests and TIDs added. */
uint64
lsm_sorter_bytes(const LsmSorter *s)
{
	return s->bytes;
}

/* A cursor over what is in memory, or over one batch of the file. */
typedef struct SortCursor
{
	LsmCursor	base;
	LsmSorter  *sorter;
	Size		at;				/* in memory: index of the current entry */

	BufFile    *file;			/* batch: NULL if in memory */
	SortBatch	rest;			/* what has not been read yet */
	char	   *buffer;
	Size		filled;
	Size		pos;
} SortCursor;

/* Have at least `need` bytes at pos, or as many as the batch has. */
static bool
fill(SortCursor *c, Size need)
{
	Size		n;

	if (c->filled - c->pos >= need)
		return true;
	memmove(c->buffer, c->buffer + c->pos, c->filled - c->pos);
	c->filled -= c->pos;
	c->pos = 0;
	n = Min(c->rest.bytes, READ_SIZE - c->filled);
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
	SortItem   *item = NULL;

	if (c->file == NULL)
	{
		if (c->at < c->sorter->count)
			item = c->sorter->refs[c->at].item;
	}
	else if (fill(c, sizeof(SortItem)))
	{
		item = (SortItem *) (c->buffer + c->pos);
		if (!fill(c, item_size(item->keylen, item->restlen)))
			elog(ERROR, "temporary file of an index build ends early");
		item = (SortItem *) (c->buffer + c->pos);
	}
	c->base.valid = item != NULL;
	if (item == NULL)
		return;
	item_entry(item, &c->base.entry);
	if (c->sorter->ks->encoded)
		c->base.prefix = lsm_key_prefix(c->base.entry.key, c->base.entry.keylen);
}

/* Only from the start, forward: that is all that a build needs. */
static void
sort_cursor_seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit,
				 ScanDirection direction)
{
	sort_cursor_stand((SortCursor *) base);
}

static void
sort_cursor_next(LsmCursor *base)
{
	SortCursor *c = (SortCursor *) base;

	if (c->file == NULL)
		c->at++;
	else
		c->pos += item_size(base->entry.keylen, base->entry.restlen);
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

static const LsmCursorOps sort_cursor_ops = {sort_cursor_seek, sort_cursor_next, sort_cursor_close};

/* Sort; returns a cursor over the result, to be sought from the start. */
LsmCursor *
lsm_sorter_finish(LsmSorter *s)
{
	MemoryContext old = MemoryContextSwitchTo(s->context);
	LsmCursor **children;
	int			count = 0;

	if (s->batch_count > 0 && s->count > 0)
		write_batch(s);
	children = palloc((s->batch_count + 1) * sizeof(LsmCursor *));
	if (s->batch_count == 0)
	{
		SortCursor *c = palloc0(sizeof(SortCursor));

		sort_refs(s->refs, s->count, s->ks);
		c->base.ops = &sort_cursor_ops;
		c->sorter = s;
		children[count++] = &c->base;
	}
	else if (s->refs != NULL)
	{
		pfree(s->refs);
		s->refs = NULL;
	}
	for (int i = 0; i < s->batch_count; i++)
	{
		SortCursor *c = palloc0(sizeof(SortCursor));

		c->base.ops = &sort_cursor_ops;
		c->sorter = s;
		c->file = s->file;
		c->rest = s->batches[i];
		c->buffer = palloc(READ_SIZE);
		children[count++] = &c->base;
	}
	MemoryContextSwitchTo(old);
	return lsm_merge_create(s->ks, children, count);
}

void
lsm_sorter_end(LsmSorter *s)
{
	if (s->file)
		BufFileClose(s->file);
	MemoryContextDelete(s->context);
}
