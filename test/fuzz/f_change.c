/*
 * f_change.c
 *	  Fuzzes page changes, which redo applies to pages of any kind.
 *
 *	  uint8		kind of the page, from LSM_PAGE_META on
 *	  uint16	size of the change
 *	  bytes		the change
 *	  page
 */
#include "fuzz.h"

#include "backend.h"
#include "format/page_change.h"

void
fuzz_target(Input *in)
{
	static Page page;
	uint16		kind = LSM_PAGE_META + take8(in) % (LSM_PAGE_FILTER - LSM_PAGE_META + 1);
	uint32		size = take16(in);
	uint8	   *change = take_copy(in, &size);
	bool		sound;

	if (page == NULL)
		page = (Page) backend_guarded_page();
	fuzz_read_page(in, page, kind, 5);
	if (lsm_page_check_header(page, 5) != NULL)
		return;
	sound = kind == LSM_PAGE_DIRECTORY && lsm_directory_page_check(page) == NULL;
	if (!lsm_page_apply(page, (char *) change, size))
		return;
	expect(lsm_page_check_header(page, lsm_page_opaque(page)->self) == NULL);
	expect((lsm_page_opaque(page)->flags & LSM_PAGE_OPEN) ||
		   lsm_page_opaque(page)->crc == lsm_page_compute_crc(page));
	if (sound && lsm_page_opaque(page)->kind == LSM_PAGE_DIRECTORY)
		expect(lsm_directory_page_check(page) == NULL);
}
