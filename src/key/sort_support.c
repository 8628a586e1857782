/*
 * sort_support.c
 *	  Uses core's faster comparisons for text that does not sort in byte order.
 *
 * Core's comparison for sorts returns the same results as bttextcmp, but looks up the collation
 * only once and remembers the texts that it compared last.
 *
 * An abbreviation is a number: core takes the first 8 bytes of the ICU sort key.  A greater value
 * never has a smaller number.  Sort keys depend on the version of ICU, so abbreviations must never
 * reach the disk.  Core does not trust libc's sort keys.
 */
#include "postgres.h"

#include "key/sort_support.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/sortsupport.h"

/*
 * Get core's sort support for a column, in the current memory context.  Returns NULL if there is
 * none.
 */
static SortSupport
ask_core(const LsmColumn *column, bool abbreviate)
{
	SortSupport ssup;
	PGFunction	ask;

	if (column->cmp.fn_oid == F_BTTEXTCMP)
		ask = bttextsortsupport;
	else if (column->cmp.fn_oid == F_BPCHARCMP)
		ask = bpchar_sortsupport;
	else
		return NULL;
	ssup = palloc0(sizeof(SortSupportData));
	ssup->ssup_cxt = CurrentMemoryContext;
	ssup->ssup_collation = column->collation;
	ssup->abbreviate = abbreviate;
	DirectFunctionCall1(ask, PointerGetDatum(ssup));
	return ssup;
}

/*
 * Returns the comparison for sorts of a column's values, in the current memory context, or NULL.
 * The comparison calls no user code and leaks no memory.
 */
SortSupport
lsm_sort_support(const LsmColumn *column)
{
	SortSupport ssup = ask_core(column, false);

	return ssup != NULL && ssup->comparator != NULL ? ssup : NULL;
}

/*
 * Can values of this column be abbreviated?  If so, they have no encoding.  Allocates the state for
 * abbreviations in `context`, the column's memory context.
 */
bool
lsm_has_abbreviations(LsmColumn *column, MemoryContext context)
{
	if (column->encoding != LSM_ENC_NONE)
		return false;
	if (!column->asked_for_abbreviation)
	{
		/* Use a separate SortSupport: otherwise converting and comparing would share buffers. */
		MemoryContext old = MemoryContextSwitchTo(context);

		column->abbreviation = ask_core(column, true);
		column->asked_for_abbreviation = true;
		MemoryContextSwitchTo(old);
	}
	return column->abbreviation != NULL && column->abbreviation->abbrev_converter != NULL;
}

/*
 * Abbreviate a value, which is not null.
 *
 * REQUIRES: lsm_has_abbreviations.
 */
uint64
lsm_abbreviate(LsmColumn *column, Datum value)
{
	Datum		result = column->abbreviation->abbrev_converter(value, column->abbreviation);

	/* A Datum of four bytes has only the first four. */
	return sizeof(Datum) == 8 ? (uint64) result : (uint64) result << 32;
}
