/*
 * on_conflict.h
 *	  INSERT ... ON CONFLICT: prepares indexes before PostgreSQL 18, and takes rows ahead.
 */
#ifndef LSM_ON_CONFLICT_H
#define LSM_ON_CONFLICT_H

#include "base/compat.h"

#include "executor/execdesc.h"

#ifndef LSM_UNIQUE_TAKES_ALL
/* on_conflict.c */
extern void lsm_on_conflict_start(QueryDesc *query);
extern bool lsm_on_conflict_may_route(QueryDesc *query);
extern void lsm_on_conflict_give_hint(void *arg);
#endif

/* look_ahead.c */
extern void lsm_look_ahead_init(void);
extern void lsm_look_ahead_start(QueryDesc *query);

/* look_ahead_plan.c */
extern bool lsm_may_look_ahead(QueryDesc *query);

#endif							/* LSM_ON_CONFLICT_H */
