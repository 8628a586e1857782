/*
 * scankey.h
 *	  Turns scan keys into bounds, combinations and filters.
 */
#ifndef LSM_SCANKEY_H
#define LSM_SCANKEY_H

#include "access/relscan.h"
#include "access/sdir.h"
#include "access/skey.h"
#include "key/keyspace.h"

/* The place of an entry among the combinations. */
typedef enum LsmPlace
{
	LSM_PLACE_IN,				/* in the current one */
	LSM_PLACE_BEFORE,			/* between the previous one and the current one */
	LSM_PLACE_OUTSIDE,			/* in none; which one comes next is not known */
	LSM_PLACE_END				/* after the last one */
} LsmPlace;

typedef struct LsmScanKeys
{
	LsmKeySpace *ks;
	bool		impossible;		/* no row can satisfy the keys */
	int			array_count;
	struct LsmArrayKey *arrays;
	struct LsmColumnRange *columns; /* one for each key column */
	int			filter_count;
	ScanKey    *filters;		/* keys that the bounds do not imply, except arrays */
	int			filter_columns; /* number of leading columns needed to check filters and arrays */

	/* Combinations, combinations.c. */
	int			driving;		/* the number of driving columns */
	bool		has_combinations;	/* otherwise the driving columns have one value each */
	bool		are_keys;		/* combinations are whole keys, which filters know; */
	bool		are_prefixes;	/* or the first columns of keys, which filters may know */
	bool		has_range;		/* the column after the driving ones is bounded, too */
	bool		can_filter;		/* a column is skipped, and lsm_combination_find can test entries */
	MemoryContext context;		/* until the next rescan */
	struct LsmDriver *drivers;
	int			known;			/* columns whose value in the current combination is known */
	bool		past;			/* the current combination is whatever comes after these values */
	bool		is_same;		/* the entry placed last has the values that were current before */
	uint8	   *prefix;			/* encoded: the known values */
	uint32		prefix_room;
	bool		has_ends;		/* first and last are those of the current combination */

	/* Large, so they come last: see clear_keys in preprocess.c. */
	LsmBound	low;			/* of the scan */
	LsmBound	high;
	LsmBound	first;			/* of the current combination */
	LsmBound	last;
} LsmScanKeys;

/* preprocess.c */
extern void lsm_scankeys_prepare(LsmScanKeys *keys, LsmKeySpace *ks, ScanKey scan_keys, int count);
extern bool lsm_scankeys_pass(LsmScanKeys *keys, const LsmEntry *entry);

/* combinations.c */
extern void lsm_combination_begin(LsmScanKeys *keys, ScanDirection direction);
extern LsmPlace lsm_combination_place(LsmScanKeys *keys, const LsmEntry *entry,
									  ScanDirection direction);
extern LsmPlace lsm_combination_next(LsmScanKeys *keys, ScanDirection direction);
extern uint64 lsm_combination_number(const LsmScanKeys *keys);
extern int	lsm_combination_find(LsmScanKeys *keys, const LsmEntry *entry, int stride, int count);
extern bool lsm_combination_has(LsmScanKeys *keys, const LsmEntry *entry);
extern void lsm_combination_bound(LsmScanKeys *keys, LsmBound *bound, bool is_low);

#endif							/* LSM_SCANKEY_H */
