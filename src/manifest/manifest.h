/*
 * manifest.h
 *	  Declares the manifest's versions, directories, edits and gates.
 *
 * The manifest is the list of runs on the meta page.  Readers copy it into a version.  Writers,
 * jobs and VACUUM change it by edits (change.h), each atomic.  Functions with an LsmChange
 * argument run under its locks.  Functions that make an edit take locks 4 and 5 (see
 * src/README.md) themselves, so their callers hold neither.
 */
#ifndef LSM_MANIFEST_H
#define LSM_MANIFEST_H

#include "index/index.h"
#include "key/cursor.h"
#include "manifest/change.h"
#include "segment/segment.h"

/* A copy of the manifest, which scans and jobs work with. */
typedef struct LsmVersion
{
	uint64		edits;			/* the number of the last edit; 0: not copied yet */
	XLogRecPtr	lsn;			/* of the meta page at the last update */
	uint64		next_id;
	uint64		seals;
	uint32		gate_epoch;
	uint32		run_count;
	LsmSpace	space;
	LsmReservation reservations[LSM_MAX_RESERVATIONS];
	LsmRunRecord runs[LSM_MAX_RUNS];
} LsmVersion;

typedef enum LsmSealResult
{
	LSM_SEALED,					/* the page is sealed or opened, or the batch is added */
	LSM_SEAL_RACED,				/* another process sealed the page first */
	LSM_SEAL_NO_ROOM			/* the manifest is full: merge first */
} LsmSealResult;

/* version.c */
extern bool lsm_version_is_current(LsmIndex *index, const LsmVersion *version, Buffer *gate);
extern bool lsm_version_update(LsmIndex *index, LsmVersion *version, Buffer *gate);
extern LsmVersion *lsm_version_read(LsmIndex *index);
extern void lsm_version_copy(LsmVersion *version, const LsmMeta *meta);
extern LsmRunRecord *lsm_version_find(LsmVersion *version, uint64 run_id);
extern bool lsm_run_is_read(const LsmRunRecord *run);
extern void lsm_manifest_shape(LsmIndex *index, LsmShape *shape);
extern void lsm_manifest_open_pages(LsmIndex *index, LsmOpenPages *open);

/* directory.c */
typedef enum LsmFindResult
{
	LSM_FOUND,
	LSM_FOUND_NONE,
	LSM_FOUND_STALE				/* the directory has changed since the version was copied */
} LsmFindResult;

/* Passed as `edits`: use the current directory.  The caller must hold the meta page. */
#define LSM_ANY_EDIT PG_UINT64_MAX

/* A segment found in a directory, the bounds before and after it, and the place of its item. */
typedef struct LsmFoundSegment
{
	LsmSegment	segment;
	LsmBound	low;
	LsmBound	high;
	BlockNumber page;			/* directory page */
	int			ordinal;
} LsmFoundSegment;

static inline void
lsm_found_free_keys(LsmFoundSegment *found)
{
	if (found->low.key != NULL)
		pfree(found->low.key);
	if (found->high.key != NULL)
		pfree(found->high.key);
}

/* The pages from the root to an item at level 1, and the item to follow on each, by level. */
typedef struct LsmDirectoryPath
{
	int			height;
	BlockNumber blocks[LSM_MAX_HEIGHT + 1];
	int			ordinals[LSM_MAX_HEIGHT + 1];
} LsmDirectoryPath;

/* Called by a walk for each directory page (item is NULL), and for each item of level 1. */
typedef void (*LsmDirectoryVisitor) (void *arg, BlockNumber block, Page page, int ordinal,
									 const LsmDirectoryEntry *item);

extern LsmFindResult lsm_directory_find(LsmIndex *index, LsmKeySpace *ks, const LsmRunRecord *run,
										uint64 edits, const LsmBound *bound,
										ScanDirection direction, LsmFoundSegment *found);
extern LsmFindResult lsm_directory_copy(LsmIndex *index, const LsmRunRecord *run, uint64 edits,
										const LsmFoundSegment *found, Page copy);
extern LsmFindResult lsm_directory_list(LsmIndex *index, const LsmRunRecord *run, uint64 edits,
										int most, LsmSegment *segments, int *count);
