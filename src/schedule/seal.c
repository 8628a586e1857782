/*
 * seal.c
 *	  Closing pages of the write buffer that nobody needs open: of an index that
 *	  is idle, and by lsm_compact.
 */
#include "postgres.h"

#include "format/buffer_page.h"
#include "schedule/schedule.h"
#include "storage/buffers.h"

static bool
seal_run(LsmIndex *index, uint64 run_id)
{
	uint64		seals;

	if (lsm_manifest_seal(index, run_id, 1, &seals) != LSM_SEALED)
		return false;
	lsm_stats_add(index->rel, LSM_COUNT_PAGES_FLUSHED, 1);
	return true;
}

/*
 * Seal all open pages but one, whatever they hold: a run without entries is
 * gone with the next merge.  Needs no room in the manifest.
 */
void
lsm_seal_spare_pages(LsmIndex *index)
{
	LsmOpenPages open;

	lsm_manifest_open_pages(index, &open);
	while (open.count > 1)
		seal_run(index, open.pages[--open.count].run_id);
}

/*
 * Seal the last page, too, if there is anything in it.  An empty page stays open.
 * False if the manifest has no room for another one.
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
	/* Sealed and merged by others meanwhile. */
	if (!BufferIsValid(buffer))
		return true;
	entries = lsm_buffer_page_count(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	if (entries > 0)
	{
		uint64		seals;
		LsmSealResult result = lsm_manifest_seal(index, open.pages[0].run_id, 1, &seals);

		if (result == LSM_SEALED)
			lsm_stats_add(index->rel, LSM_COUNT_PAGES_FLUSHED, 1);
		return result != LSM_SEAL_NO_ROOM;
	}
	return true;
}
