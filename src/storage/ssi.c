/*
 * ssi.c
 *	  Predicate locks of serializable transactions.
 *
 * PostgreSQL locks the pages of an index that a transaction reads, and an insert checks the
 * page that it changes. The pages of an lsm index move with every merge, so the locks are on
 * virtual pages (key/virtual_pages.c).
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
 * After inserting an entry, find the transactions that have locked virtual pages of the entry.
 * Raises an error if this transaction cannot be serialized. Does nothing unless the
 * transaction is serializable.
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
