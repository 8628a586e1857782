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
#include "format/map_page.h"
#include "format/meta.h"

/*
 * 128 is RM_EXPERIMENTAL_ID.  A released version needs an id of its own,
 * reserved on the PostgreSQL wiki.
 */
#define LSM_RMGR_ID			128
#define LSM_RMGR_NAME		"pg_lsm"

#define XLOG_LSM_INSERT		0x00
#define XLOG_LSM_SEAL		0x10
#define XLOG_LSM_EDIT		0x20
#define XLOG_LSM_SPACE		0x30
#define XLOG_LSM_DELETE		0x40
#define XLOG_LSM_GATE_FLIP	0x50
#define XLOG_LSM_GATE_DRAIN	0x60
#define XLOG_LSM_BATCH		0x70

/*
 * INSERT: one entry into the write buffer.
 * block 0: buffer page; its data is the item (lsm_item_encode)
 */
typedef struct xl_lsm_insert
{
	uint16		pos;			/* slot before which the item goes */
} xl_lsm_insert;

/*
 * SPACE: changes of the space map, also embedded in SEAL and BATCH.
 * block LSM_WAL_MAP_BLOCK + i: map page; its data is xl_lsm_map_page followed
 * by `count` LsmMapChange
 */
#define LSM_WAL_MAP_BLOCK	3
#define LSM_WAL_MAP_PAGES	4	/* most map pages that one record changes */

typedef struct xl_lsm_map_page
{
	BlockNumber self;			/* the page's own number, to initialise it */
	BlockNumber mapped_end;		/* invalid: unchanged */
	BlockNumber next;			/* invalid: unchanged */
	uint32		count;
} xl_lsm_map_page;

/* What SPACE, SEAL and BATCH carry as main data, first. */
typedef struct xl_lsm_space
{
	FullTransactionId conflict; /* newest freed extent that is reused, or 0 */
	LsmLocator	locator;
	uint8		is_catalog;		/* table is used by logical decoding's catalogs */
	uint8		reserved[3];
} xl_lsm_space;

/*
 * SEAL: close an open page, or open another, or both.
 * block 0: meta page; its data is the edit
 * block 1: page that is sealed (may be absent)
 * block 2: page that is opened, initialised by redo (may be absent)
 * block 3...: map pages (with block 2 only)
 */
typedef struct xl_lsm_seal
{
	xl_lsm_space space;
	uint32		page_flags;		/* of the new page */
	uint64		run_id;			/* of the new page; 0: there is none */
	BlockNumber block;			/* of the new page */
	uint32		reserved;
} xl_lsm_seal;

/*
 * BATCH: a small run, written and installed at once.  Main data: xl_lsm_space.
 * block 0: meta page; its data is the edit
 * block 3...: map pages
 * block LSM_WAL_IMAGE_BLOCK + i: full image of a page of the run
 */
#define LSM_WAL_IMAGE_BLOCK	(LSM_WAL_MAP_BLOCK + LSM_WAL_MAP_PAGES)

StaticAssertDecl(LSM_WAL_IMAGE_BLOCK + LSM_IMAGE_PAGES - 1 <= XLR_MAX_BLOCK_ID,
				 "a record cannot name so many blocks");

/*
 * EDIT: an edit of the manifest.
 * block 0: meta page; its data is the edit
 */

/*
 * DELETE: VACUUM removed entries from a page.
 * block 0: buffer page or leaf; its data is an array of uint16 ordinals
 */
typedef struct xl_lsm_delete
{
	uint16		count;
} xl_lsm_delete;

/*
 * GATE_FLIP: the other gate becomes the current one.
 * block 0: meta page  block 1: gate that is closed  block 2: gate that opens
 *
 * GATE_DRAIN: nobody uses a closed gate any more; redo waits for that.
 * block 0: the closed gate, under a cleanup lock
 */

#endif							/* LSM_WAL_H */
