/*
 * column_range.c
 *	  The range to which inequalities restrict a column.
 *
 * Each end keeps the tightest condition.  Ends are in index order: with DESC, "<" makes a low
 * end.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "scankey/scankey_parts.h"

/* Does this value bound the range more tightly than the present end? */
static bool
is_tighter_end(LsmColumn *c, const LsmRangeEnd *end, Datum value, bool inclusive,
			   FmgrInfo *cmp, bool is_low)
{
	int			order;

	if (!end->present)
		return true;
	/* Cross-type values cannot be compared with each other. */
	if (cmp != &c->cmp || end->cmp != &c->cmp)
		return false;
	order = lsm_column_compare(c, cmp, value, false, end->value, false);
	if (order == 0)
		return end->inclusive && !inclusive;
	return is_low ? order > 0 : order < 0;
}

static void
set_range_end(LsmRangeEnd *end, Datum value, bool inclusive, FmgrInfo *cmp)
{
	end->present = true;
	end->value = value;
	end->inclusive = inclusive;
	end->cmp = cmp;
}

/* Note that all matches lie between these values of the column's own type, in index order. */
void
lsm_range_note_ends(LsmScanKeys *keys, int column, Datum first, Datum last)
{
	LsmColumn  *c = &keys->ks->columns[column];
	LsmColumnRange *range = &keys->columns[column];

	if (is_tighter_end(c, &range->low, first, true, &c->cmp, true))
		set_range_end(&range->low, first, true, &c->cmp);
	if (is_tighter_end(c, &range->high, last, true, &c->cmp, false))
		set_range_end(&range->high, last, true, &c->cmp);
}

/*
 * Note an inequality, or an inexact equality, as ends of the column's range.  Returns true if the
 * range implies the key, even if a tighter key has set the end.
 */
bool
lsm_range_note(LsmScanKeys *keys, int column, StrategyNumber strategy, Oid subtype, Datum value)
{
	LsmColumn  *c = &keys->ks->columns[column];
	LsmColumnRange *range = &keys->columns[column];
	Datum		low;
	Datum		high;
	FmgrInfo   *cmp;
	LsmConversion conversion = lsm_convert_for_column(keys, column, subtype, value, &low, &high, &cmp);
	bool		exact = conversion == LSM_CONVERT_EXACT;
	bool		wants_low = strategy >= BTEqualStrategyNumber;
	bool		wants_high = strategy <= BTEqualStrategyNumber;
	bool		inclusive;

	if (conversion == LSM_CONVERT_NONE)
		return false;
	inclusive = !exact || (strategy != BTLessStrategyNumber &&
						   strategy != BTGreaterStrategyNumber);

	/* Now low and high are in index order. */
	if (c->desc)
	{
		Datum		swap = low;
		bool		swap_wants = wants_low;

		low = high;
		high = swap;
		wants_low = wants_high;
		wants_high = swap_wants;
	}
	if (wants_low && is_tighter_end(c, &range->low, low, inclusive, cmp, true))
		set_range_end(&range->low, low, inclusive, cmp);
	if (wants_high && is_tighter_end(c, &range->high, high, inclusive, cmp, false))
		set_range_end(&range->high, high, inclusive, cmp);

	/* If two ends come from different comparison functions, neither need imply the other. */
	return exact && cmp == &c->cmp &&
		(!wants_low || range->low.cmp == &c->cmp) &&
		(!wants_high || range->high.cmp == &c->cmp);
}
