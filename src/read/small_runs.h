/*
 * small_runs.h
 *	  Looks for many keys in all small runs at once.
 */
#ifndef LSM_SMALL_RUNS_H
#define LSM_SMALL_RUNS_H

#include "read/looked_for.h"
#include "read/read_context.h"

extern bool lsm_run_is_small(LsmCursor *cursor);
extern bool lsm_small_runs_probe(LsmCursor **cursors, int cursor_count, LsmProbe *probes,
								 Size count, LsmBound *low, LsmBound *high);

#endif							/* LSM_SMALL_RUNS_H */
