/*
 * segment_walk.h
 *	  Walks through the segments of a run, in key order, on a copy of a directory page.
 */
#ifndef LSM_SEGMENT_WALK_H
#define LSM_SEGMENT_WALK_H

#include "base/coding.h"
#include "format/directory_page.h"
#include "read/looked_for.h"

typedef struct LsmSegmentWalk
{
	LsmKeySpace *ks;
	LsmSegment	segment;
	LsmEntry	low;			/* the segment's first and last entries; their keys are in the copy
								 * or belong to the caller */
	LsmEntry	high;
	uint64		low_prefix;
	uint64		high_prefix;
	bool		valid;			/* the walk is on a segment */
	bool		has_copy;		/* of the directory page that names the segment */
	int			ordinal;		/* of the segment on the copy */
	PGAlignedBlock copy;
} LsmSegmentWalk;

/* Put the walk on a segment with these first and last entries. */
static inline void
lsm_walk_stand(LsmSegmentWalk *w, const LsmSegment *segment, const LsmEntry *low,
			   const LsmEntry *high)
{
	w->segment = *segment;
	w->low = *low;
	w->low_prefix = lsm_entry_prefix(w->ks, low);
	w->high = *high;
	w->high_prefix = lsm_entry_prefix(w->ks, high);
	w->valid = true;
}

/*
 * Move to the next segment of the copied page.  If there is no copy or no further segment, the
 * walk becomes invalid.  Returns false if the page is damaged.
 */
static inline bool
lsm_walk_next(LsmSegmentWalk *w)
{
	LsmDirectoryEntry item;

	w->valid = false;
	while (w->has_copy && ++w->ordinal < lsm_directory_page_count(w->copy.data))
	{
		if (!lsm_directory_page_get(w->copy.data, w->ordinal, &item))
			return false;
		/* Skip segments that were freed. */
		if (item.segment.blocks == 0)
			continue;
		lsm_walk_stand(w, &item.segment, &item.low, &item.high);
		break;
	}
	return true;
}

/* Is the key after the segment? */
static inline bool
lsm_walk_is_behind(const LsmSegmentWalk *w, const LsmProbe *probe)
{
	return lsm_probe_compare(w->ks, probe, &w->high, w->high_prefix) > 0;
}

/* Is the key before the segment? */
static inline bool
lsm_walk_is_before(const LsmSegmentWalk *w, const LsmProbe *probe)
{
	return lsm_probe_compare(w->ks, probe, &w->low, w->low_prefix) < 0;
}

#endif							/* LSM_SEGMENT_WALK_H */
