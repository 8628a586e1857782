/*
 * page_choice.c
 *	  Which open page of the write buffer a writer takes, and how many pages are open.
 *
 * A backend counts how often it finds all pages locked (pressure).  If it waits at more
 * than one in seventeen inserts, the pressure grows until the backend opens another page.
 * The index counts the seals since the last wait of anybody (restless).  After
 * LSM_RESTLESS_SEALS of them, full pages are sealed without opening others in their place.
 */
#include "postgres.h"

#include "ingest/page_choice.h"

/* What a wait adds to the pressure, of which each insert without a wait takes 1 off. */
#define PRESSURE_OF_WAIT 16

/* The pressure that opens a page. */
#define PRESSURE_TO_OPEN 64

/* The page to try, of `count`: the backend's own one first, then the others in turn. */
uint32
lsm_choice_page(uint32 own, uint32 attempt, uint32 count)
{
	return ((uint64) own + attempt) % count;
}

/* An insert found a page that nobody had locked. */
void
lsm_choice_note_insert(int *pressure)
{
	if (*pressure > 0)
		(*pressure)--;
}

/* All pages were locked by others.  Is it time to open one more? */
bool
lsm_choice_note_wait(int *pressure)
{
	*pressure += PRESSURE_OF_WAIT;
	if (*pressure < PRESSURE_TO_OPEN)
		return false;
	*pressure /= 2;
	return true;
}

/* `restless` after another seal. */
uint32
lsm_choice_calm(uint32 restless)
{
	return restless > 0 ? restless - 1 : 0;
}

/* One of `count` open pages is full.  How many are to be open when it is sealed? */
uint32
lsm_choice_pages_to_keep(uint32 count, uint32 least, uint32 restless)
{
	return Max(restless > 0 ? count : 1, least);
}
