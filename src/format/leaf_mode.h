/*
 * leaf_mode.h
 *	  Determines the mode of a segment; see LsmLeafMode.
 */
#ifndef LSM_LEAF_MODE_H
#define LSM_LEAF_MODE_H

#include "format/leaf.h"

extern void lsm_mode_init(LsmLeafMode *mode);
extern void lsm_mode_add(LsmLeafMode *mode, const LsmEntry *entry);
extern void lsm_mode_cover(LsmLeafMode *mode, uint64 tid);
extern void lsm_mode_join(LsmLeafMode *mode, const LsmLeafMode *other);
extern void lsm_mode_of_page(Page page, LsmLeafMode *mode);
extern void lsm_mode_settle(LsmLeafMode *mode, uint32 usual_keylen);
extern int	lsm_mode_tid_bytes(BlockNumber base_block, BlockNumber last_block, int offset_bits);

#endif							/* LSM_LEAF_MODE_H */
