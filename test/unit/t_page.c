/* t_page.c -- properties common to all pages: header checks, the checksum. */
#include "tap.h"

#include "format/leaf.h"
#include "format/page.h"

static PGAlignedBlock block;
static Page page = (Page) block.data;

static void
make_page(void)
{
	lsm_page_init(page, LSM_PAGE_LEAF, 77, 5);
	((PageHeader) page)->pd_lower = LSM_PAGE_CONTENT + 1000;
	((PageHeader) page)->pd_upper = LSM_PAGE_SPECIAL - 500;
	for (int i = LSM_PAGE_CONTENT; i < (int) LSM_PAGE_SPECIAL; i++)
		block.data[i] = rnd(256);
	lsm_page_set_crc(page);
}

static bool
crc_fits(void)
{
	return lsm_page_opaque(page)->crc == lsm_page_compute_crc(page);
}

/*
 * Flips each bit of the bytes [from, to) in turn. Returns whether every flip is detected, or none, as
 * expected.
 */
static bool
each_bit(int from, int to, bool noticed)
{
	for (int bit = from * 8; bit < to * 8; bit++)
	{
		bool		fits;

		block.data[bit / 8] ^= 1 << bit % 8;
		fits = crc_fits();
		block.data[bit / 8] ^= 1 << bit % 8;
		if (fits == noticed)
			return false;
	}
	return true;
}

static void
test_checksum(void)
{
	PageHeader	header = (PageHeader) page;
	const int	opaque = LSM_PAGE_SPECIAL;

	make_page();
	ok(crc_fits(), "the checksum of a page matches");
	ok(each_bit(LSM_PAGE_CONTENT, header->pd_lower, true) &&
	   each_bit(header->pd_upper, LSM_PAGE_SPECIAL, true), "the checksum covers the contents");
	ok(each_bit(opaque, opaque + offsetof(LsmPageOpaque, crc), true) &&
	   each_bit(opaque + offsetof(LsmPageOpaque, kind), BLCKSZ, true),
	   "the checksum covers the page's identity");
	ok(each_bit(header->pd_lower, header->pd_upper, false), "the checksum does not cover the hole");
	ok(each_bit(0, offsetof(PageHeaderData, pd_lower), false), "the checksum does not cover the fields that the server changes");
	ok(each_bit(opaque + offsetof(LsmPageOpaque, verified),
				opaque + offsetof(LsmPageOpaque, kind), false), "the checksum does not cover the mark of a verified page");
	lsm_page_opaque(page)->verified = 1;
	lsm_page_set_crc(page);
	ok(lsm_page_opaque(page)->verified == 0, "computing a new checksum clears the hint");
}

/* Is a page rejected after a change to a field of its header? */
#define refused(field, value) \
	(make_page(), ((PageHeader) page)->field = (value), lsm_page_check_header(page, 5) != NULL)

static void
test_header(void)
{
	make_page();
	ok(lsm_page_check_header(page, 5) == NULL, "a sound page is accepted");
	ok(lsm_page_check_header(page, 6) != NULL, "a page is refused in place of another");
	ok(refused(pd_lower, LSM_PAGE_CONTENT - 1) && refused(pd_lower, LSM_PAGE_SPECIAL) &&
	   refused(pd_upper, LSM_PAGE_SPECIAL + 1) && refused(pd_upper, LSM_PAGE_CONTENT),
	   "a page with wrong bounds is refused");
	ok(refused(pd_special, LSM_PAGE_SPECIAL - 8) && refused(pd_special, BLCKSZ) &&
	   refused(pd_special, 0xFFFF), "a page with its special area elsewhere is refused");
	make_page();
	lsm_page_opaque(page)->kind = LSM_PAGE_META - 1;
	ok(lsm_page_check_header(page, 5) != NULL, "a page of an unknown kind is refused");
	memset(block.data, 0, BLCKSZ);
	ok(lsm_page_check_header(page, 0) != NULL, "an empty page is rejected");
}

static void
test_gate(void)
{
	lsm_page_init(page, LSM_PAGE_GATE, 0, LSM_BLOCK_GATE);
	lsm_gate_set_closed(page, true);
	ok((lsm_page_opaque(page)->flags & LSM_PAGE_CLOSED) != 0 && crc_fits(), "a gate closes");
	lsm_gate_set_closed(page, false);
	ok((lsm_page_opaque(page)->flags & LSM_PAGE_CLOSED) == 0 && crc_fits(), "a gate opens");
}

/* Noise after a plausible header: only the checksum detects it. */
static void
test_noise(void)
{
	int			passed = 0;
	bool		told = true;

	for (int round = 0; round < 2000; round++)
	{
		for (int i = 0; i < BLCKSZ; i++)
			block.data[i] = rnd(256);
		((PageHeader) page)->pd_special = LSM_PAGE_SPECIAL;
		PageSetPageSizeAndVersion(page, BLCKSZ, PG_PAGE_LAYOUT_VERSION);
		((PageHeader) page)->pd_lower %= BLCKSZ;
		((PageHeader) page)->pd_upper %= BLCKSZ;
		lsm_page_opaque(page)->kind = LSM_PAGE_LEAF;
		lsm_page_opaque(page)->self = 5;
		if (lsm_page_check_header(page, 5) != NULL)
			continue;
		passed++;
		told &= !crc_fits();
	}
	ok(passed > 100 && told, "noise has no valid checksum");
}

int
main(void)
{
	test_checksum();
	test_header();
	test_gate();
	test_noise();
	return done();
}
