/*
 * index.c
 *	  The handles of this backend's indexes.
 *
 * A handle is found in a hash table.  When the relation cache forgets an index,
 * or its file is another one, a new handle takes the place of the old one,
 * which is freed at the end of the transaction: until then somebody may use it.
 * No scan, batch or merge outlives its transaction.
 *
 * The keyspace of encoded keys runs nobody's code, so all users of a handle
 * share it.  Where keys are compared by functions, these may come back to the
 * same index, and a keyspace has rooms for keys that are being compared: so
 * each user makes a keyspace of its own (lsm_index_keyspace).
 */
#include "postgres.h"

#include "access/xact.h"
#include "index/index.h"
#include "storage/buffers.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"

typedef struct IndexSlot
{
	Oid			id;				/* key */
	LsmIndex   *index;
} IndexSlot;

static HTAB *table = NULL;
static LsmIndex *old_ones = NULL;
static LsmIndex *last_used = NULL;
static bool any_used = false;	/* in this transaction */
static LsmForgetCallback forget_callback = NULL;

/* Handles that keep their readers from one transaction to the next. */
#define MOST_KEPT 16

/*
 * Lock the meta page and check it.  A version from the future is told before
 * anything else is looked at, for all else may have moved.
 */
Buffer
lsm_meta_lock(Relation rel, int mode)
{
	Buffer		buffer;
	bool		missed;
	Page		page;
	const char *wrong;

	lsm_compare_check(rel);
	missed = lsm_buffer_read_counted(rel, LSM_BLOCK_META, NULL, &buffer);
	page = BufferGetPage(buffer);
	LockBuffer(buffer, mode);
	wrong = lsm_page_check_header(page, LSM_BLOCK_META);
	if (wrong == NULL && lsm_meta(page)->magic == LSM_META_MAGIC &&
		lsm_meta(page)->version != LSM_FORMAT_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" has format version %u, but this pg_lsm works with version %u",
						RelationGetRelationName(rel), lsm_meta(page)->version, LSM_FORMAT_VERSION),
				 errdetail("The version is stored in block %u of the index.", LSM_BLOCK_META),
				 errhint("Install the pg_lsm that wrote the index, or REINDEX it.")));
	if (wrong == NULL)
		wrong = lsm_buffer_verify(rel, buffer, missed);
	if (wrong == NULL)
		wrong = lsm_meta_check(page);
	if (wrong != NULL)
		lsm_report_corruption(rel, LSM_BLOCK_META, wrong);
	return buffer;
}

static void
forget_readers(LsmIndex *index, LsmForget which)
{
	if (forget_callback != NULL)
		forget_callback(index, which);
}

/*
 * Scans that are under way go on with this handle until the transaction ends.  What
 * they do not use goes now: a transaction may replace handles thousands of times.
 */
static void
retire(LsmIndex *index)
{
	forget_readers(index, LSM_FORGET_UNUSED);
	index->valid = false;
	index->next_old = old_ones;
	old_ones = index;
	if (last_used == index)
		last_used = NULL;
}

/* The relation cache forgets one index, or (InvalidOid) all of them. */
static void
on_relcache_inval(Datum arg, Oid id)
{
	HASH_SEQ_STATUS status;
	IndexSlot  *slot;

	if (table == NULL)
		return;
	if (OidIsValid(id))
	{
		slot = hash_search(table, &id, HASH_FIND, NULL);
		if (slot != NULL)
			slot->index->valid = false;
		return;
	}
	hash_seq_init(&status, table);
	while ((slot = hash_seq_search(&status)) != NULL)
	{
		slot->index->valid = false;
	}
}

/* Those who still have something of a handle are told that it goes. */
static void
drop_handle(LsmIndex *index)
{
	forget_readers(index, LSM_FORGET_ALL);
	MemoryContextDelete(index->context);
}

/* Nobody uses a handle any more. */
static void
at_transaction_end(XactEvent event, void *arg)
{
	HASH_SEQ_STATUS status;
	IndexSlot  *slot;
	int			kept = 0;
	bool		committed;
	TimestampTz now;

	if ((event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT &&
		 event != XACT_EVENT_PREPARE && event != XACT_EVENT_PARALLEL_COMMIT &&
		 event != XACT_EVENT_PARALLEL_ABORT) || !any_used)
		return;
	any_used = false;
	/* Shared memory may have no slot of the index yet, and an abort must not make one. */
	committed = event != XACT_EVENT_ABORT && event != XACT_EVENT_PARALLEL_ABORT;
	now = committed ? GetCurrentTransactionStopTimestamp() : 0;
	while (old_ones != NULL)
	{
		LsmIndex   *index = old_ones;

		old_ones = index->next_old;
		drop_handle(index);
	}
	hash_seq_init(&status, table);
	while ((slot = hash_seq_search(&status)) != NULL)
	{
		LsmIndex   *index = slot->index;

		if (index->valid)
		{
			bool		keep = index->used && kept < MOST_KEPT;

			kept += keep;
			forget_readers(index, keep ? LSM_FORGET_BUT_ONE : LSM_FORGET_ALL);
			if (committed && index->used)
				lsm_reads_publish_if_due(&index->reads, now);
			index->used = false;
			continue;
		}
		if (last_used == index)
			last_used = NULL;
		drop_handle(index);
		hash_search(table, &slot->id, HASH_REMOVE, NULL);
	}
}

