/*
 * collation.h
 *	  Finds out whether a collation sorts strings in byte order.
 */
#ifndef LSM_COLLATION_H
#define LSM_COLLATION_H

#include "postgres.h"

extern bool lsm_collation_is_bytewise(Oid collation);

#endif							/* LSM_COLLATION_H */
