/*
 * index.c
 *	  Keeps the handles of this backend's indexes.
 *
 * A hash table finds the handle of an index. A new handle replaces the old one when the relation
 * cache forgets the index, when the index gets another file, or when functions that compare its
 * keys may have changed. Running scans keep the old handle, which is freed at the end of the
 * transaction. No scan, batch or merge outlives its transaction.
 *
 * Each handle is in one of four lists (LsmHandleState). At its end, a transaction visits the
 * handles that it used, the stale ones, and at most MOST_KEPT others, but never idle ones.
 *
 * The keyspace of encoded keys calls no operator class functions, so all users of a handle share
 * it. With tuple keys, a keyspace calls comparison functions, which may use the same index again.
 * Since a keyspace has buffers for the keys being compared, each user of such an index has a
 * keyspace of its own (lsm_index_keyspace).
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "base/cannot_fail.h"
#include "index/index.h"
#include "key/comparing.h"
#include "storage/buffers.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

typedef struct IndexSlot
{
	Oid			id;				/* key */
	LsmIndex   *index;
} IndexSlot;

/*
 * At most this many handles, the most recently used, keep a reader from one transaction to the
 * next.  There are fewer if the readers would take more than MOST_KEPT_BYTES, but the most recently
 * used handle always keeps its reader.
 */
#define MOST_KEPT 16
#define MOST_KEPT_BYTES (8 * 1024 * 1024)

/* The handles that lsm_index_trim_readers looks at in one call. */
#define TRIM_TRIES 8

static HTAB *table = NULL;
static dlist_head handles[LSM_HANDLE_STATES];
static int	kept_count;			/* number of kept handles, and the bytes of their readers */
static Size kept_bytes;
static LsmIndex *last_used = NULL;

/* Counts changes of functions and operator families. */
static uint64 function_changes = 0;
static LsmForgetCallback forget_callback = NULL;

/*
 * Lock the meta page and check it. Check the format version first, because other versions may place
 * everything else differently.
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

static Size
forget_readers(LsmIndex *index, LsmForget which)
{
	return forget_callback != NULL ? forget_callback(index, which) : 0;
}

static void
enter_list(LsmIndex *index, LsmHandleState state)
{
	dlist_push_head(&handles[state], &index->node);
	index->state = state;
	if (state == LSM_HANDLE_KEPT)
	{
		kept_count++;
		kept_bytes += index->kept_bytes;
	}
}

static void
leave_list(LsmIndex *index)
{
	dlist_delete(&index->node);
	if (index->state == LSM_HANDLE_KEPT)
	{
		kept_count--;
		kept_bytes -= index->kept_bytes;
	}
}

static void
set_state(LsmIndex *index, LsmHandleState state)
{
	leave_list(index);
	enter_list(index, state);
}

/*
 * Note that a handle is out of date. Cache callbacks call this, so it allocates nothing. A used
 * handle stays in its list, because publish_handles may be walking that list.
 */
static void
invalidate_handle(LsmIndex *index)
{
	if (!index->valid)
		return;
	index->valid = false;
	if (index->state != LSM_HANDLE_USED)
		set_state(index, LSM_HANDLE_STALE);
}

/*
 * Called when another handle replaces this one. Running scans use the old handle until the
 * transaction ends. Unused readers are freed immediately, because a transaction may replace handles
 * thousands of times.
 */
static void
retire_handle(LsmIndex *index)
{
	(void) forget_readers(index, LSM_FORGET_UNUSED);
	invalidate_handle(index);
	if (last_used == index)
		last_used = NULL;
}

/* Called when the relation cache forgets an index, or all indexes if the OID is invalid. */
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
			invalidate_handle(slot->index);
		return;
	}
	hash_seq_init(&status, table);
	while ((slot = hash_seq_search(&status)) != NULL)
		invalidate_handle(slot->index);
}

/* Can comparing or hashing keys run code that users wrote? */
static bool
runs_user_code(const LsmKeySpace *ks)
{
	if (ks->runs_user_code)
		return true;
	for (int i = 0; i < ks->nkeys; i++)
	{
		if (ks->columns[i].hash.fn_oid >= FirstNormalObjectId)
			return true;
	}
	return false;
}

/*
 * Called when some function or operator family changes. A keyspace caches the compiled form of its
 * functions. PL/pgSQL crashes if it is called with the remains of a failed compilation.
 */
