/*
 * comparing.c
 *	  Which indexes are being compared for.
 *
 * Comparison functions of tuple keys are called while a page of the index is
 * locked, and they may be anybody's.  One that comes back to its own index would
 * wait for that lock, which nothing can interrupt.  So it is noted for which
 * index a comparison goes on, and who begins to use an index asks.
 *
 * An error leaves comparisons without an end.  Those that began in the
 * (sub)transaction that is aborted, or within it, are forgotten then; the
 * function may itself have caught an error of something below it, and goes on.
 */
#include "postgres.h"

#include "access/xact.h"
#include "key/keyspace.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

/* A comparison within that of another index, and so on: nobody needs more. */
#define MOST_NESTED 32

typedef struct Comparison
{
	Oid			index;
	int			nest_level;		/* of the transaction in which it began */
} Comparison;

static Comparison comparisons[MOST_NESTED];
static int	depth = 0;

/*
 * Call a comparison function of an index.  One that catches an error has lost
 * the lock of the page by that: aborting a subtransaction releases all of them.
 * Locks hold off interrupts, and errors end that, so it can be seen there.
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

/* Error if the index is used by one of its own comparison functions. */
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
forget_from(int nest_level)
{
	while (depth > 0 && comparisons[depth - 1].nest_level >= nest_level)
		depth--;
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		forget_from(0);
}

static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent,
					  void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		forget_from(GetCurrentTransactionNestLevel());
}

/* When the library is loaded. */
void
lsm_compare_init(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
}
