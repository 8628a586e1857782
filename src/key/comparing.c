/*
 * comparing.c
 *	  Calls of comparison functions, and the indexes they are running for.
 *
 * Tuple keys are compared by functions that anybody may have written, while a page
 * of the index is locked.  A function that uses the same index would wait for that
 * lock, and nothing could interrupt the wait.  So this file records the index of
 * each comparison under way, and whoever opens an index calls lsm_compare_check.
 *
 * An error leaves a comparison without its end.  The abort of a (sub)transaction
 * drops the comparisons that began in it or below it.  Outer ones stay: their
 * function may have caught the error, and goes on.
 */
#include "postgres.h"

#include "access/xact.h"
#include "key/comparing.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

/* Comparisons that call each other, each for another index. */
#define MOST_NESTED 32

typedef struct Comparison
{
	Oid			index;
	int			nest_level;		/* of the transaction when it began */
} Comparison;

static Comparison comparisons[MOST_NESTED];
static int	depth = 0;

/*
 * Call a comparison function of an index.
 *
 * A function that catches an error has lost the lock of the page, since the abort of
 * its subtransaction releases all locks.  InterruptHoldoffCount shows that: each lock
 * raises it, and an error resets it.
 */
int32
lsm_compare_values(LsmColumn *column, FmgrInfo *cmp, Datum a, Datum b)
{
	uint32		holdoff = InterruptHoldoffCount;
	int32		result;

	if (unlikely(depth == MOST_NESTED))
		ereport(ERROR,
				(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
				 errmsg("comparison functions of lsm indexes are nested too deeply")));
	comparisons[depth].index = column->index;
	comparisons[depth].nest_level = GetCurrentTransactionNestLevel();
	depth++;
	result = DatumGetInt32(FunctionCall2Coll(cmp, column->collation, a, b));
	depth--;
	if (unlikely(InterruptHoldoffCount != holdoff))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a comparison function of index \"%s\" has caught an error",
						get_rel_name(column->index)),
				 errdetail("The lock on the page for which it was called is lost.")));
	return result;
}

/* Raise an error if one of the index's own comparison functions is running. */
void
lsm_compare_check(Relation index)
{
	for (int i = 0; i < depth; i++)
	{
		if (comparisons[i].index == RelationGetRelid(index))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("index \"%s\" is being used by one of its comparison functions",
							RelationGetRelationName(index)),
					 errhint("A comparison function must neither read nor write the table that is indexed.")));
	}
}

static void
drop_comparisons_from(int nest_level)
{
	while (depth > 0 && comparisons[depth - 1].nest_level >= nest_level)
		depth--;
}

static void
drop_at_abort(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		drop_comparisons_from(0);
}

static void
drop_at_subtransaction_abort(SubXactEvent event, SubTransactionId mine, SubTransactionId parent,
							 void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		drop_comparisons_from(GetCurrentTransactionNestLevel());
}

/* When the library is loaded. */
void
lsm_compare_init(void)
{
	RegisterXactCallback(drop_at_abort, NULL);
	RegisterSubXactCallback(drop_at_subtransaction_abort, NULL);
}
