/*
 * f_manifest.c
 *	  Fuzzes the manifest: merges, VACUUM and readers use a meta page, a map page and directories.
 *
 * Whatever these pages say, an operation ends, with an error or without, and leaves pages that
 * readers accept.  An operation that raises an error has changed no page, or all pages of a whole
 * edit.
 *
 *	  uint8		number of operations, then uint8 kind, uint8 which run, uint8 number, uint16 key for each
 *	  page		the meta page
 *	  page		the first map page
 *	  pages		of directories: uint8 block, uint8 run (its id less LSM_FIRST_ID), page
 */
#include "fuzz.h"

#include "backend.h"
#include "format/map_page.h"
#include "index_file.h"
#include "miscadmin.h"

#define MOST_OPERATIONS		12
#define MOST_DIRECTORIES	8

typedef struct Operation
{
	uint8		kind;
	uint8		run;
	uint8		number;
	uint16		key;
} Operation;

static LsmMeta *
meta(void)
{
	return lsm_meta(file_page(LSM_BLOCK_META));
}

/* Forget the pages of the last input. */
static void
clear_file(void)
{
	static bool made;

	if (!made)
		file_make();
	made = true;
	for (BlockNumber block = 0; block < FILE_BLOCKS; block++)
	{
		if (!PageIsNew(file_page(block)))
			memset(file_page(block), 0, BLCKSZ);
	}
	CritSectionCount = 0;
}

/* Read the pages.  Returns false if a server would not accept the meta page. */
static bool
read_file(Input *in)
{
	Page		page = file_page(LSM_BLOCK_META);

	fuzz_read_page(in, page, LSM_PAGE_META, LSM_BLOCK_META);
	fuzz_read_page(in, file_page(LSM_BLOCK_MAP), LSM_PAGE_MAP, LSM_BLOCK_MAP);
	lsm_page_opaque(file_page(LSM_BLOCK_MAP))->owner = 0;
	if (lsm_page_check_header(file_page(LSM_BLOCK_MAP), LSM_BLOCK_MAP) != NULL)
		memset(file_page(LSM_BLOCK_MAP), 0, BLCKSZ);
	for (int i = 0; i < MOST_DIRECTORIES && in->p < in->end; i++)
	{
		BlockNumber block = LSM_FIXED_BLOCKS + take8(in) % 128;
		uint8		run = take8(in);

		fuzz_read_page(in, file_page(block), LSM_PAGE_DIRECTORY, block);
		lsm_page_opaque(file_page(block))->owner = LSM_FIRST_ID + run;
		if (lsm_page_check_header(file_page(block), block) != NULL ||
			lsm_directory_page_check(file_page(block)) != NULL)
			memset(file_page(block), 0, BLCKSZ);
	}
	return lsm_page_check_header(page, LSM_BLOCK_META) == NULL && lsm_meta_check(page) == NULL;
}

/* Inputs have directories only in the first blocks.  Looking at all blocks takes long. */
#define BLOCKS_TO_CHECK		256

static void
check_pages(void)
{
	for (BlockNumber block = 0; block < BLOCKS_TO_CHECK; block++)
	{
		Page		page = file_page(block);

		if (PageIsNew(page))
			continue;
		expect(lsm_page_check_header(page, block) == NULL);
		if (block == LSM_BLOCK_META)
			expect(lsm_meta_check(page) == NULL);
		else if (lsm_page_opaque(page)->kind == LSM_PAGE_DIRECTORY)
			expect(lsm_directory_page_check(page) == NULL);
		else
			expect(lsm_page_opaque(page)->kind == LSM_PAGE_MAP);
	}
	expect(CritSectionCount == 0);
}

static void
count_item(void *arg, BlockNumber block, Page page, int ordinal, const LsmDirectoryEntry *item)
{
	/* Pages that name each other again and again take long, but walks can be interrupted. */
	if (++*(int *) arg > 10000)
		elog(ERROR, "interrupted");
}

static void
read_directory(const LsmRunRecord *run, const LsmBound *bound, bool forward)
{
	LsmFoundSegment *found = palloc0(sizeof(LsmFoundSegment));
	uint64		edits = meta()->edits;
	int			count = 0;
	LsmBound	end = {0};
	PGAlignedBlock copy;
	LsmDirectoryPath path;
	LsmSegment	segments[64];

	if (lsm_run_is_single(run))
		return;
	if (lsm_directory_find(&file_index, &file_keyspace, run, edits, bound,
						   forward ? ForwardScanDirection : BackwardScanDirection, found) == LSM_FOUND)
	{
		(void) lsm_directory_copy(&file_index, run, edits, found, copy.data);
		if (lsm_directory_path(&file_index, &file_keyspace, run, edits, found, &path) == LSM_FOUND)
			expect(path.height == run->dir_height && path.blocks[1] == found->page);
	}
	(void) lsm_directory_last(&file_index, run, edits, &end);
	if (run->dir_height == 1)
		(void) lsm_directory_list(&file_index, run, edits, lengthof(segments), segments, &count);
	count = 0;
	(void) lsm_directory_walk(&file_index, run, edits, count_item, &count);
}

