/*
 * fill.h
 *	  When a leaf may be closed before it is full: pure arithmetic (I11).
 *
 * To copy a page the writer has to close the leaf that it has open.  Leaves
 * have no more than LSM_UNUSED_ALLOWED bytes unused, on average: each leaf that
 * is closed adds that to a credit and takes what it has unused, and who closes
 * one early must not overdraw.  A page's worth at most is kept, so that a long
 * stretch of full leaves does not allow for as long a one of bad leaves.
 */
#ifndef LSM_FILL_H
#define LSM_FILL_H

#include "format/leaf.h"

#define LSM_UNUSED_ALLOWED	((int) LSM_LEAF_CAPACITY / 10)

/* The credit when a leaf with that much unused has been closed. */
static inline int
lsm_fill_credit(int credit, int unused)
{
	return Min(credit + LSM_UNUSED_ALLOWED - unused, (int) LSM_LEAF_CAPACITY);
}

/*
 * May the open leaf be closed to go on with a copy of a page?  If it is nearly
 * full, yes; else only for a page that is fuller than the average has to be,
 * and if there is credit for it.  A page that its leaf has room for is not
 * copied.
 *
 * `whole`: the copy may turn out to take no more entries.  Then it must not
 * overdraw the credit either.
 */
static inline bool
lsm_fill_may_copy(int credit, bool leaf_is_empty, int leaf_unused, int page_unused, bool whole)
{
	if (!leaf_is_empty)
	{
		if (leaf_unused > LSM_UNUSED_ALLOWED && page_unused > LSM_UNUSED_ALLOWED)
			return false;
		if ((int) LSM_LEAF_CAPACITY - page_unused <= leaf_unused)
			return false;
		credit = lsm_fill_credit(credit, leaf_unused);
	}
	if (whole && page_unused > LSM_UNUSED_ALLOWED)
		credit -= page_unused - LSM_UNUSED_ALLOWED;
	return credit >= 0;
}

#endif							/* LSM_FILL_H */
