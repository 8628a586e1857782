/*
 * counts.c
 *	  Counts events and reads for each index.
 *
 * Since 18, PostgreSQL's cumulative statistics system keeps the counts, under a kind of our own.
 * A backend first adds to its pending counts.  PostgreSQL adds a session's pending counts to
 * shared memory when the session is idle, at most once per second, and when the session ends.
 * Workers report their counts between visits.  PostgreSQL writes all counts to a file when the
 * server stops.
 *
 * Earlier versions have no such kinds.  There, the slot of the index holds the counts, which are
 * lost when the server stops.  An index without a slot has no counts.
 *
 * None of these functions may be called in a critical section, or after a commit record.
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/counts.h"
#include "base/index_slots.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/pgstat_internal.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#ifdef LSM_HAS_STATS_KINDS

/*
 * The counts of an index in shared memory, and in the file that PostgreSQL writes when the server
 * stops.  All versions of pg_lsm must agree on the length of the data: PostgreSQL discards the
 * whole file, with everybody's statistics, if a length differs.  The layout identifies the
 * counters in the data.  Counts of another layout are ignored, and the next flush replaces them.
 */
typedef struct SharedCounts
{
	PgStatShared_Common header;
	uint64		layout;
	union
	{
		LsmCounts	counts;
		uint64		room[63];
	};
} SharedCounts;

#define DATA_OFFSET	offsetof(SharedCounts, layout)
#define DATA_LENGTH (sizeof(SharedCounts) - DATA_OFFSET)

StaticAssertDecl(DATA_LENGTH == 64 * sizeof(uint64), "the length is part of a file format");

/* If the library is not preloaded, nobody registers the kind, and nothing is counted. */
static bool is_registered = false;
static uint64 current_layout;

/* Returns a hash of the names and the order of the counters. */
static uint64
compute_layout(void)
{
	static const char names[] =
#define LSM_COUNTER(id, column, kind, description) #column " "
#define LSM_READ_COUNTER(field, column, label, description) #column " "
#include "base/counter_list.h"
		;

	return hash_bytes_extended((const unsigned char *) names, sizeof(names), 0);
}

static void
add_counts(LsmCounts *to, const LsmCounts *from)
{
	for (int i = 0; i < LSM_COUNTERS; i++)
		to->values[i] += from->values[i];
	to->last_merge = Max(to->last_merge, from->last_merge);
}

/* Called by PostgreSQL: add pending counts to shared memory. */
static bool
flush_counts(PgStat_EntryRef *entry, bool nowait)
{
	SharedCounts *shared = (SharedCounts *) entry->shared_stats;

	if (!pgstat_lock_entry(entry, nowait))
		return false;
	if (shared->layout != current_layout)
	{
		TimestampTz reset_time = shared->layout == 0 ? shared->counts.reset_time : 0;

		memset(&shared->counts, 0, sizeof(LsmCounts));
		shared->counts.reset_time = reset_time;
		shared->layout = current_layout;
	}
	add_counts(&shared->counts, entry->pending);
	pgstat_unlock_entry(entry);
	return true;
}

/* Called by PostgreSQL when it has set the data to zero. */
static void
note_reset(PgStatShared_Common *header, TimestampTz now)
{
	((SharedCounts *) header)->counts.reset_time = now;
}

static const PgStat_KindInfo kind_info = {
	.name = "pg_lsm",
	.fixed_amount = false,
	.write_to_file = true,
	.shared_size = sizeof(SharedCounts),
	.shared_data_off = DATA_OFFSET,
	.shared_data_len = DATA_LENGTH,
	.pending_size = sizeof(LsmCounts),
	.flush_pending_cb = flush_counts,
	.reset_timestamp_cb = note_reset,
};

/* Register the kind.  Called while the server loads the library. */
void
lsm_stats_init(void)
{
	current_layout = compute_layout();
	pgstat_register_kind(LSM_STATS_KIND, &kind_info);
	is_registered = true;
}

static LsmCounts *
get_pending(Oid index)
{
	return pgstat_prep_pending_entry(LSM_STATS_KIND, MyDatabaseId, index, NULL)->pending;
}

/* Returns this backend's pending counts of an open index, or NULL if the index is not counted. */
static LsmCounts *
get_pending_of(Relation index)
{
	if (!is_registered || RelationUsesLocalBuffers(index))
		return NULL;
	return get_pending(RelationGetRelid(index));
}

/* Add n to a counter of an index that the caller has locked. */
void
lsm_stats_add(Relation index, LsmCounter counter, uint64 n)
{
	LsmCounts  *pending = get_pending_of(index);

	if (pending != NULL)
		pending->values[counter] += n;
}

/*
 * Add to all counters of an index.  If the index is gone, leaves an entry that only DROP DATABASE
 * removes.
 */
void
lsm_stats_add_all(Oid index, const uint64 counts[LSM_COUNTERS])
{
	LsmCounts  *pending;

	if (!is_registered)
		return;
	pending = get_pending(index);
	for (int i = 0; i < LSM_COUNTERS; i++)
		pending->values[i] += counts[i];
}

/* Note that a merge has completed. */
void
lsm_stats_note_merge(Relation index)
{
	LsmCounts  *pending = get_pending_of(index);

	if (pending != NULL)
		pending->last_merge = GetCurrentTimestamp();
}

/*
 * Get the counts of an index, including this backend's pending counts.  How recent the counts of
 * other backends are depends on stats_fetch_consistency.
 */
