/*
 * buffers.h
 *	  Reads and checks the pages of an lsm index, reports damaged pages, and takes heavyweight
 *	  locks.
 */
#ifndef LSM_BUFFERS_H
#define LSM_BUFFERS_H

#include "base/compat.h"
#include "format/page.h"
#include "storage/bufmgr.h"

/* The kinds of page that a reader accepts, as a set. */
#define LSM_KIND(kind) (1 << ((kind) - LSM_PAGE_META))

/* How many blocks of lsm indexes this backend has not found in shared buffers so far. */
extern uint64 lsm_blocks_missed;

extern void lsm_report_corruption(Relation rel, BlockNumber block, const char *what)
			__attribute__((noreturn));
extern void lsm_buffer_extend_file(Relation rel, BlockNumber nblocks, bool buffered);
extern BufferAccessStrategy lsm_ring(BufferAccessStrategyType type);
extern Buffer lsm_buffer_read(Relation rel, BlockNumber block, int kinds, uint64 owner,
							  int lock_mode, BufferAccessStrategy strategy);
extern Buffer lsm_buffer_read_owned(Relation rel, BlockNumber block, uint16 kind, uint64 owner,
									int lock_mode, BufferAccessStrategy strategy);
extern Buffer lsm_buffer_lock_owned(Relation rel, Buffer buffer, bool missed, uint16 kind,
									uint64 owner, int lock_mode);
extern void lsm_buffer_recall_many(void);
extern void lsm_buffer_recall(Relation rel, BlockNumber block);
extern bool lsm_buffer_pin_checked(Relation rel, BlockNumber block, Buffer recent);
extern Buffer lsm_buffer_read_again(Relation rel, BlockNumber block, uint16 kind, uint64 owner,
									BufferAccessStrategy strategy, Buffer *recent);
extern bool lsm_buffer_find(Relation rel, BlockNumber block, Buffer *buffer);
extern void lsm_buffer_expect(Relation rel, BlockNumber block, uint32 offset, bool header);
extern Buffer lsm_buffer_read_recent(Relation rel, BlockNumber block, uint16 kind, uint64 owner,
									 BufferAccessStrategy strategy);
extern const char *lsm_buffer_verify(Relation rel, Buffer buffer, bool missed);
extern bool lsm_buffer_read_counted(Relation rel, BlockNumber block,
									BufferAccessStrategy strategy, Buffer *buffer);
extern bool lsm_buffer_ask(Relation rel, BlockNumber block);
extern bool lsm_buffer_ask_expected(Relation rel, BlockNumber block);
extern void lsm_buffer_write_new(Relation rel, BlockNumber block, Page page,
								 BufferAccessStrategy strategy);

/* locks.c */
extern bool lsm_merge_lock(Relation rel, LOCKMODE mode, bool wait);
extern void lsm_merge_unlock(Relation rel, LOCKMODE mode);
extern bool lsm_job_lock(Relation rel, uint64 job_id, bool wait);
extern void lsm_job_unlock(Relation rel, uint64 job_id);
extern void lsm_buffer_touch(Relation rel, BlockNumber block);
extern void lsm_publish_lock_shared(Relation rel);
extern void lsm_publish_unlock_shared(Relation rel);
extern void lsm_publish_lock_exclusive(Relation rel);
extern void lsm_publish_unlock_exclusive(Relation rel);
extern void lsm_key_lock(Relation rel, uint32 hash);
extern void lsm_key_unlock(Relation rel, uint32 hash);

/*
 * Copy a locked page, and release it.  Returns the copy, and sets *buffer to InvalidBuffer.
 *
 * If comparing keys may run user code, searches use copies.  User code must not hold up others who
 * need the page, and it must be possible to cancel it.
 */
static inline Page
lsm_buffer_leave(Buffer *buffer, PGAlignedBlock *copy)
{
	lsm_page_copy(copy->data, BufferGetPage(*buffer));
	UnlockReleaseBuffer(*buffer);
	*buffer = InvalidBuffer;
	return copy->data;
}

#endif							/* LSM_BUFFERS_H */
