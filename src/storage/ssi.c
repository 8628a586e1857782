/*
 * ssi.c
 *	  Predicate locks of serializable transactions.
 *
 * In other indexes, a transaction locks the pages that it reads, and an insert checks the page
 * that it changes. Every merge moves the entries of an lsm index to other pages, so the locks
 * are on virtual pages (key/virtual_pages.c).
 *
 * A scan locks before it takes a version. An insert checks only after its entry can be found. So
 * either the insert finds the lock, or the scan finds the entry. In the latter case, the table
 * detects the conflict. See docs/design/ssi.md.
 */
#include "postgres.h"

#include "access/xact.h"
#include "key/virtual_pages.h"
#include "storage/predicate.h"
#include "storage/ssi.h"
#include "utils/snapmgr.h"

/*
 * Lock the keys between two bounds, before they are read. Does nothing unless the transaction
 * is serializable and reads with an MVCC snapshot.
 */
void
lsm_ssi_lock_range(LsmKeySpace *ks, Relation index, const LsmBound *low,
				   const LsmBound *high, Snapshot snapshot)
{
	BlockNumber pages[LSM_RANGE_PAGES];
	int			count;

	if (!IsolationIsSerializable() || !IsMVCCSnapshot(snapshot))
		return;
	count = lsm_pages_of_range(ks, low, high, pages);
	if (count < 0)
		PredicateLockRelation(index, snapshot);
	for (int i = 0; i < count; i++)
		PredicateLockPage(index, pages[i], snapshot);
}

/*
 * Find the transactions that have locked virtual pages of an entry. Called after the entry is
 * inserted, or before it is reported as a duplicate. Raises an error if this transaction cannot
 * be serialized. Does nothing unless the transaction is serializable.
 */
void
lsm_ssi_check(LsmKeySpace *ks, Relation index, const LsmEntry *entry)
{
	BlockNumber pages[LSM_KEY_PAGES];
	int			count;

	if (!IsolationIsSerializable())
		return;
	count = lsm_pages_of_key(ks, entry, pages);
	for (int i = 0; i < count; i++)
		CheckForSerializableConflictIn(index, NULL, pages[i]);
}
