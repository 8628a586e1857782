/*
 * read.c
 *	  From versions to cursors.
 */
#include "postgres.h"

#include "format/buffer_page.h"
#include "memtable/memtable.h"
#include "merge/merge.h"
#include "read/read.h"
#include "run/run.h"
#include "storage/buffers.h"

static LsmCursor *
read_pages(Relation rel, LsmKeySpace *ks, const LsmRunRecord *run, BufferAccessStrategy strategy)
{
	if (run->state == LSM_RUN_OPEN || run->state == LSM_RUN_SEALED)
		return lsm_buffer_cursor_create(rel, ks, run->root, run->run_id);
	return lsm_run_cursor_create(rel, ks, run, strategy);
}

/*
 * Of an input of a job that has a part, the frontier, palloc'd: what lies before
 * it does not count.  Of other runs, NULL.
 */
LsmBound *
lsm_read_frontier(Relation rel, const LsmVersion *version, const LsmRunRecord *run)
{
	const LsmRunRecord *part = NULL;
	LsmBound   *bound;

	if (run->job_id != 0 && run->state != LSM_RUN_PART)
		part = lsm_version_part(version, run->job_id);
	if (part == NULL)
		return NULL;
	bound = palloc0(sizeof(LsmBound));
	lsm_run_read_frontier(rel, part, bound);
	return bound;
}

/*
 * A cursor over what a run has in this version: of an input of a job that has a
 * part, what does not lie before the frontier.
 *
 * REQUIRES: the run is not under construction.
 */
LsmCursor *
lsm_read_run(Relation rel, LsmKeySpace *ks, const LsmVersion *version, const LsmRunRecord *run,
			 BufferAccessStrategy strategy)
{
	LsmCursor  *cursor = read_pages(rel, ks, run, strategy);
	LsmBound   *frontier = lsm_read_frontier(rel, version, run);

	return frontier == NULL ? cursor : lsm_frontier_create(ks, cursor, frontier);
}

/* All live runs.  A run under construction is read by nobody (I8). */
LsmCursor *
lsm_read_version(Relation rel, LsmKeySpace *ks, const LsmVersion *version)
{
	LsmCursor **children = palloc(Max(1, version->run_count) * sizeof(LsmCursor *));
	int			count = 0;

	for (uint32 i = 0; i < version->run_count; i++)
	{
		if (version->runs[i].state != LSM_RUN_BUILDING)
			children[count++] = lsm_read_run(rel, ks, version, &version->runs[i], NULL);
	}
	return lsm_merge_create(ks, children, count);
}

/*
 * The inputs of a job.  Where it has a part they are not to be read from before
 * the frontier on.
 */
LsmCursor *
lsm_read_inputs(Relation rel, LsmKeySpace *ks, const LsmVersion *version,
				const uint64 *run_ids, int count, BufferAccessStrategy strategy)
{
	LsmCursor **children = palloc(Max(1, count) * sizeof(LsmCursor *));

	for (int i = 0; i < count; i++)
		children[i] = read_pages(rel, ks, lsm_version_find(version, run_ids[i]), strategy);
	return lsm_merge_create(ks, children, count);
}

/* What is on a sealed page: entries are few and of all kinds. */
static void
add_sealed(Relation rel, Page page, BlockNumber block, LsmLeafMode *mode)
{
	for (int i = 0; i < lsm_buffer_page_count(page); i++)
	{
		LsmEntry	entry;

		if (!lsm_buffer_page_get(page, i, &entry))
			lsm_report_corruption(rel, block, "item is out of bounds");
		lsm_mode_add(mode, &entry);
	}
}

static void
add_page(Relation rel, const LsmRunRecord *run, BlockNumber block, BufferAccessStrategy strategy,
		 LsmLeafMode *mode)
{
	Buffer		buffer = lsm_buffer_read(rel, block,
										 LSM_KIND(LSM_PAGE_LEAF) | LSM_KIND(LSM_PAGE_BUFFER),
										 run->run_id, BUFFER_LOCK_SHARE, strategy);
	Page		page = BufferGetPage(buffer);

	if (lsm_page_opaque(page)->kind == LSM_PAGE_LEAF)
	{
		LsmLeafMode of_leaf;

		lsm_mode_of_page(page, &of_leaf);
		lsm_mode_join(mode, &of_leaf);
	}
	else
		add_sealed(rel, page, block, mode);
	UnlockReleaseBuffer(buffer);
}

/*
 * What is known of the entries of a job's inputs, for coding its output.  A
 * run's leaves have the mode of the first one, but where that did not do, or
 * where pages were copied or appended; those come from where the last one does.
 */
void
lsm_read_inputs_mode(Relation rel, const LsmVersion *version, const uint64 *run_ids, int count,
					 BufferAccessStrategy strategy, LsmLeafMode *mode)
{
	lsm_mode_init(mode);
	for (int i = 0; i < count; i++)
	{
		const LsmRunRecord *run = lsm_version_find(version, run_ids[i]);

		add_page(rel, run, run->first_leaf, strategy, mode);
		if (run->last_leaf != run->first_leaf)
			add_page(rel, run, run->last_leaf, strategy, mode);
	}
}
