/* t_buffer_page.c -- the write buffer's page. */
#include "tap.h"

#include "format/buffer_page.h"

static PGAlignedBlock block;

static bool
get_number(int pos, int *number)
{
	LsmEntry	e;

	if (!lsm_buffer_page_get((Page) block.data, pos, &e) || e.keylen != 4)
		return false;
	memcpy(number, e.key, 4);
	return e.tid == (uint64) *number + 65536 && e.restlen == 2 && memcmp(e.rest, "zz", 2) == 0;
}

static bool
insert(int pos, int number)
{
	uint8		item[64];
	uint8		key[4];
	LsmEntry	e = {.key = key,.keylen = 4,.rest = (const uint8 *) "zz",.restlen = 2,.tid = (uint64) number + 65536};
	uint32		size;

	memcpy(key, &number, 4);
	size = lsm_item_encode(item, &e);
	if (!lsm_buffer_page_fits((Page) block.data, size))
		return false;
	lsm_buffer_page_insert((Page) block.data, pos, item, size);
	return true;
}

int
main(void)
{
	Page		page = (Page) block.data;
	bool		good = true;
	int			n = 0;
	uint16		dead[BLCKSZ];
	int			dead_count = 0;
	int			number;

	lsm_page_init(page, LSM_PAGE_BUFFER, 9, 4);
	lsm_page_opaque(page)->flags = LSM_PAGE_OPEN;
	/* Each goes to the front or, every third time, to the end. */
	while (insert(n % 3 ? 0 : n, n))
		n++;
	ok(n > 300 && lsm_buffer_page_count(page) == n, "takes entries until it is full");
	ok(lsm_buffer_page_check(page) == NULL, "is sound then");
	ok(get_number(0, &number) && number == (((n - 1) % 3) ? n - 1 : n - 2), "inserts at the front");

	for (int i = 0; i < n; i += 2)
		dead[dead_count++] = i;
	lsm_buffer_page_delete(page, dead, dead_count);
	for (int i = 0; i < n - dead_count; i++)
		good &= get_number(i, &number);
	ok(good && lsm_buffer_page_count(page) == n - dead_count, "keeps the others when some are removed");
	ok(insert(0, 1), "has room again");

	lsm_buffer_page_seal(page);
	ok(!(lsm_page_opaque(page)->flags & LSM_PAGE_OPEN) &&
	   lsm_page_opaque(page)->crc == lsm_page_compute_crc(page), "has a checksum once it is sealed");

	for (int round = 0; round < 20000; round++)
	{
		LsmEntry	e;

		block.data[LSM_PAGE_CONTENT + rnd(LSM_PAGE_SPECIAL - LSM_PAGE_CONTENT)] ^= 1 << rnd(8);
		for (int i = 0; i < lsm_buffer_page_count(page); i += 37)
			lsm_buffer_page_get(page, i, &e);
	}
	ok(true, "is read without going astray when it is damaged");
	return done();
}
