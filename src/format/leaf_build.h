/*
 * leaf_build.h
 *	  Builds packed pages, and removes entries from them.
 */
#ifndef LSM_LEAF_BUILD_H
#define LSM_LEAF_BUILD_H

#include "format/leaf.h"

/*
 * A page under construction.  If the last group will be framed, its entries wait here
 * until the group is complete.
 */
typedef struct LsmLeafBuilder
{
	Page		page;			/* in private memory */
	LsmLeafCoding coding;
	int			odd_keys;		/* keys whose length is not the coding's, without repeated keys */
	int			in_group;		/* entries in the last group, if it is not framed */
	int			framed;			/* number of entries that wait for their frame */
	uint32		most_frame;		/* maximum size of the waiting entries' frame, without rests */
	uint64		lowest_tid;		/* lowest code of the waiting entries' TIDs */
	uint64		highest_tid;	/* highest code of these TIDs */
	uint32		rest_used;		/* bytes of the waiting entries' rests, including lengths */
	LsmEntry	waiting[LSM_GROUP_ENTRIES];
	uint8		waiting_keys[LSM_GROUP_ENTRIES][LSM_FRAMED_KEYLEN + LSM_KEY_PAD];
	uint8		waiting_rests[BLCKSZ];
	uint32		last_keylen;
	uint64		last_tid;
	uint64		last_prefix;	/* see lsm_key_prefix */
	uint8		last_key[LSM_MAX_ENTRY_SIZE];
} LsmLeafBuilder;

extern void lsm_leaf_begin(LsmLeafBuilder *b, Page page, bool has_rest, const LsmLeafMode *mode,
						   uint64 owner, BlockNumber self);
extern void lsm_leaf_begin_next(LsmLeafBuilder *b, Page page, bool has_rest, LsmLeafMode *mode,
								uint64 first_tid, uint64 owner, BlockNumber self);
extern void lsm_fence_begin(LsmLeafBuilder *b, Page page, bool wide, uint64 owner,
							BlockNumber self);
extern bool lsm_leaf_add(LsmLeafBuilder *b, const LsmEntry *entry);
extern void lsm_leaf_finish(LsmLeafBuilder *b);
extern uint32 lsm_leaf_builder_unused(const LsmLeafBuilder *b);
extern bool lsm_leaf_resume(LsmLeafBuilder *b, Page page, LsmGroup *scratch);
extern bool lsm_leaf_needs_wide(uint64 tid);
extern uint32 lsm_leaf_unused(Page page);
extern bool lsm_leaf_delete(Page page, const uint16 *ordinals, int count, LsmGroup *scratch);

#endif							/* LSM_LEAF_BUILD_H */
