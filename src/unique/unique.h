/*
 * unique.h
 *	  The checks of unique indexes; see docs/design/unique.md.
 */
#ifndef LSM_UNIQUE_H
#define LSM_UNIQUE_H

#include "scan/kill_dead.h"
#include "ingest/batch.h"
#include "nodes/execnodes.h"

/* The state of a statement's checks. */
typedef struct LsmUnique LsmUnique;

/* What a probe has found. */
typedef struct LsmConflict
{
	bool		found;			/* another row has the key, or may have it */
	TransactionId xid;			/* if found: the running transaction to wait for, or invalid */
	uint32		token;			/* if found: the token of that row's speculative insertion, or 0 */
	bool		found_own;		/* the new row's entry was found */
} LsmConflict;

extern LsmUnique *lsm_unique_create(LsmIndex *index, LsmKeySpace *ks);
extern bool lsm_unique_lock_and_check(LsmUnique *unique, Relation heap, const LsmEntry *entry,
									  IndexUniqueCheck mode);
extern void lsm_unique_unlock(LsmUnique *unique);
extern void lsm_unique_check_existing(LsmUnique *unique, Relation heap, const LsmEntry *entry);
extern void lsm_unique_report_build(Relation index, Relation heap, LsmKeySpace *ks,
									const LsmEntry *entry);

/* For unique_batch.c and look_ahead_keys.c.  am/insert.c uses lsm_unique_end, too. */
extern void lsm_unique_end(LsmUnique *unique);
extern LsmReader *lsm_unique_reader(LsmUnique *unique, bool needs_gate);
extern void lsm_unique_probe(LsmUnique *unique, Relation heap, const LsmEntry *own,
							 LsmConflict *conflict, LsmKills *kills);
extern void lsm_unique_flush_kills(LsmUnique *unique, Relation heap, LsmKills *kills);
extern void lsm_unique_wait(LsmUnique *unique, const LsmEntry *own, const LsmConflict *conflict);
extern bool lsm_unique_is_alive(Relation heap, const LsmEntry *own);
extern void lsm_unique_report(LsmUnique *unique, Relation heap, const LsmEntry *own,
							  const LsmCopyLines *lines);

/* unique_batch.c */
extern const LsmBatchGuard lsm_unique_guard;
extern void lsm_unique_look_for(LsmUnique *unique, LsmIndex *index, LsmKeySpace *ks,
								const LsmItemRef *refs, Size count, LsmLookedFor *known);

#endif							/* LSM_UNIQUE_H */
