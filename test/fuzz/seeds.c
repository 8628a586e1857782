/*
 * seeds.c
 *	  Writes the inputs that fuzzing begins with: pages as pg_lsm builds them, in the form that
 *	  each target reads.
 *
 *	  seeds DIR		writes files DIR/TARGET/N; the folders exist
 */
#include "leaf_shapes.h"

#include "backend.h"
#include "format/buffer_page.h"
#include "format/filter_page.h"
#include "format/wal.h"
#include "fuzz.h"
#include "index_file.h"
#include "props.h"

static uint8 bytes[4 * BLCKSZ];
static Size used;

static void
put(const void *from, Size size)
{
	if (used + size > sizeof(bytes))
		abort();
	if (size > 0)
		memcpy(bytes + used, from, size);
	used += size;
}

static void
put_bits(uint64 value, int size)
{
	for (int i = 0; i < size; i++)
	{
		uint8		byte = (uint8) (value >> (8 * i));

		put(&byte, 1);
	}
}

/* Append a page in the form of fuzz.h, without zeros at the end of its first part. */
static void
put_page(Page page)
{
	PageHeader	header = (PageHeader) page;
	uint32		lower = header->pd_lower - LSM_PAGE_CONTENT;
	uint32		upper = LSM_PAGE_SPECIAL - header->pd_upper;
	uint16		kind = lsm_page_opaque(page)->kind;

	while ((kind == LSM_PAGE_MAP || kind == LSM_PAGE_FILTER) && lower > 0 && page[LSM_PAGE_CONTENT + lower - 1] == 0)
		lower--;
	put_bits(0, 1);
	put_bits(lsm_page_opaque(page)->flags, 1);
	put_bits(lower, 2);
	put_bits(upper, 2);
	put(page + LSM_PAGE_CONTENT, lower);
	put(page + header->pd_upper, upper);
}

static const char *folder;

/* Write what was put as the next input of a target. */
static void
end_seed(const char *target)
{
	static int	number;
	char		path[1000];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/%s/%03d", folder, target, number++);
	file = fopen(path, "wb");
	if (file == NULL || fwrite(bytes, 1, used, file) != used || fclose(file) != 0)
	{
		perror(path);
		exit(1);
	}
	used = 0;
}

/* --- packed pages ----------------------------------------------------------------------------- */

static void
put_sought(const Stored *s, uint8 options)
{
	put_bits(options, 1);
	put_bits(Min(s->keylen, 255), 1);
	put_bits(rnd(40), 1);
	put_bits(s->tid, 8);
	put(s->key, Min(s->keylen, 255));
	put_bits(rnd(40), 1);
}

static void
leaf_seeds(void)
{
	static const int counts[] = {3, 20, 70, 400};

	for (int i = 0; i < lengthof(shapes) * lengthof(counts); i++)
	{
		const Shape *shape = &shapes[i / lengthof(counts)];
		int			count = counts[i % lengthof(counts)];

		make_all(count, shape);
		put_sought(&stored[rnd(count)], rnd(256) & ~1);
		count = build(count, shape);
		put_page(block.data);
		end_seed("leaf");
	}
}

static void
fence_seeds(void)
{
	static LsmLeafBuilder b;

	for (int i = 0; i < lengthof(shapes); i++)
	{
		int			count = 2 + rnd(60);

		make_all(count, &shapes[i]);
		put_sought(&stored[rnd(count)], rnd(256) | 1);
		lsm_fence_begin(&b, block.data, shapes[i].wide, FUZZ_OWNER, 5);
		for (uint32 n = 0; n < count; n++)
		{
			LsmEntry	e = as_entry(&stored[n]);

			e.rest = (const uint8 *) &n;
			e.restlen = sizeof(n);
			if (!lsm_leaf_add(&b, &e))
				break;
		}
		put_page(block.data);
		end_seed("leaf");
	}
}

/* --- other pages -------------------------------------------------------------------------------- */

