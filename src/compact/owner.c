/*
 * owner.c
 *	  Who runs comparison functions in merges and batches.
 *
 * Whoever's insert happens to do the work, operator class functions run as the
 * table's owner, in a restricted context (D12).  Byte comparisons run nobody's
 * code, so encoded keys switch nothing.
 */
#include "postgres.h"

#include "base/compat.h"
#include "compact/compact.h"
#include "miscadmin.h"

/* Become the table's owner.  On error the transaction's abort undoes it. */
void
lsm_owner_enter(Relation heap, LsmKeySpace *ks, LsmOwnerContext *saved)
{
	saved->guc_level = 0;
	if (ks->encoded)
		return;
	GetUserIdAndSecContext(&saved->user, &saved->sec_context);
	SetUserIdAndSecContext(heap->rd_rel->relowner,
						   saved->sec_context | SECURITY_RESTRICTED_OPERATION);
	saved->guc_level = NewGUCNestLevel();
	lsm_restrict_search_path();
}

void
lsm_owner_leave(LsmOwnerContext *saved)
{
	if (saved->guc_level == 0)
		return;
	AtEOXact_GUC(false, saved->guc_level);
	SetUserIdAndSecContext(saved->user, saved->sec_context);
}
