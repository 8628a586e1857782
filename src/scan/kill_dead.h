/*
 * kill_dead.h
 *	  Removes entries whose rows scans have found dead.
 */
#ifndef LSM_KILL_DEAD_H
#define LSM_KILL_DEAD_H

#include "read/reader.h"

/* An entry whose row a scan has found to be dead to everybody. */
typedef struct LsmKilled
{
	LsmPageRef	page;
	uint64		tid;
} LsmKilled;

/* The dead entries that a scan has noted. */
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

#endif							/* LSM_KILL_DEAD_H */