/*
 * To be called for each handle at the end of a transaction that used any, and
 * when another one takes its place.
 */
void
lsm_index_on_forget(LsmForgetCallback callback)
{
	forget_callback = callback;
}

void
lsm_index_init(void)
{
	HASHCTL		control;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(Oid);
	control.entrysize = sizeof(IndexSlot);
	control.hcxt = TopMemoryContext;
	table = hash_create("pg_lsm indexes", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(on_relcache_inval, (Datum) 0);
	RegisterXactCallback(at_transaction_end, NULL);
}

/* A handle; the coding of its keys is the caller's business. */
static LsmIndex *
make(Relation rel)
{
	/* Until it is complete: errors may come. */
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_lsm index",
												  ALLOCSET_SMALL_SIZES);
	LsmIndex   *index = MemoryContextAllocZero(context, sizeof(LsmIndex));

	index->id = RelationGetRelid(rel);
	index->rel = rel;
	index->context = context;
	index->locator = lsm_relation_locator(rel);
	index->reads.index = RelationUsesLocalBuffers(rel) ? InvalidOid : index->id;
	index->valid = true;
	return index;
}

/* Let it be the one that is found from now on. */
static void
put(LsmIndex *index)
{
	IndexSlot  *slot;
	bool		found;

	slot = hash_search(table, &index->id, HASH_ENTER, &found);
	MemoryContextSetParent(index->context, TopMemoryContext);
	index->used = true;
	if (found)
	{
		retire(slot->index);
		lsm_counters_add(&index->reads.counters, &slot->index->reads.counters);
		memset(&slot->index->reads.counters, 0, sizeof(LsmReadCounters));
	}
	slot->index = index;
	last_used = index;
}

static void
make_keyspace(LsmIndex *index)
{
	MemoryContext old = MemoryContextSwitchTo(index->context);

	index->ks = lsm_keyspace_create(index->rel, &index->coding);
	MemoryContextSwitchTo(old);
}

static inline bool
is_current(const LsmIndex *index, Relation rel)
{
	LsmLocator	locator = lsm_relation_locator(rel);

	return index->valid && memcmp(&index->locator, &locator, sizeof(LsmLocator)) == 0;
}

/*
 * The handle of an index that the caller has open, and its keyspace.  Errors
 * when the index was written by another version of pg_lsm.
 */
LsmIndex *
lsm_index_open(Relation rel)
{
	Oid			id = RelationGetRelid(rel);
	IndexSlot  *slot;
	LsmIndex   *index = last_used;
	Buffer		meta;

	any_used = true;
	if (likely(index != NULL && index->id == id && is_current(index, rel)))
	{
		index->rel = rel;
		index->used = true;
		return index;
	}
	slot = hash_search(table, &id, HASH_FIND, NULL);
	if (slot != NULL && is_current(slot->index, rel))
	{
		last_used = slot->index;
		last_used->rel = rel;
		last_used->used = true;
		return last_used;
	}
	index = make(rel);
	meta = lsm_meta_lock(rel, BUFFER_LOCK_SHARE);
	index->coding = lsm_meta(BufferGetPage(meta))->coding;
	UnlockReleaseBuffer(meta);
	make_keyspace(index);
	put(index);
	return index;
}

/*
 * The handle of an index whose file is empty still.  How its keys are compared
 * is decided here, once for its life.
 */
LsmIndex *
lsm_index_create(Relation rel)
{
	LsmIndex   *index = make(rel);

	any_used = true;
	lsm_keyspace_choose(rel, &index->coding);
	make_keyspace(index);
	put(index);
	return index;
}

/*
 * A keyspace for a scan, a merge or a batch: the handle's, or one of its own in
 * the current memory context.
 */
LsmKeySpace *
lsm_index_keyspace(LsmIndex *index)
{
	return index->ks->encoded ? index->ks : lsm_keyspace_create(index->rel, &index->coding);
}

/* Let the statistics views see all that this session has counted. */
void
lsm_index_publish_all(void)
{
	HASH_SEQ_STATUS status;
	IndexSlot  *slot;

	hash_seq_init(&status, table);
	while ((slot = hash_seq_search(&status)) != NULL)
	{
		if (slot->index->valid)
			lsm_reads_publish(&slot->index->reads);
	}
}
