/*
 * page_choice.h
 *	  Chooses which open page of the write buffer a writer takes, and how many pages are open.  All
 *	  functions are pure.
 */
#ifndef LSM_PAGE_CHOICE_H
#define LSM_PAGE_CHOICE_H

#include "postgres.h"

extern uint32 lsm_choice_page(uint32 own, uint32 attempt, uint32 count);
extern void lsm_choice_note_insert(int *pressure);
extern bool lsm_choice_note_wait(int *pressure);
extern uint32 lsm_choice_calm(uint32 restless);
extern uint32 lsm_choice_pages_to_keep(uint32 count, uint32 least, uint32 restless);

/* For this many seals after a wait, the number of open pages does not fall. */
#define LSM_RESTLESS_SEALS 4

#endif							/* LSM_PAGE_CHOICE_H */
