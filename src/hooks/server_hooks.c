/*
 * server_hooks.c
 *	  Handles the hooks for shared memory at server start, and for new and dropped objects.
 *
 * If the library is not preloaded, only the hook for objects is installed, and ignores drops.
 *
 * When an index is dropped, we remove its statistics and its slot just before the commit.  Removing
 * them earlier would be wrong: DROP DATABASE may fail, the rollback of a subtransaction may restore
 * an index, and DROP INDEX CONCURRENTLY announces the drop in its first transaction and drops the
 * index in its last.  Removing them after the commit record would be too late: we must not take a
 * lock then.
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/counts.h"
#include "base/index_slots.h"
#include "base/preload.h"
#include "base/shared.h"
#include "catalog/dependency.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "hooks/hooks.h"
#include "miscadmin.h"
#include "planner/planner.h"
#include "storage/ipc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

static shmem_request_hook_type previous_request;
static shmem_startup_hook_type previous_startup;
static object_access_hook_type previous_access;

/* What this transaction drops. */
static Oid	dropped_database = InvalidOid;
static List *dropped_indexes = NIL; /* in TopTransactionContext */

/* The index that DROP INDEX CONCURRENTLY is dropping.  The command uses several transactions. */
static Oid	dropped_concurrently = InvalidOid;

static void
request_shared_memory(void)
{
	if (previous_request)
		previous_request();
	lsm_shared_request();
}

static void
start_shared_memory(void)
{
	if (previous_startup)
		previous_startup();
	lsm_shared_startup();
}

static bool
index_exists(Oid index)
{
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index));
}

/*
 * Drop the statistics of indexes that are gone, and free their slots.  A prepared transaction frees
 * no slots, since it may be rolled back.
 */
static void
forget_dropped_indexes(bool prepare)
{
	ListCell   *lc;

	/* An index is listed twice if its first drop was rolled back with a subtransaction. */
	list_sort(dropped_indexes, list_oid_cmp);
	list_deduplicate_oid(dropped_indexes);
	foreach(lc, dropped_indexes)
	{
		if (index_exists(lfirst_oid(lc)))
			continue;
		lsm_stats_drop_index(lfirst_oid(lc));
		if (!prepare)
			lsm_slot_free(lfirst_oid(lc));
	}
}

static void
note_dropped_index(Oid index)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

	dropped_indexes = lappend_oid(dropped_indexes, index);
	MemoryContextSwitchTo(old);
}

static void
forget_dropped_objects(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT)
	{
		if (OidIsValid(dropped_concurrently) && !index_exists(dropped_concurrently))
		{
			note_dropped_index(dropped_concurrently);
			dropped_concurrently = InvalidOid;
		}
		if (OidIsValid(dropped_database))
			lsm_slots_free_database(dropped_database);
	}
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
		forget_dropped_indexes(event == XACT_EVENT_PRE_PREPARE);
	if (event == XACT_EVENT_ABORT)
		dropped_concurrently = InvalidOid;
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_ABORT ||
		event == XACT_EVENT_PRE_PREPARE)
	{
		dropped_database = InvalidOid;
		dropped_indexes = NIL;
	}
}

static void
note_object_access(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void *arg)
{
	bool		is_relation = class_id == RelationRelationId && sub_id == 0;

	if (previous_access)
		previous_access(access, class_id, object, sub_id, arg);
	if (is_relation && access == OAT_POST_CREATE)
		lsm_alter_table_created(object);
	if (access != OAT_DROP)
		return;
	if (is_relation)
		lsm_alter_table_dropping(object, ((ObjectAccessDrop *) arg)->dropflags);
	if (!lsm_preloaded)
		return;
	if (class_id == DatabaseRelationId)
		dropped_database = object;
	if (is_relation && get_rel_relkind(object) == RELKIND_INDEX &&
		get_rel_persistence(object) != RELPERSISTENCE_TEMP && lsm_index_is_lsm(object))
	{
		if ((((ObjectAccessDrop *) arg)->dropflags & PERFORM_DELETION_CONCURRENTLY) != 0)
			dropped_concurrently = object;
		else
			note_dropped_index(object);
	}
}

/*
 * Callbacks at the end of a transaction run in the reverse order of their registration.  The
 * callback that writes batches must run before forget_dropped_objects, because writing a batch
 * counts entries, and counting could assign a slot again.  So _PG_init calls this function before
 * lsm_statement_init.
 */
void
lsm_server_hooks_install(void)
{
	previous_access = object_access_hook;
	object_access_hook = note_object_access;
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
	RegisterXactCallback(forget_dropped_objects, NULL);
}
