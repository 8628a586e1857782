/* t_page_change.c -- changes of pages: complete, piece by piece, and damaged. */
#include "tap.h"

#include "backend.h"
#include "format/buffer_page.h"
#include "format/page_change.h"

#define ROOM 65536

static Page page;				/* between bytes that nobody may touch */
static char change[ROOM];
static Size change_size;

static void
begin_change(uint64 stamp)
{
	memcpy(change, &stamp, sizeof(stamp));
	change_size = sizeof(stamp);
}

/* As lsm_change_op does. */
static void
add_op(LsmPageOpKind kind, const void *data, uint32 size)
{
	LsmPageOp	op = {kind, size};

	memcpy(change + change_size, &op, sizeof(op));
	change_size += sizeof(op);
	if (size > 0)
		memcpy(change + change_size, data, size);
	change_size += size;
}

/* Data of an operation that suits a page of this kind. Returns its size. */
static uint32
random_data(LsmPageOpKind kind, char *data)
{
	uint8		key[60];
	LsmDirectoryEntry entry;
	LsmMapSet	map_set;
	LsmDirectoryInit directory_init;
	LsmDirectorySet directory_set;
	LsmOpenInit open_init;
	BlockNumber self = rnd(2) ? LSM_BLOCK_MAP : lsm_region_start(1 + rnd(100));

	memset(&map_set, 0, sizeof(map_set));
	memset(&directory_init, 0, sizeof(directory_init));
	memset(&directory_set, 0, sizeof(directory_set));
	memset(&open_init, 0, sizeof(open_init));
	switch (kind)
	{
		case LSM_OP_MAP_INIT:
			memcpy(data, &self, sizeof(self));
			return sizeof(self);
		case LSM_OP_MAP_SET:
			map_set.first = rnd(LSM_REGION_BLOCKS);
			map_set.count = rnd(200);
			map_set.used = rnd(3) > 0;
			memcpy(data, &map_set, sizeof(map_set));
			return sizeof(map_set);
		case LSM_OP_DIRECTORY_INIT:
			directory_init.run_id = 1 + rnd(1000);
			directory_init.self = rnd(100000);
			directory_init.level = 1 + rnd(3);
			memcpy(data, &directory_init, sizeof(directory_init));
			return sizeof(directory_init);
		case LSM_OP_DIRECTORY_APPEND:
			memset(&entry, 0, sizeof(entry));
			for (int i = 0; i < lengthof(key); i++)
				key[i] = rnd(256);
			entry.segment.id = rnd(1000);
			entry.low.key = entry.high.key = key;
			entry.low.keylen = rnd(lengthof(key));
			entry.high.keylen = rnd(lengthof(key));
			return lsm_directory_item_encode(data, &entry);
		case LSM_OP_DIRECTORY_SET:
			directory_set.ordinal = rnd(60);
			directory_set.segment.start = rnd(1000);
			memcpy(data, &directory_set, sizeof(directory_set));
			return sizeof(directory_set);
		case LSM_OP_OPEN:
			open_init.segment_id = rnd(1000);
			open_init.self = rnd(100000);
			open_init.flags = LSM_PAGE_OPEN | (rnd(2) ? LSM_PAGE_HAS_REST : 0);
			memcpy(data, &open_init, sizeof(open_init));
			return sizeof(open_init);
		case LSM_OP_SEAL:
			return 0;
	}
	return 0;
}

/* Operations apply only to pages of their kind. The first one may initialize the page. */
static LsmPageOpKind
random_kind(int family, bool first)
{
	static const LsmPageOpKind inits[] = {LSM_OP_MAP_INIT, LSM_OP_DIRECTORY_INIT, LSM_OP_OPEN};

	if (first)
		return inits[family];
	if (family == 0)
		return LSM_OP_MAP_SET;
	if (family == 1)
		return rnd(2) ? LSM_OP_DIRECTORY_APPEND : LSM_OP_DIRECTORY_SET;
	return LSM_OP_SEAL;
}

/*
 * Normal operation changes a page by one operation after the other. Redo applies the recorded
 * changes to a copy.
 */
