/*
 * buffer.c
 *	  One entry into the write buffer, sealing and merging as needed.
 */
#include "postgres.h"

#include "compact/compact.h"
#include "manifest/manifest.h"
#include "memtable/memtable.h"
#include "miscadmin.h"
#include "storage/buffers.h"

/*
 * Seal the page run_id (0: none is open), making room first if need be.  True
 * when it was sealed: somebody else may have been faster.
 */
bool
lsm_compact_seal(Relation rel, Relation heap, LsmKeySpace *ks, uint64 run_id, uint64 *seals)
{
	for (;;)
	{
		switch (lsm_manifest_seal(rel, heap, ks->has_rest, run_id, seals))
		{
			case LSM_SEALED:
				return run_id != 0;
			case LSM_SEAL_RACED:
				return false;
			case LSM_SEAL_NO_ROOM:
				lsm_compact_make_room(rel, heap, ks);
				break;
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Insert an entry.  Returns true when a page was sealed on the way: then the
 * caller is to call lsm_compact_after_seal with *seals, after it has noted that
 * the entry is in.
 */
bool
lsm_compact_insert(Relation rel, Relation heap, LsmKeySpace *ks, const LsmEntry *entry,
				   uint64 *seals)
{
	uint64		closed_run_id = 0;
	bool		sealed = false;

	for (;;)
	{
		BlockNumber block;
		uint64		run_id;
		LsmInsertResult result;

		if (!lsm_manifest_open_page(rel, &block, &run_id))
		{
			lsm_compact_seal(rel, heap, ks, 0, seals);
			continue;
		}
		result = lsm_memtable_insert(rel, ks, block, run_id, entry);
		if (result == LSM_INSERTED)
			break;
		if (result == LSM_INSERT_FULL)
			sealed |= lsm_compact_seal(rel, heap, ks, run_id, seals);
		else
		{
			/* Sealed since: then the manifest names another page by now (I7). */
			if (run_id == closed_run_id)
				lsm_report_corruption(rel, block, "page is not the open one that the manifest says");
			closed_run_id = run_id;
		}
		CHECK_FOR_INTERRUPTS();
	}
	return sealed;
}
