/*
 * check_slots.h
 *	  Slots in shared memory that show the progress of lsm_check.
 */
#ifndef LSM_CHECK_SLOTS_H
#define LSM_CHECK_SLOTS_H

#include "base/shared.h"

extern LsmCheckSlot *lsm_check_slot_take(Oid index);
extern void lsm_check_slot_return(LsmCheckSlot *slot);

#endif							/* LSM_CHECK_SLOTS_H */
