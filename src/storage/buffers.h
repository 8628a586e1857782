/*
 * buffers.h
 *	  Reading pages of an lsm index, checked, and reporting damaged ones.
 */
#ifndef LSM_BUFFERS_H
#define LSM_BUFFERS_H

#include "base/compat.h"
#include "format/page.h"

/* Kinds that a reader accepts, as a set. */
#define LSM_KIND(kind) (1 << ((kind) - LSM_PAGE_META))

extern void lsm_report_corruption(Relation rel, BlockNumber block, const char *what)
			__attribute__((noreturn));
extern Buffer lsm_buffer_read(Relation rel, BlockNumber block, int kinds, uint64 run_id,
							  int lock_mode, BufferAccessStrategy strategy);
extern const char *lsm_buffer_verify(Relation rel, Buffer buffer, bool missed);
extern bool lsm_buffer_read_counted(Relation rel, BlockNumber block,
									BufferAccessStrategy strategy, Buffer *buffer);
extern void lsm_buffer_write_new(Relation rel, BlockNumber block, Page page,
								 BufferAccessStrategy strategy);

/* The compaction lock: first in the lock order. */
extern bool lsm_compaction_lock(Relation rel, bool wait);
extern void lsm_compaction_unlock(Relation rel);

#endif							/* LSM_BUFFERS_H */
