/*
 * preload.h
 *	  Was the library loaded at server start?
 */
#ifndef LSM_PRELOAD_H
#define LSM_PRELOAD_H

#include "postgres.h"

extern bool lsm_preloaded;

extern void lsm_require_preload(void);

#endif							/* LSM_PRELOAD_H */
