/*
 * seal.c
 *	  Seals pages of the write buffer that need not be open: the spare pages of an idle index, and
 *	  the pages that lsm_compact merges.
 */
#include "postgres.h"

#include "base/counts.h"
#include "format/buffer_page.h"
#include "schedule/schedule.h"
#include "storage/buffers.h"

/* Seal the page of an open run, and count it. */
static LsmSealResult
seal_open_run(LsmIndex *index, uint64 run_id)
{
	uint64		seals;
	LsmSealResult result = lsm_manifest_seal(index, run_id, 1, &seals);

	if (result == LSM_SEALED)
		lsm_stats_add(index->rel, LSM_COUNT_PAGES_FLUSHED, 1);
	return result;
}

/*
 * Seal all open pages but one, including empty pages.  A run without entries disappears with the
 * next merge.  Sealing spare pages needs no room in the manifest.
 */
void
lsm_seal_spare_pages(LsmIndex *index)
{
	LsmOpenPages open;

	lsm_manifest_open_pages(index, &open);
	while (open.count > 1)
		seal_open_run(index, open.pages[--open.count].run_id);
}

/*
 * Seal the last open page, unless it is empty.  Returns false if the manifest has no room for
 * another run.
 */
bool
lsm_seal_last_page(LsmIndex *index)
{
	LsmOpenPages open;
	Buffer		buffer;
	int			entries;

	lsm_manifest_open_pages(index, &open);
	if (open.count == 0)
		return true;
	buffer = lsm_buffer_read_owned(index->rel, open.pages[0].block, LSM_PAGE_BUFFER,
								   open.pages[0].run_id, BUFFER_LOCK_SHARE, NULL);
	/* In the meantime, others have sealed and merged the page. */
	if (!BufferIsValid(buffer))
		return true;
	entries = lsm_buffer_page_count(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	return entries == 0 || seal_open_run(index, open.pages[0].run_id) != LSM_SEAL_NO_ROOM;
}
