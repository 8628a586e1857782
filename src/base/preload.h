/*
 * preload.h
 *	  Checks that the library was built for the server's block size and loaded at server start.
 */
#ifndef LSM_PRELOAD_H
#define LSM_PRELOAD_H

#include "postgres.h"

#include "utils/relcache.h"

extern bool lsm_preloaded;

extern PGDLLEXPORT void lsm_require_block_size(int server_size);
extern void lsm_require_preload(const char *way_out);
extern bool lsm_warn_of_preload(Relation index);

#endif							/* LSM_PRELOAD_H */