static void
make_buffer_page(int count)
{
	uint8		item[BLCKSZ];

	make_all(Max(count, 1), &shapes[rnd(lengthof(shapes))]);
	lsm_page_init(block.data, LSM_PAGE_BUFFER, FUZZ_OWNER, 5);
	lsm_page_opaque(block.data)->flags = rnd(2) ? LSM_PAGE_OPEN : 0;
	for (int i = 0; i < count; i++)
	{
		LsmEntry	e = as_entry(&stored[i]);
		uint32		size = lsm_item_encode(item, &e);

		if (!lsm_buffer_page_fits(block.data, size))
			break;
		lsm_buffer_page_insert(block.data, i, item, size);
	}
}

/* An entry of the last page's shape, as an item. */
static uint32
make_item(uint8 *item)
{
	LsmEntry	e = as_entry(&stored[rnd(made)]);

	return lsm_item_encode(item, &e);
}

static void
buffer_seeds(void)
{
	uint8		item[BLCKSZ];

	for (int i = 0; i < 30; i++)
	{
		uint32		size;

		make_buffer_page(rnd(30));
		size = make_item(item);
		put_bits(rnd(8), 1);
		put_bits(rnd(20), 1);
		put_bits(rnd(lsm_buffer_page_count(block.data) + 1), 2);
		put_bits(size, 2);
		put(item, size);
		put_page(block.data);
		end_seed("buffer");
	}
}

static void
filter_seeds(void)
{
	for (int i = 0; i < 10; i++)
	{
		uint32		pages = 1 + rnd(5);

		lsm_filter_page_init(block.data, 1 + rnd(LSM_FILTER_MOST_PROBES), pages, rnd(4));
		for (int h = 0; h < 4; h++)
		{
			uint64		hash = lsm_filter_hash((uint8 *) &h, sizeof(h));
			LsmFilterPlace place = lsm_filter_place(hash, pages);

			put_bits(hash, 8);
			place.block = rnd(3);
			lsm_filter_page_add(block.data, &place, hash);
		}
		put_page(block.data);
		end_seed("filter");
	}
}

static uint32
make_directory_item(char *item)
{
	static uint8 key[2][200];
	LsmDirectoryEntry entry;

	memset(&entry, 0, sizeof(entry));
	for (int i = 0; i < lengthof(key[0]); i++)
		key[0][i] = key[1][i] = rnd(256);
	entry.segment.id = 16 + rnd(1000);
	entry.segment.start = rnd(100000);
	entry.segment.blocks = rnd(128);
	entry.segment.leaves = entry.segment.blocks;
	entry.low.key = key[0];
	entry.high.key = key[1];
	entry.low.keylen = rnd(rnd(2) ? 10 : 200);
	entry.high.keylen = rnd(rnd(2) ? 10 : 200);
	entry.low.tid = rnd(1 << 20);
	entry.high.tid = rnd(1 << 20);
	return lsm_directory_item_encode(item, &entry);
}

static void
make_directory_page(int count)
{
	char		item[LSM_MAX_DIRECTORY_ITEM];

	lsm_directory_page_init(block.data, FUZZ_OWNER, 5, 1 + rnd(3));
	while (count-- > 0)
		lsm_directory_page_append(block.data, item, make_directory_item(item));
}

static void
directory_seeds(void)
{
	for (int i = 0; i < 15; i++)
	{
		make_directory_page(i);
		put_bits(rnd(i + 2), 2);
		put_bits(rnd(100), 2);
		put_bits(rnd(100), 2);
		put_bits(rnd(65536), 2);
		put_page(block.data);
		end_seed("directory");
	}
}

static void
make_map_page(void)
{
	lsm_map_page_init(block.data, LSM_BLOCK_MAP);
	for (int i = 0; i < 5; i++)
		lsm_map_set(block.data, rnd(2000), 1 + rnd(500), rnd(3) > 0);
}

