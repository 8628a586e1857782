/*
 * segment.h
 *	  Builds a segment from sorted entries (builder.c), and searches its pages (search.c).
 */
#ifndef LSM_SEGMENT_H
#define LSM_SEGMENT_H

#include "format/directory_page.h"
#include "index/index.h"
#include "key/keyspace.h"
#include "storage/bufmgr.h"

/* Builds a segment, either in private memory (an image) or page by page in its blocks. */
typedef struct LsmBuilder LsmBuilder;

typedef enum LsmPageResult
{
	LSM_PAGE_TAKEN,
	LSM_PAGE_REFUSED,			/* add the entries one by one, since a copy would waste room */
	LSM_PAGE_NO_ROOM			/* the segment is full */
} LsmPageResult;

extern LsmBuilder *lsm_builder_create(Relation rel, LsmKeySpace *ks, uint64 segment_id,
									  BlockNumber start, uint32 length, const LsmLeafMode *mode,
									  BufferAccessStrategy strategy);
extern void lsm_builder_want_filter(LsmBuilder *b);
extern LsmBuilder *lsm_builder_create_image(LsmKeySpace *ks, const LsmLeafMode *mode);
extern bool lsm_builder_add(LsmBuilder *b, const LsmEntry *entry);
extern LsmPageResult lsm_builder_add_page(LsmBuilder *b, Page page);
extern bool lsm_builder_is_empty(const LsmBuilder *b);
extern bool lsm_builder_last(const LsmBuilder *b, LsmEntry *entry);
extern uint32 lsm_builder_pages_copied(const LsmBuilder *b);
extern void lsm_builder_finish(LsmBuilder *b);
extern void lsm_builder_describe(const LsmBuilder *b, LsmDirectoryEntry *result);
extern void lsm_builder_free(LsmBuilder *b);

/* For a finished image. */
extern Page lsm_builder_page(const LsmBuilder *b, uint32 i);
extern void lsm_builder_place(LsmBuilder *b, uint64 segment_id, BlockNumber start,
							  LsmSegment *segment);

/* Searching a packed page, search.c. */
extern bool lsm_leaf_search(LsmKeySpace *ks, Page page, const LsmBound *bound,
							int *group, int *pos, LsmGroup *decoded);
extern bool lsm_leaf_seek(LsmKeySpace *ks, Page page, const LsmBound *bound, int most,
						  bool forward, int *pos, LsmGroup *decoded);
extern bool lsm_fence_search(LsmKeySpace *ks, Page page, const LsmBound *bound,
							 LsmGroup *decoded, uint32 *child);

#endif							/* LSM_SEGMENT_H */
