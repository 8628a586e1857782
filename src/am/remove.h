/*
 * remove.h
 *	  Removing entries from a page, for VACUUM and for scans.
 */
#ifndef LSM_REMOVE_H
#define LSM_REMOVE_H

#include "format/leaf.h"
#include "read/reader.h"
#include "storage/buf.h"
#include "utils/relcache.h"

/* remove.c */

/* Is the entry with this TID to be removed? */
typedef bool (*LsmDeadTest) (void *arg, uint64 tid);

extern int	lsm_remove_find(Relation rel, Buffer buffer, LsmDeadTest test, void *arg,
							LsmGroup *scratch, uint16 *ordinals, int *total);
extern void lsm_remove(Relation rel, Buffer buffer, uint16 *ordinals, int count,
					   TransactionId horizon, bool is_catalog, LsmGroup *scratch);

/* kill.c */

/* An entry whose row a scan has found to be dead to everybody. */
typedef struct LsmKilled
{
	LsmPageRef	page;
	uint64		tid;
} LsmKilled;

/* Those of a scan. */
typedef struct LsmKills
{
	int			count;
	int			room;
	LsmKilled  *killed;			/* NULL until there is one */
} LsmKills;

extern bool lsm_kill_is_full(const LsmKills *kills);
extern void lsm_kill_note(LsmKills *kills, const LsmReader *reader, const LsmEntry *entry,
						  Relation heap);
extern void lsm_kill_flush(LsmKills *kills, LsmReader *reader, Relation heap);

#endif							/* LSM_REMOVE_H */
