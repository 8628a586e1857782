/*
 * version.c
 *	  Reading the manifest.
 *
 * A version is a copy, taken under the share lock of the meta page.  It is
 * never changed.
 */
#include "postgres.h"

#include "manifest/manifest.h"
#include "manifest/meta_buffer.h"
#include "storage/buffers.h"

/*
 * Lock the meta page and check it.  A version from the future is told before
 * anything else is looked at, for all else may have moved.
 */
Buffer
lsm_meta_lock(Relation rel, int mode)
{
	Buffer		buffer;
	bool		missed;
	Page		page;
	const char *wrong;

	lsm_compare_check(rel);
	missed = lsm_buffer_read_counted(rel, LSM_BLOCK_META, NULL, &buffer);
	page = BufferGetPage(buffer);
	LockBuffer(buffer, mode);
	wrong = lsm_page_check_header(page, LSM_BLOCK_META);
	if (wrong == NULL && lsm_meta(page)->magic == LSM_META_MAGIC &&
		lsm_meta(page)->version != LSM_FORMAT_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" has format version %u, but this pg_lsm works with version %u",
						RelationGetRelationName(rel), lsm_meta(page)->version, LSM_FORMAT_VERSION),
				 errdetail("The version is stored in block %u of the index.", LSM_BLOCK_META),
				 errhint("Install the pg_lsm that wrote the index, or REINDEX it.")));
	if (wrong == NULL)
		wrong = lsm_buffer_verify(rel, buffer, missed);
	if (wrong == NULL)
		wrong = lsm_meta_check(page);
	if (wrong != NULL)
		lsm_report_corruption(rel, LSM_BLOCK_META, wrong);
	return buffer;
}

/*
 * A file that is shorter than its runs must not be mistaken for a small index.
 * A run under construction does not count: it reserves a block before writing
 * it, and extending a file is not logged, so that block may be missing on a
 * standby or after a crash.  Nor does a part: it has its end from that run.
 */
static void
check_length(Relation rel, const LsmVersion *version)
{
	BlockNumber end = 0;

	for (uint32 i = 0; i < version->run_count; i++)
	{
		if (version->runs[i].state != LSM_RUN_BUILDING &&
			version->runs[i].state != LSM_RUN_PART)
			end = Max(end, version->runs[i].end_block);
	}
	if (end > 0 && RelationGetNumberOfBlocks(rel) < end)
		lsm_report_corruption(rel, end - 1, "the file ends before this block");
}

/*
 * Copy the manifest, palloc'd.  With `gate`, also pin the current gate page
 * under the same lock: the version and the pin belong together (I12).
 */
LsmVersion *
lsm_version_read(Relation rel, Buffer *gate)
{
	Buffer		buffer = lsm_meta_lock(rel, BUFFER_LOCK_SHARE);
	LsmMeta    *meta = lsm_meta(BufferGetPage(buffer));
	LsmVersion *version = palloc(offsetof(LsmVersion, runs) +
								 meta->run_count * sizeof(LsmRunRecord));

	version->edits = meta->edits;
	version->next_run_id = meta->next_run_id;
	version->seals = meta->seals;
	version->gate_epoch = meta->gate_epoch;
	version->run_count = meta->run_count;
	memcpy(version->runs, meta->runs, meta->run_count * sizeof(LsmRunRecord));
	if (gate != NULL)
	{
		*gate = lsm_buffer_read(rel, LSM_BLOCK_GATE + meta->gate_epoch % 2,
								LSM_KIND(LSM_PAGE_GATE), 0, BUFFER_LOCK_SHARE, NULL);
		LockBuffer(*gate, BUFFER_LOCK_UNLOCK);
	}
	UnlockReleaseBuffer(buffer);
	check_length(rel, version);
	return version;
}

LsmRunRecord *
lsm_version_find(const LsmVersion *version, uint64 run_id)
{
	for (uint32 i = 0; i < version->run_count; i++)
	{
		if (version->runs[i].run_id == run_id)
			return (LsmRunRecord *) &version->runs[i];
	}
	return NULL;
}

/* The part of a job, or NULL if it has none. */
const LsmRunRecord *
lsm_version_part(const LsmVersion *version, uint64 job_id)
{
	for (uint32 i = 0; i < version->run_count; i++)
	{
		if (version->runs[i].state == LSM_RUN_PART && version->runs[i].job_id == job_id)
			return &version->runs[i];
	}
	return NULL;
}

/* Where do inserts go? */
void
lsm_manifest_open_pages(Relation rel, LsmOpenPages *open)
{
	Buffer		buffer = lsm_meta_lock(rel, BUFFER_LOCK_SHARE);
	LsmMeta    *meta = lsm_meta(BufferGetPage(buffer));

	open->count = 0;
	for (uint32 i = 0; i < meta->run_count && open->count < LSM_MAX_OPEN_RUNS; i++)
	{
		if (meta->runs[i].state == LSM_RUN_OPEN)
		{
			open->pages[open->count].run_id = meta->runs[i].run_id;
			open->pages[open->count++].block = meta->runs[i].root;
		}
	}
	UnlockReleaseBuffer(buffer);
}
