/* backend.h -- what the backend symbols that are replaced offer to tests. */
#ifndef BACKEND_H
#define BACKEND_H

#include "postgres.h"

#include <setjmp.h>

/* Where an error goes while a test expects one; else NULL. */
extern sigjmp_buf *backend_catch;

#endif
