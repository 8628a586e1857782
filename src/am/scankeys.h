/*
 * scankeys.h
 *	  From scan keys to bounds, array combinations and filters.
 */
#ifndef LSM_SCANKEYS_H
#define LSM_SCANKEYS_H

#include "access/relscan.h"
#include "access/sdir.h"
#include "access/skey.h"
#include "key/keyspace.h"

/* An `= ANY (array)` key: elements in index order, without duplicates. */
typedef struct LsmArrayKey
{
	ScanKey		key;
	int			column;			/* from 0 */
	int			count;
	Datum	   *elements;
	FmgrInfo	order;			/* compares the column with an element */
	FmgrInfo	element_order;	/* compares two elements */
	bool		drives;			/* the scan runs once for each element */
	int			current;
} LsmArrayKey;

/* One end of a column's range. */
typedef struct LsmRangeEnd
{
	bool		present;
	bool		inclusive;
	Datum		value;
	FmgrInfo   *cmp;
} LsmRangeEnd;

/*
 * A row comparison, (a, b) > (1, 2), and the bound that it gives: all but the
 * first column are used only while they follow each other in the index and
 * ascend alike there.
 */
typedef struct LsmRowKey
{
	ScanKey		members;
	int			count;
	bool		is_low;			/* the bound is a low one, in index order */
	bool		inclusive;
	int			used;			/* members in the bound */
	Datum	   *values;			/* of these, in terms of the columns */
	FmgrInfo  **cmp;
} LsmRowKey;

/* What is known about a column from scalar keys and row comparisons. */
typedef struct LsmColumnRange
{
	ScanKey		equal;			/* key that says = value, or IS NULL; or NULL */
	bool		is_null;
	Datum		value;
	FmgrInfo   *cmp;
	bool		not_null;		/* some key excludes NULL */
	LsmRangeEnd low;			/* in index order */
	LsmRangeEnd high;
	LsmRowKey  *low_row;		/* row comparisons that begin here, or NULL */
	LsmRowKey  *high_row;
	LsmArrayKey *array;			/* drives the scan, or NULL */
} LsmColumnRange;

typedef struct LsmScanKeys
{
	LsmKeySpace *ks;
	bool		impossible;		/* no row can satisfy them */
	int			array_count;
	LsmArrayKey *arrays;
	LsmColumnRange *columns;	/* one for each key column */
	int			filter_count;
	ScanKey    *filters;		/* keys without array that the bounds do not imply */
	int			filter_columns; /* columns that filters and arrays look at */
	LsmBound	low;			/* of the current combination */
	LsmBound	high;
} LsmScanKeys;

extern void lsm_scankeys_prepare(LsmScanKeys *keys, LsmKeySpace *ks, ScanKey scan_keys, int count);
extern void lsm_scankeys_start_arrays(LsmScanKeys *keys, ScanDirection direction);
extern bool lsm_scankeys_advance_arrays(LsmScanKeys *keys, ScanDirection direction);
extern void lsm_scankeys_make_bounds(LsmScanKeys *keys);
extern void lsm_scankeys_forget_bounds(LsmScanKeys *keys);
extern bool lsm_scankeys_pass(LsmScanKeys *keys, const LsmEntry *entry);

extern bool lsm_scankeys_seekable(LsmScanKeys *keys, int column, Oid subtype, Datum value,
								  Datum *low, Datum *high, FmgrInfo **cmp, bool *exact);

/* rowkeys.c */
extern LsmRowKey *lsm_rowkey_create(LsmScanKeys *keys, ScanKey header);
extern bool lsm_rowkey_is_tighter(LsmColumn *column, const LsmRowKey *row, const LsmRowKey *other);
extern bool lsm_rowkey_beats(LsmColumn *column, const LsmRowKey *row, const LsmRangeEnd *end);
extern void lsm_rowkey_add(LsmKeySpace *ks, LsmBound *bound, const LsmRowKey *row);
extern int	lsm_rowkey_last_column(ScanKey header);
extern bool lsm_rowkey_pass(ScanKey header, const Datum *values, const bool *isnull);

/* convert.c */
typedef enum LsmConversion
{
	LSM_CONVERT_EXACT,			/* *low is the value */
	LSM_CONVERT_RANGE,			/* equal values lie in [*low, *high] */
	LSM_CONVERT_NONE			/* nothing is known */
} LsmConversion;

extern LsmConversion lsm_convert_value(Oid column_type, Oid value_type, Datum value,
									   Datum *low, Datum *high);

#endif							/* LSM_SCANKEYS_H */
