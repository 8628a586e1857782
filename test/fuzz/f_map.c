/*
 * f_map.c
 *	  Fuzzes the space map: searches and changes of any map page, compared with an array of bits.
 *
 *	  uint8		number of steps
 *	  steps		uint8 kind; uint32 from; uint32 to (or number); uint16 want; uint16 least
 *	  page
 */
#include "fuzz.h"

#include "backend.h"
#include "format/map_page.h"

static Page page;
static bool used[LSM_REGION_BLOCKS];

static void
check_set(uint32 from, uint32 count, bool value)
{
	bool		possible = from <= LSM_REGION_BLOCKS && count <= LSM_REGION_BLOCKS - from;
	PGAlignedBlock before;

	for (uint32 i = 0; possible && i < count; i++)
		possible = used[from + i] != value;
	memcpy(before.data, page, BLCKSZ);
	expect(lsm_map_set(page, from, count, value) == possible);
	if (possible)
		memset(used + from, value, count);
	else
		memcpy(page, before.data, BLCKSZ);
}

static void
check_find(uint32 from, uint32 to, uint32 want, uint32 least)
{
	uint32		first = 0;
	uint32		count = 0;
	uint32		longest = 0;
	uint32		at = 0;
	uint32		length = 0;
	bool		found = lsm_map_find(page, from, to, want, least, &first, &count);

	for (uint32 i = from; i < to && longest < want; i++)
	{
		length = used[i] ? 0 : length + 1;
		if (length > longest)
		{
			longest = length;
			at = i + 1 - length;
		}
	}
	expect(found == (longest > 0 && longest >= Min(least, want)));
	if (found)
		expect(first == at && count == longest);
}

static void
check_end(uint32 to)
{
	uint32		end = to;

	while (end > 0 && !used[end - 1])
		end--;
	expect(lsm_map_used_end(page, to) == end);
}

void
fuzz_target(Input *in)
{
	int			steps = take8(in) % 16;
	const uint8 *step;
	Input		list;

	if (page == NULL)
		page = (Page) backend_guarded_page();
	step = in->p;
	in->p += Min(13 * steps, in->end - in->p);
	list = (Input) {step, in->p};
	fuzz_read_page(in, page, LSM_PAGE_MAP, LSM_BLOCK_MAP);
	if (lsm_page_check_header(page, LSM_BLOCK_MAP) != NULL)
		return;
	for (uint32 i = 0; i < LSM_REGION_BLOCKS; i++)
		used[i] = lsm_map_is_used(page, i);
	while (list.p < list.end)
	{
		uint8		kind = take8(&list);
		uint32		from = take32(&list);
		uint32		to = take32(&list);
		uint32		want = take16(&list);
		uint32		least = take16(&list);

		switch (kind % 4)
		{
			case 0:
			case 1:
				check_set(from, to, kind % 4 == 0);
				break;
			case 2:
				check_find(from % (LSM_REGION_BLOCKS + 1), to % (LSM_REGION_BLOCKS + 1), Max(want, 1), Max(least, 1));
				break;
			case 3:
				check_end(to % (LSM_REGION_BLOCKS + 1));
				break;
		}
	}
	expect(lsm_page_check_header(page, LSM_BLOCK_MAP) == NULL);
}
