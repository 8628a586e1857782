/*
 * wal.h
 *	  Specifies the WAL records of the pg_lsm resource manager.
 *
 * Redo changes only the blocks that a record names, with the mutators in this
 * directory.  It locks the blocks in the same order as normal operation.  The fixed
 * pages, and the pages of segments that steps write, are logged as core's full page
 * images (XLOG_FPI).
 *
 *		INSERT		one entry goes into a buffer page
 *		EDIT		the manifest changes, with all pages that change with it
 *		DELETE		entries are removed from a leaf or buffer page
 *		GATE_FLIP	the other gate becomes the current one
 *		GATE_DRAIN	nobody uses the closed gate any more
 *
 * "What a crash leaves" in src/README.md says what holds after each record.
 */
#ifndef LSM_WAL_H
#define LSM_WAL_H

#include "access/xlogrecord.h"
#include "base/compat.h"
#include "format/meta.h"
#include "format/page_change.h"

/*
 * 128 is RM_EXPERIMENTAL_ID.  A released version needs an id of its own,
 * reserved on the PostgreSQL wiki; see RELEASING.md.
 */
#define LSM_RMGR_ID			128
#define LSM_RMGR_NAME		"pg_lsm"

#define XLOG_LSM_INSERT		0x00
#define XLOG_LSM_EDIT		0x10
#define XLOG_LSM_DELETE		0x20
#define XLOG_LSM_GATE_FLIP	0x30
#define XLOG_LSM_GATE_DRAIN	0x40

/*
 * INSERT: one entry into the write buffer.
 * block 0: buffer page; its data is the item (lsm_item_encode)
 */
typedef struct xl_lsm_insert
{
	uint16		pos;			/* 0   slot before which the item goes */
} xl_lsm_insert;

/*
 * EDIT: an edit of the manifest, and all other pages that change with it.
 * block 0: meta page; its data is the edit
 * block 1...: another page; its data is a change (format/page_change.h).  A page of a
 * batch has a full image instead of data.
 */
#define LSM_WAL_PAGES		31	/* most pages in an edit, not counting the meta page */

StaticAssertDecl(LSM_WAL_PAGES <= XLR_MAX_BLOCK_ID, "too many blocks for a WAL record");

/*
 * DELETE: VACUUM, or a scan, removed entries from a page.
 * block 0: buffer page or leaf; its data is an array of uint16 ordinals
 *
 * Before VACUUM removes entries, the heap's own records have resolved conflicts with
 * queries on a standby.  If a scan removes entries, nothing has resolved conflicts
 * yet, so the scan's record has a horizon.
 */
typedef struct xl_lsm_delete
{
	TransactionId horizon;		/* 0   snapshots that see no later transaction may need
								 * the entries; invalid: no snapshot does */
	uint16		count;			/* 4   ordinals */
	bool		is_catalog;		/* 6   logical decoding may read the table */
} xl_lsm_delete;

/*
 * GATE_FLIP: the other gate becomes the current one.
 * block 0: meta page  block 1: gate that is closed  block 2: gate that opens
 *
 * GATE_DRAIN: nobody uses a closed gate any more.  Redo waits until this is true.
 * block 0: the closed gate, under a cleanup lock
 */

#endif							/* LSM_WAL_H */
