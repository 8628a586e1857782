/*
 * recovery.h
 *	  Declares the callbacks of the WAL resource manager.
 */
#ifndef LSM_RECOVERY_H
#define LSM_RECOVERY_H

#include "base/compat.h"

extern void lsm_rmgr_redo(XLogReaderState *record);
extern void lsm_rmgr_desc(StringInfo buf, XLogReaderState *record);
extern const char *lsm_rmgr_identify(uint8 info);
extern void lsm_rmgr_mask(char *pagedata, BlockNumber block);

#endif							/* LSM_RECOVERY_H */
