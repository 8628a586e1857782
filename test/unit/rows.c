/*
 * rows.c
 *	  Makes indexes and rows for the property tests.
 *
 * An index has some columns of any types, in any order.  Each column has few distinct values, so
 * rows often share values.  The keyspace is made as for a real index, from a relation that has only
 * the fields that this needs.
 */
#include "numerics.h"
#include "other_types.h"
#include "props.h"

#include "base/compat.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"

/* --- indexes ------------------------------------------------------------------- */

static Relation
make_relation(const TestIndex *index)
{
	Relation	rel = palloc0(sizeof(RelationData));

	rel->rd_id = 16384;
	rel->rd_rel = palloc0(sizeof(FormData_pg_class));
	rel->rd_index = palloc0(sizeof(FormData_pg_index));
	rel->rd_index->indnatts = index->natts;
	rel->rd_index->indnkeyatts = index->nkeys;
	strcpy(NameStr(rel->rd_rel->relname), "index");
	rel->rd_att = CreateTemplateTupleDesc(index->natts);
	rel->rd_indoption = palloc0(index->natts * sizeof(int16));
	rel->rd_opcintype = palloc0(index->natts * sizeof(Oid));
	rel->rd_opfamily = palloc0(index->natts * sizeof(Oid));
	rel->rd_indcollation = palloc0(index->natts * sizeof(Oid));
	rel->rd_supportinfo = palloc0(index->natts * sizeof(FmgrInfo));
	for (int i = 0; i < index->natts; i++)
	{
		const TestColumn *column = &index->columns[i];
		FormData_pg_attribute attribute;

		memset(&attribute, 0, sizeof(attribute));
		attribute.atttypmod = column->typmod;
		attribute.attlen = column->type->length;
		attribute.attbyval = column->type->byval;
		attribute.attalign = column->type->align;
		*TupleDescAttr(rel->rd_att, i) = attribute;
		rel->rd_indoption[i] = (column->desc ? INDOPTION_DESC : 0) |
			(column->nulls_first ? INDOPTION_NULLS_FIRST : 0);
		rel->rd_opcintype[i] = column->type->oid;
		rel->rd_opfamily[i] = column->type->family;
		rel->rd_indcollation[i] = column->type->collation;
		fmgr_info(column->type->order, &rel->rd_supportinfo[i]);
	}
	return rel;
}

/* `like`: if not NULL, pick a type of this type's family. */
static void
pick_column(TestColumn *column, bool any_type, const TestType *like)
{
	memset(column, 0, sizeof(TestColumn));
	do
		column->type = like != NULL ? types_pick_other(like) : types_pick();
	while (!any_type && !column->type->encoded);
	column->typmod = column->type->kind == NUMERIC ? numerics_typmod() : others_typmod(column->type);
	column->desc = chance(2);
	column->nulls_first = chance(2);
	column->nulls = chance(2) ? 0 : 2 + pick(8);
	column->count = 1 + pick(MOST_VALUES);
	for (int i = 0; i < column->count; i++)
		column->values[i] = i > 0 && chance(3) ?
			types_value_near(column->type, column->type, column->values[i - 1]) :
			types_value(column->type);
}

void
rows_index(TestIndex *index, int most_keys)
{
	bool		any_type = chance(4);
	bool		as_tuples = chance(4);
	bool		encoded = true;
	LsmKeyCoding coding;

	Assert(most_keys < MOST_COLUMNS);
	memset(index, 0, sizeof(TestIndex));
	index->nkeys = 1 + pick(most_keys);
	index->natts = index->nkeys + chance(4);
	for (int i = 0; i < index->natts; i++)
		pick_column(&index->columns[i], any_type, i > 0 && chance(2) ? index->columns[0].type : NULL);
	index->relation = make_relation(index);
	lsm_keyspace_choose(index->relation, &coding);
	for (int i = 0; i < index->nkeys; i++)
		encoded &= index->columns[i].type->encoded;
	if (coding.encoded != encoded)
		elog(ERROR, "keys should be %s", encoded ? "encoded" : "tuples");
	/* Any type can be a column of a tuple. */
	if (as_tuples)
	{
		memset(coding.encodings, LSM_ENC_NONE, sizeof(coding.encodings));
		coding.encoded = false;
	}
	index->ks = lsm_keyspace_create(index->relation, &coding);
	if (!index->ks->encoded && chance(2))
		index->ks = lsm_keyspace_copy(index->ks);
	types_pick_zone(chance(2));
}

