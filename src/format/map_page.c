/*
 * map_page.c
 *	  Mutators of space map pages, for normal operation and redo.
 */
#include "postgres.h"

#include "format/map_page.h"

static void
set_lower(Page page)
{
	((PageHeader) page)->pd_lower =
		(char *) (lsm_map_slots(page) + lsm_map_header(page)->slots) - (char *) page;
}

void
lsm_map_page_init(Page page, BlockNumber self)
{
	lsm_page_init(page, LSM_PAGE_MAP, LSM_OWNER_FREE, self);
	memset(lsm_map_header(page), 0, MAXALIGN(sizeof(LsmMapHeader)));
	if (self == LSM_BLOCK_MAP)
		lsm_map_header(page)->mapped_end = LSM_FIXED_BLOCKS;
	set_lower(page);
	lsm_page_set_crc(page);
}

/*
 * Set slots, and mapped_end and the link to the next map page where those are
 * valid block numbers.  False if a slot is out of range: a damaged record.
 */
bool
lsm_map_page_apply(Page page, const LsmMapChange *changes, int count,
				   BlockNumber mapped_end, BlockNumber next)
{
	LsmMapHeader *header = lsm_map_header(page);

	for (int i = 0; i < count; i++)
	{
		if (changes[i].slot >= LSM_MAP_CAPACITY || changes[i].slot > header->slots)
			return false;
		if (changes[i].slot == header->slots)
			header->slots++;
		lsm_map_slots(page)[changes[i].slot] = changes[i].extent;
	}
	if (BlockNumberIsValid(mapped_end))
		header->mapped_end = mapped_end;
	if (BlockNumberIsValid(next))
		lsm_page_opaque(page)->next = next;
	set_lower(page);
	lsm_page_set_crc(page);
	return true;
}

/* NULL, or what is wrong with the layout of a map page. */
const char *
lsm_map_page_check(Page page)
{
	PageHeader	header = (PageHeader) page;

	if (lsm_map_header(page)->slots > LSM_MAP_CAPACITY ||
		header->pd_lower != (char *) (lsm_map_slots(page) + lsm_map_header(page)->slots) - (char *) page)
		return "number of extents does not fit the page";
	return NULL;
}
