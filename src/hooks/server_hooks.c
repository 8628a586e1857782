/*
 * server_hooks.c
 *	  The hooks for shared memory at server start, and for dropped objects.
 *
 * The hooks are installed only if the library is preloaded.
 */
#include "postgres.h"

#include "base/counts.h"
#include "base/index_slots.h"
#include "base/shared.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "hooks/hooks.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/lsyscache.h"

static shmem_request_hook_type previous_request;
static shmem_startup_hook_type previous_startup;
static object_access_hook_type previous_access;

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

static void
note_object_access(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void *arg)
{
	if (previous_access)
		previous_access(access, class_id, object, sub_id, arg);
	if (access == OAT_DROP && class_id == DatabaseRelationId)
		lsm_slots_drop_database(object);
	if (access == OAT_DROP && class_id == RelationRelationId && sub_id == 0 &&
		get_rel_relkind(object) == RELKIND_INDEX)
	{
		lsm_slots_drop_index(object);
		lsm_stats_drop_index(object);
	}
}

void
lsm_server_hooks_install(void)
{
	previous_request = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
	previous_access = object_access_hook;
	object_access_hook = note_object_access;
	lsm_slots_watch_drops();
}
