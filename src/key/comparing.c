/*
 * comparing.c
 *	  Calls of comparison and hash functions, and the indexes they are running for.
 *
 * Tuple keys are compared by functions that anybody may have written, while a page
 * of the index is locked.  A function that uses the same index would wait for that
 * lock, and nothing could interrupt the wait.  So this file records the index of
 * each comparison under way, and whoever opens an index calls lsm_compare_check.
 *
 * Functions may leave memory behind, which must not pile up in merges and in readers
 * that outlive statements.  So they run in a memory context of their own.
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
#include "utils/memutils.h"
#include "utils/sortsupport.h"

/* Comparisons that call each other, each for another index. */
#define MOST_NESTED 32

typedef struct Comparison
{
	Oid			index;
	int			nest_level;		/* of the transaction when it began */
} Comparison;

static Comparison comparisons[MOST_NESTED];
static int	depth = 0;

/* Calls before the memory that functions have left behind is freed. */
#define CALLS_BEFORE_RESET 64

static MemoryContext scratch = NULL;
static int	calls = 0;

/* What a call has to restore. */
typedef struct Call
{
	uint32		holdoff;
	MemoryContext context;
} Call;

/* A function of a column's operator class is about to be called. */
static inline void
begin_call(Call *call, const LsmColumn *column)
{
	if (unlikely(depth == MOST_NESTED))
		ereport(ERROR,
				(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
				 errmsg("comparison functions of lsm indexes are nested too deeply")));
	if (unlikely(scratch == NULL))
		scratch = AllocSetContextCreate(TopMemoryContext, "pg_lsm comparisons",
										ALLOCSET_DEFAULT_SIZES);
	comparisons[depth].index = column->index;
	comparisons[depth].nest_level = GetCurrentTransactionNestLevel();
	depth++;
	call->holdoff = InterruptHoldoffCount;
	call->context = MemoryContextSwitchTo(scratch);
}

/*
 * The call is over.
 *
 * A function that catches an error has lost the lock of the page, since the abort of
 * its subtransaction releases all locks.  InterruptHoldoffCount shows that: each lock
 * raises it, and an error resets it.
 */
static inline void
end_call(const Call *call, const LsmColumn *column)
{
	depth--;
	MemoryContextSwitchTo(call->context);
	/* A call within another one must not free the other's memory. */
	if (unlikely(++calls >= CALLS_BEFORE_RESET) && depth == 0)
	{
		calls = 0;
		MemoryContextReset(scratch);
	}
	if (unlikely(InterruptHoldoffCount != call->holdoff))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a comparison function of index \"%s\" has caught an error",
						get_rel_name(column->index)),
				 errdetail("The lock on the page for which it was called is lost.")));
}

/* Call a comparison function of an index. */
int32
lsm_compare_values(LsmColumn *column, FmgrInfo *cmp, Datum a, Datum b)
{
	Call		call;
	int32		result;

	if (column->sort != NULL && cmp->fn_oid == column->cmp.fn_oid)
		return column->sort->comparator(a, b, column->sort);
	begin_call(&call, column);
	result = DatumGetInt32(FunctionCall2Coll(cmp, column->collation, a, b));
	end_call(&call, column);
	return result;
}

/*
 * Call the hash function of a column.  Not under the lock of a page: unlike comparing,
 * that is never needed.
 */
uint64
lsm_compare_hash(LsmColumn *column, Datum value)
{
	Call		call;
	uint64		result;

	begin_call(&call, column);
	if (column->hash_kind == LSM_HASH_EXTENDED)
		result = DatumGetUInt64(FunctionCall2Coll(&column->hash, column->collation, value,
												  Int64GetDatum(0)));
	else
		result = DatumGetUInt32(FunctionCall1Coll(&column->hash, column->collation, value));
	end_call(&call, column);
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

/* Called when the library is loaded. */
void
lsm_compare_init(void)
{
	RegisterXactCallback(drop_at_abort, NULL);
	RegisterSubXactCallback(drop_at_subtransaction_abort, NULL);
}
