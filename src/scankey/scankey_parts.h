/*
 * scankey_parts.h
 *	  Declares the parts of scan keys: arrays, row comparisons, ranges.  For this directory only.
 */
#ifndef LSM_SCANKEY_PARTS_H
#define LSM_SCANKEY_PARTS_H

#include "scankey/scankey.h"

/* An `= ANY (array)` key: elements without duplicates; see array_keys.c. */
typedef struct LsmArrayKey
{
	ScanKey		key;
	int			column;			/* from 0 */
	int			count;
	Datum	   *elements;
	FmgrInfo   *order;			/* compares the column with an element */
	FmgrInfo   *element_order;	/* compares two elements */
	Oid			local_type;		/* timestamptz column: the elements' type, if local times */
	bool		drives;			/* else it is a filter */
	int			current;		/* element of the current combination */
	uint8	   *codes;			/* the elements' codes, if the array drives */
	uint32	   *code_ends;		/* element n begins at [n] and ends at [n + 1] */
} LsmArrayKey;

/* One end of a column's range. */
typedef struct LsmRangeEnd
{
	bool		present;
	bool		inclusive;
	Datum		value;
	FmgrInfo   *cmp;
	uint8	   *code;			/* encoded; only for skipped columns */
	uint32		code_len;
} LsmRangeEnd;

/*
 * A row comparison, such as (a, b) > (1, 2), and its bound.  The bound uses further members only
 * while their columns follow each other in the index and have the same direction there.
 */
typedef struct LsmRowKey
{
	ScanKey		members;
	int			count;
	bool		is_low;			/* the bound is a low one, in index order */
	bool		inclusive;
	int			used;			/* members in the bound */
	Datum	   *values;			/* values of these members, as the bound uses them */
	FmgrInfo  **cmp;
} LsmRowKey;

/* What is known about a column from scalar keys and row comparisons. */
typedef struct LsmColumnRange
{
	ScanKey		equal;			/* the key `= value` or IS NULL; NULL if none */
	bool		is_null;
	Datum		value;
	FmgrInfo   *cmp;
	bool		not_null;		/* some key excludes NULL */
	LsmRangeEnd low;			/* in index order */
	LsmRangeEnd high;
	LsmRowKey  *low_row;		/* row comparisons that begin here, or NULL */
	LsmRowKey  *high_row;
	LsmArrayKey *array;			/* the array that drives the scan, or NULL */
} LsmColumnRange;

/* One of the leading columns, which drive the scan. */
typedef struct LsmDriver
{
	LsmBoundColumn value;		/* tuple keys: of the current combination */
	bool		owns_value;		/* the value was copied */
	uint8	   *code;			/* encoded: the code that the column must equal, or NULL */
	uint32		code_len;
	uint32		end;			/* encoded: where the column's part of the prefix ends */
	uint32		fixed_len;		/* encoded: of the codes of values, or 0: it varies */
} LsmDriver;

/* The result of converting a value to a column's type: see lsm_convert_value. */
typedef enum LsmConversion
{
	LSM_CONVERT_EXACT,			/* *low is the value */
	LSM_CONVERT_RANGE,			/* all column values equal to the value are in [*low, *high] */
	LSM_CONVERT_UNEQUAL,		/* as RANGE, and no column value is equal to the value */
	LSM_CONVERT_NONE			/* nothing is known */
} LsmConversion;

/* cross_type.c */
extern LsmConversion lsm_convert_value(Oid column_type, Oid value_type, Datum value,
									   Datum *low, Datum *high);
extern FmgrInfo *lsm_convert_find_order(LsmColumn *column, Oid left, Oid right);
extern bool lsm_convert_is_needed(const LsmScanKeys *keys, int column, Oid subtype);
extern LsmConversion lsm_convert_for_column(LsmScanKeys *keys, int column, Oid subtype, Datum value,
											Datum *low, Datum *high, FmgrInfo **cmp);

/* column_range.c */
extern bool lsm_range_note(LsmScanKeys *keys, int column, StrategyNumber strategy, Oid subtype,
						   Datum value);
extern void lsm_range_note_ends(LsmScanKeys *keys, int column, Datum first, Datum last);

/* array_keys.c */
extern void lsm_arraykey_init(LsmScanKeys *keys, LsmArrayKey *array, ScanKey key);
extern bool lsm_arraykey_drive(LsmScanKeys *keys, LsmArrayKey *array);
extern bool lsm_arraykey_contains(LsmArrayKey *array, Datum value);

/* row_keys.c */
extern LsmRowKey *lsm_rowkey_create(LsmScanKeys *keys, ScanKey header);
extern bool lsm_rowkey_is_tighter(LsmColumn *column, const LsmRowKey *row, const LsmRowKey *other);
extern bool lsm_rowkey_beats(LsmColumn *column, const LsmRowKey *row, const LsmRangeEnd *end);
extern void lsm_rowkey_add(LsmKeySpace *ks, LsmBound *bound, const LsmRowKey *row);
extern int	lsm_rowkey_last_column(ScanKey header);
extern bool lsm_rowkey_pass(ScanKey header, const Datum *values, const bool *isnull);

/* driving_columns.c */
extern void lsm_driving_choose(LsmScanKeys *keys);

#endif							/* LSM_SCANKEY_PARTS_H */
