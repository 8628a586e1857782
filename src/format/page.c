/*
 * page.c
 *	  Handles what all pages of an lsm index have in common.
 */
#include "postgres.h"

#include "format/page.h"
#include "port/pg_crc32c.h"

/* Make an empty page.  The content area is zeroed and belongs to the hole. */
void
lsm_page_init(Page page, uint16 kind, uint64 owner, BlockNumber self)
{
	LsmPageOpaque *opaque;

	PageInit(page, BLCKSZ, sizeof(LsmPageOpaque));
	opaque = lsm_page_opaque(page);
	opaque->owner = owner;
	opaque->self = self;
	opaque->kind = kind;
}

/* Copy a page, except for its hole. */
void
lsm_page_copy(Page to, Page from)
{
	uint32		lower = Min(((PageHeader) from)->pd_lower, BLCKSZ);
	uint32		upper = Min(((PageHeader) from)->pd_upper, BLCKSZ);

	/* In a damaged header, pd_lower and pd_upper may have any values. */
	if (lower > upper)
		lower = upper = 0;
	memcpy(to, from, lower);
	memcpy(to + upper, from + upper, BLCKSZ - upper);
}

/*
 * The checksum leaves out what PostgreSQL changes by itself (LSN, checksum and
 * flag bits of the header), the field `crc`, and the mark `verified`.
 */
uint32
lsm_page_compute_crc(Page page)
{
	const char *bytes = (const char *) page;
	const int	from = offsetof(PageHeaderData, pd_lower);
	const int	crc_at = LSM_PAGE_SPECIAL + offsetof(LsmPageOpaque, crc);
	const int	rest_at = LSM_PAGE_SPECIAL + offsetof(LsmPageOpaque, kind);
	const PageHeader header = (PageHeader) page;
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	/* The hole is not content: redo may have zeroed it. */
	COMP_CRC32C(crc, bytes + from, header->pd_lower - from);
	COMP_CRC32C(crc, bytes + header->pd_upper, crc_at - header->pd_upper);
	COMP_CRC32C(crc, bytes + rest_at, BLCKSZ - rest_at);
	FIN_CRC32C(crc);
	return crc;
}

/* Returns true also for an open page, which has no checksum (I7). */
bool
lsm_page_crc_matches(Page page)
{
	const LsmPageOpaque *opaque = lsm_page_opaque(page);

	return (opaque->kind == LSM_PAGE_BUFFER && (opaque->flags & LSM_PAGE_OPEN) != 0) ||
		opaque->crc == lsm_page_compute_crc(page);
}

/* Remove the `verified` mark.  All code that changes a page must do this. */
void
lsm_page_unmark(Page page)
{
	lsm_page_opaque(page)->verified = 0;
}

void
lsm_page_set_crc(Page page)
{
	lsm_page_unmark(page);
	lsm_page_opaque(page)->crc = lsm_page_compute_crc(page);
}

/* A closed gate tells the scans that pin it to move to the other gate. */
void
lsm_gate_set_closed(Page page, bool closed)
{
	if (closed)
		lsm_page_opaque(page)->flags |= LSM_PAGE_CLOSED;
	else
		lsm_page_opaque(page)->flags &= ~LSM_PAGE_CLOSED;
	lsm_page_set_crc(page);
}

/*
 * Check the header and the special area of a page.  Returns what is wrong, for an
 * error message, or NULL.  Does not check the checksum.
 */
const char *
lsm_page_check_header(Page page, BlockNumber self)
{
	PageHeader	header = (PageHeader) page;
	LsmPageOpaque *opaque;

	if (PageIsNew(page))
		return "page is empty";
	if (header->pd_special != LSM_PAGE_SPECIAL ||
		PageGetPageSize(page) != BLCKSZ ||
		header->pd_lower < LSM_PAGE_CONTENT ||
		header->pd_lower > header->pd_upper ||
		header->pd_upper > header->pd_special)
		return "page header is damaged";
	opaque = lsm_page_opaque(page);
	if (opaque->kind < LSM_PAGE_META || opaque->kind > LSM_PAGE_FILTER)
		return "page kind is unknown";
	if (opaque->self != self)
		return "page belongs to another block";
	return NULL;
}
