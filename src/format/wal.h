/*
 * wal.h
 *	  WAL records of the pg_lsm resource manager.
 *
 * See the table "WAL and what a crash leaves" in src/README.md.
 */
#ifndef LSM_WAL_H
#define LSM_WAL_H

#include "access/xlogrecord.h"
#include "base/compat.h"
#include "format/meta.h"
#include "format/page_change.h"

/*
 * 128 is RM_EXPERIMENTAL_ID.  A released version needs an id of its own,
 * reserved on the PostgreSQL wiki.
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
	uint16		pos;			/* slot before which the item goes */
} xl_lsm_insert;

/*
 * EDIT: an edit of the manifest, and all other pages that change with it.
 * block 0: meta page; its data is the edit
 * block 1...: a page; its data is a change (format/page_change.h), or it has a
 * full image and no data: a page of a batch
 */
#define LSM_WAL_PAGES		31	/* most pages of an edit beside the meta page */

StaticAssertDecl(LSM_WAL_PAGES <= XLR_MAX_BLOCK_ID, "a record cannot name so many blocks");

/*
 * DELETE: VACUUM, or a scan, removed entries from a page.
 * block 0: buffer page or leaf; its data is an array of uint16 ordinals
 *
 * VACUUM of the table has settled what it removes with the queries of a standby.
 * A scan has not: its record has the horizon.
 */
typedef struct xl_lsm_delete
{
	TransactionId horizon;		/* snapshots that see no later transaction may need
								 * the entries; invalid: none does */
	uint16		count;
	bool		is_catalog;		/* of a table that logical decoding reads */
} xl_lsm_delete;

/*
 * GATE_FLIP: the other gate becomes the current one.
 * block 0: meta page  block 1: gate that is closed  block 2: gate that opens
 *
 * GATE_DRAIN: nobody uses a closed gate any more; redo waits for that.
 * block 0: the closed gate, under a cleanup lock
 */

#endif							/* LSM_WAL_H */
