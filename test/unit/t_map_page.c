/* t_map_page.c -- pages of the space map, against a model of them. */
#include "tap.h"

#include "format/map_page.h"

static PGAlignedBlock block;
static Page page = (Page) block.data;
static LsmMapHeader *header;

static LsmMapChange
change_of(uint32 slot)
{
	LsmMapChange change;

	memset(&change, 0, sizeof(change));
	change.slot = slot;
	change.extent.start = rnd(100000);
	change.extent.length = rnd(200);
	change.extent.owner = rnd(50);
	change.extent.free_xid = rnd(1000);
	return change;
}

static bool
sound(void)
{
	return lsm_map_page_check(page) == NULL &&
		lsm_page_opaque(page)->crc == lsm_page_compute_crc(page);
}

/* Several changes at once, of slots that are there and of new ones. */
static void
test_model(void)
{
	static LsmExtent model[1000];
	uint32		count = 0;
	bool		good = true;

	for (int round = 0; round < 2000; round++)
	{
		LsmMapChange changes[8];
		int			n = 0;

		if (round % 400 == 0)
		{
			lsm_map_page_init(page, 99);
			count = 0;
		}
		while (n < (int) rnd(lengthof(changes) + 1))
		{
			uint32		slot = rnd(3) > 0 || count == 0 ? count : rnd(count);

			if (slot == LSM_MAP_CAPACITY)
				break;
			changes[n] = change_of(slot);
			model[slot] = changes[n].extent;
			count = Max(count, slot + 1);
			n++;
		}
		good &= lsm_map_page_apply(page, changes, n, InvalidBlockNumber, InvalidBlockNumber) &&
			sound() && header->slots == count &&
			memcmp(lsm_map_slots(page), model, count * sizeof(LsmExtent)) == 0;
	}
	ok(good, "slots are what they were set to last");
	ok(header->mapped_end == 0 && !BlockNumberIsValid(lsm_page_opaque(page)->next),
	   "and nothing else is changed");
}

static void
test_limits(void)
{
	LsmMapChange change;
	bool		good = true;

	lsm_map_page_init(page, LSM_BLOCK_MAP);
	ok(header->mapped_end == LSM_FIXED_BLOCKS && sound(), "the head starts after the fixed blocks");
	for (int i = 0; i < LSM_MAP_CAPACITY; i++)
	{
		change = change_of(i);
		good &= lsm_map_page_apply(page, &change, 1, InvalidBlockNumber, InvalidBlockNumber);
	}
	ok(good && header->slots == LSM_MAP_CAPACITY && sound(), "takes all extents it has room for");
	change = change_of(LSM_MAP_CAPACITY);
	ok(!lsm_map_page_apply(page, &change, 1, InvalidBlockNumber, InvalidBlockNumber),
	   "refuses a slot beyond its end");
	ok(lsm_map_page_apply(page, NULL, 0, 1000, 77) && header->mapped_end == 1000 &&
	   lsm_page_opaque(page)->next == 77 && sound(), "sets its end and its successor");
	header->slots = LSM_MAP_CAPACITY + 1;
	ok(lsm_map_page_check(page) != NULL, "too many slots are noticed");

	lsm_map_page_init(page, LSM_BLOCK_MAP);
	change = change_of(1);
	ok(!lsm_map_page_apply(page, &change, 1, InvalidBlockNumber, InvalidBlockNumber),
	   "refuses a slot that leaves a gap");
	header->slots = 1;
	ok(lsm_map_page_check(page) != NULL, "slots that the page's bounds do not know are noticed");
}

int
main(void)
{
	header = lsm_map_header(page);
	test_model();
	test_limits();
	return done();
}
