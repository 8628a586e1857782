/*
 * owner.c
 *	  Becoming the owner of a table, for merges, batches and checks.
 *
 * Whoever's insert happens to do the work, operator class functions run as the
 * table's owner, in a restricted context.  Byte comparisons run nobody's
 * code, so encoded keys switch nothing.
 */
#include "postgres.h"

#include "base/compat.h"
#include "index/index.h"
#include "miscadmin.h"

/*
 * From now on code runs with the rights of the table's owner, who chose it, and
 * no others.  On error the transaction's abort restores everything.
 */
void
lsm_owner_become(Relation heap, LsmOwnerContext *saved)
{
	GetUserIdAndSecContext(&saved->user, &saved->sec_context);
	SetUserIdAndSecContext(heap->rd_rel->relowner,
						   saved->sec_context | SECURITY_RESTRICTED_OPERATION);
	saved->guc_level = NewGUCNestLevel();
	lsm_restrict_search_path();
}

/* The same where keys are compared by functions. */
void
lsm_owner_enter(Relation heap, LsmKeySpace *ks, LsmOwnerContext *saved)
{
	saved->guc_level = 0;
	if (!ks->encoded)
		lsm_owner_become(heap, saved);
}

/* Be oneself again, if anything was switched. */
void
lsm_owner_leave(LsmOwnerContext *saved)
{
	if (saved->guc_level == 0)
		return;
	AtEOXact_GUC(false, saved->guc_level);
	SetUserIdAndSecContext(saved->user, saved->sec_context);
}
