/*
 * merge.c
 *	  k-way merge, in both directions, with a binary heap.
 *
 * Knows neither runs nor buffer pages.  Since (key, TID) is a total order the
 * result does not depend on the order of the children.
 */
#include "postgres.h"

#include "merge/merge.h"
#include "miscadmin.h"

typedef struct MergeCursor
{
	LsmCursor	base;
	LsmKeySpace *ks;
	bool		forward;
	int			count;			/* children */
	LsmCursor **children;
	int			heap_size;
	LsmCursor **heap;			/* heap[0] has the next entry */
} MergeCursor;

/* Does a come before b in the direction of the merge? */
static inline bool
comes_first(MergeCursor *m, LsmCursor *a, LsmCursor *b)
{
	int			c;

	if (m->ks->encoded && a->prefix != b->prefix)
		c = a->prefix < b->prefix ? -1 : 1;
	else
		c = lsm_key_compare(m->ks, &a->entry, &b->entry);
	return m->forward ? c < 0 : c > 0;
}

static void
sift_down(MergeCursor *m, int i)
{
	LsmCursor  *moving = m->heap[i];

	for (;;)
	{
		int			child = 2 * i + 1;

		if (child >= m->heap_size)
			break;
		if (child + 1 < m->heap_size && comes_first(m, m->heap[child + 1], m->heap[child]))
			child++;
		if (!comes_first(m, m->heap[child], moving))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = moving;
}

static inline void
take_top(MergeCursor *m)
{
	m->base.valid = m->heap_size > 0;
	if (m->base.valid)
	{
		m->base.entry = m->heap[0]->entry;
		m->base.prefix = m->heap[0]->prefix;
	}
}

static void
seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	MergeCursor *m = (MergeCursor *) base;

	m->forward = ScanDirectionIsForward(direction);
	m->heap_size = 0;
	for (int i = 0; i < m->count; i++)
	{
		lsm_cursor_seek(m->children[i], from, limit, direction);
		if (m->children[i]->valid)
			m->heap[m->heap_size++] = m->children[i];
		CHECK_FOR_INTERRUPTS();
	}
	for (int i = m->heap_size / 2 - 1; i >= 0; i--)
		sift_down(m, i);
	take_top(m);
}

static void
next(LsmCursor *base)
{
	MergeCursor *m = (MergeCursor *) base;

	lsm_cursor_next(m->heap[0]);
	if (!m->heap[0]->valid)
		m->heap[0] = m->heap[--m->heap_size];
	if (m->heap_size > 1)
		sift_down(m, 0);
	take_top(m);
}

static void
close_cursor(LsmCursor *base)
{
	MergeCursor *m = (MergeCursor *) base;

	for (int i = 0; i < m->count; i++)
		lsm_cursor_close(m->children[i]);
	pfree(m->children);
	pfree(m->heap);
	pfree(m);
}

static const LsmCursorOps merge_ops = {seek, next, close_cursor};

/* Merge children, which it closes with itself.  Takes over the array. */
LsmCursor *
lsm_merge_create(LsmKeySpace *ks, LsmCursor **children, int count)
{
	MergeCursor *m;

	if (count == 1)
	{
		LsmCursor  *child = children[0];

		pfree(children);
		return child;
	}
	m = palloc0(sizeof(MergeCursor));
	m->base.ops = &merge_ops;
	m->ks = ks;
	m->count = count;
	m->children = children;
	m->heap = palloc(Max(1, count) * sizeof(LsmCursor *));
	return &m->base;
}
