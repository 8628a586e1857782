/*
 * detached_key.h
 *	  Declares what alter_table.c calls to separate keys from their indexes.
 */
#ifndef LSM_DETACHED_KEY_H
#define LSM_DETACHED_KEY_H

#include "nodes/parsenodes.h"
#include "planner/planner.h"

/* An ALTER TABLE that runs. */
struct LsmAlterTable
{
	Oid			table;
	List	   *keys;			/* the detached keys */
	struct LsmAlterTable *outer;	/* the command that runs this one, or NULL */
};

extern void lsm_key_detach(LsmAlterTable *alter, Oid index_oid);
extern void lsm_key_expect(LsmAlterTable *alter, const IndexStmt *definition);
extern void lsm_keys_enter(LsmAlterTable *alter);

#endif							/* LSM_DETACHED_KEY_H */
