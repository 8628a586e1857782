/*
 * gate.c
 *	  Flips and drains the gates, the interlock between VACUUM and scans (I9, I10).
 *
 * Two pages take turns as the current gate.  Scans pin the current gate while they use TIDs.
 * VACUUM flips the gates and then drains the old gate, holding no other lock.
 */
#include "postgres.h"

#include "manifest/manifest.h"
#include "miscadmin.h"
#include "storage/buffers.h"
#include "storage/emit.h"

/* Returns the block of the gate that is not current. */
BlockNumber
lsm_gate_other(Relation rel)
{
	Buffer		meta = lsm_meta_lock(rel, BUFFER_LOCK_SHARE);
	uint32		epoch = lsm_meta(BufferGetPage(meta))->gate_epoch;

	UnlockReleaseBuffer(meta);
	return LSM_BLOCK_GATE + (epoch + 1) % 2;
}

/*
 * Make the other gate the current one, and close the old gate.  Returns the block of the old
 * gate, which the caller must drain.
 *
 * REQUIRES: the other gate has been drained, so nobody pins that gate.
 */
BlockNumber
lsm_gate_flip(Relation rel)
{
	Buffer		meta = lsm_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE);
	uint32		epoch = lsm_meta(BufferGetPage(meta))->gate_epoch;
	Buffer		old = lsm_buffer_read(rel, LSM_BLOCK_GATE + epoch % 2, LSM_KIND(LSM_PAGE_GATE),
									  0, BUFFER_LOCK_EXCLUSIVE, NULL);
	Buffer		new = lsm_buffer_read(rel, LSM_BLOCK_GATE + (epoch + 1) % 2,
									  LSM_KIND(LSM_PAGE_GATE), 0, BUFFER_LOCK_EXCLUSIVE, NULL);
	BlockNumber closed = BufferGetBlockNumber(old);

	START_CRIT_SECTION();
	lsm_meta_flip_gate(BufferGetPage(meta));
	lsm_gate_set_closed(BufferGetPage(old), true);
	lsm_gate_set_closed(BufferGetPage(new), false);
	MarkBufferDirty(meta);
	MarkBufferDirty(old);
	MarkBufferDirty(new);
	if (RelationNeedsWAL(rel))
		lsm_wal_gate_flip(meta, old, new);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(new);
	UnlockReleaseBuffer(old);
	UnlockReleaseBuffer(meta);
	return closed;
}

/*
 * Wait until nobody pins a closed gate.  On standbys, replay waits in the same way.
 *
 * REQUIRES: the caller holds none of locks 2 to 7 (see src/README.md).
 */
void
lsm_gate_drain(Relation rel, BlockNumber gate)
{
	Buffer		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, gate, RBM_NORMAL, NULL);
	const char *wrong;

	LockBufferForCleanup(buffer);
	wrong = lsm_buffer_verify(rel, buffer, false);
	if (wrong != NULL)
		lsm_report_corruption(rel, gate, wrong);
	START_CRIT_SECTION();
	lsm_page_unmark(BufferGetPage(buffer));
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(rel))
		lsm_wal_gate_drain(buffer);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}
