/*
 * sort_support.c
 *	  Core's faster ways to compare text that is not in the order of its bytes.
 *
 * The comparison for sorts gives the result of bttextcmp, but looks up the collation only once
 * and remembers the texts that it compared last.
 *
 * An abbreviation is a number. Of two values the greater one never has the lesser number: core
 * takes the first 8 bytes of the ICU sort key. They depend on the version of the library, so
 * none may get to disk. Core trusts no sort keys of libc.
 */
#include "postgres.h"

#include "key/sort_support.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/sortsupport.h"

/* Ask core for its support of a column's sorts, in the current memory context.  NULL if there is none. */
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
 * The comparison of a column's values for sorts, in the current memory context, or NULL.  It
 * calls no user's code and leaves no memory behind.
 */
SortSupport
lsm_sort_support(const LsmColumn *column)
{
	SortSupport ssup = ask_core(column, false);

	return ssup != NULL && ssup->comparator != NULL ? ssup : NULL;
}

/*
 * Can values of this column be abbreviated?  They have no code then.  What that needs is made in
 * `context`, which is the column's own.
 */
bool
lsm_has_abbreviations(LsmColumn *column, MemoryContext context)
{
	if (column->encoding != LSM_ENC_NONE)
		return false;
	if (!column->asked_for_abbreviation)
	{
		/* One of its own: converting and comparing share buffers otherwise. */
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

	/* Where a Datum has four bytes they are the first ones. */
	return sizeof(Datum) == 8 ? (uint64) result : (uint64) result << 32;
}
