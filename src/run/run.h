/*
 * run.h
 *	  Packed runs: writing one from sorted entries, in steps (writer.c) or at
 *	  once (image.c), reading it with a cursor.
 */
#ifndef LSM_RUN_H
#define LSM_RUN_H

#include "format/meta.h"
#include "key/cursor.h"
#include "storage/bufmgr.h"

typedef struct LsmRunWriter LsmRunWriter;

extern LsmRunWriter *lsm_run_writer_begin(Relation rel, Relation heap, LsmKeySpace *ks,
										  const LsmRunRecord *run, uint32 expected_blocks,
										  const LsmLeafMode *mode);
extern LsmRunWriter *lsm_run_writer_resume(Relation rel, Relation heap, LsmKeySpace *ks,
										   const LsmRunRecord *run, bool is_part,
										   uint32 expected_blocks, LsmBound *position);
extern LsmRunWriter *lsm_run_writer_append(Relation rel, Relation heap, LsmKeySpace *ks,
										   const LsmRunRecord *run, uint32 more_blocks,
										   const LsmLeafMode *mode);
extern void lsm_run_writer_add(LsmRunWriter *writer, const LsmEntry *entry);
extern bool lsm_run_writer_add_page(LsmRunWriter *writer, Page page);
extern uint32 lsm_run_writer_pages_copied(const LsmRunWriter *writer, bool all);
extern uint32 lsm_run_writer_leaves(const LsmRunWriter *writer);
extern uint32 lsm_run_writer_blocks(const LsmRunWriter *writer);
extern void lsm_run_writer_suspend(LsmRunWriter *writer, LsmRunRecord *run);
extern void lsm_run_writer_suspend_part(LsmRunWriter *writer, LsmRunRecord *run,
										LsmRunRecord *part);
extern void lsm_run_writer_finish(LsmRunWriter *writer, LsmRunRecord *run);
extern bool lsm_run_read_end(Relation rel, LsmKeySpace *ks, const LsmRunRecord *run,
							 LsmBound *end);
extern uint32 lsm_run_last_count(Relation rel, const LsmRunRecord *run);
extern void lsm_run_read_frontier(Relation rel, const LsmRunRecord *part, LsmBound *bound);
extern LsmEntry lsm_run_separator(LsmKeySpace *ks, const LsmLeafBuilder *leaf,
								  const LsmEntry *entry);

/* Blocks of the index, palloc'd. */
typedef struct LsmBlockList
{
	BlockNumber *blocks;
	Size		count;
	Size		room;
} LsmBlockList;

/* cut.c */
extern int64 lsm_run_cut(Relation rel, LsmKeySpace *ks, LsmRunRecord *run, const LsmBound *from,
						 const LsmBound *to, LsmBlockList *list);
extern void lsm_run_list_blocks(Relation rel, const LsmRunRecord *run, const LsmRunRecord *part,
								LsmBlockList *list);

/*
 * A small run in private memory, image.c.  It gets its place in the index all
 * at once: pages 0 to leaves - 1 are leaves, a fence page follows if there are
 * several.
 */
typedef struct LsmRunImage
{
	LsmKeySpace *ks;
	int			leaves;
	int			most_leaves;
	uint64		entries;
	LsmLeafMode mode;			/* how its leaves code entries */
	Size		fence_size;		/* upper bound of the fence page's content */
	char	   *pages;			/* LSM_IMAGE_PAGES pages */
	LsmEntry	separators[LSM_IMAGE_PAGES];
	uint8	   *separator_keys[LSM_IMAGE_PAGES];
	LsmLeafBuilder leaf;
} LsmRunImage;

extern LsmRunImage *lsm_run_image_create(LsmKeySpace *ks, const LsmLeafMode *mode);
extern bool lsm_run_image_add(LsmRunImage *image, const LsmEntry *entry);
extern void lsm_run_image_clear(LsmRunImage *image);
extern int	lsm_run_image_page_count(const LsmRunImage *image);
extern Page lsm_run_image_page(const LsmRunImage *image, int i);
extern void lsm_run_image_place(LsmRunImage *image, uint64 run_id, BlockNumber start,
								LsmRunRecord *run);

extern LsmCursor *lsm_run_cursor_create(Relation rel, LsmKeySpace *ks, const LsmRunRecord *run,
										BufferAccessStrategy strategy);

/* Searching a packed page, search.c. */
extern bool lsm_leaf_search(LsmKeySpace *ks, Page page, const LsmBound *bound,
							int *group, int *pos, LsmGroup *decoded);
extern bool lsm_fence_search(LsmKeySpace *ks, Page page, const LsmBound *bound,
							 LsmGroup *decoded, BlockNumber *child);

#endif							/* LSM_RUN_H */
