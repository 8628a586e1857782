/*
 * batch.c
 *	  Statement batches: collects entries in backend memory and writes them as sorted runs.
 *
 * A batch belongs to one index and lives in a child of TopTransactionContext. All its entries
 * belong to heap tuples that this transaction inserted, so no other transaction misses them before
 * the commit. This backend can see the tuples earlier, so its scans write the batch first.
 *
 * An entry whose tuple belongs to an aborted subtransaction must never reach the index, because the
 * next VACUUM frees the tuple's line pointer. So a batch remembers the first entry of each
 * subtransaction. An abort drops this entry and all later entries.
 *
 * The entries of a unique index are checked at the nesting level of their rows. A deeper
 * subtransaction may have to write the entries, for example if a trigger handles errors and reads
 * the table. In that case, the entries stay in the batch, and are checked before the next row of
 * their statement or at its end. The subtransaction cannot check the entries itself. It may roll
 * back its changes to rows with the same keys, and a violation is the statement's error, not the
 * subtransaction's.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/compat.h"
#include "base/counts.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/stop_point.h"
#include "format/leaf_mode.h"
#include "ingest/batch.h"
#include "ingest/ingest.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "schedule/schedule.h"
#include "storage/lmgr.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* The entry `start` and all later entries were added at this nesting level or deeper. */
typedef struct BatchMark
{
	int			level;
	Size		start;
} BatchMark;

struct LsmBatch
{
	dlist_node	node;			/* in waiting */
	bool		is_waiting;		/* has entries */
	Oid			index_id;
	Oid			heap_id;
	LsmLocator	locator;		/* of the index */
	LsmCaller	caller;			/* tuple keys: who inserted the entries */
	MemoryContext context;		/* of the batch */
	LsmIndex   *index;
	LsmKeySpace *ks;
	LsmEntries	entries;
	Size		memory;			/* of the entries; part of memory_used */
	Size		packed_size;	/* estimated size of the entries in a run, bytes */
	bool		flushing;
	bool		failed;			/* writing began, and some entries may be in the index */
	Size		unchecked;		/* unique: leading entries that are in the index, unchecked */
	int			flush_level;	/* nesting level that writes the batch */
	LsmLeafMode mode;			/* of the entries */
	const LsmBatchGuard *guard; /* of a unique index, or NULL */
	uint64		statement;		/* unique: the statement of all entries */
	LsmCopyLines lines;			/* unique: where their rows come from */
	bool		sealed;			/* writing the batch has sealed pages */
	uint64		seals_before;
	uint64		seals_after;
	CommandId	seen_from;		/* a snapshot with a lower command ID sees none of the rows */
	BatchMark  *marks;			/* level and start ascend */
	int			mark_count;
	int			mark_room;
};

/* A batch is written at this packed size, which fills an image. */
#define FULL_SIZE			((LSM_IMAGE_PAGES - 2) * (Size) (LSM_PAGE_SPECIAL - LSM_LEAF_DATA))
#define ENTRY_OVERHEAD		4	/* estimated bytes per entry in a run, besides key and rest */

/* An item of the hash table of batches. */
typedef struct BatchSlot
{
	Oid			index_id;		/* key */
	LsmBatch   *batch;
} BatchSlot;

static dlist_head waiting = DLIST_STATIC_INIT(waiting);	/* batches that have entries */
static HTAB *batch_table = NULL;	/* NULL: no batches */

static Size memory_used = 0;	/* of the entries of all batches, in bytes */

uint64		lsm_batch_generation = 0;

static LsmBatch *
find_batch(Oid index_id)
{
	BatchSlot  *slot;

	if (batch_table == NULL)
		return NULL;
	slot = hash_search(batch_table, &index_id, HASH_FIND, NULL);
	return slot != NULL ? slot->batch : NULL;
}