static void
on_function_inval(Datum arg, int cache, uint32 hash)
{
	HASH_SEQ_STATUS status;
	IndexSlot  *slot;

	function_changes++;
	hash_seq_init(&status, table);
	while ((slot = hash_seq_search(&status)) != NULL)
	{
		if (!slot->index->coding.encoded && (cache == AMPROCNUM || runs_user_code(slot->index->ks)))
			invalidate_handle(slot->index);
	}
}

/* Free a handle. The table may already hold its successor. */
static void
drop_handle(LsmIndex *index)
{
	IndexSlot  *slot = hash_search(table, &index->id, HASH_FIND, NULL);

	if (slot != NULL && slot->index == index)
		hash_search(table, &index->id, HASH_REMOVE, NULL);
	if (last_used == index)
		last_used = NULL;
	(void) forget_readers(index, LSM_FORGET_ALL);
	leave_list(index);
	MemoryContextDelete(index->context);
}

/*
 * Called when nobody uses a handle any more. Each handle that was just used keeps one of its
 * readers, if it has any. If too many handles keep a reader, those used longest ago lose theirs.
 */
static void
release_handles(void)
{
	while (!dlist_is_empty(&handles[LSM_HANDLE_USED]))
	{
		LsmIndex   *index = dlist_tail_element(LsmIndex, node, &handles[LSM_HANDLE_USED]);

		if (!index->valid)
		{
			drop_handle(index);
			continue;
		}
		index->kept_bytes = forget_readers(index, LSM_FORGET_BUT_ONE);
		set_state(index, index->readers != NULL ? LSM_HANDLE_KEPT : LSM_HANDLE_IDLE);
	}
	while (kept_count > MOST_KEPT || (kept_count > 1 && kept_bytes > MOST_KEPT_BYTES))
	{
		LsmIndex   *index = dlist_tail_element(LsmIndex, node, &handles[LSM_HANDLE_KEPT]);

		(void) forget_readers(index, LSM_FORGET_ALL);
		set_state(index, LSM_HANDLE_IDLE);
	}
}

/*
 * Free readers that nobody uses, of a handle that this transaction has used.  Successive calls go
 * through all handles in turn, beginning with the one used first.
 */
void
lsm_index_trim_readers(void)
{
	for (int tries = 0; tries < TRIM_TRIES && !dlist_is_empty(&handles[LSM_HANDLE_USED]); tries++)
	{
		LsmIndex   *index = dlist_tail_element(LsmIndex, node, &handles[LSM_HANDLE_USED]);
		bool		had_readers = index->readers != NULL;

		dlist_move_head(&handles[LSM_HANDLE_USED], &index->node);
		(void) forget_readers(index, LSM_FORGET_UNUSED);
		if (had_readers && index->readers == NULL)
			return;
	}
}

/*
 * Publish the counts of a handle, unless the index is gone. The counts of a dropped index would
 * leave behind statistics and a slot that nobody removes. The index can be gone if a rollback to a
 * savepoint has released the session's lock on it.
 */
static void
publish_handle(LsmIndex *index)
{
	AcceptInvalidationMessages();
	if (index->valid || SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index->id)))
		lsm_reads_publish(&index->reads);
}

/* Invalid handles are freed at the end of the transaction, so their counts cannot wait. */
static void
publish_handles(LsmHandleState state, TimestampTz now)
{
	dlist_iter	iter;

	dlist_foreach(iter, &handles[state])
	{
		LsmIndex   *index = dlist_container(LsmIndex, node, iter.cur);

		if (!lsm_reads_are_due(&index->reads, now, index->valid))
			continue;
		publish_handle(index);
		index->reads.published_at = now;
	}
}

/*
 * Publish what this transaction has counted. This may allocate memory and take a lock, so it must
 * happen before the commit record. An aborted transaction leaves its counts to the next one.
 */
static void
publish_reads(void)
{
	TimestampTz now;

	if (dlist_is_empty(&handles[LSM_HANDLE_USED]) && dlist_is_empty(&handles[LSM_HANDLE_STALE]))
		return;
	now = GetCurrentTimestamp();
	publish_handles(LSM_HANDLE_USED, now);
	publish_handles(LSM_HANDLE_STALE, now);
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
			publish_reads();
			return;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			break;
		default:
			return;
	}
	LSM_CANNOT_FAIL_BEGIN();
	while (!dlist_is_empty(&handles[LSM_HANDLE_STALE]))
		drop_handle(dlist_head_element(LsmIndex, node, &handles[LSM_HANDLE_STALE]));
	if (!dlist_is_empty(&handles[LSM_HANDLE_USED]))
		release_handles();
	LSM_CANNOT_FAIL_END();
}

