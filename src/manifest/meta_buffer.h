/*
 * meta_buffer.h
 *	  Locking the meta page; private to manifest/ and to the verifier.
 */
#ifndef LSM_META_BUFFER_H
#define LSM_META_BUFFER_H

#include "storage/bufmgr.h"
#include "utils/rel.h"

extern Buffer lsm_meta_lock(Relation rel, int mode);

#endif							/* LSM_META_BUFFER_H */
