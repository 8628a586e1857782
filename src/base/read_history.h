/*
 * read_history.h
 *	  Estimates how often an index was read since one of its runs was written.
 *
 * Reads are not counted for each run.  Instead, a sample records the number of reads and the next
 * id at some time.  Ids ascend, so the sample shows which runs existed then.  Older samples are
 * sparser, since an older run's age may be less exact.
 *
 * Readers count the reads (LsmIndexSlot.reads), in seeks of one run.
 */
#ifndef LSM_READ_HISTORY_H
#define LSM_READ_HISTORY_H

#include "postgres.h"

/* Samples of class i are at least LSM_READ_FIRST << i reads apart. */
#define LSM_READ_CLASSES	20
#define LSM_READ_FIRST		1024

typedef struct LsmReadSample
{
	uint64		reads;			/* reads of the index up to the sample */
	uint64		next_id;		/* runs with lower ids existed; 0: no sample */
} LsmReadSample;

/* Initially zeroed. */
typedef struct LsmReadHistory
{
	LsmReadSample newer[LSM_READ_CLASSES];
	LsmReadSample older[LSM_READ_CLASSES];
} LsmReadHistory;

extern void lsm_read_history_note(LsmReadHistory *history, uint64 reads, uint64 next_id);
extern uint64 lsm_read_history_since(const LsmReadHistory *history, uint64 run_id, uint64 reads);

#endif							/* LSM_READ_HISTORY_H */
