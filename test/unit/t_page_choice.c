/*
 * t_page_choice.c -- which open page a writer takes, when it opens another page, and when fewer
 * stay open.
 */
#include "tap.h"

#include "ingest/page_choice.h"

static void
test_page(void)
{
	bool		each_once = true;

	for (uint32 count = 1; count <= 8; count++)
	{
		for (uint32 own = PG_UINT32_MAX - 10; own != 10; own++)
		{
			uint32		seen = 0;

			for (uint32 attempt = 0; attempt < count; attempt++)
				seen |= 1u << lsm_choice_page(own, attempt, count);
			each_once &= seen == (1u << count) - 1;
		}
	}
	ok(lsm_choice_page(5, 0, 4) == 1, "page: the backend's own page first");
	ok(lsm_choice_page(3, 1, 4) == 0, "then the others in turn");
	ok(each_once, "each page once, whatever the backend's number");
}

/* The number of inserts until a page is opened, if every n-th insert waits; 0: none is opened. */
static int
inserts_until_open(int every)
{
	int			pressure = 0;

	for (int i = 1; i <= 100000; i++)
	{
		if (i % every != 0)
			lsm_choice_note_insert(&pressure);
		else if (lsm_choice_note_wait(&pressure))
			return i;
	}
	return 0;
}

static void
test_wait(void)
{
	int			pressure = 0;
	int			opened = 0;

	ok(inserts_until_open(1) == 4, "waits: the fourth in a row opens a page");
	ok(inserts_until_open(4) > 4 && inserts_until_open(4) < 40,
	   "waits: one insert in four opens a page soon");
	ok(inserts_until_open(16) > 100, "waits: one insert in sixteen eventually opens a page");
	ok(inserts_until_open(17) == 0 && inserts_until_open(1000) == 0, "waits: rare waits never do");
	for (int i = 0; i < 100; i++)
		opened += lsm_choice_note_wait(&pressure);
	ok(opened == 49, "waits: opening the next page takes further waits");
	for (int i = 0; i < 1000; i++)
		lsm_choice_note_insert(&pressure);
	ok(pressure == 0, "waits: the pressure does not fall below zero");
}

static void
test_keep(void)
{
	uint32		restless = LSM_RESTLESS_SEALS;
	uint32		seals = 0;

	ok(lsm_choice_pages_to_keep(5, 1, 1) == 5,
	   "full page: after a wait, as many pages stay open as before");
	ok(lsm_choice_pages_to_keep(5, 1, 0) == 1, "full page: one page suffices if nobody has waited recently");
	ok(lsm_choice_pages_to_keep(2, 3, 1) == 3 && lsm_choice_pages_to_keep(2, 3, 0) == 3,
	   "full page: but at least as many as configured");
	ok(lsm_choice_pages_to_keep(0, 1, 1) == 1, "full page: never none");
	while (lsm_choice_pages_to_keep(5, 1, restless) == 5 && seals < 100)
	{
		restless = lsm_choice_calm(restless);
		seals++;
	}
	ok(seals == LSM_RESTLESS_SEALS, "full page: a wait is remembered for some seals");
	ok(lsm_choice_calm(0) == 0, "full page: but no longer");
}

int
main(void)
{
	test_page();
	test_wait();
	test_keep();
	return done();
}
