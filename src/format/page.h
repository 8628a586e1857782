/*
 * page.h
 *	  Specifies what all pages of an lsm index have in common: the special area, page
 *	  kinds, the checksum.  Start here to read the on-disk format.
 *
 * Bytes only: no Relation, no locks.  Normal operation and redo use the same code.
 *
 * The header files of this directory specify the format, version 7
 * (LSM_FORMAT_VERSION; docs/design/format-history.md has the history).  Offsets
 * in them assume blocks of 8192 bytes.  The number before the meaning of a
 * struct's field is the field's offset in the struct.  Integers are in native
 * byte order, except within encoded keys (key/encode.c).  Padding is zero.
 *
 *		block	page										kind
 *		0		meta page, meta.h							LSM_PAGE_META
 *		1, 2	gates: only flag LSM_PAGE_CLOSED, no content	LSM_PAGE_GATE
 *		3		map page of the first region, map_page.h	LSM_PAGE_MAP
 *		others	map pages of further regions				LSM_PAGE_MAP
 *				leaves of segments, leaf.h					LSM_PAGE_LEAF
 *				fence pages of segments, leaf.h				LSM_PAGE_FENCE
 *				filter pages of segments, filter_page.h		LSM_PAGE_FILTER
 *				directory pages of runs, directory_page.h	LSM_PAGE_DIRECTORY
 *				buffer pages, buffer_page.h					LSM_PAGE_BUFFER
 *				free blocks: any former content
 *
 * An init fork has the four fixed pages.  segment_record.h gives the order of a
 * segment's pages.
 *
 * Every page is a standard PostgreSQL page:
 *
 *		0		24	PageHeaderData; pd_special is 8160
 *		24			content, up to pd_lower
 *					hole, up to pd_upper: its bytes have no meaning
 *					content, up to the special area
 *		8160	32	LsmPageOpaque
 *
 * The checksum is a CRC-32C over all content, pd_lower and the rest of the page header,
 * and the special area without `crc` and `verified`.  It leaves out what PostgreSQL
 * changes by itself: LSN, pd_checksum and pd_flags.  Open buffer pages have no valid
 * checksum (I7).
 *
 * The first reader of a page that came from disk checks the page, whichever
 * process read it in, and then marks it: `verified` gets a number that differs
 * between server starts and between databases.  The mark is set only while the
 * buffer is clean, and all code that changes a page clears the mark.  So the mark
 * never reaches the disk, where the page could be damaged before it is read again.
 * A page in a dirty buffer needs no mark: it was checked before it was changed.  On
 * an open page, the mark means that its layout was checked.  See lsm_buffer_verify.
 */
#ifndef LSM_PAGE_H
#define LSM_PAGE_H

#include "postgres.h"

#include "storage/block.h"
#include "storage/bufpage.h"

/* Fixed blocks. */
#define LSM_BLOCK_META		0
#define LSM_BLOCK_GATE		1	/* gates are blocks 1 and 2 */
#define LSM_BLOCK_MAP		3	/* map page of the first region */
#define LSM_FIXED_BLOCKS	4

/* Page kinds.  A foreign page is unlikely to have these values, so it is detected. */
#define LSM_PAGE_META		0xA501
#define LSM_PAGE_GATE		0xA502
#define LSM_PAGE_MAP		0xA503
#define LSM_PAGE_BUFFER		0xA504
#define LSM_PAGE_LEAF		0xA505
#define LSM_PAGE_FENCE		0xA506
#define LSM_PAGE_DIRECTORY	0xA507
#define LSM_PAGE_FILTER		0xA508

/* Page flags. */
#define LSM_PAGE_OPEN		0x0001	/* buffer page: accepts entries (I7) */
#define LSM_PAGE_HAS_REST	0x0002	/* entries have a rest */
#define LSM_PAGE_CLOSED		0x0008	/* gate: no longer the current one */
#define LSM_PAGE_DAMAGED	0x0010	/* redo changed the page although its checksum was wrong */

typedef struct LsmPageOpaque
{
	uint64		owner;			/* 0   id of the segment, or of a directory's run (I4);
								 * fixed and map pages: 0 */
	uint64		stamp;			/* 8   map and directory: the edit that last changed the page;
								 * leaf and buffer page: how often entries were removed */
	BlockNumber self;			/* 16  the page's own block number */
	uint32		crc;			/* 20  CRC-32C, see above */
	uint32		verified;		/* 24  in clean buffers, the mark, see above; has no
								 * meaning on disk and in WAL */
	uint16		kind;			/* 28  LSM_PAGE_* */
	uint16		flags;			/* 30  LSM_PAGE_*, see above */
} LsmPageOpaque;

StaticAssertDecl(sizeof(LsmPageOpaque) == 32, "LsmPageOpaque is part of the on-disk format");

/* Where a page's content and its special area begin. */
#define LSM_PAGE_CONTENT	MAXALIGN(SizeOfPageHeaderData)
#define LSM_PAGE_SPECIAL	(BLCKSZ - sizeof(LsmPageOpaque))

/* The special area of any page.  lsm_page_check_header tells whether the page is one of ours. */
#define lsm_page_opaque(page) ((LsmPageOpaque *) ((char *) (page) + LSM_PAGE_SPECIAL))

extern void lsm_page_init(Page page, uint16 kind, uint64 owner, BlockNumber self);
extern void lsm_page_copy(Page to, Page from);
extern uint32 lsm_page_compute_crc(Page page);
extern void lsm_page_set_crc(Page page);
extern bool lsm_page_crc_matches(Page page);
extern void lsm_page_unmark(Page page);
extern void lsm_gate_set_closed(Page page, bool closed);
extern const char *lsm_page_check_header(Page page, BlockNumber self);

#endif							/* LSM_PAGE_H */
