/*
 * leaf_read.h
 *	  Checks and decodes packed pages.
 */
#ifndef LSM_LEAF_READ_H
#define LSM_LEAF_READ_H

#include "format/leaf.h"

extern const char *lsm_leaf_check(Page page);
extern void lsm_group_init(LsmGroup *group, uint32 max_keylen);
extern void lsm_group_free(LsmGroup *group);
extern bool lsm_leaf_first_of_group(Page page, int group, LsmEntry *entry);
extern bool lsm_leaf_decode_group(Page page, int group, LsmGroup *out);
extern bool lsm_leaf_decode_around(Page page, int group, const LsmPlaceOfKey *sought,
								   int *from, int *to, LsmGroup *out);
extern int	lsm_leaf_decode_groups(Page page, int first, int last, LsmGroup *out);
extern int	lsm_leaf_decode_groups_before(Page page, int group, LsmGroup *out);

#endif							/* LSM_LEAF_READ_H */
