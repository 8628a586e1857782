/*
 * run_probe.h
 *	  Looks for many keys in a run.
 */
#ifndef LSM_RUN_PROBE_H
#define LSM_RUN_PROBE_H

#include "read/looked_for.h"
#include "read/run_search.h"

extern bool lsm_run_has_filter(LsmCursor *cursor);
extern bool lsm_run_probe(LsmCursor *cursor, LsmProbe *probes, Size count, LsmBound *low,
						  LsmBound *high);
extern bool lsm_run_enter_single(LsmRunCursor *c, LsmProbe *probes, Size count, LsmBound *low);

#endif							/* LSM_RUN_PROBE_H */