static void
map_seeds(void)
{
	for (int i = 0; i < 10; i++)
	{
		int			steps = 1 + rnd(12);

		put_bits(steps, 1);
		while (steps-- > 0)
		{
			put_bits(rnd(4), 1);
			put_bits(rnd(rnd(2) ? 2000 : LSM_REGION_BLOCKS + 2), 4);
			put_bits(rnd(rnd(2) ? 2000 : LSM_REGION_BLOCKS + 2), 4);
			put_bits(1 + rnd(300), 2);
			put_bits(1 + rnd(30), 2);
		}
		make_map_page();
		put_page(block.data);
		end_seed("map");
	}
}

static LsmRunRecord
make_run(uint64 id)
{
	LsmSegment	segment;
	LsmRunRecord run;

	memset(&segment, 0, sizeof(segment));
	segment.id = id;
	segment.entries = 1 + rnd(10000);
	segment.start = 4 + rnd(1000);
	segment.blocks = segment.leaves = 1 + rnd(100);
	segment.heap_high = 1000;
	segment.keylen = 9;
	segment.offset_bits = 9;
	lsm_run_init_single(&run, &segment, rnd(3), 1 + rnd(4));
	if (rnd(2))
	{
		segment.id++;
		lsm_run_add_segment(&run, &segment);
		run.dir_height = 1;
	}
	return run;
}

static void
make_meta_page(int count)
{
	LsmKeyCoding coding;
	LsmMeta    *meta = lsm_meta(block.data);

	memset(&coding, 0, sizeof(coding));
	coding.nkeys = coding.encoded = 1;
	lsm_meta_init(block.data, &coding);
	for (int i = 0; i < count; i++)
		meta->runs[meta->run_count++] = make_run(16 + i);
	((PageHeader) block.data)->pd_lower = (char *) &meta->runs[count] - block.data;
	meta->next_id = 100;
}

static void
make_edit(LsmEdit *edit)
{
	LsmReservation reservation = {.start = 50,.length = 10,.segment_id = 90,.job_id = 16};
	LsmRunRecord run = make_run(16 + rnd(5));

	lsm_edit_init(edit, lsm_meta(block.data));
	for (int n = rnd(6); n > 0; n--)
	{
		switch (rnd(7))
		{
			case 0:
				lsm_edit_put(edit, &run);
				break;
			case 1:
				lsm_edit_remove(edit, 16 + rnd(3));
				break;
			case 2:
				lsm_edit_set_job(edit, 16 + rnd(3), 18);
				break;
			case 3:
				lsm_edit_deduct(edit, 16 + rnd(3), 5);
				break;
			case 4:
				lsm_edit_take(edit, 16 + rnd(3), 5);
				break;
			case 5:
				lsm_edit_reserve(edit, &reservation);
				break;
			case 6:
				lsm_edit_release(edit, 90);
				break;
		}
	}
}

static void
meta_seeds(void)
{
	LsmEdit		edit;

	for (int i = 0; i < 20; i++)
	{
		make_meta_page(rnd(6));
		make_edit(&edit);
		put_bits(lsm_edit_size(&edit), 2);
		put(&edit, lsm_edit_size(&edit));
		put_page(block.data);
		end_seed("meta");
	}
}

/* --- changes and records ------------------------------------------------------------------------ */

static char change[BLCKSZ];
static Size change_size;

static void
add_op(LsmPageOpKind kind, const void *data, uint32 size)
{
	LsmPageOp	op = {kind, size};

	memcpy(change + change_size, &op, sizeof(op));
	memcpy(change + change_size + sizeof(op), data, size);
	change_size += sizeof(op) + size;
}