static void
test_model(void)
{
	char		copy[BLCKSZ];
	char		data[LSM_MAX_DIRECTORY_ITEM];
	bool		same = true;
	bool		stamped = true;
	bool		summed = true;
	int			applied = 0;

	for (int round = 0; round < 3000; round++)
	{
		int			family = rnd(3);

		memset(copy, rnd(256), BLCKSZ);
		memcpy(page, copy, BLCKSZ);
		for (uint64 stamp = 5; stamp < 12; stamp++)
		{
			LsmPageOpaque *opaque = lsm_page_opaque(page);

			begin_change(stamp);
			for (int ops = 1 + rnd(6), i = 0; i < ops; i++)
			{
				LsmPageOpKind kind = random_kind(family, stamp == 5 && i == 0);
				uint32		size = random_data(kind, data);
				char		before[BLCKSZ];

				memcpy(before, page, BLCKSZ);
				if (lsm_page_apply_op(page, kind, data, size))
				{
					add_op(kind, data, size);
					applied++;
				}
				else
					memcpy(page, before, BLCKSZ);
			}
			lsm_page_end_change(page, stamp);
			same &= lsm_page_apply((Page) copy, change, change_size) &&
				memcmp(copy, page, BLCKSZ) == 0;
			stamped &= opaque->stamp == (family == 2 ? 0 : stamp);
			summed &= (opaque->flags & LSM_PAGE_OPEN) ||
				opaque->crc == lsm_page_compute_crc(page);
		}
		if (family == 1)
			same &= lsm_directory_page_check(page) == NULL;
	}
	ok(same && applied > 10000, "redo of recorded changes gives the same pages");
	ok(stamped, "map and directory pages store the number of the edit");
	ok(summed, "all pages except open ones have a checksum");
}

static void
test_kinds(void)
{
	LsmOpenInit open = {.segment_id = 55,.self = 9,.flags = LSM_PAGE_OPEN | LSM_PAGE_HAS_REST};
	LsmDirectoryInit directory = {.run_id = 66,.self = 8,.level = 2};
	BlockNumber self = lsm_region_start(4);

	begin_change(1);
	add_op(LSM_OP_OPEN, &open, sizeof(open));
	ok(lsm_page_apply(page, change, change_size) && lsm_page_check_header(page, 9) == NULL &&
	   lsm_page_opaque(page)->kind == LSM_PAGE_BUFFER && lsm_page_opaque(page)->owner == 55 &&
	   lsm_page_opaque(page)->flags == (LSM_PAGE_OPEN | LSM_PAGE_HAS_REST) &&
	   lsm_buffer_page_count(page) == 0 && lsm_buffer_page_check(page) == NULL, "a page is opened, empty");
	begin_change(2);
	add_op(LSM_OP_SEAL, NULL, 0);
	ok(lsm_page_apply(page, change, change_size) &&
	   lsm_page_opaque(page)->flags == LSM_PAGE_HAS_REST &&
	   lsm_page_opaque(page)->crc == lsm_page_compute_crc(page), "and is sealed");
	begin_change(3);
	add_op(LSM_OP_DIRECTORY_INIT, &directory, sizeof(directory));
	ok(lsm_page_apply(page, change, change_size) && lsm_page_check_header(page, 8) == NULL &&
	   lsm_page_opaque(page)->owner == 66 && lsm_directory_header(page)->level == 2 &&
	   lsm_directory_page_count(page) == 0 && lsm_directory_page_check(page) == NULL,
	   "a page becomes a directory page");
	begin_change(4);
	add_op(LSM_OP_MAP_INIT, &self, sizeof(self));
	ok(lsm_page_apply(page, change, change_size) && lsm_page_check_header(page, self) == NULL &&
	   lsm_page_opaque(page)->owner == 0 &&
	   backend_count_free(page) == LSM_REGION_BLOCKS - 1, "or a map page");
}

/* Each kind of operation with data of a wrong size, and kinds that do not exist. */
static void
test_sizes(void)
{
	char		data[LSM_MAX_DIRECTORY_ITEM + 64] = {0};
	bool		refused = true;
	bool		sound = true;
	BlockNumber self = LSM_BLOCK_MAP;

	for (int kind = LSM_OP_MAP_INIT; kind <= LSM_OP_SEAL; kind++)
	{
		uint32		size = random_data(kind, data);

		lsm_directory_page_init(page, 1, 1, 1);
		for (uint32 other = 0; other < size + 32; other++)
		{
			char		before[BLCKSZ];

			/* Any size that keeps the alignment is possible for an item. */
			if (other == size || (kind == LSM_OP_DIRECTORY_APPEND && other == MAXALIGN(other)))
				continue;
			memcpy(before, page, BLCKSZ);
			refused &= !lsm_page_apply_op(page, kind, data, other);
			sound &= memcmp(before, page, BLCKSZ) == 0;
		}
	}
	ok(refused && sound, "data of a wrong size are rejected, and nothing changes");
	ok(!lsm_page_apply_op(page, 0, data, 0) && !lsm_page_apply_op(page, LSM_OP_SEAL + 1, data, 0) &&
	   !lsm_page_apply_op(page, 0xFFFF, data, 4), "unknown kinds are rejected");

	begin_change(7);
	add_op(LSM_OP_MAP_INIT, &self, sizeof(self));
	refused = true;
	for (Size size = 0; size < change_size; size++)
	{
		/* An edit number without operations changes nothing. */
		if (size != sizeof(uint64))
			refused &= !lsm_page_apply(page, change, size);
	}
	ok(refused, "a truncated change is rejected");
	ok(lsm_page_apply(page, change, change_size), "a complete one is not");
}

