/* backend.h -- what the backend symbols that are replaced offer to tests. */
#ifndef BACKEND_H
#define BACKEND_H

#include "postgres.h"

#include <setjmp.h>

#include "storage/bufpage.h"

/* Where an error goes while a test expects one; else NULL. */
extern sigjmp_buf *backend_catch;

/* Free all memory that palloc has given. */
extern void backend_free_all(void);

/* A page beyond whose ends nothing may be touched, as far as any offset of 16 bits goes. */
extern char *backend_guarded_page(void);

/* How many blocks are free by a page of the space map. */
extern uint32 backend_count_free(Page page);

#endif
