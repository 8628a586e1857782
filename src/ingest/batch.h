/*
 * batch.h
 *	  Keeps entries in backend memory until their statement ends.
 *
 * ingest/statement.c decides which entries may wait. docs/design/batches.md explains why waiting is
 * sound.
 */
#ifndef LSM_BATCH_H
#define LSM_BATCH_H

#include "index/index.h"
#include "ingest/copy_lines.h"
#include "sort/entries.h"

typedef struct LsmBatch LsmBatch;

/* Changes when the transaction's batches are freed, so that callers do not use old pointers. */
extern uint64 lsm_batch_generation;

extern LsmBatch *lsm_batch_get(Relation index, Relation heap);
extern void lsm_batch_add(LsmBatch *batch, Relation index, Relation heap,
						  const LsmEntry *entry, CommandId seen_from);

/*
 * The callbacks that run when a batch of a unique index is written. `enter` checks the sorted
 * entries, some of which may already be in the index. From the return of `enter` until `leave`,
 * nobody else adds entries whose keys must be unique. If `raises` is false, `enter` raises no error
 * for a violation, and the entries are checked again once they are in the index. `lines` says which
 * lines of a COPY the rows came from.
 */
typedef struct LsmBatchGuard
{
	void		(*enter) (LsmIndex *index, LsmKeySpace *ks, Relation heap,
						  const LsmItemRef *refs, Size count, bool raises,
						  const LsmCopyLines *lines);
	void		(*leave) (LsmIndex *index);
} LsmBatchGuard;

extern bool lsm_batch_begin_guarded(LsmBatch *batch, const LsmBatchGuard *guard,
									uint64 statement);
extern void lsm_batch_flush_statement(uint64 statement);

extern void lsm_batch_flush_all(void);
extern void lsm_batch_flush_index(Relation index);
extern void lsm_batch_flush_for_scan(Relation index, Snapshot snapshot);

extern void lsm_batch_end_subtransaction(int level, bool commit);
extern void lsm_batch_forget_all(void);

#endif							/* LSM_BATCH_H */
