/* t_fill.c -- how full the leaves of a run stay when pages are copied. */
#include "tap.h"

#include "segment/fill.h"

#define CAPACITY ((int) LSM_LEAF_CAPACITY)

/* A writer that knows only how many bytes its leaf contains. */
typedef struct Writer
{
	int			used;			/* of the open leaf */
	bool		own_base;		/* the open leaf is a copy that may take no more */
	int			credit;
	int			leaves;
	int			copies;
	int64		unused;			/* in all leaves that were closed */
	double		worst;			/* average of leaves so far, in pages */
} Writer;

static void
close_leaf(Writer *w)
{
	w->credit = Max(0, lsm_fill_credit(w->credit, CAPACITY - w->used));
	w->unused += CAPACITY - w->used;
	w->leaves++;
	w->worst = Max(w->worst, (double) w->unused / ((double) w->leaves * CAPACITY));
	w->used = 0;
	w->own_base = false;
}

/*
 * A page with `used` bytes arrives. `below`: some of the later entries have TIDs below the base of
 * a copied page.
 */
static void
take(Writer *w, int used, bool own_base, bool alone, bool below)
{
	if (alone && lsm_fill_may_copy(w->credit, w->used == 0, CAPACITY - w->used,
								   CAPACITY - used, own_base))
	{
		if (w->used > 0)
			close_leaf(w);
		w->used = used;
		w->own_base = own_base;
		w->copies++;
		return;
	}
	if (w->own_base && below)
		close_leaf(w);
	if (w->used + used > CAPACITY)
	{
		used -= CAPACITY - w->used;
		w->used = CAPACITY;
		close_leaf(w);
	}
	w->used += used;
}

/* A load in key order: batches of `pages` pages, the last of them partly filled. */
static Writer
load(int pages, bool own_base)
{
	Writer		w = {0};

	for (int batch = 0; batch < 2000; batch++)
	{
		for (int i = 1; i < pages; i++)
			take(&w, CAPACITY - (int) rnd(8), own_base, true, false);
		take(&w, 1 + (int) rnd(CAPACITY), own_base, true, false);
	}
	return w;
}

static void
test_loads(void)
{
	Writer		w = load(7, true);

	ok(w.worst <= 0.1, "batches of seven pages: at most a tenth is unused");
	ok(w.copies > w.leaves * 9 / 10, "and nearly all pages are copied");
	w = load(20, true);
	ok(w.worst <= 0.1 && w.copies > w.leaves * 95 / 100, "batches of twenty pages are copied");
	w = load(2, false);
	ok(w.worst <= 0.1, "batches of two pages: at most a tenth is unused");
	w = load(1, true);
	ok(w.worst <= 0.1, "batches of part of a page: at most a tenth is unused");
}

/* Pages with any fill arrive at any time, alone or with others. */
static void
test_any(void)
{
	double		worst = 0;
	int			copies = 0;

	for (int round = 0; round < 2000; round++)
	{
		Writer		w = {0};
		int			fill = 1 + rnd(CAPACITY);
		int			alone = rnd(101);
		int			own_base = rnd(101);
		int			below = rnd(101);

		for (int i = 0; i < 300; i++)
			take(&w, rnd(4) == 0 ? 1 + (int) rnd(CAPACITY) : fill, rnd(100) < own_base,
				 rnd(100) < alone, rnd(100) < below);
		worst = Max(worst, w.worst);
		copies += w.copies;
	}
	ok(worst <= 0.1, "at most a tenth is unused, whatever pages arrive");
	ok(copies > 0, "and some pages are copied");
}

/* Full leaves earn much credit, but not all of it is spent at once. */
static void
test_limit(void)
{
	Writer		w = {0};
	int			leaves;
	int64		unused;

	for (int i = 0; i < 1000; i++)
		take(&w, CAPACITY, false, true, false);
	leaves = w.leaves;
	unused = w.unused;
	for (int i = 0; i < 1000; i++)
	{
		take(&w, CAPACITY / 2, true, true, false);
		take(&w, CAPACITY, true, true, false);
	}
	unused = w.unused - unused;
	leaves = w.leaves - leaves;
	ok(unused <= (int64) leaves * LSM_UNUSED_ALLOWED + CAPACITY,
	   "after full leaves, bad ones may waste at most one page more");
}

static void
test_choice(void)
{
	ok(lsm_fill_may_copy(0, true, CAPACITY, CAPACITY - 100, false), "an empty leaf takes any page");
	ok(!lsm_fill_may_copy(0, true, CAPACITY, CAPACITY - 100, true),
	   "but not if the leaf may stay nearly empty");
	ok(lsm_fill_may_copy(0, false, LSM_UNUSED_ALLOWED, 0, true),
	   "a full page is copied after a nearly full leaf");
	ok(!lsm_fill_may_copy(0, false, LSM_UNUSED_ALLOWED + 1, 0, true), "but not after an emptier leaf");
	ok(lsm_fill_may_copy(1, false, LSM_UNUSED_ALLOWED + 1, 0, true), "unless there is credit");
	ok(!lsm_fill_may_copy(CAPACITY, false, LSM_UNUSED_ALLOWED + 1, LSM_UNUSED_ALLOWED + 1, false),
	   "a leaf with room is not closed for a page with room");
	ok(!lsm_fill_may_copy(CAPACITY, false, 700, CAPACITY - 700, false),
	   "entries that fit into the leaf go there");
}

int
main(void)
{
	test_choice();
	test_loads();
	test_any();
	test_limit();
	return done();
}