/* Operations that do not fit the page, among sound ones. */
static void
test_misfits(void)
{
	LsmMapSet	take = {.first = 100,.count = 10,.used = 1};
	LsmMapSet	beyond = {.first = LSM_REGION_BLOCKS - 5,.count = 10,.used = 1};
	LsmDirectorySet set;
	char		item[LSM_MAX_DIRECTORY_ITEM];
	uint32		size = random_data(LSM_OP_DIRECTORY_APPEND, item);
	int			n = 0;

	lsm_map_page_init(page, LSM_BLOCK_MAP);
	begin_change(1);
	add_op(LSM_OP_MAP_SET, &take, sizeof(take));
	add_op(LSM_OP_MAP_SET, &take, sizeof(take));
	ok(!lsm_page_apply(page, change, change_size), "blocks are not taken twice");
	begin_change(1);
	add_op(LSM_OP_MAP_SET, &beyond, sizeof(beyond));
	ok(!lsm_page_apply(page, change, change_size), "nor beyond the region");

	lsm_directory_page_init(page, 1, 1, 1);
	memset(&set, 0, sizeof(set));
	begin_change(1);
	add_op(LSM_OP_DIRECTORY_SET, &set, sizeof(set));
	ok(!lsm_page_apply(page, change, change_size), "a missing item is not changed");
	begin_change(1);
	add_op(LSM_OP_DIRECTORY_APPEND, item, size);
	set.ordinal = PG_UINT32_MAX;
	add_op(LSM_OP_DIRECTORY_SET, &set, sizeof(set));
	ok(!lsm_page_apply(page, change, change_size), "nor one before the first");
	begin_change(1);
	add_op(LSM_OP_DIRECTORY_APPEND, item, size);
	while (lsm_page_apply(page, change, change_size))
		n++;
	ok(n > 10 && lsm_directory_page_check(page) == NULL, "a full page takes no further item");
}

/*
 * Any bytes, and pages of any kind with sound headers. The function accepts or rejects the change,
 * but touches nothing beyond the page or the change.
 */
static void
test_damage(void)
{
	char		data[LSM_MAX_DIRECTORY_ITEM];
	int			taken = 0;
	int			refused = 0;

	for (int round = 0; round < 50000; round++)
	{
		int			family = rnd(3);
		char	   *exact;

		begin_change(rnd(100));
		for (int ops = 1 + rnd(5), i = 0; i < ops; i++)
		{
			LsmPageOpKind kind = random_kind(family, i == 0 && (round % 10 == 0 || rnd(10) == 0));

			add_op(kind, data, random_data(kind, data));
		}
		if (round % 10 > 0)
		{
			for (int flips = rnd(4); flips > 0; flips--)
				change[rnd(change_size)] ^= 1 << rnd(8);
			if (rnd(4) == 0)
				change_size = rnd(change_size + 1);
		}
		/* The sanitizer knows where the allocation ends. */
		exact = malloc(change_size);
		memcpy(exact, change, change_size);
		if (lsm_page_apply(page, exact, change_size))
			taken++;
		else
			refused++;
		free(exact);
		if (lsm_page_check_header(page, lsm_page_opaque(page)->self) != NULL)
			lsm_map_page_init(page, LSM_BLOCK_MAP);
	}
	printf("# %d changes applied, %d refused\n", taken, refused);
	ok(taken > 1000 && refused > 1000,
	   "damaged changes are rejected, or applied without touching anything outside the page");
}

int
main(void)
{
	page = (Page) backend_guarded_page();
	test_model();
	test_kinds();
	test_sizes();
	test_misfits();
	test_damage();
	return done();
}
