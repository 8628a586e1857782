/*
 * check_instant.c
 *	  Copies at one instant what must be consistent: the manifest, the gates, the open pages, all
 *	  directories and the space map.
 *
 * The manifest, directories and map change only with edits, and the gates with a flip.  The
 * verifier copies everything under the share lock of the meta page, which blocks edits and flips.
 * Inserts into open pages continue.  The verifier compares the copies after it has released the
 * lock.  An index of 100 GB has about 200 map pages and 200 directory pages.  The verifier reads
 * these pages into shared buffers before it takes the lock, so copying them takes less than a
 * millisecond.  The share lock blocks no reader.
 *
 * The verifier trusts no page, even if this server has checked the page before.  Under the lock, it
 * checks the run records before it reads anything that they name.  manifest/directory.c checks
 * directory pages as it reads them.
 */
#include "postgres.h"

#include "inspect/inspect.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Copy a page.  Caller holds the lock of the meta page, so the copied page keeps its owner. */
static void
instant_copy_page(LsmCheck *c, BlockNumber block, uint16 kind, uint64 owner, Page copy)
{
	Buffer		buffer;

	/* This also rejects InvalidBlockNumber, which would extend the file. */
	if (block >= c->instant->file_blocks)
		lsm_check_report(c, block, "the file ends before this block");
	buffer = lsm_buffer_read(c->rel, block, LSM_KIND(kind), owner, BUFFER_LOCK_SHARE, NULL);
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
}

/* Copy the open pages.  Concurrent inserts into them are harmless. */
static void
instant_copy_open_pages(LsmCheck *c)
{
	LsmInstant *in = c->instant;

	for (uint32 i = 0; i < in->version.run_count; i++)
	{
		const LsmRunRecord *run = &in->version.runs[i];

		if (run->state != LSM_RUN_OPEN)
			continue;
		in->open_pages[i] = palloc(BLCKSZ);
		instant_copy_page(c, run->start, LSM_PAGE_BUFFER, run->run_id, in->open_pages[i]);
	}
}

/* The visitor's argument: the run whose directory is walked. */
typedef struct DirectoryCopying
{
	LsmInstant *instant;
	const LsmRunRecord *run;
} DirectoryCopying;

/* Copy a directory page.  Its items are checked after the lock is released. */
static void
instant_visit_directory(void *arg, BlockNumber block, Page page, int ordinal,
						const LsmDirectoryEntry *item)
{
	DirectoryCopying *copying = arg;
	LsmInstant *in = copying->instant;
	LsmDirectoryCopy *copy;

	if (item != NULL)
		return;
	if (in->directory_count == in->directory_room)
	{
		in->directory_room = Max(64, 2 * in->directory_room);
		in->directories = in->directories ?
			repalloc_huge(in->directories, in->directory_room * sizeof(LsmDirectoryCopy)) :
			palloc(in->directory_room * sizeof(LsmDirectoryCopy));
	}
	copy = &in->directories[in->directory_count++];
	copy->run = copying->run;
	copy->block = block;
	copy->page = palloc(BLCKSZ);
	memcpy(copy->page, page, BLCKSZ);
}

static void
instant_copy_directories(LsmCheck *c)
{
	LsmInstant *in = c->instant;
	DirectoryCopying copying = {in, NULL};

	for (uint32 i = 0; i < in->version.run_count; i++)
	{
		copying.run = &in->version.runs[i];
		if (lsm_run_is_single(copying.run))
			continue;
		if (copying.run->start >= in->file_blocks)
			lsm_check_report(c, copying.run->start, "the file ends before this block");
		/* We block edits, so the directory cannot be newer than the version. */
		(void) lsm_directory_walk(c->index, copying.run, LSM_ANY_EDIT, instant_visit_directory,
								  &copying);
	}
}

