/*
 * truncate.h
 *	  VACUUM's truncation of the index file.
 */
#ifndef LSM_TRUNCATE_H
#define LSM_TRUNCATE_H

#include "index/index.h"

extern void lsm_truncate(LsmIndex *index);

#endif							/* LSM_TRUNCATE_H */