/* Make a page and a change that suits it.  Returns whether the change initializes the page. */
static bool
make_change(void)
{
	uint64		stamp = 1 + FUZZ_STAMP;
	LsmMapSet	set = {.first = 3000 + rnd(100),.count = 1 + rnd(100),.used = 1};
	LsmDirectoryInit directory = {.run_id = 20,.self = 1,.level = 1};
	LsmDirectorySet change_item;
	LsmOpenInit open = {.segment_id = 30,.self = 1,.flags = LSM_PAGE_OPEN};
	BlockNumber self = LSM_BLOCK_MAP;
	char		item[LSM_MAX_DIRECTORY_ITEM];
	int			kind = rnd(4);
	bool		init = rnd(2);

	memset(&change_item, 0, sizeof(change_item));
	memcpy(change, &stamp, sizeof(stamp));
	change_size = sizeof(stamp);
	if (kind == 0)
	{
		make_map_page();
		if (init)
			add_op(LSM_OP_MAP_INIT, &self, sizeof(self));
		add_op(LSM_OP_MAP_SET, &set, sizeof(set));
	}
	else if (kind == 1)
	{
		make_directory_page(2);
		if (init)
			add_op(LSM_OP_DIRECTORY_INIT, &directory, sizeof(directory));
		add_op(LSM_OP_DIRECTORY_APPEND, item, make_directory_item(item));
		add_op(LSM_OP_DIRECTORY_SET, &change_item, sizeof(change_item));
	}
	else
	{
		make_buffer_page(2);
		if (init)
			add_op(LSM_OP_OPEN, &open, sizeof(open));
		else
			add_op(LSM_OP_SEAL, item, 0);
	}
	return init;
}

static void
change_seeds(void)
{
	for (int i = 0; i < 20; i++)
	{
		make_change();
		put_bits(lsm_page_opaque(block.data)->kind - LSM_PAGE_META, 1);
		put_bits(change_size, 2);
		put(change, change_size);
		put_page(block.data);
		end_seed("change");
	}
}

/* Append a block of a record, with its data and the page. */
static void
put_block(uint8 state, const void *data, Size size)
{
	put_bits(1 | state, 1);
	put_bits(lsm_page_opaque(block.data)->kind - LSM_PAGE_META, 1);
	put_bits(size, 2);
	put(data, size);
	put_page(block.data);
}

static void
put_record(uint8 info, const void *data, Size size)
{
	put_bits(info >> 4, 1);
	put_bits(size, 1);
	put(data, size);
}

static void
redo_insert_seed(void)
{
	xl_lsm_insert insert = {0};
	uint8		item[BLCKSZ];
	uint32		size;

	make_buffer_page(rnd(10));
	size = make_item(item);
	put_record(XLOG_LSM_INSERT, &insert, sizeof(insert));
	put_block(0, item, size);
	end_seed("redo");
}

static void
redo_delete_seed(void)
{
	xl_lsm_delete delete = {.horizon = 700,.count = 1 + rnd(3)};
	uint16		ordinals[] = {0, 2, 5};

	make_buffer_page(10);
	if (rnd(2))
		build(made, &shapes[rnd(lengthof(shapes))]);
	put_record(XLOG_LSM_DELETE, &delete, sizeof(delete));
	bytes[0] |= 0x80;
	put_block(0, ordinals, delete.count * sizeof(uint16));
	end_seed("redo");
}

static void
redo_edit_seed(void)
{
	LsmEdit		edit;

	make_meta_page(rnd(6));
	make_edit(&edit);
	put_record(XLOG_LSM_EDIT, NULL, 0);
	put_block(0, &edit, lsm_edit_size(&edit));
	for (int n = rnd(3); n > 0; n--)
		put_block(make_change() ? 8 : 0, change, change_size);
	end_seed("redo");
}

static void
redo_gate_seeds(void)
{
	put_record(XLOG_LSM_GATE_FLIP, NULL, 0);
	make_meta_page(2);
	put_block(0, NULL, 0);
	lsm_page_init(block.data, LSM_PAGE_GATE, 0, LSM_BLOCK_GATE);
	put_block(0, NULL, 0);
	put_block(0, NULL, 0);
	end_seed("redo");
	put_record(XLOG_LSM_GATE_DRAIN, NULL, 0);
	put_block(0, NULL, 0);
	end_seed("redo");
}

/* --- keys ------------------------------------------------------------------------------------------ */

