/*
 * f_filter.c
 *	  Fuzzes filter pages: a page that passes the check can be tested for any hash, and has what was
 *	  added.
 *
 *	  uint64	hash, four times
 *	  page
 */
#include "fuzz.h"

#include "backend.h"
#include "format/filter_page.h"

void
fuzz_target(Input *in)
{
	static Page page;
	uint64		hashes[4];
	LsmFilterHeader *header;

	if (page == NULL)
		page = (Page) backend_guarded_page();
	for (int i = 0; i < lengthof(hashes); i++)
		hashes[i] = take_bits(in, 8);
	fuzz_read_page(in, page, LSM_PAGE_FILTER, 5);
	if (lsm_page_check_header(page, 5) != NULL || lsm_filter_page_check(page) != NULL)
		return;
	header = lsm_filter_header(page);
	for (int i = 0; i < lengthof(hashes); i++)
	{
		LsmFilterPlace place = lsm_filter_place(hashes[i], header->pages);
		uint8	   *block = lsm_filter_page_block(page, &place);

		expect(place.page < header->pages);
		expect(block + LSM_FILTER_BLOCK_BYTES <= (uint8 *) page + ((PageHeader) page)->pd_lower);
		(void) lsm_filter_page_has(page, &place, hashes[i]);
		lsm_filter_page_add(page, &place, hashes[i]);
		expect(lsm_filter_page_has(page, &place, hashes[i]));
	}
	expect(lsm_page_check_header(page, 5) == NULL && lsm_filter_page_check(page) == NULL);
}
