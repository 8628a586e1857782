/*
 * emit.h
 *	  Emits WAL records.
 */
#ifndef LSM_EMIT_H
#define LSM_EMIT_H

#include "format/wal.h"
#include "storage/buf.h"

/* A page that changes with an edit. */
typedef struct LsmWalPage
{
	Buffer		buffer;
	bool		init;			/* redo initializes the page */
	bool		image;			/* logged as a whole, without data */
	char	   *data;			/* the change; see page_change.h */
	Size		size;
} LsmWalPage;

extern void lsm_wal_prepare_edit(int pages);
extern void lsm_wal_new_page(Buffer buffer);
extern void lsm_wal_edit(Buffer meta, LsmEdit *edit, const LsmWalPage *pages, int count);
extern void lsm_wal_insert(Buffer buffer, uint16 pos, uint8 *item, uint32 size);
extern void lsm_wal_delete(Buffer buffer, uint16 *ordinals, int count, TransactionId horizon,
						   bool is_catalog);
extern void lsm_wal_gate_flip(Buffer meta, Buffer closed, Buffer opened);
extern void lsm_wal_gate_drain(Buffer gate);

#endif							/* LSM_EMIT_H */