static void
key_seeds(void)
{
	for (uint64 seed = 0; seed < 150; seed++)
	{
		TestIndex	index;
		TestRow		row;

		pick_seed(seed);
		rows_index(&index, 3);
		rows_make(&index, &row, 1);
		put_bits(seed, 2);
		put_bits(row.entry.tid, 8);
		put_bits(row.entry.keylen, 2);
		put(row.entry.key, row.entry.keylen);
		put(row.entry.rest, row.entry.restlen);
		end_seed("key");
		backend_free_all();
	}
}

/* --- a whole file ---------------------------------------------------------------------------------- */

/* Add a run of one segment, as a batch does.  Returns its id. */
static uint64
add_run(uint32 blocks)
{
	LsmChange  *change = lsm_change_begin(&file_index);
	LsmSegment	segment;
	LsmRunRecord run;

	memset(&segment, 0, sizeof(segment));
	segment.id = change->edit.next_id++;
	segment.blocks = segment.leaves = blocks;
	segment.entries = 10;
	lsm_space_take(change, blocks, blocks, false, &segment.start);
	lsm_run_init_single(&run, &segment, 0, LSM_RUN_PACKED);
	lsm_edit_put(&change->edit, &run);
	lsm_change_commit(change);
	return segment.id;
}

/* Merge a run into one with this many segments.  Leaves the job unfinished if `open`. */
static void
add_long_run(int segments, bool open)
{
	uint64		input = add_run(1);
	uint64		job;
	LsmReservation r;

	lsm_manifest_begin_job(&file_index, &input, 1, 1, &job);
	for (int i = 0; i < segments; i++)
	{
		LsmDirectoryEntry entry;

		memset(&entry, 0, sizeof(entry));
		lsm_manifest_reserve(&file_index, job, 4, 4, &r);
		entry.segment.id = r.segment_id;
		entry.segment.start = r.start;
		entry.segment.blocks = entry.segment.leaves = 2;
		entry.segment.entries = 20;
		entry.low = file_key(100 * i);
		entry.high = file_key(100 * i + 99);
		lsm_manifest_install(&file_index, job, &r, &entry, NULL, 0, !open && i == segments - 1);
	}
	if (open)
		lsm_manifest_reserve(&file_index, job, 4, 4, &r);
}

static void
manifest_seeds(void)
{
	for (int i = 0; i < 20; i++)
	{
		int			operations = 1 + rnd(6);

		file_make();
		/* With few entries on a page, directories are higher. */
		lsm_page_entries = i % 3 == 0 ? 2 : 0;
		for (int n = 1 + rnd(3); n > 0; n--)
			add_run(1 + rnd(3));
		add_long_run(2 + rnd(4), rnd(2));
		add_long_run(2 + rnd(4), rnd(2));
		lsm_page_entries = 0;
		put_bits(operations, 1);
		while (operations-- > 0)
		{
			put_bits(rnd(11), 1);
			put_bits(rnd(6), 1);
			put_bits(rnd(8), 1);
			put_bits(rnd(600), 2);
		}
		put_page(file_page(LSM_BLOCK_META));
		put_page(file_page(LSM_BLOCK_MAP));
		for (BlockNumber at = LSM_FIXED_BLOCKS; at < 132; at++)
		{
			if (lsm_page_opaque(file_page(at))->kind != LSM_PAGE_DIRECTORY)
				continue;
			put_bits(at - LSM_FIXED_BLOCKS, 1);
			put_bits(lsm_page_opaque(file_page(at))->owner - LSM_FIRST_ID, 1);
			put_page(file_page(at));
		}
		end_seed("manifest");
		backend_free_all();
	}
}

int
main(int argc, char **argv)
{
	if (argc != 2)
		return 1;
	folder = argv[1];
	lsm_group_init(&group, LSM_MAX_ENTRY_SIZE);
	leaf_seeds();
	fence_seeds();
	buffer_seeds();
	filter_seeds();
	directory_seeds();
	map_seeds();
	meta_seeds();
	change_seeds();
	for (int i = 0; i < 10; i++)
	{
		redo_insert_seed();
		redo_delete_seed();
		redo_edit_seed();
	}
	redo_gate_seeds();
	key_seeds();
	manifest_seeds();
	return 0;
}
