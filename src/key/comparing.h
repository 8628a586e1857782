/*
 * comparing.h
 *	  Calls comparison and hash functions, and records the indexes they are running for.
 */
#ifndef LSM_COMPARING_H
#define LSM_COMPARING_H

#include "key/column.h"
#include "utils/rel.h"

extern void lsm_compare_init(void);
extern bool lsm_compare_runs_user_code(const LsmColumn *column);
extern int32 lsm_compare_values(LsmColumn *column, FmgrInfo *cmp, Datum a, Datum b);
extern uint64 lsm_compare_hash(LsmColumn *column, Datum value);
extern void lsm_compare_check(Relation index);

#endif							/* LSM_COMPARING_H */