static void
make_batch_table(void)
{
	HASHCTL		control;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(Oid);
	control.entrysize = sizeof(BatchSlot);
	control.hcxt = TopTransactionContext;
	batch_table = hash_create("pg_lsm batches", 16, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static LsmBatch *
create_batch(Relation index, Relation heap)
{
	MemoryContext context = AllocSetContextCreate(TopTransactionContext, "pg_lsm batch",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	LsmBatch   *batch = palloc0(sizeof(LsmBatch));

	batch->index_id = RelationGetRelid(index);
	batch->heap_id = RelationGetRelid(heap);
	batch->context = context;
	batch->index = lsm_index_open(index);
	batch->ks = lsm_index_keyspace(batch->index);
	lsm_mode_init(&batch->mode);
	batch->seen_from = InvalidCommandId;
	lsm_entries_init(&batch->entries, batch->ks, context);
	MemoryContextSwitchTo(old);
	return batch;
}

/* Returns the batch of an index, created if necessary. */
LsmBatch *
lsm_batch_get(Relation index, Relation heap)
{
	LsmBatch   *batch = find_batch(RelationGetRelid(index));
	BatchSlot  *slot;

	if (batch != NULL)
		return batch;
	if (batch_table == NULL)
		make_batch_table();
	batch = create_batch(index, heap);
	slot = hash_search(batch_table, &batch->index_id, HASH_ENTER, NULL);
	slot->batch = batch;
	return batch;
}

/* Note the nesting level of the entry to be added next. */
static void
mark_level(LsmBatch *batch)
{
	int			level = GetCurrentTransactionNestLevel();

	if (batch->mark_count > 0 && batch->marks[batch->mark_count - 1].level >= level)
		return;
	if (batch->mark_count == batch->mark_room)
	{
		int			room = Max(4, 2 * batch->mark_room);

		batch->marks = batch->marks ?
			repalloc(batch->marks, room * sizeof(BatchMark)) :
			MemoryContextAlloc(batch->context, room * sizeof(BatchMark));
		batch->mark_room = room;
	}
	batch->marks[batch->mark_count].level = level;
	batch->marks[batch->mark_count].start = batch->entries.count;
	batch->mark_count++;
}

/* Returns all entries, sorted, in a palloc'd array. The batch does not change. */
static LsmItemRef *
sort_all_entries(LsmBatch *batch)
{
	LsmItemRef *refs = palloc_extended(batch->entries.count * sizeof(LsmItemRef),
									   MCXT_ALLOC_HUGE);

	lsm_item_refs_sort_copy(refs, batch->entries.refs, batch->entries.count, batch->ks);
	return refs;
}

/*
 * Like sort_all_entries, but returns only entries that are not in the index yet. If writing fails
 * in a subtransaction, the entries added before the subtransaction may have to be written later.
 * Some of these entries may already be in the index.
 */
static LsmItemRef *
sort_unwritten_entries(LsmBatch *batch, Size *count)
{
	const LsmItemRef *all = batch->entries.refs;
	LsmItemRef *refs = palloc_extended((batch->entries.count - batch->unchecked) * sizeof(LsmItemRef),
									   MCXT_ALLOC_HUGE);
	Size		n = 0;

	for (Size i = batch->unchecked; i < batch->entries.count; i++)
	{
		if (!(all[i].item->tid & LSM_ITEM_WRITTEN))
			refs[n++] = all[i];
	}
	lsm_item_refs_sort(refs, n, batch->ks);
	*count = n;
	return refs;
}

/* Returns whether the current subtransaction is nested within that of the rows. */
static inline bool
is_deeper(const LsmBatch *batch)
{
	return GetCurrentTransactionNestLevel() > batch->marks[0].level;
}

/* Returns whether the batch can be written or checked now. */
static bool
is_batch_due(const LsmBatch *batch)
{
	/* A comparison function that reads the table would reenter this code. */
	if (batch->entries.count == 0 || batch->flushing)
		return false;
	return batch->guard == NULL || batch->entries.count > batch->unchecked || !is_deeper(batch);
}

/* Note the index's number of sealed pages before and after this write. */
static void
note_seals(LsmBatch *batch, uint64 before, uint64 after)
{
	if (!batch->sealed)
		batch->seals_before = before;
	batch->sealed = true;
	batch->seals_after = after;
}

/* Write the image as a run of the index, and free the image. */
static void
install_image(LsmBatch *batch, Relation heap, LsmBuilder *image, const LsmItemRef *refs,
			  Size entries)
{
	LsmDirectoryEntry entry;
	uint64		seals;
	int			level;

	lsm_builder_finish(image);
	lsm_builder_describe(image, &entry);
	/* In a unique index, holds the publish lock (exclusive).  The run is only in private memory. */
	LSM_STOP_POINT("batch-write");
	level = lsm_level_for(entry.segment.blocks, lsm_fanout(batch->index->rel));
	while (lsm_manifest_add_batch(batch->index, image, level, &seals) == LSM_SEAL_NO_ROOM)
	{
		lsm_schedule_make_room(batch->index, heap);
		CHECK_FOR_INTERRUPTS();
	}
	for (Size i = 0; i < entries; i++)
		refs[i].item->tid |= LSM_ITEM_WRITTEN;
	/* Holds the same lock.  This run is in the index; later runs of the batch are not. */
	LSM_STOP_POINT("batch-written");
	lsm_builder_free(image);
	lsm_stats_add(batch->index->rel, LSM_COUNT_BATCHES, 1);
	lsm_stats_add(batch->index->rel, LSM_COUNT_ENTRIES, entries);
	note_seals(batch, seals - entry.segment.leaves, seals);
}

static void
write_runs(LsmBatch *batch, Relation heap, const LsmItemRef *refs, Size count)
{
	LsmBuilder *image = NULL;
	Size		first = 0;		/* of the image */

	for (Size i = 0; i < count; i++)
	{
		LsmEntry	entry;

		lsm_item_entry(refs[i].item, &entry);
		if (image != NULL && !lsm_builder_add(image, &entry))
		{
			install_image(batch, heap, image, refs + first, i - first);
			image = NULL;
			first = i;
		}
		if (image != NULL)
			continue;
		image = lsm_builder_create_image(batch->ks, &batch->mode);
		if (!lsm_builder_add(image, &entry))
			elog(ERROR, "entry does not fit into an empty run of index \"%s\"", batch->ks->index_name);
	}
	if (image != NULL)
		install_image(batch, heap, image, refs + first, count - first);
}

/* Write entries into the write buffer, because they are too few for a page of their own. */
static void
write_singly(LsmBatch *batch, Relation heap, const LsmItemRef *refs, Size count)
{
	for (Size i = 0; i < count; i++)
	{
		LsmItem    *item = refs[i].item;
		LsmEntry	entry;
		uint64		seals;
		bool		sealed;

		lsm_item_entry(item, &entry);
		sealed = lsm_insert_entry(batch->index, heap, batch->ks, &entry, &seals);
		item->tid |= LSM_ITEM_WRITTEN;
		lsm_stats_add(batch->index->rel, LSM_COUNT_ENTRIES, 1);
		if (sealed)
			note_seals(batch, seals - 1, seals);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Update the list of waiting batches when a batch gets its first entry or loses its last. */
static void
set_waiting(LsmBatch *batch, bool is_waiting)
{
	if (batch->is_waiting == is_waiting)
		return;
	if (is_waiting)
		dlist_push_tail(&waiting, &batch->node);
	else
		dlist_delete(&batch->node);
	batch->is_waiting = is_waiting;
}

/*
 * Raise an error if the index has a new file. All commands that give an index a new file write the
 * batches first, but an extension may replace the file without a command. The entries must not
 * reach the new file, because their tuples may be gone, or the new file may already contain the
 * entries.
 */
static inline void
check_index_file(LsmBatch *batch, Relation index)
{
	LsmLocator	locator = lsm_relation_locator(index);

	if (memcmp(&batch->locator, &locator, sizeof(LsmLocator)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" was rebuilt while entries were waiting to be written to it",
						RelationGetRelationName(index)),
				 errhint("Set pg_lsm.batch_inserts to off for this command.")));
}

/* Forget all entries and what we know about them. */
static void
clear_batch(LsmBatch *batch)
{
	memory_used -= batch->memory;
	batch->memory = 0;
	lsm_entries_clear(&batch->entries, false);
	lsm_copy_lines_clear(&batch->lines);
	batch->packed_size = 0;
	batch->failed = false;
	batch->unchecked = 0;
	batch->mark_count = 0;
	lsm_mode_init(&batch->mode);
	batch->seen_from = InvalidCommandId;
	set_waiting(batch, false);
}

/* Take the index's current handle. If it is new, functions that compare keys may have changed. */
static void
refresh_handle(LsmBatch *batch, Relation index)
{
	LsmIndex   *handle = lsm_index_open(index);

	if (handle != batch->index && !batch->ks->encoded)
	{
		MemoryContext old = MemoryContextSwitchTo(batch->context);

		batch->ks = batch->entries.ks = lsm_index_keyspace(handle);
		MemoryContextSwitchTo(old);
	}
	batch->index = handle;
}

/*
 * Write the collected entries. Afterwards the batch is empty, or contains only entries that must
 * still be checked.
 */
static void
flush_batch(LsmBatch *batch, Relation index, Relation heap)
{
	MemoryContext old;
	MemoryContext work;
	LsmOwnerContext saved;
	LsmItemRef *all = NULL;
	LsmItemRef *refs;
	Size		count = batch->entries.count;
	bool		checks;
	bool		needs_snapshot;

	if (!is_batch_due(batch))
		return;
	/*
	 * Comparison functions may run queries, and checks read the table. There is no active snapshot
	 * after FETCH or at the end of a transaction.
	 */
	needs_snapshot = (!batch->ks->encoded || batch->guard != NULL) && !ActiveSnapshotSet();
	if (needs_snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
	checks = batch->guard != NULL && !is_deeper(batch);
	check_index_file(batch, index);
	refresh_handle(batch, index);
	batch->flushing = true;
	batch->flush_level = GetCurrentTransactionNestLevel();
	work = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm flush", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(work);
	batch->sealed = false;
	saved.guc_level = 0;
	if (!batch->ks->encoded)
		lsm_caller_enter(&batch->caller, &saved);
	if (checks || !batch->failed)
		all = sort_all_entries(batch);
	refs = batch->failed ? sort_unwritten_entries(batch, &count) : all;
	batch->failed = true;
	if (batch->guard != NULL)
	{
		lsm_schedule_expect_room(batch->index, heap);
		if (checks)
			batch->guard->enter(batch->index, batch->ks, heap, all, batch->entries.count, true,
								&batch->lines);
		else
			batch->guard->enter(batch->index, batch->ks, heap, refs, count, false,
								&batch->lines);
	}
	if (count >= (Size) lsm_batch_min_entries)
		write_runs(batch, heap, refs, count);
	else
		write_singly(batch, heap, refs, count);
	if (batch->guard != NULL)
		batch->guard->leave(batch->index);
	if (batch->sealed)
		lsm_schedule_after_seal(batch->index, heap, batch->seals_before, batch->seals_after);
	lsm_owner_leave(&saved);
	if (needs_snapshot)
		PopActiveSnapshot();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);

	batch->flushing = false;
	if (batch->guard == NULL || checks)
		clear_batch(batch);
	else
	{
		/* Writing batches would not free this memory, so it no longer counts. */
		memory_used -= batch->memory;
		batch->memory = 0;
		batch->unchecked = batch->entries.count;
	}
}

/*
 * Write a batch whose statement may have closed its relations, and open them again. The insert's
 * locks are still held.
 */
static void
open_and_flush(LsmBatch *batch)
{
	Relation	heap;
	Relation	index;

	if (!is_batch_due(batch))
		return;
	heap = table_open(batch->heap_id, NoLock);
	index = index_open(batch->index_id, RowExclusiveLock);
	flush_batch(batch, index, heap);
	index_close(index, RowExclusiveLock);
	table_close(heap, NoLock);
}

/*
 * Let a guarded batch take entries of this statement. All entries of a guarded batch belong to one
 * statement, and are written at the latest when that statement ends. Returns false if another
 * statement's entries wait in the batch, or if the batch is being written.
 */
bool
lsm_batch_begin_guarded(LsmBatch *batch, const LsmBatchGuard *guard, uint64 statement)
{
	/* If a subtransaction had to write entries, check them before the next row. */
	if (batch->unchecked > 0)
		open_and_flush(batch);
	if (batch->entries.count > 0)
		return batch->guard != NULL && batch->statement == statement && !batch->flushing;
	batch->guard = guard;
	batch->statement = statement;
	return true;
}

/*
 * Add a copy of an entry. A snapshot with a command ID below `seen_from` does not see the entry's
 * row. Writes the batch if it is full. Since a table may have many partitions, writes all batches
 * if together they take more than work_mem.
 */
void
lsm_batch_add(LsmBatch *batch, Relation index, Relation heap, const LsmEntry *entry,
			  CommandId seen_from)
{
	/*
	 * All entries of a batch are compared as the same user. Those of a guarded batch come from a
	 * single statement anyway.
	 */
	if (!batch->ks->encoded && batch->entries.count > 0 && batch->guard == NULL &&
		!batch->flushing && !lsm_caller_is_current(&batch->caller))
		flush_batch(batch, index, heap);
	if (batch->entries.count == 0)
	{
		if (!batch->ks->encoded)
			lsm_caller_note(&batch->caller, batch->context);
		/*
		 * Keep the lock until the end of the transaction. The statement releases its own lock, but
		 * the index must not get a new file while entries wait.
		 */
		LockRelation(index, RowExclusiveLock);
		batch->locator = lsm_relation_locator(index);
		/* An earlier call that ran out of memory may have left a mark. */
		batch->mark_count = 0;
	}
	else
		check_index_file(batch, index);
	mark_level(batch);
	if (batch->guard != NULL)
		lsm_copy_lines_note(&batch->lines, entry->tid, batch->context);
	lsm_entries_add(&batch->entries, entry);
	set_waiting(batch, true);
	memory_used += batch->entries.used - batch->memory;
	batch->memory = batch->entries.used;
	batch->packed_size += entry->keylen + entry->restlen + ENTRY_OVERHEAD;
	lsm_mode_add(&batch->mode, entry);
	batch->seen_from = Min(batch->seen_from, seen_from);
	if (batch->packed_size >= FULL_SIZE ||
		(lsm_batch_entries > 0 && batch->entries.count >= (Size) lsm_batch_entries))
		flush_batch(batch, index, heap);
	else if (memory_used > (Size) work_mem * 1024)
		lsm_batch_flush_all();
}

/* Returns the first waiting batch that can be written, or NULL. */
static LsmBatch *
first_waiting(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &waiting)
	{
		LsmBatch   *batch = dlist_container(LsmBatch, node, iter.cur);

		if (is_batch_due(batch))
			return batch;
	}
	return NULL;
}

/* Write all batches that can be written now. */
void
lsm_batch_flush_all(void)
{
	LsmBatch   *batch;

	while ((batch = first_waiting()) != NULL)
		open_and_flush(batch);
}

/* Write the guarded batches of a statement that is ending. */
void
lsm_batch_flush_statement(uint64 statement)
{
	dlist_iter	iter;
	LsmBatch   *found;

	do
	{
		found = NULL;
		dlist_foreach(iter, &waiting)
		{
			LsmBatch   *batch = dlist_container(LsmBatch, node, iter.cur);

			if (batch->guard != NULL && batch->statement == statement && is_batch_due(batch))
			{
				found = batch;
				break;
			}
		}
		if (found != NULL)
			open_and_flush(found);
	} while (found != NULL);
}

/* Write the batch of this index. */
void
lsm_batch_flush_index(Relation index)
{
	LsmBatch   *batch = find_batch(RelationGetRelid(index));

	if (batch != NULL)
		open_and_flush(batch);
}

/*
 * Write the batch of this index before a scan, unless the scan can see none of its rows. An MVCC
 * snapshot sees only rows that earlier commands inserted.
 */
void
lsm_batch_flush_for_scan(Relation index, Snapshot snapshot)
{
	LsmBatch   *batch;

	if (dlist_is_empty(&waiting))
		return;
	batch = find_batch(RelationGetRelid(index));
	if (batch == NULL || (snapshot != NULL && snapshot->snapshot_type == SNAPSHOT_MVCC &&
						  snapshot->curcid < batch->seen_from))
		return;
	open_and_flush(batch);
}

/* Called when a subtransaction has committed: hand its marks to its parent. */
static void
hand_to_parent(LsmBatch *batch, int level)
{
	while (batch->mark_count > 0 && batch->marks[batch->mark_count - 1].level >= level)
	{
		if (batch->mark_count == 1 || batch->marks[batch->mark_count - 2].level < level - 1)
		{
			batch->marks[batch->mark_count - 1].level = level - 1;
			break;
		}
		batch->mark_count--;
	}
}

/* Called when a subtransaction has aborted: forget its entries. */
static void
cut_aborted_entries(LsmBatch *batch, int level)
{
	while (batch->mark_count > 0 && batch->marks[batch->mark_count - 1].level >= level)
		batch->entries.count = batch->marks[--batch->mark_count].start;
	batch->unchecked = Min(batch->unchecked, batch->entries.count);
}

/* Called when the subtransaction at this nesting level ends. */
void
lsm_batch_end_subtransaction(int level, bool commit)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &waiting)
	{
		LsmBatch   *batch = dlist_container(LsmBatch, node, iter.cur);

		if (commit)
			hand_to_parent(batch, level);
		else
		{
			cut_aborted_entries(batch, level);
			/* Ignore subtransactions that a comparison function starts. */
			if (level <= batch->flush_level)
				batch->flushing = false;
			if (batch->entries.count == 0)
				clear_batch(batch);
		}
	}
}

/* Forget all batches at the end of the transaction. Core frees their memory. */
void
lsm_batch_forget_all(void)
{
	lsm_batch_generation++;
	memory_used = 0;
	batch_table = NULL;
	dlist_init(&waiting);
}
