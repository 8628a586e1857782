/*
 * fill.h
 *	  Decides when a leaf may be closed before it is full: pure arithmetic (I11).
 *
 * To copy a page, the builder must close its open leaf. On average, leaves have at most
 * LSM_UNUSED_ALLOWED bytes unused: each closed leaf adds that number to a credit and subtracts
 * its unused bytes. A leaf that is closed early must not overdraw the credit. The credit is
 * capped at one page, so a long stretch of full leaves does not pay for an equally long stretch
 * of badly filled leaves.
 */
#ifndef LSM_FILL_H
#define LSM_FILL_H

#include "format/leaf.h"

#define LSM_UNUSED_ALLOWED	((int) LSM_LEAF_CAPACITY / 10)

/* Returns the credit after closing a leaf with this many unused bytes. */
static inline int
lsm_fill_credit(int credit, int unused)
{
	return Min(credit + LSM_UNUSED_ALLOWED - unused, (int) LSM_LEAF_CAPACITY);
}

/*
 * Returns whether to close the open leaf and continue with a copy of a page. The credit must
 * suffice. If the leaf is not nearly full, the page must also be at least as full as required on
 * average. A page whose content fits into the open leaf is not copied.
 *
 * `whole`: the copy may be unable to take more entries, so it must not overdraw the credit
 * either.
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