static void
instant_copy_map(LsmCheck *c)
{
	LsmInstant *in = c->instant;

	in->region_count = lsm_region_of(in->version.space.mapped_end - 1) + 1;
	in->map = MemoryContextAllocHuge(in->context, (Size) in->region_count * BLCKSZ);
	for (uint32 i = 0; i < in->region_count; i++)
		instant_copy_page(c, lsm_region_map_block(i), LSM_PAGE_MAP, 0,
						  (Page) (in->map + (Size) i * BLCKSZ));
}

/*
 * Check the gates.  The current gate is open.  A flip opens one gate and closes the other, so both
 * are open only before the first flip.
 */
static void
instant_check_gates(LsmCheck *c)
{
	uint32		epoch = c->instant->version.gate_epoch;

	for (uint32 i = 0; i < 2; i++)
	{
		BlockNumber block = LSM_BLOCK_GATE + i;
		Page		page = c->instant->gates[i];
		bool		current = epoch % 2 == i;
		bool		closed;

		lsm_check_page(c, block, LSM_PAGE_GATE, 0, page);
		closed = (lsm_page_opaque(page)->flags & LSM_PAGE_CLOSED) != 0;
		if (current && closed)
			lsm_check_report(c, block, "the current gate is closed");
		if (!current && !closed && epoch > 0)
			lsm_check_report(c, block, "the gate that is not current is open");
	}
}

/* The visitor of instant_read_in. */
static void
instant_visit_nothing(void *arg, BlockNumber block, Page page, int ordinal,
					  const LsmDirectoryEntry *item)
{
}

/*
 * Read the directory pages and map pages that will be copied, so that shared buffers have them.
 * Does not hold the lock of the meta page meanwhile.  The pages may belong to an older version, so
 * only a check that holds the lock can tell that a page is damaged.
 */
static void
instant_read_in(LsmCheck *c)
{
	LsmVersion *version = lsm_version_read(c->index);

	for (uint32 i = 0; i < version->run_count; i++)
	{
		const LsmRunRecord *run = &version->runs[i];

		CHECK_FOR_INTERRUPTS();
		if (lsm_run_is_single(run))
			continue;
		/* Leave the report of a damaged record to lsm_check_records. */
		if (run->start >= RelationGetNumberOfBlocks(c->rel))
			break;
		if (!lsm_directory_walk(c->index, run, version->edits, instant_visit_nothing, NULL))
			break;
	}
	for (uint32 i = 0; i <= lsm_region_of(version->space.mapped_end - 1); i++)
	{
		CHECK_FOR_INTERRUPTS();
		lsm_buffer_touch(c->rel, lsm_region_map_block(i));
	}
	pfree(version);
}

/*
 * Copy the state at one instant, and set c->instant.  Locks follow the lock order: the meta page,
 * and under it one page at a time.
 */
void
lsm_check_take_instant(LsmCheck *c)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm check instant",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	LsmInstant *in = palloc0(sizeof(LsmInstant));
	Page		copy = palloc(BLCKSZ);
	Buffer		meta;

	in->context = context;
	c->instant = in;
	for (int i = 0; i < 2; i++)
		in->gates[i] = palloc(BLCKSZ);

	instant_read_in(c);
	meta = lsm_meta_lock(c->rel, BUFFER_LOCK_SHARE);
	memcpy(copy, BufferGetPage(meta), BLCKSZ);
	lsm_check_page(c, LSM_BLOCK_META, LSM_PAGE_META, 0, copy);
	lsm_version_copy(&in->version, lsm_meta(copy));
	in->file_blocks = RelationGetNumberOfBlocks(c->rel);
	/* Check the records before following them.  The check takes microseconds. */
	lsm_check_records(c);
	for (int i = 0; i < 2; i++)
		instant_copy_page(c, LSM_BLOCK_GATE + i, LSM_PAGE_GATE, 0, in->gates[i]);
	instant_copy_open_pages(c);
	instant_copy_directories(c);
	instant_copy_map(c);
	UnlockReleaseBuffer(meta);

	CHECK_FOR_INTERRUPTS();
	instant_check_gates(c);
	MemoryContextSwitchTo(old_context);
}
