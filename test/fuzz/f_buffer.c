/*
 * f_buffer.c
 *	  Fuzzes buffer pages: reading, inserting, and removing entries.
 *
 *	  uint8		step between entries to remove
 *	  uint8		number of entries to remove
 *	  uint16	slot of an entry to insert
 *	  uint16	its size
 *	  bytes		the entry
 *	  page
 */
#include "fuzz.h"

#include "backend.h"
#include "format/buffer_page.h"

static Page page;
static Page changed;

static bool
same_item(Page a, int i, Page b, int j)
{
	LsmEntry	x;
	LsmEntry	y;

	return lsm_buffer_page_get(a, i, &x) && lsm_buffer_page_get(b, j, &y) && x.tid == y.tid &&
		x.keylen == y.keylen && memcmp(x.key, y.key, x.keylen) == 0 &&
		x.restlen == y.restlen && memcmp(x.rest, y.rest, x.restlen) == 0;
}

static void
check_insert(int pos, const uint8 *item, uint32 size)
{
	int			count = lsm_buffer_page_count(page);
	LsmEntry	entry;

	memcpy(changed, page, BLCKSZ);
	if (!lsm_item_decode(item, item + size, &entry) || lsm_item_size(&entry) != size || pos > count ||
		!lsm_buffer_page_fits(page, size))
		return;
	lsm_buffer_page_insert(changed, pos, item, size);
	expect(lsm_page_check_header(changed, 5) == NULL && lsm_buffer_page_check(changed) == NULL);
	expect(lsm_buffer_page_count(changed) == count + 1);
	for (int i = 0; i < count; i++)
		expect(same_item(page, i, changed, i + (i >= pos)));
	expect(lsm_buffer_page_get(changed, pos, &entry) && memcmp(entry.key - LSM_ITEM_HEADER, item, size) == 0);
}

static void
check_delete(int step, int most, bool sound)
{
	uint16		ordinals[256];
	int			count = 0;
	int			at = 0;
	int			next = 0;

	for (int i = step; count < Min(most, lengthof(ordinals)) && i < BLCKSZ; i += 1 + step)
		ordinals[count++] = i;
	memcpy(changed, page, BLCKSZ);
	lsm_buffer_page_delete(changed, ordinals, count);
	expect(lsm_page_check_header(changed, 5) == NULL && lsm_buffer_page_check(changed) == NULL);
	expect((lsm_page_opaque(changed)->flags & LSM_PAGE_OPEN) ||
		   lsm_page_opaque(changed)->crc == lsm_page_compute_crc(changed));
	for (int i = 0; sound && i < lsm_buffer_page_count(page); i++)
	{
		if (next < count && ordinals[next] == i)
			next++;
		else
			expect(same_item(page, i, changed, at++));
	}
	expect(!sound || at == lsm_buffer_page_count(changed));
}

void
fuzz_target(Input *in)
{
	int			step = take8(in) % 8;
	int			most = take8(in);
	int			pos = take16(in);
	uint32		size = take16(in);
	uint8	   *item = take_copy(in, &size);
	LsmEntry	entry;
	bool		sound;

	if (page == NULL)
	{
		page = (Page) backend_guarded_page();
		changed = (Page) backend_guarded_page();
	}
	fuzz_read_page(in, page, LSM_PAGE_BUFFER, 5);
	if (lsm_page_check_header(page, 5) != NULL)
		return;
	sound = lsm_buffer_page_check(page) == NULL;
	for (int i = 0; i < lsm_buffer_page_count(page); i++)
		expect(lsm_buffer_page_get(page, i, &entry) || !sound);
	if (sound)
		check_insert(pos, item, size);
	check_delete(step, most, sound);
}
