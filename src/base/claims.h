/*
 * claims.h
 *	  Claims record which processes compact an index, and their progress.
 */
#ifndef LSM_CLAIMS_H
#define LSM_CLAIMS_H

#include "base/shared.h"

extern bool lsm_slot_claim(LsmIndexSlot *slot);
extern bool lsm_slot_claim_locked(LsmIndexSlot *slot, bool exclusive);
extern int	lsm_slot_claims(LsmIndexSlot *slot);
extern bool lsm_slot_has_claim(void);
extern void lsm_slot_release(void);
extern void lsm_progress(LsmIndexSlot *slot, LsmPhase phase, uint32 level, uint32 inputs,
						 uint32 total, uint32 done);

#endif							/* LSM_CLAIMS_H */
