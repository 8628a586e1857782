/*
 * unique.h
 *	  The checks of unique indexes; see "Unique" in src/README.md.
 */
#ifndef LSM_UNIQUE_H
#define LSM_UNIQUE_H

#include "am/remove.h"
#include "nodes/execnodes.h"

/* What a statement keeps for its checks. */
typedef struct LsmUnique LsmUnique;

extern LsmUnique *lsm_unique_create(LsmIndex *index, LsmKeySpace *ks);
extern bool lsm_unique_applies(const LsmKeySpace *ks, Relation index, const bool *isnull);
extern bool lsm_unique_lock_and_check(LsmUnique *unique, Relation heap, const LsmEntry *entry,
									  IndexUniqueCheck mode);
extern void lsm_unique_unlock(LsmUnique *unique);
extern void lsm_unique_check_existing(LsmUnique *unique, Relation heap, const LsmEntry *entry);
extern void lsm_unique_report_build(Relation index, Relation heap, LsmKeySpace *ks,
									const LsmEntry *entry);

#endif							/* LSM_UNIQUE_H */
