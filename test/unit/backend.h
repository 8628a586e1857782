/* backend.h -- what the replacements of backend symbols offer to tests. */
#ifndef BACKEND_H
#define BACKEND_H

#include "postgres.h"

#include <setjmp.h>

#include "storage/bufpage.h"

/* The place to jump to after an error, while a test expects one; otherwise NULL. */
extern sigjmp_buf *backend_catch;

/* Free all memory allocated by palloc. */
extern void backend_free_all(void);

/*
 * A page between guards: a test fails if code touches bytes beyond the page's ends within the reach
 * of a 16-bit offset.
 */
extern char *backend_guarded_page(void);

/* Returns how many blocks are free according to a page of the space map. */
extern uint32 backend_count_free(Page page);

#endif