/*
 * Register a callback, to be called for a handle when a transaction that used the handle ends, when
 * the handle makes room for others, and when another handle replaces it.
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

	for (int i = 0; i < LSM_HANDLE_STATES; i++)
		dlist_init(&handles[i]);
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(Oid);
	control.entrysize = sizeof(IndexSlot);
	control.hcxt = TopMemoryContext;
	table = hash_create("pg_lsm indexes", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(on_relcache_inval, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, on_function_inval, (Datum) 0);
	CacheRegisterSyscacheCallback(AMPROCNUM, on_function_inval, (Datum) 0);
	RegisterXactCallback(at_transaction_end, NULL);
}

/* Create a handle. The caller sets the coding of its keys and installs it. */
static LsmIndex *
make_handle(Relation rel)
{
	/* An error before install_handle frees the handle. */
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

/* Install a complete handle, so that lsm_index_open finds it. */
static void
install_handle(LsmIndex *index)
{
	IndexSlot  *slot;
	bool		found;

	slot = hash_search(table, &index->id, HASH_ENTER, &found);
	MemoryContextSetParent(index->context, TopMemoryContext);
	enter_list(index, LSM_HANDLE_USED);
	if (found)
	{
		retire_handle(slot->index);
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
	uint64		changes = function_changes;

	index->ks = lsm_keyspace_create(index->rel, &index->coding);
	/* The handle is not in the table yet, so on_function_inval cannot find it. */
	if (changes != function_changes)
		index->valid = false;
	MemoryContextSwitchTo(old);
}

static inline bool
is_current(const LsmIndex *index, Relation rel)
{
	LsmLocator	locator = lsm_relation_locator(rel);

	return index->valid && memcmp(&index->locator, &locator, sizeof(LsmLocator)) == 0;
}

/*
 * Returns the handle of an index that the caller has open, with its keyspace. Raises an error
 * if another version of pg_lsm wrote the index.
 */
LsmIndex *
lsm_index_open(Relation rel)
{
	Oid			id = RelationGetRelid(rel);
	IndexSlot  *slot;
	LsmIndex   *index = last_used;
	Buffer		meta;

	if (unlikely(index == NULL || index->id != id))
	{
		slot = hash_search(table, &id, HASH_FIND, NULL);
		index = slot == NULL ? NULL : slot->index;
	}
	if (likely(index != NULL && is_current(index, rel)))
	{
		if (index->state != LSM_HANDLE_USED)
			set_state(index, LSM_HANDLE_USED);
		index->rel = rel;
		last_used = index;
		return index;
	}
	index = make_handle(rel);
	meta = lsm_meta_lock(rel, BUFFER_LOCK_SHARE);
	index->coding = lsm_meta(BufferGetPage(meta))->coding;
	UnlockReleaseBuffer(meta);
	make_keyspace(index);
	install_handle(index);
	return index;
}

/*
 * Create the handle of an index whose file is still empty. Decides how the keys compare, once for
 * the life of the file.
 */
LsmIndex *
lsm_index_create(Relation rel)
{
	LsmIndex   *index = make_handle(rel);

	lsm_keyspace_choose(rel, &index->coding);
	make_keyspace(index);
	install_handle(index);
	return index;
}

/*
 * Returns a keyspace for a scan, a merge or a batch: the handle's keyspace, or a new one in the
 * current memory context.
 */
LsmKeySpace *
lsm_index_keyspace(LsmIndex *index)
{
	LsmKeySpace *ks;

	if (index->ks->encoded)
		return index->ks;
	if (likely(!index->ks->hashing.outdated))
		return lsm_keyspace_copy(index->ks);
	/* The change to a type that made the handle's hashes outdated may have been rolled back. */
	ks = lsm_keyspace_create(index->rel, &index->coding);
	if (!ks->hashing.outdated)
		make_keyspace(index);
	return ks;
}

/* Publish what this session has counted about an index. */
void
lsm_index_publish(Oid id)
{
	IndexSlot  *slot = hash_search(table, &id, HASH_FIND, NULL);

	if (slot != NULL)
		publish_handle(slot->index);
}

/* Publish what this session has counted about all indexes. */
void
lsm_index_publish_all(void)
{
	HASH_SEQ_STATUS status;
	IndexSlot  *slot;

	hash_seq_init(&status, table);
	while ((slot = hash_seq_search(&status)) != NULL)
		publish_handle(slot->index);
}
