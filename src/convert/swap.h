/*
 * swap.h
 *	  Declares what swap.c offers to the other steps of lsm_convert.
 */
#ifndef LSM_SWAP_H
#define LSM_SWAP_H

extern Oid	lsm_owned_table(Oid index);
extern void lsm_replace_classes(Oid index, const oidvector *before, const oidvector *after,
								int columns);

#endif							/* LSM_SWAP_H */