extern LsmFindResult lsm_directory_last(LsmIndex *index, const LsmRunRecord *run, uint64 edits,
										LsmBound *high);
extern bool lsm_directory_walk(LsmIndex *index, const LsmRunRecord *run, uint64 edits,
							   LsmDirectoryVisitor visit, void *arg);
extern void lsm_directory_append(LsmChange *change, LsmRunRecord *run,
								 const LsmDirectoryEntry *entry);
extern void lsm_directory_set(LsmChange *change, const LsmRunRecord *run, BlockNumber page,
							  int ordinal, const LsmSegment *segment);
extern LsmFindResult lsm_directory_path(LsmIndex *index, LsmKeySpace *ks, const LsmRunRecord *run,
										uint64 edits, const LsmFoundSegment *found,
										LsmDirectoryPath *path);
extern bool lsm_directory_path_holds(LsmChange *change, const LsmRunRecord *run,
									 const LsmDirectoryPath *path);
extern void lsm_directory_prune(LsmChange *change, const LsmRunRecord *run,
								const LsmDirectoryPath *path);
extern bool lsm_directory_free_some(LsmChange *change, const LsmRunRecord *run);

/* buffer_edit.c: open and seal pages, add batches */
extern void lsm_manifest_create(LsmIndex *index, ForkNumber fork);
extern LsmSealResult lsm_manifest_seal(LsmIndex *index, uint64 run_id, uint32 pages,
									   uint64 *seals);
extern LsmSealResult lsm_manifest_add_batch(LsmIndex *index, LsmBuilder *image, int level,
											uint64 *seals);

/* job_edit.c: merges */
extern bool lsm_manifest_begin_job(LsmIndex *index, const uint64 *inputs, int count, int level,
								   uint64 *job_id);
extern bool lsm_manifest_reserve(LsmIndex *index, uint64 job_id, uint32 want, uint32 least,
								 LsmReservation *reservation);

/* Entries that a step has taken from an input of its job. */
typedef struct LsmTaken
{
	uint64		run_id;
	uint64		entries;
} LsmTaken;

extern void lsm_manifest_install(LsmIndex *index, uint64 job_id,
								 const LsmReservation *reservation,
								 const LsmDirectoryEntry *entry, const LsmTaken *taken,
								 int taken_count, bool finished);
extern bool lsm_manifest_move(LsmIndex *index, uint64 job_id, const LsmWholeSegment *whole);
extern void lsm_manifest_trim(LsmIndex *index, LsmKeySpace *ks, uint64 input_id,
							  const LsmBound *from, const LsmBound *frontier);
extern void lsm_manifest_reap(LsmIndex *index);

/* vacuum_edit.c */

/* Entries that VACUUM has removed from a segment. */
typedef struct LsmRemoved
{
	uint32		all;
	uint32		counted;		/* without those up to a job's frontier or in an open page */
	bool		empty;			/* no entries are left */
} LsmRemoved;

extern void lsm_manifest_note_removed(LsmIndex *index, LsmKeySpace *ks, uint64 run_id,
									  uint64 segment_id, const LsmBound *low,
									  const LsmRemoved *removed);
extern void lsm_manifest_drop_empty(LsmIndex *index);
extern BlockNumber lsm_manifest_used_end(LsmIndex *index);
extern void lsm_manifest_truncate(LsmIndex *index, BlockNumber least);

/* gate.c */
extern BlockNumber lsm_gate_other(Relation rel);
extern BlockNumber lsm_gate_flip(Relation rel);
extern void lsm_gate_drain(Relation rel, BlockNumber gate);

/*
 * Has VACUUM closed this gate?  The flag is read without a lock.  A scan that misses the flag
 * sees the flag at its next call, and VACUUM waits for the pin in any case.
 */
static inline bool
lsm_gate_is_closed(Buffer gate)
{
	const volatile LsmPageOpaque *opaque = lsm_page_opaque(BufferGetPage(gate));

	return (opaque->flags & LSM_PAGE_CLOSED) != 0;
}

#endif							/* LSM_MANIFEST_H */
