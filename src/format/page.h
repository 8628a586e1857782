/*
 * page.h
 *	  What all pages of an lsm index have in common: the special area, page
 *	  kinds, the checksum of the content.
 *
 * Bytes only: no Relation, no locks.  Used by normal operation and by redo.
 * See "On-disk format" in src/README.md.
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

/* Page kinds; unlikely values, so that a foreign page is noticed. */
#define LSM_PAGE_META		0xA501
#define LSM_PAGE_GATE		0xA502
#define LSM_PAGE_MAP		0xA503
#define LSM_PAGE_BUFFER		0xA504
#define LSM_PAGE_LEAF		0xA505
#define LSM_PAGE_FENCE		0xA506
#define LSM_PAGE_DIRECTORY	0xA507
#define LSM_PAGE_FILTER		0xA508

/* Page flags. */
#define LSM_PAGE_OPEN		0x0001	/* buffer page: takes entries (I7) */
#define LSM_PAGE_HAS_REST	0x0002	/* entries have a rest part */
#define LSM_PAGE_CLOSED		0x0008	/* gate: no longer the current one */

typedef struct LsmPageOpaque
{
	uint64		owner;			/* segment; directory: run; fixed and map pages: 0 */
	uint64		stamp;			/* map and directory: the edit that changed it last;
								 * leaf and buffer page: how often entries were removed */
	BlockNumber self;			/* the page's own block number */
	uint32		crc;			/* CRC-32C of the content */
	uint32		verified;		/* in clean buffers: mark of the server that checked
								 * crc; on disk and in WAL without meaning */
	uint16		kind;			/* LSM_PAGE_* */
	uint16		flags;
} LsmPageOpaque;

StaticAssertDecl(sizeof(LsmPageOpaque) == 32, "LsmPageOpaque is part of the on-disk format");

/* Where a page's content begins, and where the special area does. */
#define LSM_PAGE_CONTENT	MAXALIGN(SizeOfPageHeaderData)
#define LSM_PAGE_SPECIAL	(BLCKSZ - sizeof(LsmPageOpaque))

/* Of any page: whether it is one of ours is for lsm_page_check_header to tell. */
#define lsm_page_opaque(page) ((LsmPageOpaque *) ((char *) (page) + LSM_PAGE_SPECIAL))

extern void lsm_page_init(Page page, uint16 kind, uint64 owner, BlockNumber self);
extern uint32 lsm_page_compute_crc(Page page);
extern void lsm_page_set_crc(Page page);
extern void lsm_page_unmark(Page page);
extern void lsm_gate_set_closed(Page page, bool closed);
extern const char *lsm_page_check_header(Page page, BlockNumber self);

#endif							/* LSM_PAGE_H */
