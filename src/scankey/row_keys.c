/*
 * row_keys.c
 *	  Row comparisons as scan keys: makes bounds from them, and checks entries against them.
 *
 * The executor passes (a, b) > (1, 2) as a header key.  Its argument is an array of member
 * keys, each with the comparison function of its column.  Members are compared from the left
 * until two differ.  If either side has a NULL before that, the entry does not match.
 *
 * A bound takes members from the left, as long as the index has their columns next to each other
 * and in the same direction.  The first value that cannot be converted exactly to its column's type
 * ends the bound; the bound still takes the end of that value's range (lsm_convert_value), if there
 * is one.  If members are left over, or the last member taken is not exact, the bound includes the
 * entries that equal all members taken.  But if the next member is NULL, none of these entries
 * match, and the bound excludes them.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "scankey/scankey_parts.h"

static ScanKey
members_of(ScanKey header)
{
	ScanKey		members = (ScanKey) DatumGetPointer(header->sk_argument);

	Assert(header->sk_flags & SK_ROW_HEADER);
	Assert(members[0].sk_attno == header->sk_attno);
	return members;
}

static bool
wants_greater(ScanKey key)
{
	return key->sk_strategy == BTGreaterStrategyNumber ||
		key->sk_strategy == BTGreaterEqualStrategyNumber;
}

/* Does this member bound the low end, in index order? */
static bool
bounds_low(LsmScanKeys *keys, ScanKey member)
{
	return wants_greater(member) != keys->ks->columns[member->sk_attno - 1].desc;
}

/* Add the next member, if possible.  Returns false once the bound and row->inclusive are final. */
static bool
add_member_to_bound(LsmScanKeys *keys, LsmRowKey *row)
{
	ScanKey		member = &row->members[row->used];
	int			column = member->sk_attno - 1;
	Datum		low;
	Datum		high;
	FmgrInfo   *cmp;
	LsmConversion conversion;

	row->inclusive = true;
	if (column != row->members[0].sk_attno - 1 + row->used ||
		bounds_low(keys, member) != row->is_low)
		return false;
	if (member->sk_flags & SK_ISNULL)
	{
		row->inclusive = false;
		return false;
	}
	conversion = lsm_convert_for_column(keys, column, member->sk_subtype, member->sk_argument,
									  &low, &high, &cmp);
	if (conversion == LSM_CONVERT_NONE)
		return false;
	row->values[row->used] = wants_greater(member) ? low : high;
	row->cmp[row->used] = cmp;
	row->used++;
	if (conversion != LSM_CONVERT_EXACT)
		return false;
	if (row->used < row->count)
		return true;
	row->inclusive = member->sk_strategy == BTLessEqualStrategyNumber ||
		member->sk_strategy == BTGreaterEqualStrategyNumber;
	return false;
}

/* Make the bound of a row comparison.  Returns NULL if no row can match. */
LsmRowKey *
lsm_rowkey_create(LsmScanKeys *keys, ScanKey header)
{
	LsmRowKey  *row = palloc0(sizeof(LsmRowKey));

	row->members = members_of(header);
	if (row->members[0].sk_flags & SK_ISNULL)
		return NULL;
	row->count = 1;
	while (!(row->members[row->count - 1].sk_flags & SK_ROW_END))
		row->count++;
	row->values = palloc(row->count * sizeof(Datum));
	row->cmp = palloc(row->count * sizeof(FmgrInfo *));
	row->is_low = bounds_low(keys, &row->members[0]);
	while (add_member_to_bound(keys, row))
		continue;
	return row;
}

/* Is a value a tighter end than another, in index order?  Both have the column's own type. */
static bool
is_tighter_value(LsmColumn *column, Datum value, Datum other, bool is_low, bool if_equal)
{
	int			order = lsm_column_compare(column, &column->cmp, value, false, other, false);

	if (order == 0)
		return if_equal;
	return is_low ? order > 0 : order < 0;
}

/* Is a row's first member a tighter end than that of another row?  Returns false if unknown. */
bool
lsm_rowkey_is_tighter(LsmColumn *column, const LsmRowKey *row, const LsmRowKey *other)
{
	return row->cmp[0] == &column->cmp && other->cmp[0] == &column->cmp &&
		is_tighter_value(column, row->values[0], other->values[0], row->is_low, false);
}

/*
 * Should a row bound the scan instead of this end of the column's range?  If the end uses a
 * function other than the column's own, the end's keys are checked as filters, so either may bound
 * the scan.  Otherwise the end's keys may no longer be filters, so the row must imply them.
 */
bool
lsm_rowkey_beats(LsmColumn *column, const LsmRowKey *row, const LsmRangeEnd *end)
{
	if (!end->present || end->cmp != &column->cmp)
		return true;
	return row->cmp[0] == &column->cmp &&
		is_tighter_value(column, row->values[0], end->value, row->is_low, end->inclusive);
}

/* Append the row's columns to a bound.  Their values must outlive the bound. */
void
lsm_rowkey_add(LsmKeySpace *ks, LsmBound *bound, const LsmRowKey *row)
{
	for (int i = 0; i < row->used; i++)
		lsm_bound_add(ks, bound, row->values[i], false, row->cmp[i]);
	bound->tie = row->is_low == row->inclusive ? 1 : -1;
}

/* Returns the greatest attribute number of the members. */
int
lsm_rowkey_last_column(ScanKey header)
{
	int			last = 0;

	for (ScanKey member = members_of(header);; member++)
	{
		last = Max(last, member->sk_attno);
		if (member->sk_flags & SK_ROW_END)
			return last;
	}
}

static bool
satisfies_strategy(StrategyNumber strategy, int32 order)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return order < 0;
		case BTLessEqualStrategyNumber:
			return order <= 0;
		case BTGreaterEqualStrategyNumber:
			return order >= 0;
		case BTGreaterStrategyNumber:
			return order > 0;
		default:
			elog(ERROR, "unexpected strategy %d in a row comparison", strategy);
			return false;		/* keep the compiler quiet */
	}
}

/* Does an entry with these values match the row comparison? */
bool
lsm_rowkey_pass(ScanKey header, const Datum *values, const bool *isnull)
{
	for (ScanKey member = members_of(header);; member++)
	{
		int			column = member->sk_attno - 1;
		int32		order;

		if ((member->sk_flags & SK_ISNULL) || isnull[column])
			return false;
		order = DatumGetInt32(FunctionCall2Coll(&member->sk_func, member->sk_collation,
												values[column], member->sk_argument));
		if (order != 0 || (member->sk_flags & SK_ROW_END))
			return satisfies_strategy(member->sk_strategy, order);
	}
}
