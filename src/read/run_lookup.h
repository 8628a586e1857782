/*
 * run_lookup.h
 *	  Asks filters whether a run may contain the key or prefix that a seek looks for.
 */
#ifndef LSM_RUN_LOOKUP_H
#define LSM_RUN_LOOKUP_H

#include "read/run_filter.h"
#include "read/run_search.h"

extern bool lsm_run_lookup_hash(LsmReadContext *cx, int columns, uint64 *hash);
extern bool lsm_run_few_lack(LsmRunCursor *c);
extern bool lsm_run_lacks(LsmRunCursor *c);
extern void lsm_run_note_found(LsmRunCursor *c);
extern bool lsm_run_asks_filter(LsmRunCursor *c, uint32 *number);
extern bool lsm_run_filter_admits(LsmRunCursor *c);
extern bool lsm_run_read_keys(LsmRunCursor *c, LsmKeyHashes *keys, uint64 *low, uint64 *high);
extern bool lsm_run_make_key_filter(LsmRunCursor *c);

#endif							/* LSM_RUN_LOOKUP_H */