void
lsm_stats_get(Oid index, LsmCounts *counts)
{
	const uint64 *data;
	PgStat_EntryRef *entry;

	memset(counts, 0, sizeof(LsmCounts));
	if (!is_registered)
		return;
	data = lsm_fetch_stats(LSM_STATS_KIND, MyDatabaseId, index);
	if (data != NULL && data[0] == current_layout)
		memcpy(counts, data + 1, sizeof(LsmCounts));
	else if (data != NULL && data[0] == 0)
		counts->reset_time = ((const LsmCounts *) (data + 1))->reset_time;
	entry = pgstat_fetch_pending_entry(LSM_STATS_KIND, MyDatabaseId, index);
	if (entry != NULL)
		add_counts(counts, entry->pending);
}

/*
 * Called by PostgreSQL for each entry.  Chooses the entries of lsm indexes of this database, and
 * adds these indexes to the list.
 */
static bool
choose_entry(PgStatShared_HashEntry *entry, Datum list)
{
	List	  **indexes = (List **) DatumGetPointer(list);

	if (entry->key.kind != LSM_STATS_KIND || entry->key.dboid != MyDatabaseId)
		return false;
	*indexes = lappend_oid(*indexes, (Oid) entry->key.objid);
	return true;
}

/* Set the counts of this database's indexes, and this backend's pending counts, to zero. */
void
lsm_stats_reset_database(void)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	if (!is_registered)
		return;
	pgstat_reset_matching_entries(choose_entry, PointerGetDatum(&indexes), GetCurrentTimestamp());
	foreach(lc, indexes)
	{
		PgStat_EntryRef *entry = pgstat_fetch_pending_entry(LSM_STATS_KIND, MyDatabaseId,
															lfirst_oid(lc));

		if (entry != NULL)
			memset(entry->pending, 0, sizeof(LsmCounts));
	}
	list_free(indexes);
}

/*
 * Called when this transaction builds an index.  If the transaction has also created the index, an
 * abort drops the counts.  If the transaction builds the index again, the index already has an
 * entry, and we need not note the creation a second time.
 */
void
lsm_stats_create_index(Relation index)
{
	Oid			id = RelationGetRelid(index);

	if (!is_registered || index->rd_createSubid == InvalidSubTransactionId ||
		RelationUsesLocalBuffers(index) ||
		pgstat_get_entry_ref(LSM_STATS_KIND, MyDatabaseId, id, false, NULL) != NULL)
		return;
	pgstat_create_transactional(LSM_STATS_KIND, MyDatabaseId, id);
	(void) pgstat_get_entry_ref(LSM_STATS_KIND, MyDatabaseId, id, true, NULL);
}

/*
 * Called when this transaction has dropped an index and is about to commit.  The commit drops the
 * counts, also on a standby, which may have counts of the index even if this server has none.
 */
void
lsm_stats_drop_index(Oid index)
{
	if (is_registered)
		pgstat_drop_transactional(LSM_STATS_KIND, MyDatabaseId, index);
}

#else

void
lsm_stats_init(void)
{
}

/* Add n to a counter of an index that the caller has locked. */
void
lsm_stats_add(Relation index, LsmCounter counter, uint64 n)
{
	LsmIndexSlot *slot = lsm_slot_get(index);

	if (slot != NULL)
		pg_atomic_fetch_add_u64(&slot->counters[counter], n);
}

/*
 * Add to all counters of an index.  If the index is gone, its slot stays in use until the database
 * is dropped or another index takes over the slot.
 */
void
lsm_stats_add_all(Oid index, const uint64 counts[LSM_COUNTERS])
{
	LsmIndexSlot *slot = lsm_slot_of(index);

	for (int i = 0; slot != NULL && i < LSM_COUNTERS; i++)
	{
		if (counts[i] != 0)
			pg_atomic_fetch_add_u64(&slot->counters[i], counts[i]);
	}
}

/* Note that a merge has completed. */
void
lsm_stats_note_merge(Relation index)
{
	LsmIndexSlot *slot = lsm_slot_get(index);

	if (slot != NULL)
		pg_atomic_write_u64(&slot->last_merge, (uint64) GetCurrentTimestamp());
}

/* Get the counts of an index.  The counts are zero if the index has no slot. */
void
lsm_stats_get(Oid index, LsmCounts *counts)
{
	LsmIndexSlot *slot = lsm_slot_find(index);

	memset(counts, 0, sizeof(LsmCounts));
	if (slot == NULL)
		return;
	for (int i = 0; i < LSM_COUNTERS; i++)
		counts->values[i] = pg_atomic_read_u64(&slot->counters[i]);
	counts->last_merge = (TimestampTz) pg_atomic_read_u64(&slot->last_merge);
	counts->reset_time = (TimestampTz) pg_atomic_read_u64(&slot->reset_time);
}

/* Set the counts of this database's indexes to zero. */
void
lsm_stats_reset_database(void)
{
	for (int i = 0; lsm_shared != NULL && i < LSM_INDEX_SLOTS; i++)
	{
		LsmIndexSlot *slot = &lsm_shared->indexes[i];

		if (lsm_slot_database(slot) != MyDatabaseId)
			continue;
		for (int k = 0; k < LSM_COUNTERS; k++)
			pg_atomic_write_u64(&slot->counters[k], 0);
		pg_atomic_write_u64(&slot->last_merge, 0);
		pg_atomic_write_u64(&slot->reset_time, (uint64) GetCurrentTimestamp());
	}
}

/* The slot keeps the counts, and index_slots.c frees the slot. */
void
lsm_stats_create_index(Relation index)
{
}

void
lsm_stats_drop_index(Oid index)
{
}

#endif							/* LSM_HAS_STATS_KINDS */
