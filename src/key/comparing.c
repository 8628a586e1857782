/*
 * comparing.c
 *	  Calls comparison and hash functions, and records the indexes they are running for.
 *
 * Anybody may have written the functions that compare tuple keys.  These functions may run for a
 * long time, write, wait for locks and catch errors, so no page is locked while they run.  A
 * function that uses its own index would reenter code that is not reentrant.  So this file records
 * the index of each running comparison.  Code that reads an index's meta page or inserts into the
 * index calls lsm_compare_check first.
 *
 * Functions may leak memory, which must not pile up in merges and in readers that outlive
 * statements.  So functions run in a separate memory context.  Core's comparisons for sorts
 * (sort_support.c) leak nothing and call no user code, so we call them without these precautions.
 *
 * An error skips the end of a comparison.  So the abort of a (sub)transaction drops the comparisons
 * that began in the (sub)transaction or in its children.  Outer comparisons stay: their functions
 * may have caught the error, and continue.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_amproc.h"
#include "key/comparing.h"
#include "miscadmin.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"

/* At most this many comparisons may be nested, each for a different index. */
#define MOST_NESTED 32

typedef struct Comparison
{
	Oid			index;
	int			nest_level;		/* of the transaction when the comparison began */
} Comparison;

static Comparison comparisons[MOST_NESTED];
static int	depth = 0;

/* The memory that functions have leaked is freed after this many calls. */
#define CALLS_BEFORE_RESET 64

static MemoryContext scratch = NULL;
static int	calls = 0;

/* Have users added ordering functions to an operator family? */
static bool
has_user_order(Oid family)
{
	CatCList   *functions = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(family));
	bool		found = false;

	for (int i = 0; i < functions->n_members && !found; i++)
	{
		Form_pg_amproc function = (Form_pg_amproc) GETSTRUCT(&functions->members[i]->tuple);

		found = function->amprocnum == BTORDER_PROC && function->amproc >= FirstNormalObjectId;
	}
	ReleaseSysCacheList(functions);
	return found;
}

/*
 * Can comparing values of a column run code that users wrote?  Core's functions for types with an
 * encoding or with sort support, and the ones named here, call no such code.  Core's functions for
 * arrays, records and ranges may.
 */
bool
lsm_compare_runs_user_code(const LsmColumn *column)
{
	bool		is_closed = column->encoding != LSM_ENC_NONE || column->sort != NULL;

	switch (column->cmp.fn_oid)
	{
		case F_ENUM_CMP:
		case F_JSONB_CMP:
		case F_TSVECTOR_CMP:
		case F_BTNAMECMP:
			is_closed = true;
	}
	return !is_closed || has_user_order(column->opfamily);
}

/*
 * Prepare to call a function of a column's operator class.  Returns the memory context to which
 * end_opclass_call switches back.
 */
static inline MemoryContext
begin_opclass_call(const LsmColumn *column)
{
	Assert(!column->runs_user_code || InterruptHoldoffCount == 0);
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
	return MemoryContextSwitchTo(scratch);
}

/* Clean up after a call. */
static inline void
end_opclass_call(MemoryContext caller)
{
	depth--;
	MemoryContextSwitchTo(caller);
	/* A nested call must not free the memory of the outer call. */
	if (unlikely(++calls >= CALLS_BEFORE_RESET) && depth == 0)
	{
		calls = 0;
		MemoryContextReset(scratch);
	}
}

/* Call a comparison function of an index. */
int32
lsm_compare_values(LsmColumn *column, FmgrInfo *cmp, Datum a, Datum b)
{
	MemoryContext caller;
	int32		result;

	if (column->sort != NULL && cmp->fn_oid == column->cmp.fn_oid)
		return column->sort->comparator(a, b, column->sort);
	caller = begin_opclass_call(column);
	result = DatumGetInt32(FunctionCall2Coll(cmp, column->collation, a, b));
	end_opclass_call(caller);
	return result;
}

/*
 * Call the hash function of a column.
 * REQUIRES: the caller holds no lock on a page.
 */
uint64
lsm_compare_hash(LsmColumn *column, Datum value)
{
	MemoryContext caller;
	uint64		result;

	Assert(InterruptHoldoffCount == 0);
	caller = begin_opclass_call(column);
	if (column->hash_kind == LSM_HASH_EXTENDED)
		result = DatumGetUInt64(FunctionCall2Coll(&column->hash, column->collation, value,
												  Int64GetDatum(0)));
	else
		result = DatumGetUInt32(FunctionCall1Coll(&column->hash, column->collation, value));
	end_opclass_call(caller);
	return result;
}

/* Raise an error if one of the index's own comparison or hash functions is running. */
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
					 errhint("A comparison function must neither read nor write the indexed table.")));
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
