/*
 * owner.c
 *	  Chooses the user who runs operator class functions.
 *
 * Merges, VACUUM and lsm_check run these functions as the table's owner, in a security-restricted
 * operation, no matter who triggers the work.  A statement's batch runs them as the statement's
 * user and with the statement's search_path, as inserting row by row would.  Encoded keys compare
 * as bytes and run no user code, so they need no switch.
 */
#include "postgres.h"

#include "base/compat.h"
#include "index/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* Save the state that lsm_owner_leave restores. */
static void
save_state(LsmOwnerContext *saved)
{
	GetUserIdAndSecContext(&saved->user, &saved->sec_context);
	saved->guc_level = NewGUCNestLevel();
}

static void
set_search_path(const char *path)
{
	set_config_option("search_path", path, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
					  false);
}

/*
 * Switch to the table's owner, in a security-restricted operation with a safe search_path.  Saves
 * the former state in *saved, for lsm_owner_leave.  After an error, the abort of the transaction
 * restores that state.
 */
void
lsm_owner_become(Relation heap, LsmOwnerContext *saved)
{
	save_state(saved);
	SetUserIdAndSecContext(heap->rd_rel->relowner,
						   saved->sec_context | SECURITY_RESTRICTED_OPERATION);
	lsm_restrict_search_path();
}

/*
 * Add the schemas of the comparison functions to the safe search_path, since these functions may
 * call functions of their own schema without naming the schema.
 *
 * REQUIRES: the table's owner is the current user, and lsm_owner_leave follows.
 */
void
lsm_owner_add_schemas(const LsmKeySpace *ks)
{
	StringInfoData path;
	bool		any = false;

	initStringInfo(&path);
	appendStringInfoString(&path, "pg_catalog");
	for (int i = 0; i < ks->nkeys; i++)
	{
		Oid			schema = get_func_namespace(ks->columns[i].cmp.fn_oid);
		char	   *name = OidIsValid(schema) ? get_namespace_name(schema) : NULL;

		if (name == NULL || schema == PG_CATALOG_NAMESPACE)
			continue;
		appendStringInfo(&path, ", %s", quote_identifier(name));
		any = true;
	}
	appendStringInfoString(&path, ", pg_temp");
	if (any)
		set_search_path(path.data);
	pfree(path.data);
}

/* Like lsm_owner_become plus lsm_owner_add_schemas, but does nothing if keys are encoded. */
void
lsm_owner_enter(Relation heap, LsmKeySpace *ks, LsmOwnerContext *saved)
{
	saved->guc_level = 0;
	if (ks->encoded)
		return;
	lsm_owner_become(heap, saved);
	lsm_owner_add_schemas(ks);
}

/*
 * Like lsm_owner_enter, for code that core already runs as the table's owner, such as VACUUM.
 * Since PostgreSQL 17, core also sets a safe search_path for such code.  Before 17, the session's
 * search_path stays if all comparison functions are in pg_catalog.
 */
void
lsm_owner_enter_schemas(LsmKeySpace *ks, LsmOwnerContext *saved)
{
	saved->guc_level = 0;
	if (ks->encoded)
		return;
	save_state(saved);
	lsm_owner_add_schemas(ks);
}

/* Note the user and the search_path of the current statement. */
void
lsm_caller_note(LsmCaller *caller, MemoryContext context)
{
	GetUserIdAndSecContext(&caller->user, &caller->sec_context);
	if (caller->search_path)
		pfree(caller->search_path);
	caller->search_path = MemoryContextStrdup(context, namespace_search_path);
}

bool
lsm_caller_is_current(const LsmCaller *caller)
{
	Oid			user;
	int			sec_context;

	GetUserIdAndSecContext(&user, &sec_context);
	return user == caller->user && sec_context == caller->sec_context &&
		strcmp(namespace_search_path, caller->search_path) == 0;
}

/*
 * Switch to the noted user and search_path.  A batch may have to be written while a function runs
 * as another user.  Saves the former state in *saved, for lsm_owner_leave.
 */
void
lsm_caller_enter(const LsmCaller *caller, LsmOwnerContext *saved)
{
	saved->guc_level = 0;
	if (lsm_caller_is_current(caller))
		return;
	save_state(saved);
	SetUserIdAndSecContext(caller->user, caller->sec_context);
	set_search_path(caller->search_path);
}

/* Restore the former user and search_path, if anything was switched. */
void
lsm_owner_leave(LsmOwnerContext *saved)
{
	if (saved->guc_level == 0)
		return;
	AtEOXact_GUC(false, saved->guc_level);
	SetUserIdAndSecContext(saved->user, saved->sec_context);
}
