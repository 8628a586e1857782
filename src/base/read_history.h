/*
 * read_history.h
 *	  How often an index was read since one of its runs was written.
 *
 * Nobody counts that for each run.  But ids are given out in ascending order, so
 * it is enough to know which id was the next one when the index had been read so
 * and so often.  Of that there are samples, sparser the older they are: what is
 * i times as long ago needs to be known i times less exactly.
 *
 * Reads are counted by readers (LsmIndexSlot.reads), in units of a seek in a run.
 */
#ifndef LSM_READ_HISTORY_H
#define LSM_READ_HISTORY_H

#include "postgres.h"

/* Samples of class i are FIRST << i reads apart, at least. */
#define LSM_READ_CLASSES	20
#define LSM_READ_FIRST		1024

typedef struct LsmReadSample
{
	uint64		reads;			/* of the index so far */
	uint64		next_id;		/* runs with a smaller id were there; 0: no sample */
} LsmReadSample;

/* Zeroed at first. */
typedef struct LsmReadHistory
{
	LsmReadSample newer[LSM_READ_CLASSES];
	LsmReadSample older[LSM_READ_CLASSES];
} LsmReadHistory;

extern void lsm_read_history_note(LsmReadHistory *history, uint64 reads, uint64 next_id);
extern uint64 lsm_read_history_since(const LsmReadHistory *history, uint64 run_id, uint64 reads);

#endif							/* LSM_READ_HISTORY_H */
