/*
 * convert.h
 *	  What the functions of lsm_convert share.
 */
#ifndef LSM_CONVERT_H
#define LSM_CONVERT_H

extern Oid	lsm_owned_table(Oid index);
extern void lsm_replace_classes(Oid index, const oidvector *before, const oidvector *after,
								int columns);

#endif							/* LSM_CONVERT_H */