/* Take a step of a merge. */
static void
take_step(uint64 job_id, const Operation *op)
{
	LsmReservation r;
	LsmTaken	taken = {meta()->runs[0].run_id, op->number};
	LsmDirectoryEntry entry;

	if (!lsm_manifest_reserve(&file_index, job_id, 1 + op->number % 8, 1, &r))
		return;
	memset(&entry, 0, sizeof(entry));
	entry.segment.id = r.segment_id;
	entry.segment.start = r.start;
	entry.segment.blocks = entry.segment.leaves = Min(1 + op->number % 4, r.length);
	entry.segment.entries = 10;
	entry.low = file_key(op->key);
	entry.high = file_key(op->key + 1);
	lsm_manifest_install(&file_index, job_id, &r, op->key % 8 == 0 ? NULL : &entry, &taken, 1, op->number % 2);
}

static void
move(uint64 job_id, const Operation *op)
{
	LsmWholeSegment whole;
	LsmDirectoryEntry item;

	memset(&whole, 0, sizeof(whole));
	whole.run_id = meta()->runs[op->number % meta()->run_count].run_id;
	whole.page = LSM_FIXED_BLOCKS + op->key % 128;
	whole.ordinal = op->key / 128;
	whole.entry.low = file_key(op->key);
	whole.entry.high = file_key(op->key + 1);
	whole.entry.segment.id = whole.run_id;
	if (!PageIsNew(file_page(whole.page)) && lsm_directory_page_get(file_page(whole.page), whole.ordinal, &item))
		whole.entry.segment = item.segment;
	(void) lsm_manifest_move(&file_index, job_id, &whole);
}

static void
note_removed(const LsmRunRecord *run, const Operation *op, const LsmBound *bound)
{
	LsmRemoved	removed = {op->number, op->number, op->key % 2};
	LsmFoundSegment *found = palloc0(sizeof(LsmFoundSegment));
	uint64		id = run->run_id;

	if (!lsm_run_is_single(run) &&
		lsm_directory_find(&file_index, &file_keyspace, run, meta()->edits, bound, ForwardScanDirection,
						   found) == LSM_FOUND)
		id = found->segment.id;
	lsm_manifest_note_removed(&file_index, &file_keyspace, run->run_id, id, bound, &removed);
}

static void
operate(const Operation *op)
{
	LsmEntry	key = file_key(op->key);
	LsmBound	bound = {0};
	LsmRunRecord run;
	LsmReservation reservation;
	LsmShape	shape;
	uint64		inputs[4];
	int			count = 0;

	if (meta()->run_count == 0)
		return;
	run = meta()->runs[op->run % meta()->run_count];
	lsm_bound_set_entry(&bound, &key, op->number % 2 ? 1 : -1);
	/* Only merges call these, for their own output. */
	if (op->kind % 11 >= 3 && op->kind % 11 <= 5 && !(run.flags & LSM_RUN_MERGING))
		return;
	switch (op->kind % 11)
	{
		case 0:
			pfree(lsm_version_read(&file_index));
			lsm_manifest_shape(&file_index, &shape);
			break;
		case 1:
			read_directory(&run, &bound, op->number & 2);
			break;
		case 2:
			for (uint32 i = 0; i < meta()->run_count && count < 1 + op->number % 4; i++)
				inputs[count++] = meta()->runs[(op->run + i) % meta()->run_count].run_id;
			(void) lsm_manifest_begin_job(&file_index, inputs, count, op->key % LSM_MAX_LEVEL, &inputs[0]);
			break;
		case 3:
			(void) lsm_manifest_reserve(&file_index, run.run_id, 1 + op->key % 1024, 1 + op->number % 8, &reservation);
			break;
		case 4:
			take_step(run.run_id, op);
			break;
		case 5:
			move(run.run_id, op);
			break;
		case 6:
			lsm_manifest_trim(&file_index, &file_keyspace, run.run_id, NULL, &bound);
			break;
		case 7:
			lsm_manifest_reap(&file_index);
			break;
		case 8:
			note_removed(&run, op, &bound);
			break;
		case 9:
			lsm_manifest_drop_empty(&file_index);
			break;
		case 10:
			(void) lsm_manifest_used_end(&file_index);
			lsm_manifest_truncate(&file_index, op->number);
			break;
	}
}

void
fuzz_target(Input *in)
{
	int			count = take8(in) % (MOST_OPERATIONS + 1);
	Operation	operations[MOST_OPERATIONS];
	sigjmp_buf	here;
	sigjmp_buf *outer = backend_catch;

	clear_file();
	for (int i = 0; i < count; i++)
	{
		operations[i].kind = take8(in);
		operations[i].run = take8(in);
		operations[i].number = take8(in);
		operations[i].key = take16(in);
	}
	if (!read_file(in))
		return;
	for (volatile int i = 0; i < count; i++)
	{
		backend_catch = &here;
		if (sigsetjmp(here, 0) == 0)
			operate(&operations[i]);
		backend_catch = outer;
		check_pages();
	}
}
