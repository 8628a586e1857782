/*
 * columns.c
 *	  lsm_index_columns: shows how an index stores its key columns.
 *
 * The answer comes from the index's meta page, not from what a new index would get.
 */
#include "postgres.h"

#include "catalog/pg_opclass.h"
#include "fmgr.h"
#include "funcapi.h"
#include "inspect/inspect.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(lsm_index_columns);

#define COLUMNS_COLUMNS 7

/* Returns the name of a key column's operator class, with its schema. */
static char *
columns_opclass(Relation index, int i)
{
	bool		isnull;
	Datum		classes = SysCacheGetAttr(INDEXRELID, index->rd_indextuple,
										  Anum_pg_index_indclass, &isnull);
	Oid			oid = ((oidvector *) DatumGetPointer(classes))->values[i];
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(oid));
	Form_pg_opclass opclass;
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", oid);
	opclass = (Form_pg_opclass) GETSTRUCT(tuple);
	name = quote_qualified_identifier(get_namespace_name(opclass->opcnamespace),
									  NameStr(opclass->opcname));
	ReleaseSysCache(tuple);
	return name;
}

static void
columns_put(ReturnSetInfo *result, const LsmIndex *index, int i)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index->rel), i);
	Oid			collation = index->rel->rd_indcollation[i];
	bool		is_bytes = index->coding.encodings[i] != LSM_ENC_NONE;
	Datum		values[COLUMNS_COLUMNS];
	bool		nulls[COLUMNS_COLUMNS] = {false};

	values[0] = Int32GetDatum(i + 1);
	values[1] = NameGetDatum(&att->attname);
	values[2] = CStringGetTextDatum(format_type_with_typemod(att->atttypid, att->atttypmod));
	values[3] = CStringGetTextDatum(columns_opclass(index->rel, i));
	values[4] = ObjectIdGetDatum(collation);
	nulls[4] = !OidIsValid(collation);
	values[5] = CStringGetTextDatum(is_bytes ? "bytes" : "function");
	values[6] = BoolGetDatum(index->ks->hashing.least_columns > 0 &&
							 index->coding.hashes[i] != LSM_HASH_NONE);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * lsm_index_columns(index regclass): returns a row for each key column, in the index's order.
 * Raises an error if the caller may not inspect the index.
 */
Datum
lsm_index_columns(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	LsmInspected in;

	lsm_init_set(fcinfo, COLUMNS_COLUMNS);
	lsm_inspect_open(&in, PG_GETARG_OID(0), LSM_INSPECT_MONITOR);

	/* Until CREATE INDEX CONCURRENTLY has built an index, its file is empty or incomplete. */
	if (in.index->rd_index->indisready)
	{
		LsmIndex   *index = lsm_index_open(in.index);

		for (int i = 0; i < index->coding.nkeys; i++)
			columns_put(result, index, i);
	}
	lsm_inspect_close(&in);
	return (Datum) 0;
}
