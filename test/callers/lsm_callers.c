/*
 * lsm_callers.c
 *	  Calls indexes as other extensions do, in ways that nbtree allows.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/skey.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(late_keys);
PG_FUNCTION_INFO_V1(insert_outside);
PG_FUNCTION_INFO_V1(server_of_block_size);

/* In pg_lsm. */
extern void lsm_require_block_size(int server_size);

#if PG_VERSION_NUM >= 190000
#define BEGIN_SCAN(heap, index, snapshot, keys) \
	index_beginscan(heap, index, snapshot, NULL, keys, 0, SO_NONE)
#elif PG_VERSION_NUM >= 180000
#define BEGIN_SCAN(heap, index, snapshot, keys) index_beginscan(heap, index, snapshot, NULL, keys, 0)
#else
#define BEGIN_SCAN(heap, index, snapshot, keys) index_beginscan(heap, index, snapshot, keys, 0)
#endif

/* An index on an integer, and its table. */
typedef struct Opened
{
	Relation	heap;
	Relation	index;
} Opened;

static void
open_index(Opened *o, Oid index_oid, LOCKMODE mode)
{
	o->heap = table_open(IndexGetRelation(index_oid, false), mode);
	o->index = index_open(index_oid, mode);
}

static void
close_index(Opened *o)
{
	index_close(o->index, NoLock);
	table_close(o->heap, NoLock);
}

/* Count the rows from where the scan is. */
static int
count_rows(IndexScanDesc scan, ScanDirection direction, TupleTableSlot *slot)
{
	int			count = 0;

	while (index_getnext_slot(scan, direction, slot))
		count++;
	return count;
}

/*
 * late_keys(index regclass, key int): looks up the key as pg_squeeze does, with the argument
 * filled in after index_rescan; then again, backward, after a rescan without keys; for another
 * key that is never fetched; and for the key again. Returns the counts.
 */
Datum
late_keys(PG_FUNCTION_ARGS)
{
	Datum		key = PG_GETARG_DATUM(1);
	Opened		o;
	ScanKeyData keys[1];
	IndexScanDesc scan;
	TupleTableSlot *slot;
	Oid			operator;
	int			counts[3];

	open_index(&o, PG_GETARG_OID(0), AccessShareLock);
	operator = get_opfamily_member(o.index->rd_opfamily[0], INT4OID, INT4OID,
								   BTEqualStrategyNumber);
	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, get_opcode(operator), (Datum) 0);
	slot = table_slot_create(o.heap, NULL);
	scan = BEGIN_SCAN(o.heap, o.index, GetActiveSnapshot(), 1);

	index_rescan(scan, keys, 1, NULL, 0);
	scan->keyData[0].sk_argument = key;
	counts[0] = count_rows(scan, ForwardScanDirection, slot);

	index_rescan(scan, NULL, 1, NULL, 0);		/* keeps the keys */
	counts[1] = count_rows(scan, BackwardScanDirection, slot);

	index_rescan(scan, keys, 1, NULL, 0);
	index_rescan(scan, keys, 1, NULL, 0);
	scan->keyData[0].sk_argument = key;
	counts[2] = count_rows(scan, ForwardScanDirection, slot);

	index_endscan(scan);
	scan = BEGIN_SCAN(o.heap, o.index, GetActiveSnapshot(), 1);
	index_rescan(scan, keys, 1, NULL, 0);
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	close_index(&o);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%d %d %d", counts[0], counts[1], counts[2])));
}

/*
 * insert_outside(index regclass, key int, other int): inserts a row (key, other), and its
 * entries, without an executor, as REPACK CONCURRENTLY and pg_squeeze do, and looks it up at once.
 */
Datum
insert_outside(PG_FUNCTION_ARGS)
{
	Opened		o;
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *target = makeNode(ResultRelInfo);
	TupleTableSlot *slot;

	open_index(&o, PG_GETARG_OID(0), RowExclusiveLock);
	InitResultRelInfo(target, o.heap, 0, NULL, 0);
	ExecOpenIndices(target, false);
	slot = table_slot_create(o.heap, NULL);
	for (int i = 0; i < 3; i++)
	{
		ExecClearTuple(slot);
		memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts * sizeof(bool));
		slot->tts_values[0] = PG_GETARG_DATUM(1);
		slot->tts_values[1] = Int32GetDatum(PG_GETARG_INT32(2) + i);
		slot->tts_isnull[0] = slot->tts_isnull[1] = false;
		ExecStoreVirtualTuple(slot);
		table_tuple_insert(o.heap, slot, GetCurrentCommandId(true), 0, NULL);
		for (int n = 0; n < target->ri_NumIndices; n++)
		{
			Datum		values[INDEX_MAX_KEYS];
			bool		isnull[INDEX_MAX_KEYS];
			Relation	index = target->ri_IndexRelationDescs[n];

			FormIndexDatum(target->ri_IndexRelationInfo[n], slot, estate, values, isnull);
			index_insert(index, values, isnull, &slot->tts_tid, o.heap,
						 index->rd_index->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO,
						 false, target->ri_IndexRelationInfo[n]);
		}
	}
	ExecCloseIndices(target);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	close_index(&o);
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	{
		Datum		counts = DirectFunctionCall2(late_keys, PG_GETARG_DATUM(0), PG_GETARG_DATUM(1));

		PopActiveSnapshot();
		PG_RETURN_DATUM(counts);
	}
}

/* server_of_block_size(bytes int): loads pg_lsm as a server with such blocks does. */
Datum
server_of_block_size(PG_FUNCTION_ARGS)
{
	lsm_require_block_size(PG_GETARG_INT32(0));
	PG_RETURN_VOID();
}
