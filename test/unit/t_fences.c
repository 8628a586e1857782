/* t_fences.c -- the estimated number of fence pages is never less than the actual number. */
#include "tap.h"

#include "backend.h"
#include "segment/fences.h"

#define MOST_LEAVES 1024
#define ROUNDS		400

typedef enum Shape
{
	SHORT,
	ANY,						/* up to the maximum length */
	LONG,
	FEW_LONG,					/* one in twenty has the maximum length */
	FIRST_LONG					/* only the first has the maximum length */
} Shape;

static uint32
random_length(Shape shape, int i)
{
	switch (shape)
	{
		case SHORT:
			return rnd(40);
		case ANY:
			return rnd(LSM_MAX_ENTRY_SIZE + 1);
		case LONG:
			return LSM_MAX_ENTRY_SIZE / 2 + rnd(LSM_MAX_ENTRY_SIZE / 2);
		case FEW_LONG:
			return rnd(20) == 0 ? LSM_MAX_ENTRY_SIZE : 600;
		case FIRST_LONG:
			return i == 0 ? LSM_MAX_ENTRY_SIZE : 1160 + rnd(140);
	}
	return 0;
}

/*
 * Count fence pages as they are written. Each level is written in order, and begins a new page when
 * the current one is full. The first entry of each page goes to the next level up.
 */
static uint32
write_fences(const uint32 *lengths, uint32 count, uint32 overhead)
{
	uint32		below[MOST_LEAVES];
	uint32		all = 0;

	memcpy(below, lengths, count * sizeof(uint32));
	while (count > 1)
	{
		uint32		pages = 0;
		uint32		entries = 0;
		Size		used = 0;

		for (uint32 i = 0; i < count; i++)
		{
			Size		size = below[i] + overhead;

			if (pages == 0 || used + size > LSM_LEAF_CAPACITY || entries >= lsm_fences_most_entries())
			{
				below[pages++] = below[i];
				used = 0;
				entries = 0;
			}
			used += size;
			entries++;
		}
		all += pages;
		count = pages;
	}
	return all;
}

/*
 * Returns the number of rounds with too few estimated pages. Sets *excess to the largest excess
 * beyond two pages, relative to the number of leaves.
 */
static int
count_short(Shape shape, double *excess)
{
	int			wrong = 0;

	for (int round = 0; round < ROUNDS; round++)
	{
		uint32		lengths[MOST_LEAVES];
		uint32		count = 2 + rnd(MOST_LEAVES - 1);
		uint32		overhead = rnd(LSM_FENCE_OVERHEAD + 1);
		LsmFences	fences = {0};
		uint32		written;

		for (uint32 i = 0; i < count; i++)
		{
			lengths[i] = random_length(shape, i);
			lsm_fences_add(&fences, lengths[i]);
		}
		written = write_fences(lengths, count, overhead);
		wrong += lsm_fences_count(&fences) < written;
		*excess = Max(*excess, ((double) lsm_fences_count(&fences) - written - 2) / count);
	}
	return wrong;
}

int
main(void)
{
	const struct
	{
		Shape		shape;
		const char *name;
		double		most_excess;
	}			cases[] = {
		{SHORT, "the estimate suffices for short separators", 0.02},
		{ANY, "the estimate suffices for separators of any length", 0.25},
		{LONG, "the estimate suffices for long separators", 0.25},
		{FEW_LONG, "the estimate suffices for a few long separators", 0.15},
		{FIRST_LONG, "the estimate suffices if the first separator is the longest", 0.25},
	};

	for (int entries = 0; entries <= 3; entries += 3)
	{
		lsm_page_entries = entries;
		for (int i = 0; i < lengthof(cases); i++)
		{
			double		excess = 0;

			ok(count_short(cases[i].shape, &excess) == 0, cases[i].name);
			printf("# the estimate is at most 2 pages + %.2f per leaf too high\n", excess);
			ok(excess <= cases[i].most_excess, "the estimate is not much too high");
		}
	}
	return done();
}
