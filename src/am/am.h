/*
 * am.h
 *	  Declares the callbacks aminsert, amvalidate and amadjustmembers.
 */
#ifndef LSM_AM_H
#define LSM_AM_H

#include "base/compat.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

/* insert.c */
extern bool lsm_am_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						  Relation heap, IndexUniqueCheck check_unique, bool unchanged,
						  IndexInfo *info);

/* validate.c */
extern bool lsm_am_validate(Oid opclass);
extern void lsm_am_adjust_members(Oid opfamily, Oid opclass, List *operators, List *functions);

#endif							/* LSM_AM_H */
