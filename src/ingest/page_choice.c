/*
 * page_choice.c
 *	  Chooses which open page of the write buffer a writer takes, and how many pages are open.
 *
 * A backend keeps a measure of how often it finds all pages locked (pressure).  If it waits in more
 * than one in seventeen inserts, the pressure grows until the backend opens another page.  The
 * index has a counter (restless).  A wait sets it to LSM_RESTLESS_SEALS, and each page that inserts
 * fill and seal counts it down.  At zero, writers seal full pages without opening others in their
 * place.
 */
#include "postgres.h"

#include "ingest/page_choice.h"

/* Each wait adds this to the pressure.  Each insert without a wait subtracts 1. */
#define PRESSURE_OF_WAIT 16

/* At this pressure, the backend opens another page. */
#define PRESSURE_TO_OPEN 64

/*
 * Returns the number of the page to try.  The backend tries its own page first, then the others in
 * turn.
 */
uint32
lsm_choice_page(uint32 own, uint32 attempt, uint32 count)
{
	return ((uint64) own + attempt) % count;
}

/* Note that an insert found a page that nobody had locked. */
void
lsm_choice_note_insert(int *pressure)
{
	if (*pressure > 0)
		(*pressure)--;
}

/* Note that other processes had locked all pages.  Is it time to open one more? */
bool
lsm_choice_note_wait(int *pressure)
{
	*pressure += PRESSURE_OF_WAIT;
	if (*pressure < PRESSURE_TO_OPEN)
		return false;
	*pressure /= 2;
	return true;
}

/* Returns the value of `restless` after an insert has sealed a full page. */
uint32
lsm_choice_calm(uint32 restless)
{
	return restless > 0 ? restless - 1 : 0;
}

/* Returns how many pages should be open after one of the `count` open pages is full and sealed. */
uint32
lsm_choice_pages_to_keep(uint32 count, uint32 least, uint32 restless)
{
	return Max(restless > 0 ? count : 1, least);
}
