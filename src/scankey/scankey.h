/*
 * scankey.h
 *	  From scan keys to bounds, array combinations and filters.
 */
#ifndef LSM_SCANKEYS_H
#define LSM_SCANKEYS_H

#include "access/relscan.h"
#include "access/sdir.h"
#include "access/skey.h"
#include "key/keyspace.h"

/* An `= ANY (array)` key: elements without duplicates; see array_keys.c. */
typedef struct LsmArrayKey
{
	ScanKey		key;
	int			column;			/* from 0 */
	int			count;
	Datum	   *elements;
	FmgrInfo   *order;			/* compares the column with an element */
	FmgrInfo   *element_order;	/* compares two elements */
	Oid			local_type;		/* of elements that it sees with their zone; or invalid */
	bool		drives;			/* else it is a filter */
	int			current;		/* element of the current combination */
	uint8	   *codes;			/* elements that drive, encoded */
	uint32	   *code_ends;		/* of element n - 1, where the n-th begins */
} LsmArrayKey;

/* One end of a column's range. */
typedef struct LsmRangeEnd
{
	bool		present;
	bool		inclusive;
	Datum		value;
	FmgrInfo   *cmp;
	uint8	   *code;			/* of columns that are skipped, encoded */
	uint32		code_len;
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

/* One of the leading columns, which drive the scan. */
typedef struct LsmDriver
{
	LsmBoundColumn value;		/* tuple keys: of the current combination */
	bool		owns_value;		/* it was copied */
	uint8	   *code;			/* encoded: what it has to equal, or NULL */
	uint32		code_len;
	uint32		end;			/* encoded: of its part of the prefix */
} LsmDriver;

/* What the value of another type is in terms of a column's: see lsm_convert_value. */
typedef enum LsmConversion
{
	LSM_CONVERT_EXACT,			/* *low is the value */
	LSM_CONVERT_RANGE,			/* equal values lie in [*low, *high] */
	LSM_CONVERT_UNEQUAL,		/* likewise, and there are none */
	LSM_CONVERT_NONE			/* nothing is known */
} LsmConversion;

/* Where an entry is among the combinations. */
typedef enum LsmPlace
{
	LSM_PLACE_IN,				/* in the current one */
	LSM_PLACE_BEHIND,			/* before the current one, behind the one before */
	LSM_PLACE_END				/* behind the last one */
} LsmPlace;

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

	/* Combinations, combinations.c. */
	int			driving;		/* columns that drive the scan */
	bool		has_combinations;	/* else these have one value each */
	bool		are_keys;		/* they are whole keys, as filters know them; */
	bool		are_prefixes;	/* or the first columns of keys, as filters may know them */
	bool		has_range;		/* the column after them is bounded, too */
	MemoryContext context;		/* until the next rescan */
	LsmDriver  *drivers;
	int			known;			/* columns whose value in the current one is known */
	bool		past;			/* it is what comes behind these values */
	bool		is_same;		/* the entry placed last was in the one before it */
	uint8	   *prefix;			/* encoded: these values */
	uint32		prefix_room;
	bool		has_ends;		/* first and last are those of the current one */

	/* Large, and behind all else: clear_keys in preprocess.c. */
	LsmBound	low;			/* of the scan */
	LsmBound	high;
	LsmBound	first;
	LsmBound	last;
} LsmScanKeys;

extern void lsm_scankeys_prepare(LsmScanKeys *keys, LsmKeySpace *ks, ScanKey scan_keys, int count);
extern bool lsm_scankeys_pass(LsmScanKeys *keys, const LsmEntry *entry);

extern bool lsm_scankeys_converts(const LsmScanKeys *keys, int column, Oid subtype);
extern LsmConversion lsm_scankeys_convert(LsmScanKeys *keys, int column, Oid subtype, Datum value,
										  Datum *low, Datum *high, FmgrInfo **cmp);
extern void lsm_scankeys_note_ends(LsmScanKeys *keys, int column, Datum first, Datum last);
extern FmgrInfo *lsm_scankeys_find_order(LsmColumn *column, Oid left, Oid right);

/* array_keys.c */
extern void lsm_arraykey_init(LsmScanKeys *keys, LsmArrayKey *array, ScanKey key);
extern bool lsm_arraykey_drive(LsmScanKeys *keys, LsmArrayKey *array);
extern bool lsm_arraykey_contains(LsmArrayKey *array, Datum value);

/* combinations.c */
extern void lsm_combination_choose(LsmScanKeys *keys);
extern void lsm_combination_begin(LsmScanKeys *keys, ScanDirection direction);
extern LsmPlace lsm_combination_place(LsmScanKeys *keys, const LsmEntry *entry,
									  ScanDirection direction);

extern uint64 lsm_combination_number(const LsmScanKeys *keys);
extern LsmPlace lsm_combination_next(LsmScanKeys *keys, ScanDirection direction);
extern bool lsm_combination_has(LsmScanKeys *keys, const LsmEntry *entry);
extern void lsm_combination_bound(LsmScanKeys *keys, LsmBound *bound, bool is_low);

/* row_keys.c */
extern LsmRowKey *lsm_rowkey_create(LsmScanKeys *keys, ScanKey header);
extern bool lsm_rowkey_is_tighter(LsmColumn *column, const LsmRowKey *row, const LsmRowKey *other);
extern bool lsm_rowkey_beats(LsmColumn *column, const LsmRowKey *row, const LsmRangeEnd *end);
extern void lsm_rowkey_add(LsmKeySpace *ks, LsmBound *bound, const LsmRowKey *row);
extern int	lsm_rowkey_last_column(ScanKey header);
extern bool lsm_rowkey_pass(ScanKey header, const Datum *values, const bool *isnull);

/* cross_type.c */
extern LsmConversion lsm_convert_value(Oid column_type, Oid value_type, Datum value,
									   Datum *low, Datum *high);

#endif							/* LSM_SCANKEYS_H */
