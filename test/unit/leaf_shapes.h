/* leaf_shapes.h -- leaves of entries of many shapes, for the tests of packed pages. */
#ifndef LEAF_SHAPES_H
#define LEAF_SHAPES_H

#include "tap.h"

#include "base/coding.h"
#include "format/leaf.h"
#include "format/leaf_build.h"
#include "format/leaf_mode.h"
#include "format/leaf_read.h"

#define MAX_ENTRIES 5000

typedef struct Stored
{
	uint8		key[300];
	uint32		keylen;
	uint8		rest[20];
	uint32		restlen;
	uint64		tid;
} Stored;

static Stored stored[MAX_ENTRIES];
static int	made;				/* entries in `stored` */
static PGAlignedBlock block;
static LsmGroup group;

static int
compare(const void *a, const void *b)
{
	const Stored *x = *(const Stored *const *) a;
	const Stored *y = *(const Stored *const *) b;
	int			c = memcmp(x->key, y->key, Min(x->keylen, y->keylen));

	if (c == 0)
		c = (int) x->keylen - (int) y->keylen;
	if (c == 0)
		c = x->tid < y->tid ? -1 : x->tid > y->tid;
	return c;
}

static LsmEntry
as_entry(const Stored *s)
{
	LsmEntry	e = {.key = s->key,.keylen = s->keylen,.rest = s->rest,.restlen = s->restlen,.tid = s->tid};

	return e;
}

/* The shape of keys: how many distinct bytes, how long, how similar; and how they are coded. */
typedef struct Shape
{
	const char *name;
	int			alphabet;
	int			length;
	int			shared;
	bool		wide;
	bool		rest;
	int			fixed_percent;	/* percentage of keys with the same length; 0: variable coding */
} Shape;

static const Shape shapes[] = {
	{"short random keys", 256, 4, 0, false, false, 0},
	{"equal keys", 1, 1, 3, false, false, 0},
	{"keys that are prefixes of others", 1, 40, 0, false, false, 0},
	{"long shared prefixes", 4, 30, 200, false, false, 0},
	{"wide TIDs", 256, 6, 2, true, false, 0},
	{"rests", 3, 5, 1, false, true, 0},
	{"rests and wide TIDs", 200, 90, 100, true, true, 0},
	{"one byte", 256, 1, 0, false, false, 100},
	{"integers", 256, 4, 1, false, false, 100},
	{"integers with duplicates", 6, 4, 1, false, false, 100},
	{"eight bytes", 256, 7, 1, true, false, 100},
	{"bigints", 256, 8, 1, false, false, 100},
	{"bigints with rests", 9, 8, 1, true, true, 100},
	{"uuids", 256, 16, 1, false, false, 100},
	{"equal keys of fixed length", 1, 1, 4, false, false, 100},
	{"fixed keys with long shared prefixes", 4, 30, 200, false, false, 100},
	{"fixed keys that share about as much as a head can say", 2, 10, 10, false, false, 100},
	{"keys of nearly always the same length", 256, 4, 1, false, false, 95},
	{"longer ones of which half have the same length", 3, 30, 12, true, true, 50},
	{"prefixes of others, nearly all as long", 1, 40, 0, false, false, 90},
};

/* Sort `stored`. Sort pointers first, since an entry is large. */
static void
sort_stored(int count)
{
	static Stored unsorted[MAX_ENTRIES];
	static const Stored *sorted[MAX_ENTRIES];

	memcpy(unsorted, stored, count * sizeof(Stored));
	for (int i = 0; i < count; i++)
		sorted[i] = &unsorted[i];
	qsort(sorted, count, sizeof(Stored *), compare);
	for (int i = 0; i < count; i++)
		stored[i] = *sorted[i];
}

/* Make entries with TIDs in a range of `blocks` heap blocks that begins at a random block. */
static void
make_entries(int count, const Shape *shape, uint32 blocks)
{
	uint32		first_block = rnd(1 << 20);

	for (int i = 0; i < count; i++)
	{
		Stored	   *s = &stored[i];

		s->keylen = shape->shared + 1 + rnd(shape->length);
		if ((int) rnd(100) < shape->fixed_percent)
			s->keylen = shape->shared + shape->length;
		memset(s->key, 'p', shape->shared);
		for (uint32 j = shape->shared; j < s->keylen; j++)
			s->key[j] = rnd(shape->alphabet);
		s->restlen = shape->rest ? rnd(sizeof(s->rest)) : 0;
		for (uint32 j = 0; j < s->restlen; j++)
			s->rest[j] = rnd(256);
		s->tid = ((uint64) (first_block + rnd(blocks)) << 16) | (1 + rnd(shape->wide ? 60000 : 511));
	}
	sort_stored(count);
	made = count;
}

static void
make_all(int count, const Shape *shape)
{
	make_entries(count, shape, 1 << rnd(21));
}

/* Returns the mode with which a run of these entries would begin. */
static LsmLeafMode
mode_of(const Shape *shape)
{
	LsmLeafMode mode;

	lsm_mode_init(&mode);
	for (int i = 0; i < made; i++)
	{
		LsmEntry	e = as_entry(&stored[i]);

		lsm_mode_add(&mode, &e);
	}
	mode.keylen = shape->fixed_percent > 0 ? shape->shared + shape->length : 0;
	lsm_mode_settle(&mode, 0);
	return mode;
}

/* Add as many entries as fit. Returns their number. */
static int
build(int count, const Shape *shape)
{
	static LsmLeafBuilder b;
	LsmLeafMode mode = mode_of(shape);
	int			n = 0;

	lsm_leaf_begin(&b, (Page) block.data, shape->rest, &mode, 77, 5);
	while (n < count)
	{
		LsmEntry	e = as_entry(&stored[n]);

		if (!lsm_leaf_add(&b, &e))
			break;
		n++;
	}
	lsm_leaf_finish(&b);
	lsm_page_set_crc((Page) block.data);
	return n;
}

#endif