const char *
rows_describe(const TestIndex *index)
{
	static char text[500];
	int			n = sprintf(text, "%s", index->ks->encoded ? "encoded" : "tuples");

	for (int i = 0; i < index->natts; i++)
	{
		const TestColumn *column = &index->columns[i];

		n += sprintf(text + n, "%s %s%s%s", i == 0 ? " (" : i == index->nkeys ? ") include" : ",",
					 column->type->name, column->desc ? " desc" : "",
					 column->nulls_first ? " nulls first" : "");
	}
	strcpy(text + n, index->natts == index->nkeys ? ")" : "");
	return text;
}

/* --- rows ------------------------------------------------------------------------ */

/*
 * Keys as cursors return them: aligned and followed by zero bytes; or as they lie on a page,
 * followed by bytes that nobody may touch.
 */
static void
keep_entry(LsmEntry *entry)
{
	uint32		offset = 0;
	uint8	   *key;
	uint8	   *rest = palloc(entry->restlen);

	entry->aligned = chance(2);
	if (entry->aligned)
		key = palloc0(entry->keylen + LSM_KEY_PAD);
	else
	{
		offset = pick(MAXIMUM_ALIGNOF);
		key = (uint8 *) palloc(entry->keylen + offset) + offset;
	}
	memcpy(key, entry->key, entry->keylen);
	memcpy(rest, entry->rest, entry->restlen);
	entry->key = key;
	entry->rest = rest;
}

void
rows_make(const TestIndex *index, TestRow *rows, int count)
{
	for (int r = 0; r < count; r++)
	{
		TestRow    *row = &rows[r];
		ItemPointerData tid;

		memset(row, 0, sizeof(TestRow));
		for (int i = 0; i < index->natts; i++)
		{
			const TestColumn *column = &index->columns[i];

			row->isnull[i] = column->nulls > 0 && chance(column->nulls);
			if (!row->isnull[i])
				row->values[i] = column->values[pick(column->count)];
		}
		ItemPointerSet(&tid, chance(4) ? pick(3) : (uint32) pick_bits() >> 1, 1 + pick(200));
		lsm_keyspace_form(index->ks, row->values, row->isnull, &tid, &row->entry);
		keep_entry(&row->entry);
	}
}

int
rows_compare_value(const TestColumn *column, Datum x, bool x_null,
				   const TestType *right, Datum y, bool y_null)
{
	int			order;

	if (x_null || y_null)
		return x_null && y_null ? 0 : x_null == column->nulls_first ? -1 : 1;
	order = types_compare(column->type, x, right, y);
	return column->desc ? -sign_of(order) : sign_of(order);
}

int
rows_compare_columns(const TestIndex *index, const TestRow *a, const TestRow *b, int columns)
{
	for (int i = 0; i < columns; i++)
	{
		int			order = rows_compare_value(&index->columns[i], a->values[i], a->isnull[i],
											   index->columns[i].type, b->values[i], b->isnull[i]);

		if (order != 0)
			return order;
	}
	return 0;
}

int
rows_compare(const TestIndex *index, const TestRow *a, const TestRow *b)
{
	int			order = rows_compare_columns(index, a, b, index->nkeys);

	if (order != 0)
		return order;
	return a->entry.tid < b->entry.tid ? -1 : a->entry.tid > b->entry.tid;
}

static int
compare_for_sort(const void *a, const void *b, void *index)
{
	return rows_compare(index, a, b);
}

int
rows_sort(const TestIndex *index, TestRow *rows, int count)
{
	int			kept = 0;

	qsort_arg(rows, count, sizeof(TestRow), compare_for_sort, (void *) index);
	for (int i = 0; i < count; i++)
	{
		if (kept == 0 || rows_compare(index, &rows[kept - 1], &rows[i]) != 0)
			rows[kept++] = rows[i];
	}
	return kept;
}
