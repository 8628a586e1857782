/* t_map_page.c -- pages of the space map. */
#include "tap.h"

#include "format/map_page.h"

int
main(void)
{
	static PGAlignedBlock block;
	Page		page = (Page) block.data;
	LsmMapChange change;

	memset(&change, 0, sizeof(change));
	lsm_map_page_init(page, LSM_BLOCK_MAP);
	ok(lsm_map_header(page)->mapped_end == LSM_FIXED_BLOCKS, "the head starts after the fixed blocks");
	ok(lsm_map_page_check(page) == NULL, "a new page is sound");

	for (int i = 0; i < LSM_MAP_CAPACITY; i++)
	{
		change.slot = i;
		change.extent.start = i;
		change.extent.length = 1;
		if (!lsm_map_page_apply(page, &change, 1, InvalidBlockNumber, InvalidBlockNumber))
			break;
	}
	ok(lsm_map_header(page)->slots == LSM_MAP_CAPACITY && lsm_map_page_check(page) == NULL, "takes all extents it has room for");
	change.slot = LSM_MAP_CAPACITY;
	ok(!lsm_map_page_apply(page, &change, 1, InvalidBlockNumber, InvalidBlockNumber), "refuses a slot beyond its end");
	ok(lsm_map_page_apply(page, NULL, 0, 1000, 77) &&
	   lsm_map_header(page)->mapped_end == 1000 && lsm_page_opaque(page)->next == 77, "sets its end and its successor");
	ok(lsm_page_opaque(page)->crc == lsm_page_compute_crc(page), "keeps its checksum");
	lsm_map_header(page)->slots = LSM_MAP_CAPACITY + 1;
	ok(lsm_map_page_check(page) != NULL, "too many slots are noticed");
	return done();
}
